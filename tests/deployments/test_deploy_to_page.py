"""Tests from a deploy to an alert with real parts: each step follows the previous one and happens once."""

from __future__ import annotations

import json
import sys

import pytest

from tests.deployments.deploy_to_page import first, follow_killed, followed, is_severe, is_verdict
from tests.deployments.triggers.senders import COMMIT
from tests.deployments.up_process import plant_packages
from tests.flows.few_cases import LEAK, few_cases

ORDER = (
    "delivery sent",
    "delivery acknowledged",
    "run started",
    "first question asked",
    "first severity-3 alert sent",
    "verdict message sent",
    "run over",
)


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_a_signed_delivery_becomes_one_run_one_page_and_one_verdict_by_processes_of_their_own(tmp_path):
    plant_packages(tmp_path)  # packages of the same names must have no effect on `lookout up` and its runs
    suite = few_cases(tmp_path, severe=3, others=5)
    asked = [json.loads(line)["question"] for line in suite.read_text(encoding="utf-8").splitlines()]
    way = followed(tmp_path, "--delay-s", "0.05", suite=suite)

    assert way.answers == (202, 200)
    (run,) = way.runs
    assert run["state_name"] == "Fail"
    assert sorted(way.questions) == sorted(asked)

    severe, verdicts = [m for m in way.messages if is_severe(m)], [m for m in way.messages if is_verdict(m)]
    assert (len(severe), len(verdicts)) == (1, 1)
    assert all(LEAK in message["text"] or is_verdict(message) for message in way.messages)
    assert all(COMMIT[:10] in message["text"] for message in (*severe, *verdicts))

    at = {leg.name: leg.at for leg in way.legs}
    assert [at[name] for name in ORDER] == sorted(at[name] for name in ORDER), at

    pids = [pid for found in way.processes.values() for pid in found]
    assert all(way.processes.values()), way.processes
    assert len(pids) == len(set(pids))


@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.whole_only
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_f98_a_run_whose_engine_is_killed_after_two_answers_is_taken_up_again_by_itself(tmp_path):
    suite = few_cases(tmp_path, severe=3, others=9)
    asked = [json.loads(line)["question"] for line in suite.read_text(encoding="utf-8").splitlines()]
    way = follow_killed(tmp_path, suite, answers=2)
    assert sorted(run["state_name"] for run in way.runs) == ["Crashed", "Fail"]
    assert set(way.questions) == set(asked)
    assert len(way.questions) < 2 * len(asked) - 2, "the answers that arrived are not asked for again"
    assert len([message for message in way.messages if is_verdict(message)]) == 1
    assert len([message for message in way.messages if is_severe(message)]) == 1


def test_severe_alerts_and_verdicts_are_classified():
    """Alerts about severe failures are distinguished from the message of the gate, which also has severity 3.

    An edit does not count as a new message.
    """
    leak = {"text": "🔴 SEV 3 · Personal data disclosed · demo", "edits": 0}
    gate = {"text": "🔴 SEV 3 · Gate FAIL · demo", "edits": 0}
    assert first([gate, {**leak, "edits": 1}, leak], is_severe) is leak
    assert first([leak, {**gate, "edits": 1}, gate], is_verdict) is gate
