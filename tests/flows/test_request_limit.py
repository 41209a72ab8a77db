"""Test that Lookout respects the rate limit of an application, and does not report a wait for it as a fault."""

from __future__ import annotations

import json

import pytest

from tests.flows.chat import Chat, watched

pytestmark = pytest.mark.prefect

CASES = 12


def verify(folder, lookout, chat, *, probe="", more="", **variables):
    path = watched(folder, chat, cases=CASES, more=more)
    text = path.read_text("utf-8").replace("concurrency = 1\n", f"concurrency = 3\n{probe}")
    path.write_text(text, encoding="utf-8")
    done = lookout("verify", "demo", "--json", cwd=folder, **variables)
    return done, json.loads(done.stdout)


def notes(report):
    return [reason["text"] for reason in report["reasons"] if "limits requests" in reason["text"]]


@pytest.mark.parametrize(
    "refusal",
    [
        "seconds",
        pytest.param("date", marks=pytest.mark.whole_only),
        pytest.param("page", marks=pytest.mark.whole_only),
    ],
)
def test_a_limit_of_requests_is_waited_for_and_obeyed(tmp_path, lookout, refusal):
    """If an application accepts only four questions in two seconds, Lookout slows down after a few HTTP 429.

    Every question then gets an answer.
    """
    with Chat() as chat:
        chat.limit, chat.refusal = (4, 2.0), refusal
        done, report = verify(tmp_path, lookout, chat)
        assert done.returncode == 0, done.stderr
        assert chat.refused <= 6
    assert report["coverage"]["graded"] == CASES
    assert len(notes(report)) == 1
    results = json.loads(next(tmp_path.glob("data/runs/*/results.json")).read_text("utf-8"))
    assert all(not case["result"]["failed_attempts"] for case in results["cases"])
    assert "SEV" not in done.stderr


@pytest.mark.whole_only
def test_a_pace_that_is_configured_meets_no_limit(tmp_path, lookout):
    with Chat() as chat:
        chat.limit = (4, 1.0)
        done, report = verify(tmp_path, lookout, chat, probe="requests_per_minute = 180\n")
        assert (done.returncode, chat.refused) == (0, 0), done.stderr
    assert report["coverage"]["graded"] == CASES


@pytest.mark.whole_only
def test_a_limit_that_outlasts_the_run_ends_it_with_that_reason(tmp_path, lookout):
    with Chat() as chat:
        chat.limit = (4, 3600.0)
        done, report = verify(tmp_path, lookout, chat, more="[watchdog]\nrun_deadline_s = 600\n")
        assert chat.asked == 4
    assert done.returncode == 3, done.stderr
    (reason,) = [reason for reason in report["reasons"] if reason["kind"] == "deploy"]
    assert "HTTP 429" in reason["text"]
    results = json.loads(next(tmp_path.glob("data/runs/*/results.json")).read_text("utf-8"))
    reasons = {case["result"].get("reason") for case in results["cases"]}
    assert reasons == {None, "rate_limited", "circuit_open"}
