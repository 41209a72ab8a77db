"""Test that the scores of a night are written to LangSmith once, and that a LangSmith error does not fail a run."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest

from monitors.sources.traffic.langsmith import LangSmithTrafficSource
from monitors.sources.traffic.settings import LangSmithTraffic
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import format_stable_messages
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY, Nights, file_source, talk
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.langsmith import LangSmithServer
from tests.servers.slack import SlackServer

KEY = "lsv2_pt_hush"


def run(number: int, reply: str) -> dict[str, Any]:
    """Build a LangSmith root run that ended an hour before the end of the night."""
    start = NIGHT - timedelta(hours=1) + timedelta(seconds=number)
    return {
        "id": str(uuid.UUID(int=number + 1)),
        "start_time": start.isoformat(),
        "end_time": (start + timedelta(seconds=1)).isoformat(),
        "latency_seconds": 1.0,
        "inputs": {"question": "How long do I have?"},
        "outputs": {"answer": reply},
    }


@pytest.fixture
def langsmith(monkeypatch):
    for name in ("ENDPOINT", "API_KEY", "WORKSPACE_ID", "PROFILE", "CONFIG_FILE"):
        monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)
    with LangSmithServer([run(0, PLAIN_REPLY), run(1, LEAK), run(2, PLAIN_REPLY)], key=KEY) as server:
        yield server


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


async def no_pause(_seconds: float) -> None:
    """Replace the pause before a retry: return at once."""


@pytest.fixture
def nights(tmp_path, slack, langsmith):
    (tmp_path / "data").mkdir()
    nights = Nights(
        tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"), write_back=True
    )
    settings = {"kind": "langsmith", "project": "bot", "api_url": langsmith.url}
    nights.sources = {
        "smith": LangSmithTrafficSource(LangSmithTraffic.model_validate(settings), key=KEY, sleep=no_pause)
    }
    return nights


def given(server: LangSmithServer) -> dict[tuple[int, str], float]:
    """Return the scores that LangSmith received, keyed by the number of the run and the name of the score."""
    return {(uuid.UUID(one["run_id"]).int - 1, one["key"]): one["score"] for one in server.feedback.values()}


@pytest.mark.whole_only
async def test_a_conversation_gets_the_scores_that_are_known_of_it(nights, langsmith):
    """A conversation gets only known scores: without a fact check, it gets no score for correctness."""
    await nights.grade()
    assert given(langsmith) == {(1, "lookout_correct"): 0.0, (1, "lookout_severity"): 0.0}
    assert "asha.verma" not in json.dumps(list(langsmith.feedback.values()))


async def test_written_again_it_is_the_same_scores(nights, langsmith, monkeypatch):
    """Scores that are written a second time, for example after a kill, are not duplicated."""
    monkeypatch.setattr("flows.nightly.checkpoint.NightlyCheckpoint.store_report_and_finish", _killed)
    with pytest.raises(KeyboardInterrupt):
        await nights.grade()
    monkeypatch.undo()
    before = dict(langsmith.feedback)
    assert len(before) == 2
    report = await nights.grade()
    assert report.sampled == 3
    assert langsmith.feedback.keys() == before.keys()


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.whole_only
async def test_unwritable_scores_alert_and_recover_without_losing_the_run(nights, langsmith, slack, snapshot):
    langsmith.faults["/feedback"] = [403] * 50
    report = await nights.grade()
    assert report.sampled == 3
    assert nights.loaded("select count(*) from nightly_runs") == [(1,)]
    (fault_message,) = [message for message in slack.messages if message.channel == "C0MONITOR"]
    assert KEY not in json.dumps(fault_message.blocks)
    langsmith.faults.clear()
    langsmith.runs.append(run(4 * 3600, PLAIN_REPLY))
    await nights.grade(1)
    over = [message for message in slack.messages if message.channel == "C0MONITOR"][-1]
    assert over.thread_ts == fault_message.ts
    assert format_stable_messages([fault_message, over]) == snapshot


async def test_nothing_is_written_unless_that_is_wished(nights, langsmith):
    nights.settings = nights.settings.model_copy(update={"write_back": False})
    await nights.grade()
    assert langsmith.feedback == {}


async def test_a_source_that_keeps_no_scores_is_passed_over(nights, langsmith, slack):
    nights.sources = {**nights.sources, "log": file_source(nights.log)}
    nights.append(talk(1))
    report = await nights.grade()
    assert (report.sampled, len(langsmith.feedback)) == (4, 2)
    assert all(message.channel != "C0MONITOR" for message in slack.messages)
