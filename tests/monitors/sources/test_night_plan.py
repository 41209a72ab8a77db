"""A plan says what a night costs and buys before it is spent, and how many conversations a wished interval needs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from monitors.agreement import Confusion
from monitors.errors import ConfigError
from monitors.sources.expected_rates import ExpectedRate
from monitors.sources.night_plan import Grading, plan_for_width, plan_night
from monitors.sources.sampling import draw
from monitors.sources.sampling_settings import RiskSign
from tests.monitors.sources.night_traffic import NIGHT, night, simple, stratified

GRADING = Grading(calls_per_conversation=1.5, usd_per_call=Decimal("0.004"))
COUNTS = {RiskSign.DISCLOSURE: 6, RiskSign.FALLBACK: 94, None: 900}
RATES = {"disclosure": ExpectedRate(0.3), "fallback": ExpectedRate(0.03), "rest": ExpectedRate(0.005)}


def planned(facts, grading=GRADING):
    return plan_night(draw(night(COUNTS), facts, NIGHT).strata, RATES, grading, facts.settings)


def test_a_plan_says_how_many_which_strata_and_what_it_costs():
    plan = planned(stratified(number=60))
    assert (plan.drawn, plan.conversations) == (60, 1_000)
    assert [one.stratum for one in plan.strata] == ["disclosure", "fallback", "rest"]
    assert plan.judge_calls == 90
    assert plan.cost_usd == Decimal("0.36")
    assert plan.expected_rate == pytest.approx((6 * 0.3 + 94 * 0.03 + 900 * 0.005) / 1_000)


def test_a_plan_is_printed_in_words():
    lines = planned(stratified(number=60)).lines
    assert lines[0] == "60 of 1,000 conversations will be drawn"
    assert lines[1].strip() == "disclosure: 6 of 6, expected 30.0 %"
    assert "judge calls: 90, about $0.36" in lines
    assert any("if it is 0.9 %, an interval of about [" in line for line in lines)
    assert "drawn whole, so without sampling error: disclosure" in lines


def test_notes_say_where_the_number_does_not_hold():
    raised = planned(stratified(number=2, minimum_per_stratum=2))
    assert raised.drawn == 6
    assert "6 instead of 2: every stratum gives at least 2" in raised.notes
    short = planned(stratified(number=5, minimum_per_stratum=1))
    assert "wanted whole but beyond the number: disclosure" in short.notes


def test_more_conversations_buy_a_narrower_interval():
    widths = [planned(simple(number=number)).expected_width for number in (10, 50, 200, 1_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(0)


def test_what_will_not_be_told_and_what_a_judge_gets_wrong_widen_the_plan():
    plain = planned(simple(number=50))
    untold = planned(simple(number=50), GRADING._replace(told_share=0.6))
    judged = planned(simple(number=50), GRADING._replace(confusion=Confusion(285, 10, 15, 90)))
    assert untold.expected_width > plain.expected_width
    assert judged.expected_width > plain.expected_width
    assert (plain.corrected, judged.corrected) == (False, True)


@pytest.mark.parametrize("facts", [simple(), stratified(minimum_per_stratum=2)], ids=["simple", "stratified"])
def test_the_plan_for_a_width_is_the_smallest_that_buys_it(facts):
    sizes = {one.stratum: one.conversations for one in draw(night(COUNTS), facts, NIGHT).strata}
    plan = plan_for_width(0.08, sizes, RATES, GRADING, facts.settings)
    one_less = facts.settings.model_copy(update={"number": plan.drawn - 1})
    assert plan.expected_width <= 0.08
    assert planned(facts._replace(settings=one_less)).expected_width > 0.08


def test_a_width_that_nothing_buys_gets_the_plan_of_everything():
    """The judge's errors stay however many are judged."""
    grading = GRADING._replace(confusion=Confusion(57, 2, 3, 18))
    plan = plan_for_width(0.001, {"all": 400}, RATES, grading, simple().settings)
    assert plan.drawn == 400
    assert plan.expected_width > 0.001


def test_a_night_without_conversations_has_no_plan():
    with pytest.raises(ConfigError, match="no conversation to plan for"):
        plan_night((), RATES, GRADING, simple().settings)
