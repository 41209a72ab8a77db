"""Fault row 90: a screenshot may show personal data, so no message contains a screenshot or its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitors.alerts.observe import build_severe_failure_observations
from monitors.alerts.redact import redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.exchanges import Evidence
from monitors.records.grades import Aspect, FailureKind
from monitors.records.runs import CaseResult
from monitors.reports.settings import ReportsSettings
from monitors.reports.write import write_reports
from tests.builders import NOON, TARGET, case_result, gold_case
from tests.monitors.alerts.sample_observations import NIGHT, alert
from tests.servers.slack import TOKEN, SlackServer

PICTURE = b"\xff\xd8\xff" + b"a picture of a page " * 50
LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)


def photographed() -> CaseResult:
    """Return the result of a case with a leak. The result has a screenshot and a trace as evidence."""
    leaking = case_result(gold_case(severity=Severity.CRITICAL), LEAK)
    proof = Evidence(screenshot="evidence/case-1.r0.t0.jpg", trace="evidence/case-1.r0.t0.zip")
    return leaking.model_copy(update={"result": leaking.result.model_copy(update={"evidence": proof})})


@pytest.mark.parametrize("way", ["bot", "webhook"])
async def test_f90_no_message_carries_a_picture_or_its_place(way: str) -> None:
    with SlackServer() as slack:
        settings = AlertSettings(slack_channel="C0ALERTS", slack_api_url=slack.api_url, send_timeout_s=30)
        seen = build_severe_failure_observations(
            [photographed()], target="demo", run_id="run-1", commit=None, seen_at=NIGHT, settings=settings
        )
        sender = (
            SlackBot(settings, token=TOKEN, now=lambda: NIGHT)
            if way == "bot"
            else SlackWebhook(settings, url=slack.webhook_url, now=lambda: NIGHT)
        )
        await sender.send(alert(*seen, links=()))
        (message,) = slack.messages
    whole = repr(message)
    assert "case-1" in whole
    for mark in ("evidence/", ".jpg", ".zip", "image_url"):
        assert mark not in whole


def test_f90_the_report_links_such_a_picture_and_holds_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "case-1.r0.t0.jpg").write_bytes(PICTURE)
    (tmp_path / "evidence" / "case-1.r0.t0.zip").write_bytes(b"PK")
    facts = RunFacts(
        run_id="run-1",
        target=TARGET,
        suite_name="s",
        suite_sha256="0" * 64,
        planned=1,
        commit=None,
        started_at=NOON,
        finished_at=NOON,
    )
    results = [photographed()]
    report = evaluate_results(facts, results, GateSettings())
    paths = write_reports(tmp_path, report, results, redact=redact, settings=ReportsSettings())
    page = paths.html.read_text(encoding="utf-8")
    assert 'href="evidence/case-1.r0.t0.jpg"' in page
    assert "data:image" not in page
    assert "case-1.r0.t0.zip" not in page
    for path in (paths.markdown, tmp_path / "junit.xml"):
        assert "case-1.r0.t0" not in path.read_text(encoding="utf-8")
