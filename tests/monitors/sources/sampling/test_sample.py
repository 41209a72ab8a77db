"""Test that a sample is reproducible and contains every smaller sample.

Each sampled conversation has its inclusion probability.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import binom

from monitors.sources.sampling.sample import (
    SPARE_CANDIDATES,
    Candidates,
    ExpectedRate,
    Seed,
    allocate_by_stratum,
    compute_inclusion_probability,
    compute_pseudorandom_place,
)
from monitors.sources.sampling.settings import Allocation, RiskSign, SamplingSettings
from monitors.sources.sampling.strata import find_stratum_name
from tests.monitors.sources.night_traffic import (
    CLOSED_AT,
    NIGHT,
    conversation,
    night,
    sample_conversations,
    simple,
    stratified,
)
from tests.tiers import scale_examples

nights = st.lists(st.sampled_from([*RiskSign, None, None, None]), max_size=40).map(
    lambda signs: [conversation(number, sign) for number, sign in enumerate(signs)]
)


def ids(one_sample) -> set[str]:
    return {one.conversation.id for one in one_sample.sampled}


@st.composite
def designs(draw_one):
    make = draw_one(st.sampled_from([simple, stratified]))
    minimum = draw_one(st.integers(1, 3))
    if draw_one(st.booleans()):
        return lambda more: make(number=3 + round(20 * more), minimum_per_stratum=minimum)
    return lambda more: make(rate=0.05 + 0.9 * more, minimum_per_stratum=minimum)


@settings(max_examples=scale_examples(60), deadline=None)
@given(nights, designs(), st.floats(0, 1), st.floats(0, 1))
def test_more_contains_less(conversations, design, one, other):
    few, many = (ids(sample_conversations(conversations, design(more), NIGHT)) for more in sorted((one, other)))
    assert few <= many


@settings(max_examples=scale_examples(40), deadline=None)
@given(nights, designs(), st.randoms())
def test_the_order_in_which_they_come_says_nothing(conversations, design, chance):
    shuffled = chance.sample(conversations, len(conversations))
    assert sample_conversations(shuffled, design(0.4), NIGHT) == sample_conversations(
        conversations, design(0.4), NIGHT
    )


@settings(max_examples=scale_examples(60), deadline=None)
@given(nights, designs(), st.randoms())
def test_a_withdrawn_conversation_leaves_nothing_behind(conversations, design, chance):
    """A conversation is withdrawn when a newer version of it arrives."""
    facts = design(0.4)
    withdrawn = [conversation for conversation in conversations if chance.random() < 0.3]
    remaining = [conversation for conversation in conversations if conversation not in withdrawn]
    assert collect(facts, conversations, withdrawn) == collect(facts, remaining)


def test_as_many_candidates_as_are_stored_in_addition_can_be_withdrawn():
    """The candidates that are withdrawn first are those that the sample would contain."""
    facts = simple(number=10)
    conversations = [conversation(number) for number in range(10 * SPARE_CANDIDATES)]
    conversations.sort(key=lambda conversation: compute_pseudorandom_place(conversation.id, NIGHT))
    withdrawn, remaining = conversations[:SPARE_CANDIDATES], conversations[SPARE_CANDIDATES:]
    sample = collect(facts, conversations, withdrawn)
    assert ids(sample) == {conversation.id for conversation in remaining[:10]}


def collect(facts, conversations, withdrawn=()):
    """Return the sample of a night in which the conversations in ``withdrawn`` are withdrawn at the end."""
    candidates = Candidates(facts.settings, NIGHT)
    for offered in conversations:
        candidates.offer(find_stratum_name(offered, facts), offered)
    for replaced in withdrawn:
        candidates.withdraw(find_stratum_name(replaced, facts), replaced.id)
    return candidates.sample({})


@settings(max_examples=scale_examples(60), deadline=None)
@given(nights, designs())
def test_never_more_than_there_are_each_once_and_the_minimum_from_every_stratum(conversations, design):
    facts = design(0.2)
    sampling = sample_conversations([*conversations, *conversations], facts, NIGHT)
    least = facts.settings.minimum_per_stratum
    assert len(ids(sampling)) == len(sampling.sampled)
    assert sum(one.conversations for one in sampling.strata) == len(conversations)
    assert all(one.sampled >= min(least, one.conversations) for one in sampling.strata)
    assert Counter(one.stratum for one in sampling.sampled) == {one.stratum: one.sampled for one in sampling.strata}


@settings(max_examples=scale_examples(40), deadline=None)
@given(nights, st.integers(1, 50), st.sampled_from([simple, stratified]))
def test_by_number_the_inclusion_probabilities_sum_to_the_sample_size(conversations, number, make):
    """In each stratum, the inclusion probabilities of all conversations, sampled or not, add up to the sample size.

    Each probability is the number of sampled conversations divided by the number of conversations in the stratum.
    """
    sampling = sample_conversations(conversations, make(number=number), NIGHT)
    shares = {one.stratum: one.sampled / one.conversations for one in sampling.strata}
    assert all(one.inclusion_probability == shares[one.stratum] for one in sampling.sampled)
    total = sum(shares[one.stratum] * one.conversations for one in sampling.strata)
    assert total == pytest.approx(len(sampling.sampled))


@given(st.integers(1, 60), st.floats(0.001, 0.999), st.integers(1, 8))
def test_by_rate_they_sum_to_the_expected_number(conversations, rate, minimum):
    """If conversations are sampled by rate, their probabilities add up to the expected sample size.

    The sample size is a binomial count, or the minimum if the count is smaller. scipy computes its expected value.
    """
    least = min(minimum, conversations)
    expected = sum(max(least, each) * binom.pmf(each, conversations, rate) for each in range(conversations + 1))
    assert conversations * compute_inclusion_probability(conversations, rate, least) == pytest.approx(expected)


@settings(max_examples=scale_examples(60), deadline=None)
@given(nights, st.data())
def test_by_rate_a_conversation_is_sampled_independently_of_others(conversations, data):
    """If conversations are sampled by rate, each is sampled independently of all others.

    The test ignores strata to which the minimum per stratum may apply, because there the conversations are not
    independent.
    """
    facts = stratified(rate=0.3, certainty=())
    sampling = sample_conversations(conversations, facts, NIGHT)
    enough = {one.stratum for one in sampling.strata if one.sampled > facts.settings.minimum_per_stratum}
    some = [each for each in conversations if data.draw(st.booleans())]
    fewer = sample_conversations(some, facts, NIGHT)
    still_enough = {one.stratum for one in fewer.strata if one.sampled > facts.settings.minimum_per_stratum}
    remaining_ids = {each.id for each in some}
    assert {
        one.conversation.id for one in sampling.sampled if one.stratum in enough & still_enough
    } & remaining_ids == {one.conversation.id for one in fewer.sampled if one.stratum in enough & still_enough}


def test_another_night_or_target_is_another_draw():
    conversations = night({None: 400})
    seeds = [NIGHT, Seed("demo", NIGHT.day + timedelta(days=1)), Seed("other", NIGHT.day)]
    id_sets = [ids(sample_conversations(conversations, simple(number=40), seed)) for seed in seeds]
    assert all(len(one & other) < 20 for one in id_sets for other in id_sets if one is not other)


def test_each_conversation_is_sampled_as_often_as_its_probability_says():
    """Over 400 nights, each of 100 conversations is sampled about 40 times. The counts have a binomial spread."""
    conversations = night({None: 100})
    seeds = [Seed("demo", date(2026, 1, 1) + timedelta(days=each)) for each in range(400)]
    counts = Counter(one for seed in seeds for one in ids(sample_conversations(conversations, simple(), seed)))
    assert sum(counts.values()) == 4_000
    deviations = sum((counts[each.id] - 40) ** 2 / (400 * 0.1 * 0.9) for each in conversations)
    assert 60 < deviations < 150  # chi squared with 99 degrees of freedom: 0.1 % and 99.9 % lie at 61 and 149


def test_of_an_id_that_comes_twice_the_one_completed_last_counts():
    late = conversation(1, RiskSign.SLOW).model_copy(update={"completed_at": CLOSED_AT + timedelta(hours=1)})
    sampling = sample_conversations([late, conversation(1)], stratified(), NIGHT)
    assert [one.conversation for one in sampling.sampled] == [late]


def test_few_are_sampled_whole_and_risk_more_often_than_the_rest():
    counts = {RiskSign.DISCLOSURE: 7, RiskSign.FALLBACK: 100, None: 900}
    sample_sizes = {
        one.stratum: one.sampled for one in sample_conversations(night(counts), stratified(number=60), NIGHT).strata
    }
    assert sample_sizes["disclosure"] == 7
    assert sum(sample_sizes.values()) == 60
    assert sample_sizes["fallback"] / 100 > 4 * sample_sizes["rest"] / 900
    assert sample_sizes["rest"] >= 60 / 2


def test_neyman_looks_where_rates_are_open():
    sizes, facts = {"fallback": 500, "rest": 500}, stratified(number=100, allocation=Allocation.NEYMAN)
    known = {"fallback": ExpectedRate(0.2), "rest": ExpectedRate(0.001)}
    shares = allocate_by_stratum(sizes, facts.settings, known)
    assert shares == {"fallback": 75, "rest": 25}, (
        "a quarter is the floor, and by spread all else goes to the open one"
    )


def test_no_conversation_no_draw():
    assert sample_conversations([], stratified(), NIGHT) == ((), ())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"number": 5, "rate": 0.1}, "set `number` or `rate`"),
        ({"rate": 0.1, "allocation": "neyman"}, "set `number` instead"),
        ({"signs": ["slow", "slow"]}, "list each sign only once"),
        ({"rate": 0}, "greater than 0"),
        ({"ratio": 0.1}, "Extra inputs"),
    ],
)
def test_settings_that_contradict_are_refused(wrong, why):
    with pytest.raises(ValidationError, match=why):
        SamplingSettings.model_validate(wrong)
