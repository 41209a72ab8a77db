"""Test nightly runs over the finished jobs of an agent: valid reports are rated, in addition to grades by rule."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.nightly.context import build_nightly_context
from flows.nightly.run import NightlyRun
from monitors.config.file import parse_config
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind
from monitors.records.runs import JudgeState
from monitors.sources.traffic.langsmith import LangSmithTrafficSource
from monitors.sources.traffic.settings import LangSmithTraffic
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.judged_run import judge_at, with_key
from tests.flows.nightly_runs import PLAIN_REPLY, Nights, stable_report, talk
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.anthropic import AnthropicServer
from tests.servers.export import ExportServer
from tests.servers.langsmith import LangSmithServer
from tests.servers.slack import SlackServer

ISSUE_URL = "https://github.com/acme/jobs/issues/{}"
KNOWN = [
    {
        "issue_url": ISSUE_URL.format(number),
        "issue_title": f"Something stops working after a while, number {number}",
        "issue_body": "It was fine last week.",
        "severity": 2,
        "reference": {
            "severity": "high",
            "root_cause": cause,
            "relevant_files": [f"jobs/part_{number}.py"],
            "shortest_path": 1,
        },
    }
    for number, cause in enumerate(
        ["the export lock is never released when the writer raises", "the retry counter is never set back to zero"]
    )
]
GOOD = {
    "severity": "high",
    "root_cause": "The export takes the lock and never gives it back when the disk is full.",
    "relevant_files": ["jobs/export.py"],
    "recommended_fix": "Release the lock in a finally block, and write a test with a full disk.",
}
ASTRAY = GOOD | {
    "root_cause": "Sunny weather makes people cheerful in summer.",
    "relevant_files": ["docs/index.md"],
}


def job(number: int, report: object, **changes: Any) -> str:
    """Return a finished job with its report, as a service stores it."""
    ended = NIGHT - timedelta(hours=2) + timedelta(seconds=number)
    row = {
        "id": f"job-{number}",
        "status": "done",
        "completed_at": ended.isoformat(),
        "issue_url": ISSUE_URL.format(100 + number),
        "issue_title": "The export hangs when the disk is full",
        "issue_body": "Every later export waits for a lock.",
        "report": report,
    }
    return json.dumps(row | changes) + "\n"


def known_suite(folder: Path) -> None:
    (folder / "suite.jsonl").write_text("\n".join(map(json.dumps, KNOWN)), encoding="utf-8")


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def provider():
    with AnthropicServer() as server:
        yield server


@pytest.fixture
def nights(tmp_path, slack, monkeypatch):
    (tmp_path / "data").mkdir()
    with_key(monkeypatch)
    known_suite(tmp_path)
    return Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


def judged_at(provider: AnthropicServer, **settings: Any) -> dict[str, Any]:
    base = {"deadline_s": 60, "try_s": 30, "tries": 2, "most_pause_s": 1, "batch_poll_s": 0.05}
    return base | judge_at(provider, **settings)


def results(nights: Nights, run: NightlyRun) -> dict[str, Any]:
    del nights
    return {one.case.id: one for one in run._checkpoint.load_results()}


async def test_reports_are_rated_and_the_night_says_how_useful_they_are(
    nights: Nights, provider: AnthropicServer, snapshot
):
    nights.judge = judged_at(provider)
    nights.append(
        *(job(number, GOOD if number < 7 else ASTRAY) for number in range(9)), job(9, {"severity": "TBD"})
    )
    run = NightlyRun(nights.wired())
    report = await run.run()
    assert report.reports is not None
    assert (report.reports.reports, report.reports.rated, report.reports.mean) == (10, 9, pytest.approx(32 / 9))
    assert (report.judging.state, report.judging.judged, report.judging.void_groups) == (JudgeState.ON, 9, 0)
    assert stable_report(report) == snapshot
    (batch,) = provider.batches.values()
    sent = json.dumps(batch.requests)
    assert "export waits for" in sent
    assert "the retry counter" in sent, "known reports ride along"
    assert "live traffic: there" not in sent
    kinds = {case: one.assessment.failure_kinds for case, one in results(nights, run).items()}
    assert kinds.pop("job-9:1") == (FailureKind.FORMAT,)
    assert set(kinds.values()) == {()}


@pytest.mark.whole_only
async def test_an_issue_of_the_suite_is_graded_as_its_case(nights: Nights, provider: AnthropicServer):
    nights.judge = judged_at(provider)
    calls = [{"name": "search", "arguments": {"q": "lock"}, "duration_ms": 1200}] * 4
    nights.append(job(1, GOOD, issue_url=ISSUE_URL.format(0), steps=calls), job(2, GOOD))
    run = NightlyRun(nights.wired())
    await run.run()
    found = results(nights, run)
    known = found["job-1:1"].assessment
    assert known.failure_kinds == (FailureKind.POOR_TRIAGE, FailureKind.INEFFICIENT)
    (steps,) = (grade.reason for grade in known.grades if grade.grader == "steps")
    assert [int(number) for number in re.findall(r"\d+", steps)] == [4, 2, 3], "steps, limit, repetitions"
    exchange = found["job-1:1"].result
    assert isinstance(exchange, Exchange)
    assert [step.duration_ms for step in exchange.evidence.steps] == [1200] * 4
    assert found["job-2:1"].assessment.failure_kinds == ()


async def test_rows_without_a_report_are_graded_as_ever(nights: Nights, provider: AnthropicServer):
    nights.judge = judged_at(provider)
    nights.append(talk(1, PLAIN_REPLY), talk(2, PLAIN_REPLY, issue_title="only a field"), job(3, ""))
    report = await nights.grade()
    assert report.reports is None
    assert report.read == 3
    assert not provider.batches


async def test_without_a_judge_nothing_is_rated_and_without_known_reports_neither(
    nights: Nights, provider, tmp_path, snapshot
):
    nights.append(job(1, GOOD))
    report = await nights.grade()
    assert report.reports is not None
    assert (report.reports.rated, report.reports.mean) == (0, None)
    assert stable_report(report) == snapshot(name="report without a judge")
    (tmp_path / "suite.jsonl").unlink()
    nights.judge = judged_at(provider)
    nights.append(job(90_000, GOOD, completed_at=(NIGHT + timedelta(hours=2)).isoformat()))
    run = NightlyRun(nights.wired(1))
    later = await run.run()
    assert later.reports is not None
    assert later.reports.rated == 0
    assert later.judging.why == snapshot(name="why nothing was rated")
    (one,) = results(nights, run).values()
    (usefulness,) = (grade for grade in one.assessment.grades if grade.aspect is Aspect.USEFULNESS)
    assert isinstance(usefulness, Abstained)


async def test_personal_data_in_issue_steps_and_report_is_not_stored(nights: Nights):
    mail = "asha.verma.1987@gmail.com"
    calls = [{"name": "search", "arguments": {"q": f"mail of {mail}"}}]
    nights.append(job(1, GOOD | {"recommended_fix": f"Ask {mail}."}, issue_body=f"Says {mail}.", steps=calls))
    await nights.grade()
    assert b"asha.verma.1987" not in nights.stored_bytes()


async def test_a_night_reads_production_s_export_with_production_s_key(tmp_path, slack, provider, monkeypatch):
    """A nightly run reads stored jobs over HTTP with the key of the production service, and rates a sample of ten.

    The agent itself is not asked.
    """
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    with_key(monkeypatch)
    monkeypatch.setenv("PRODUCTION_KEY", "a-key")
    known_suite(tmp_path)
    with ExportServer([json.loads(job(number, GOOD)) for number in range(14)], token="a-key") as export:
        config = parse_config(
            {
                "data_folder": str(tmp_path / "data"),
                "targets": {
                    "agent": {
                        "url": "http://127.0.0.1:9/jobs",
                        "environment": "production",
                        "suite": str(tmp_path / "suite.jsonl"),
                        "model_family": "gpt",
                        "langsmith": {"project": "agent-prod", "production_project": "agent-prod"},
                        "traffic": {
                            "sources": {
                                "jobs": {
                                    "kind": "http",
                                    "url": f"{export.url}/links",
                                    "token_env": "PRODUCTION_KEY",
                                }
                            }
                        },
                    }
                },
                "alerts": {"slack_api_url": slack.url, "slack_channel": "C0ALERTS"},
                "judge": judged_at(provider),
            },
            "here",
        )
        report = await NightlyRun(build_nightly_context(config, "agent", NIGHT)).run()
    assert (report.due_at.hour, report.read, report.sampled) == (2, 14, 10)
    assert report.reports is not None
    assert (report.reports.rated, report.reports.mean) == (10, 4.0)


def production_run(number: int, report: object) -> dict[str, Any]:
    """Return a finished job as LangSmith stores it: the issue is in the inputs, the report in the outputs."""
    start = NIGHT - timedelta(hours=1) + timedelta(seconds=number)
    issue = json.loads(job(number, report))
    return {
        "id": str(uuid.UUID(int=number + 1)),
        "start_time": start.isoformat(),
        "end_time": (start + timedelta(seconds=1)).isoformat(),
        "latency_seconds": 1.0,
        "inputs": {name: issue[name] for name in ("issue_url", "issue_title", "issue_body")},
        "outputs": {"report": report},
    }


@pytest.mark.whole_only
async def test_ratings_of_production_jobs_are_written_back_and_a_low_average_alerts(
    nights: Nights, provider: AnthropicServer, slack: SlackServer
):
    """Ratings of production jobs are written back to LangSmith with their criteria, and a low average alerts."""
    reports = [production_run(number, GOOD) for number in range(10)]
    with LangSmithServer(reports, key="lsv2_pt_hush") as langsmith:
        settings = {"kind": "langsmith", "project": "bot", "api_url": langsmith.url}
        traffic = LangSmithTraffic.model_validate(settings)
        nights.sources = {"smith": LangSmithTrafficSource(traffic, key="lsv2_pt_hush")}
        nights.settings = nights.settings.model_copy(update={"write_back": True})
        nights.judge = judged_at(provider)
        provider.judge.ratings = {"finally block": 2}
        report = await nights.grade()
        assert report.reports is not None
        assert (report.reports.rated, report.reports.mean) == (10, 2)
        scores = Counter((row["key"], row["score"]) for row in langsmith.feedback.values())
        assert scores == {
            ("lookout_usefulness", 0.25): 10,
            ("lookout_usefulness_helpfulness", 0): 10,
            ("lookout_usefulness_completeness", 1): 10,
            ("lookout_usefulness_accuracy", 0): 10,
        }
    quotes = nights.loaded("select accuracy_quote, count(*) from rated_reports group by all")
    assert quotes == [(GOOD["root_cause"], 10)]
    [alert] = [message for message in slack.messages if message.channel == "C0ALERTS"]
    assert "below 4: " in json.dumps(alert.blocks)
