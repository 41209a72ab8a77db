"""Test the estimates of a night: which replies count as graded, failed and severe, and the names of read errors."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flows.nightly.estimate import NightlyEstimates, update_drift
from flows.nightly.grading import TrafficGrader, build_turn_id, judge_traffic
from flows.runtime.judge import JudgePlan
from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.graders.traffic_panel import TrafficPanel
from monitors.judge.judge import FamilyPolicy
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.estimates import GradedStratum, RateEstimate
from monitors.records.nightly import Rate
from monitors.records.traffic import Conversation, SampledConversation, StratumCount, Turn
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY
from tests.monitors.alerts.sample_observations import NIGHT

ERROR = "Error code: 429 - rate limit reached"


def conversation(*replies: str) -> Conversation:
    turns = tuple(Turn(user_text="How long do I have?", reply_text=reply) for reply in replies)
    return Conversation(id="talk", origin_id="talk", completed_at=NIGHT, turns=turns)


def weighed(*replies: str) -> NightlyEstimates:
    talk = conversation(*replies)
    grader = TrafficGrader(TrafficPanel(GraderSettings()), severity=Severity.MAJOR)
    assessments = {"talk": [turn.result.assessment for turn in grader.grade_turns(talk, talk, "night-1")]}
    strata = (StratumCount(stratum="all", conversations=10, sampled=1),)
    sampled = [SampledConversation(conversation=talk, stratum="all", inclusion_probability=0.1)]
    return NightlyEstimates(strata, sampled, assessments)


@pytest.mark.parametrize(
    ("replies", "severe", "found"),
    [
        ((PLAIN_REPLY,), (1, 0), (1, 0)),
        ((LEAK,), (1, 1), (1, 1)),
        ((PLAIN_REPLY, LEAK), (1, 1), (1, 1)),
        ((ERROR,), (1, 0), (1, 1)),
        ((PLAIN_REPLY, ""), (1, 0), (1, 0)),
        (("",), (0, 0), (0, 0)),
        ((PLAIN_REPLY, ERROR), (1, 0), (1, 1)),
    ],
)
def test_rules_grade_severity_but_no_facts(replies, severe, found):
    weighing = weighed(*replies)
    assert [(stratum.graded, stratum.failures) for stratum in weighing.count_severe_failures_by_stratum()] == [
        severe
    ]
    assert [(stratum.graded, stratum.failures) for stratum in weighing.count_rule_failures_by_stratum()] == [found]
    assert [(stratum.graded, stratum.failures) for stratum in weighing.count_fact_failures_by_stratum()] == [(0, 0)]
    assert not weighing.is_fully_graded("talk")


GOLD = GoldCase(
    id="c-1",
    turns=("How long do I have?",),
    gold="30 days",
    severity=Severity.CRITICAL,
    language=Language.ENGLISH,
    type="waiting",
    provenance=Provenance(pipeline=Pipeline.MANUAL),
)


def grader_of(severity: Severity, gold: tuple[GoldCase, ...] = ()) -> TrafficGrader:
    settings = GraderSettings(citation_required=False)
    return TrafficGrader(
        TrafficPanel(settings),
        severity=severity,
        gold_cases=gold,
        gold_panel=build_rule_panel(settings, load_domain((INSURANCE,))),
    )


def severe_of(*replies: str, severity: Severity = Severity.MAJOR, gold: tuple[GoldCase, ...] = ()) -> Rate:
    """Return the severe failure rate of a night with 1,000 conversations, of which the census found 30 disclosures.

    Each of ``replies`` is a sampled conversation.
    """
    grader = grader_of(severity, gold)
    talks = [conversation(reply).model_copy(update={"id": f"t{number}"}) for number, reply in enumerate(replies)]
    assessments = {
        talk.id: [turn.result.assessment for turn in grader.grade_turns(talk, talk, "night-1")] for talk in talks
    }
    strata = (StratumCount(stratum="all", conversations=1_000, sampled=len(talks)),)
    sampled = [SampledConversation(conversation=talk, stratum="all", inclusion_probability=0.01) for talk in talks]
    return NightlyEstimates(strata, sampled, assessments, disclosing=(30, 1_000)).estimate_severe_rate()


@pytest.mark.parametrize(("gold", "row"), [((), "traffic"), ((GOLD,), "case")], ids=["unknown", "of the suite"])
def test_a_live_reply_says_whether_the_suite_or_a_setting_made_it_so_severe(gold, row):
    """The record of a failed live reply states whether its severity comes from the suite or from a setting."""
    talk = conversation("You have 45 days.")
    [turn] = grader_of(Severity.CRITICAL, gold).grade_turns(talk, talk, "night-1")
    assert (turn.result.assessment.severity, turn.result.assessment.policy_row) == (3, row)


async def test_a_judges_grade_does_not_change_the_source_of_the_severity():
    """If a reply is assessed again after the judge stage, the source of its severity stays the same."""
    talk = conversation("You have 45 days.")
    [turn] = grader_of(Severity.CRITICAL).grade_turns(talk, talk, "night-1")
    plan = JudgePlan(family_policy=FamilyPolicy(target="demo"), why_off="no key")
    _, [settled] = await judge_traffic(plan, [turn], (), seed="s", environment={}, nonce=lambda: "n")
    assert len(settled.assessment.grades) > len(turn.result.assessment.grades)
    assert (settled.assessment.severity, settled.assessment.policy_row) == (3, "traffic")


def test_census_counts_are_not_estimated_from_the_sample():
    """If the census counted a rate (here 3 %), this rate is used. The higher rate in the sample is not."""
    found = severe_of(*[LEAK, f"{ERROR}\n{LEAK}", PLAIN_REPLY, PLAIN_REPLY] * 5)
    assert isinstance(found, RateEstimate)
    assert found.is_counted_not_estimated
    assert (found.low, found.rate, found.high) == (0.03, 0.03, 0.03)


def test_grave_facts_come_on_top_of_what_was_counted():
    """The census counts a part of the severe failures. Severe wrong facts, which only the sample shows, are added.

    The sum is an estimated rate with an interval, which is above the counted rate.
    """
    right, wrong = "You have 30 days.", "You have 45 days."
    found = severe_of(*[LEAK] * 10, *[right] * 45, *[wrong] * 5, gold=(GOLD,))
    assert isinstance(found, RateEstimate)
    assert not found.is_counted_not_estimated
    assert found.rate == pytest.approx(0.03 + 0.97 * 0.1)
    assert 0.03 < found.low < 0.08
    assert 0.18 < found.high < 0.3


def test_other_severe_findings_of_rules_are_estimated_from_the_sample():
    found = severe_of(*[ERROR] * 5, *[ERROR.replace("429", "503")] * 5, severity=Severity.CRITICAL)
    assert isinstance(found, RateEstimate)
    assert found.rate == 1


def test_a_change_alerted_a_week_ago_is_the_new_reference():
    def counts(failures: int) -> list[GradedStratum]:
        return [GradedStratum(stratum="all", conversations=100, sampled=100, graded=100, failures=failures)]

    state, readings = None, []
    for number in range(20):
        night = NIGHT + timedelta(days=number)
        state, reading = update_drift(state, night, counts(1 if number < 5 else 40), "rules")
        readings.append(reading.drifted)
    assert not any(readings[:5])
    assert any(readings[5:8])
    assert not readings[-1]


def test_another_grader_restarts_the_drift_test():
    counts = [GradedStratum(stratum="all", conversations=100, sampled=100, graded=100, failures=1)]
    state, _ = update_drift(None, NIGHT, counts, "rules")
    state, reading = update_drift(state, NIGHT + timedelta(days=1), counts, "rules+judge")
    assert state.graded_by == "rules+judge"
    assert not reading.drifted


@pytest.mark.parametrize("name", ["a", "x" * 200, "x" * 159 + "." + "y" * 40])
def test_ids_of_replies_differ_and_stay_identifiers(name):
    made = {build_turn_id(conversation_id, number) for conversation_id in (name, f"{name}z") for number in range(3)}
    assert len(made) == 6
