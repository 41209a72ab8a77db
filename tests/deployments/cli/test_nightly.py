"""``lookout nightly`` as a process, on the log that the demo Space itself writes, without any mapping."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from deployments.demo.bot import TURNS, TurnLog
from flows.data_folder import open_store_in
from flows.process_lock import hold_job_lock_without_waiting
from tests import fork_server
from tests.flows.demo_nightly_runs import SUITE, replies
from tests.in_process import run_in_process
from tests.servers.export import ExportServer, document
from tests.stable_text import replace_volatile

ENDED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
UNTIL = ("--until", "2026-03-01T02:00")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """Return a folder with a log and a configuration that reads this log.

    The demo Space wrote the log, which has 25 turns.
    """
    shutil.copy(SUITE, tmp_path / "suite.jsonl")
    log = TurnLog(tmp_path)
    for number, (question, reply) in enumerate(list(replies().items())[:25]):
        at = ENDED - timedelta(minutes=number + 1)
        log.write(at=at, session_id=f"s{number}", question=question, reply=reply, latency_ms=900.0)
    (tmp_path / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
        f'[targets.demo.traffic.sources.turns]\nkind = "file"\nat = "{TURNS}"\n[targets.demo.traffic.sampling]\nnumber = 10\n'
    )
    return tmp_path


def plan(folder: Path, *options: str, until: str = UNTIL[1]):
    """Run ``lookout nightly --plan``, which needs no server."""
    arguments = ("nightly", "--plan", "--until", until, *options)
    return run_in_process(*arguments, cwd=folder, env=fork_server.bare(COLUMNS="300"))


@pytest.mark.whole_only
@pytest.mark.prefect
def test_the_plan_is_shown_before_anything_is_spent_then_the_night_is_graded(space, lookout):
    planned = plan(space, "--json")
    assert planned.returncode == 0, planned.stderr
    strata = json.loads(planned.stdout)["strata"]
    assert [(one["conversations"], one["sampled"]) for one in strata] == [(25, 10)]
    graded = lookout("nightly", "--json", *UNTIL, cwd=space)
    assert graded.returncode == 0, graded.stderr
    report = json.loads(graded.stdout)
    assert (report["read"], report["sampled"], report["graded_by"]) == (25, 10, "rules")
    assert report["issue_count"] == 0
    assert report["severe"]["rate"] == 0
    assert json.loads(lookout("nightly", "--json", *UNTIL, cwd=space).stdout) == report
    assert json.loads(lookout("report", report["run_id"], "--json", cwd=space).stdout) == report
    assert "demo: nightly run, conversations until" in lookout("report", report["run_id"], cwd=space).stdout


@pytest.mark.prefect
def test_prefect_shows_the_night_s_report_and_links_to_the_site(space, lookout, prefect_environment):
    with (space / "lookout.toml").open("a") as config:
        config.write('[alerts]\nsite_url = "https://lookout.example.com/watch"\n')
    graded = lookout("nightly", "--json", *UNTIL, cwd=space)
    assert graded.returncode == 0, graded.stderr
    run_id = json.loads(graded.stdout)["run_id"]
    with httpx.Client(base_url=prefect_environment["PREFECT_API_URL"], trust_env=False) as server:
        artifacts = server.post("/artifacts/filter", json={"sort": "CREATED_DESC"}).json()
    night = {
        artifact["key"]: artifact["data"]
        for artifact in reversed(artifacts)
        if (artifact["key"] or "").startswith("night")
    }
    assert night["night-demo"] == (space / "data" / "runs" / run_id / "results.md").read_text(encoding="utf-8")
    assert f"(https://lookout.example.com/watch/runs/{run_id}/report)" in night["night-demo-report"]
    (space / "data" / "runs" / run_id / "results.md").unlink()  # old files are deleted by age
    assert lookout("nightly", "--json", *UNTIL, cwd=space).stdout == graded.stdout


@pytest.mark.prefect
def test_f99_a_second_night_of_one_target_is_refused_without_an_alert(space, lookout):
    with hold_job_lock_without_waiting(space / "data" / "runs", "a nightly run of demo"):
        refused = lookout("nightly", "--json", *UNTIL, cwd=space)
    assert refused.returncode == 2, refused.stderr
    assert "a nightly run of demo is already running" in " ".join(refused.stderr.split())
    assert open_store_in(space / "data").list_open_incidents("demo") == ()


def question(number: int, **changes: object) -> str:
    ended = ENDED - timedelta(minutes=number + 1)
    row = {"ts": ended.isoformat(), "question": f"How long do I have, once more {number}?", "answer": "30 days."}
    return json.dumps(row | changes) + "\n"


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """Return a folder with a configuration that reads live traffic from ``turns.jsonl``, which each test writes."""
    shutil.copy(SUITE, tmp_path / "suite.jsonl")
    (tmp_path / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
        '[targets.demo.traffic.sources.turns]\nkind = "file"\nat = "turns.jsonl"\n'
    )
    return tmp_path


def test_the_plan_says_what_is_missing_and_what_cannot_be_used(logged, snapshot):
    missing = plan(logged)
    assert missing.returncode == 3, missing.stderr
    assert missing.stdout.replace(str(logged), "FOLDER") == snapshot(name="missing")
    unusable = [question(number).replace("answer", "odd") for number in range(20, 58)]
    (logged / "turns.jsonl").write_text("".join([question(1), question(1), question(2), *unusable]))
    found = plan(logged)
    assert found.returncode == 0, found.stderr
    assert found.stdout.replace(str(logged), "FOLDER") == snapshot(name="unusable")
    read = json.loads(plan(logged, "--json").stdout)["reading"]
    assert (read["read"], read["repeated"], read["issue_count"]) == (2, 1, 38)


def test_rows_that_share_a_request_are_conversations_of_their_own(logged):
    rows = [question(number, request_id=f"r-{number % 35}") for number in range(552)]
    (logged / "turns.jsonl").write_text("".join(rows))
    reading = json.loads(plan(logged, "--json").stdout)["reading"]
    assert (reading["read"], reading["issue_count"]) == (552, 0)


@pytest.mark.parametrize(
    ("until", "read"),
    [
        ("2026-03-01T02:00:00Z", 3),
        ("2026-03-01T02:00Z", 3),
        ("2026-03-01T07:30:00+05:30", 3),
        ("2026-03-01T01:58:30Z", 2),
    ],
)
def test_the_end_of_the_night_may_name_its_zone(logged, until, read):
    (logged / "turns.jsonl").write_text("".join(question(number, id=f"q{number}") for number in range(3)))
    planned = plan(logged, "--json", until=until)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["reading"]["read"] == read


def test_a_page_that_looks_full_is_not_taken_for_all_there_is(logged, snapshot):
    items = [json.loads(question(number)) for number in range(100)]
    text = (logged / "lookout.toml").read_text()
    with ExportServer(items, size=200) as server:
        server.answers["one"] = document({"data": items})
        url = f'kind = "http"\nurl = "{server.url}/other/one"'
        (logged / "lookout.toml").write_text(text.replace('kind = "file"\nat = "turns.jsonl"', url))
        found = plan(logged)
    assert found.returncode == 0, found.stderr
    assert replace_volatile(found.stdout) == snapshot


def test_one_kind_of_risk_does_not_take_the_whole_sample(logged, snapshot):
    """Each kind of risk gets a part of the sample, so that no kind takes it all.

    In this test, 60 of 850 conversations are sampled, and 150 contain a disclosure. Each stratum has a minimum, and
    the largest stratum gets the most.
    """
    leak, other = "Write to asha.verma.1987@gmail.com about her claim.", "आपके पास नवीनीकरण के लिए तीस दिन हैं।"
    rows = [question(number, answer=leak, id=f"l{number}") for number in range(150)]
    rows += [question(number, thumb="down", id=f"d{number}") for number in range(40)]
    rows += [
        question(number, question="मुझे कब तक नवीनीकृत करना है?", answer=other, id=f"h{number}") for number in range(60)
    ]
    rows += [question(number, id=f"c{number}") for number in range(600)]
    (logged / "turns.jsonl").write_text("".join(rows))
    with (logged / "lookout.toml").open("a") as config:
        config.write('[targets.demo.traffic.sampling]\nmode = "stratified"\nnumber = 60\n')
    planned = json.loads(plan(logged, "--json").stdout)
    sampled = {one["stratum"]: one["sampled"] for one in planned["strata"]}
    assert sum(sampled.values()) == 60
    assert sampled["rest"] >= 25
    assert min(sampled.values()) >= 5
    assert plan(logged).stdout.replace(str(logged), "FOLDER") == snapshot


@pytest.mark.whole_only
@pytest.mark.prefect
def test_the_plan_shows_the_interval_that_the_sample_buys_for_each_rate(space, lookout, snapshot):
    """The plan shows, for each rate, the expected interval for the planned sample size.

    The plan first assumes a value for each rate, and later uses the rates of earlier nights. Rules grade these
    nights, because no judge is configured.
    """
    assumed = json.loads(plan(space, "--json").stdout)["rates"]
    assert [(rate["learnt"], rate["expected_rate"]) for rate in assumed] == [(False, 0.01)] * 2
    assert plan(space).stdout.replace(str(space), "FOLDER") == snapshot
    assert lookout("nightly", "--json", *UNTIL, cwd=space).returncode == 0
    log = TurnLog(space)
    for number, (asked, reply) in enumerate(list(replies().items())[25:50]):
        at = ENDED + timedelta(minutes=number + 1)
        log.write(at=at, session_id=f"n{number}", question=asked, reply=reply, latency_ms=900.0)
    planned = plan(space, "--json", until="2026-03-02T02:00")
    severe, failed = json.loads(planned.stdout)["rates"]
    assert severe["learnt"]
    assert failed["learnt"]
    assert 0 < severe["expected_rate"] < 0.01
    assert 0 <= failed["low"] <= failed["expected_rate"] < failed["high"] < 0.5
