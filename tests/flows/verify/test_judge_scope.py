"""Test which answers a judge grades although rules have graded them, and disagreements of judge and rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import render_alert
from monitors.alerts.terminal import format_plain_text
from monitors.records.base import Blame, Finding, Severity
from monitors.records.grades import JUDGE, Abstained, CaseOutcome, Judged
from monitors.records.incidents import IncidentKind
from monitors.records.runs import ReasonKind, Verdict
from tests.builders import gold_case
from tests.flows.judged_run import configured, judge_at, run_of, with_key
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge

SEVERE = gold_case(
    "parcel", turns=("How long may I keep a borrowed bicycle?",), gold="14 days", severity=Severity.CRITICAL
)
MILD = gold_case("lamp", turns=("How long is the lamp guaranteed?",), gold="36 months", severity=Severity.MAJOR)
WRONG = gold_case("deposit", turns=("How much is the deposit?",), gold="50 euros", severity=Severity.MAJOR)
REPLIES = [
    (SEVERE, "You may keep it for 14 days. [Source: Rules, 2]"),
    (MILD, "The lamp is guaranteed for 36 months. [Source: Rules, 3]"),
    (WRONG, "The deposit is 80 euros. [Source: Rules, 4]"),
]
CASES = [case for case, _ in REPLIES]
DISAGREES = "You may keep it"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    with_key(monkeypatch)


def judged(judged_run, case_id):
    """Return the judge's grade of a case, or ``None`` if the judge did not grade it."""
    return next((grade for grade in judged_run.of(case_id).grades if grade.grader == JUDGE), None)


@pytest.mark.parametrize(
    ("scope", "asked"),
    [({}, ["parcel"]), ({"scope": "open"}, []), ({"scope": "all"}, ["deposit", "lamp", "parcel"])],
    ids=["severe by default", "open", "all"],
)
async def test_the_scope_says_which_answers_a_judge_grades_beside_the_rules(tmp_path, scope, asked):
    with AnthropicServer() as server:
        judged_run = await run_of(configured(tmp_path, CASES, **judge_at(server, **scope)), REPLIES)
    assert sorted(case.id for case in CASES if judged(judged_run, case.id)) == asked
    assert judged_run.passed == ["parcel", "lamp"]
    assert judged_run.of("deposit").outcome is CaseOutcome.FAILED
    assert judged_run.report.judging is not None
    assert (judged_run.report.judging.to_confirm, judged_run.report.judging.disputed) == (len(asked), 0)


async def test_a_disagreement_is_inconclusive_alerts_unconfirmed_and_shows_both_verdicts(tmp_path, snapshot):
    many = [gold_case(f"more-{n}", gold=f"{n + 2} months", severity=Severity.CRITICAL) for n in range(40)]
    replies = [REPLIES[0], *((case, f"It is {case.gold}. [Source: A, 1]") for case in many)]
    with AnthropicServer(judge=RuleJudge(rejects=[DISAGREES])) as server:
        judged_run = await run_of(configured(tmp_path, [SEVERE, *many], **judge_at(server)), replies)
    assert judged_run.report.verdict is Verdict.INCONCLUSIVE
    assert [(r.kind, r.case_ids) for r in judged_run.report.reasons if r.decisive] == [
        (ReasonKind.DISPUTED, ("parcel",))
    ]
    assert judged_run.report.coverage.graded == 40, "far above the floor"
    found = judged_run.of("parcel")
    assert (found.outcome, found.factual_match, found.unconfirmed) == (CaseOutcome.UNGRADED, Finding.UNGRADED, True)
    verdicts = [
        grade.passed for grade in found.grades if isinstance(grade, Judged) and grade.aspect == "factual_match"
    ]
    assert verdicts == [True, False]
    [alerted] = judged_run.observations_of(IncidentKind.CASE_FAILURE)
    assert (alerted.unconfirmed, alerted.severity, alerted.failure_kind) == (True, Severity.CRITICAL, None)
    now = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
    alerted = alerted.model_copy(update={"run_id": "run-7", "seen_at": now})
    decision = decide_alerts({}, [alerted], now=now, settings=AlertSettings())
    [alert] = group_items_into_alerts(decision.items, target="demo", run_id="run-7", now=now)
    assert format_plain_text(alert, AlertSettings()) == snapshot
    assert render_alert(alert, AlertSettings()).blocks == snapshot


@pytest.mark.whole_only
async def test_a_quorum_of_three_confirms(tmp_path):
    """If one of three judges fails an answer, the answer passes. If two fail it, it is ungraded and disputed."""
    for strict, outcome in ((1, CaseOutcome.CORRECT), (2, CaseOutcome.UNGRADED)):
        folder = tmp_path / str(strict)
        folder.mkdir()
        judges = [RuleJudge(rejects=[DISAGREES] if number < strict else []) for number in range(3)]
        with (
            AnthropicServer(judge=judges[0]) as a,
            AnthropicServer(judge=judges[1]) as b,
            AnthropicServer(judge=judges[2]) as c,
        ):
            judged_run = await run_of(configured(folder, CASES, **judge_at(a, b, c)), REPLIES[:1])
        assert judged_run.of("parcel").outcome is outcome
        assert judged_run.of("parcel").is_disputed == (strict == 2)


async def test_unconfirmed_verdicts_are_ungraded_and_not_blamed_on_the_app(tmp_path):
    with AnthropicServer() as server:
        server.always = "402"
        request = configured(tmp_path, CASES, **judge_at(server))
        judged_run = await run_of(request, REPLIES)
        found = judged_run.of("parcel")
        assert (found.outcome, found.blame) == (CaseOutcome.UNGRADED, Blame.MONITOR)
        assert isinstance(judged(judged_run, "parcel"), Abstained)
        assert not found.unconfirmed
        assert judged_run.report.verdict is not Verdict.PASS
        server.behave()
        again = await run_of(request.model_copy(update={"fresh": False}), [])
        asked = len(server.messages)
        await run_of(request.model_copy(update={"fresh": False}), [])
        assert len(server.messages) == asked, "a confirmed answer is not judged again"
    assert again.passed == ["parcel", "lamp"]


async def test_a_confirmation_waits_for_its_group_and_an_open_severe_answer_does_not(tmp_path):
    more = [gold_case(f"more-{n}", gold=f"{n + 2} months", severity=Severity.CRITICAL) for n in range(6)]
    replies = [(case, f"It is {case.gold}. [Source: A, 1]") for case in more]
    with AnthropicServer() as server:
        judged_run = await run_of(configured(tmp_path, more, **judge_at(server, batch_size=3)), replies)
    assert judged_run.passed == [case.id for case in more]
    assert judged_run.report.judging is not None
    assert judged_run.report.judging.groups == 2
