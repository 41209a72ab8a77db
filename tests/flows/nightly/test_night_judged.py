"""Test nightly runs without a judge, and with a judge that grades batches with canaries at a local provider."""

from __future__ import annotations

import json

import pytest

from flows.nightly.format import format_nightly_report
from monitors.records.estimates import RateEstimate, RateUnknown
from monitors.records.incidents import IncidentKind, NotifyReason
from monitors.records.runs import JudgeState
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.judged_run import judge_at, with_key
from tests.flows.messages import format_messages
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY, Nights, stable_report, talk
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge
from tests.servers.slack import SlackServer

PASSAGE = "The grace period: a customer has thirty days to renew the policy."
MADE_UP = "A free bicycle arrives tomorrow, along with a holiday villa near Goa beaches."


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
    return Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


def asked(number: int, reply: str = PLAIN_REPLY, **changes: object) -> str:
    """Build a conversation whose reply is based on a passage."""
    return talk(
        number, reply, turns=[{"question": "How long do I have?", "answer": reply, "context": [PASSAGE]}], **changes
    )


def judged_at(provider: AnthropicServer, **settings: object) -> dict[str, object]:
    base = {
        "deadline_s": 60,
        "try_s": 30,
        "tries": 2,
        "most_pause_s": 1,
        "batch_poll_s": 0.05,
    }
    return base | judge_at(provider, **settings)


async def test_a_night_is_judged_by_batches_with_canaries_by_the_passages(nights, provider):
    nights.judge = judged_at(provider)
    nights.append(*(asked(number, MADE_UP if number < 3 else PLAIN_REPLY) for number in range(12)))
    report = await nights.grade()
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.rate, report.failed.graded, report.failed.coverage) == (0.25, 12, 1.0)
    assert [kind.kind.value for kind in report.kinds] == ["unsupported_claim"]
    assert (report.judging.state, report.judging.judged, report.judging.void_groups) == (JudgeState.ON, 12, 0)
    assert report.graded_by.startswith("rules+claude-sonnet-5-5")
    assert len(provider.batches) == 1
    (batch,) = provider.batches.values()
    sent = json.dumps(batch.requests)
    assert PASSAGE in sent
    assert len(batch.requests) >= 14, "canaries ride with the answers"


async def test_verdicts_missing_from_a_batch_are_requested_again_and_reported(nights, provider, snapshot):
    nights.judge = judged_at(provider)
    provider.batch_faults = {"first": "errored"}
    nights.append(*(asked(number) for number in range(4)))
    report = await nights.grade()
    assert report.judging.judged == 4
    (line,) = report.judging.not_by_batch
    assert any(line in shown for shown in format_nightly_report(report))
    assert stable_report(report) == snapshot


@pytest.mark.whole_only
async def test_without_a_key_only_rules_tell_and_the_report_says_so(nights, provider):
    nights.judge, nights.key = judged_at(provider), ""
    nights.append(asked(1), asked(2, LEAK))
    report = await nights.grade()
    assert report.graded_by == "rules"
    assert report.judging.state is JudgeState.OFF
    assert "is not set" in report.judging.why
    assert isinstance(report.severe, RateEstimate)
    assert (report.severe.rate, report.severe.coverage) == (0.5, 1.0)
    assert provider.asked == []


@pytest.mark.whole_only
async def test_a_fooled_judges_grades_are_void_alert_once_and_count_for_nothing(nights, slack, snapshot):
    with AnthropicServer(judge=RuleJudge(passes_all=True)) as fooled:
        nights.judge = judged_at(fooled)
        nights.append(*(asked(number, MADE_UP) for number in range(8)))
        report = await nights.grade()
        assert (report.judging.judged, report.judging.void_groups, report.judging.void_grades) == (0, 1, 8)
        assert report.graded_by == "rules"
        assert [message.channel for message in slack.messages] == ["C0MONITOR"]
        grades = nights.loaded("select count(*) from grades where grader = 'judge' and passed is not null")
        assert grades == [(0,)]
        assert await nights.grade() == report
        assert len(slack.messages) == 1
        fooled.judge.passes_all = False
        nights.append(asked(50, hours=-3))
        await nights.grade(1)
    void = [alert.reason for alert in nights.testbed.alerts() if alert.kind is IncidentKind.JUDGE_VOID]
    assert void == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert format_messages(slack.messages) == snapshot


@pytest.mark.whole_only
async def test_beyond_the_budget_the_rest_is_ungraded(nights, provider):
    nights.judge = judged_at(provider, budget_usd="0.07", nightly_batches=False, batch_size=5)
    nights.append(*(asked(number) for number in range(40)))
    report = await nights.grade()
    assert report.judging.budget_reached
    assert 0 < report.judging.judged < 20
    assert isinstance(report.failed, RateUnknown)
    assert (report.facts.total, report.failed.sampled) == (report.judging.judged, 40)
    assert "budget" in report.failed.why
    assert any("budget" in one for one in report.shortfalls)


@pytest.mark.whole_only
async def test_a_reply_without_passages_stays_ungraded_once_the_judge_spoke(nights, provider, snapshot):
    nights.judge = judged_at(provider)
    nights.append(*(asked(number) for number in range(4)), talk(10), talk(11, LEAK))
    report = await nights.grade()
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.sampled, report.failed.graded) == (6, 5), "what a rule failed needs no judge"
    assert report.judging.unaskable == 1
    assert report.judging.ungraded_because == snapshot


async def test_personal_data_does_not_reach_the_judge(nights, provider):
    nights.judge = judged_at(provider)
    nights.append(
        talk(
            1,
            turns=[
                {
                    "question": "I am asha.verma.1987@gmail.com, how long?",
                    "answer": PLAIN_REPLY,
                    "context": [PASSAGE, LEAK],
                }
            ],
        )
    )
    await nights.grade()
    (batch,) = provider.batches.values()
    assert "asha.verma" not in json.dumps(batch.requests)
