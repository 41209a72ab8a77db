"""Test that a plan states the cost of a nightly run and the expected interval.

For a wanted interval, it states the sample size.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from monitors.errors import ConfigError
from monitors.sources.sampling.plan import ANY_FAILURE_NAME, SEVERE_RATE_NAME, Grading, PlannedRate, plan_nightly
from monitors.sources.sampling.sample import ExpectedRate
from monitors.sources.sampling.settings import RiskSign
from monitors.stats.agreement import Confusion
from tests.monitors.sources.night_traffic import NIGHT, night, sample_conversations, simple, stratified

GRADING = Grading(calls_per_conversation=1.5, usd_per_call=Decimal("0.004"))
COUNTS = {RiskSign.DISCLOSURE: 6, RiskSign.FALLBACK: 94, None: 900}
RATES = {"disclosure": ExpectedRate(0.3), "fallback": ExpectedRate(0.03), "rest": ExpectedRate(0.005)}
WANTED = PlannedRate(SEVERE_RATE_NAME, RATES)


def planned(facts, grading=GRADING, *wanted):
    return plan_nightly(
        sample_conversations(night(COUNTS), facts, NIGHT).strata, wanted or [WANTED], grading, facts.settings
    )


def width(plan) -> float:
    return plan.rates[0].width


def test_a_plan_says_how_many_which_strata_and_what_it_costs():
    plan = planned(stratified(number=60))
    assert (plan.sampled, plan.conversations) == (60, 1_000)
    assert [one.stratum for one in plan.strata] == ["disclosure", "fallback", "rest"]
    assert plan.judge_calls == 90
    assert plan.cost_usd == Decimal("0.36")
    assert plan.rates[0].expected_rate == pytest.approx((6 * 0.3 + 94 * 0.03 + 900 * 0.005) / 1_000)


def test_a_plan_is_printed_in_words(snapshot):
    assert "\n".join(planned(stratified(number=60)).lines) == snapshot


def test_each_rate_has_the_interval_that_the_sample_buys_for_it(snapshot):
    """If fewer conversations are graded for a rate, its expected interval is wider.

    If a rate has no interval, the plan states the reason.
    """
    failed = PlannedRate(ANY_FAILURE_NAME, {name: ExpectedRate(0.08) for name in RATES}, learnt=True)
    fewer = failed._replace(name="facts", graded_share=0.5)
    unknown = failed._replace(name="other", why_none="will be unknown")
    plan = planned(stratified(number=60), GRADING, WANTED, failed, fewer, unknown)
    severe, all_graded, half_graded, none = plan.rates
    assert all_graded.expected_rate == pytest.approx(0.08)
    assert all_graded.low < 0.08 < all_graded.high
    assert half_graded.width > all_graded.width > severe.width
    assert all_graded.text == snapshot
    assert none.text == plan.lines[-2] == "other: will be unknown"


def test_notes_say_where_the_number_does_not_hold(snapshot):
    raised = planned(stratified(number=2, minimum_per_stratum=2))
    assert raised.sampled == 6
    short = planned(stratified(number=5, certainty=[RiskSign.DISCLOSURE]))
    assert short.sampled == 5
    assert (raised.notes, short.notes) == snapshot


def test_more_conversations_buy_a_narrower_interval():
    widths = [width(planned(simple(number=number))) for number in (10, 50, 200, 1_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(0)


def test_ungraded_answers_and_judge_errors_widen_the_plan():
    plain = planned(simple(number=50))
    partly_graded = planned(simple(number=50), GRADING, WANTED._replace(graded_share=0.6))
    judged = planned(simple(number=50), GRADING._replace(confusion=Confusion(285, 10, 15, 90)))
    assert width(partly_graded) > width(plain)
    assert width(judged) > width(plain)
    assert (plain.rates[0].corrected, judged.rates[0].corrected) == (False, True)


def test_a_night_without_conversations_has_no_plan():
    with pytest.raises(ConfigError, match="no conversations for this night"):
        plan_nightly((), [WANTED], GRADING, simple().settings)
