"""Test the search for the first bad build.

Without flaky cases, the search needs only a few more questions than a binary search. With flaky cases, its result
has a stated certainty.
"""

from __future__ import annotations

from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.explain.bisect import BuildSearch
from tests.monitors.explain.searched_builds import SimulatedCase, chosen_case, noise_free_probes, searched
from tests.tiers import scale_examples

BUILDS = 20
FLAKY = SimulatedCase(0, 0.8)


@pytest.mark.parametrize("first_bad", range(1, 8))
def test_without_noise_every_first_bad_build_is_found_in_few_more_questions_than_by_halves(first_bad):
    """If cases always fail from one build on, the search finds this build.

    The search needs at most four questions more than a binary search.
    """
    found = searched(8, [SimulatedCase()] * 3, first_bad, Random(0))
    assert (found.claimed, found.settled) == (first_bad, True)
    assert found.probes <= noise_free_probes(8) + 4


@pytest.mark.parametrize("cases", [lambda _: [FLAKY] * 5, lambda chance: [chosen_case(chance) for _ in range(5)]])
def test_flaky_cases_name_the_right_build(cases):
    """Of 20 searches over 20 builds, at most one finds the wrong build.

    The median number of questions is at most twice that of a search without noise.
    """
    found = []
    for seed in range(1000, 1020):
        chance = Random(seed)
        suite, first_bad = cases(chance), chance.randrange(1, BUILDS)
        found.append((searched(BUILDS, suite, first_bad, chance), first_bad))
    assert sum(one.claimed == first_bad for one, first_bad in found) >= 19
    assert median(one.probes for one, _ in found) <= 2 * noise_free_probes(BUILDS)


@pytest.mark.parametrize("cases", [1, 3])
def test_cases_that_fail_at_random_accuse_no_build(cases):
    """If every case fails half of the time on every build, at most one search in ten claims a first bad build."""
    found = [searched(8, [SimulatedCase(0.5, 0.5)] * cases, 4, Random(seed), budget=40) for seed in range(10)]
    assert sum(one.settled and 0 < one.claimed < 8 for one in found) <= 1


ENDS = [(SimulatedCase(1, 1), 0, "the good build fails already"), (SimulatedCase(0, 0), 8, "the bad build passes")]


@pytest.mark.parametrize("cases", [1, 3])
@pytest.mark.parametrize(("case", "claimed", "why"), ENDS, ids=[row[2] for row in ENDS])
def test_an_end_that_is_not_as_it_was_said_to_be_is_the_claim(case, claimed, why, cases):
    """If the good build fails, or the bad build passes, the search reports this.

    In this case, the search does not name a first bad build between the two.
    """
    found = searched(8, [case] * cases, 4, Random(0))
    assert (found.claimed, found.settled) == (claimed, True), why
    assert found.probes <= 20


def test_unreachable_builds_are_reported_together():
    """Unreachable builds and the next reachable build are reported as one group.

    The search can be certain that the first bad build is in the group, but not which build it is. No question is
    sent to an unreachable build.
    """
    search = BuildSearch(6, 2)
    for build in (2, 3):
        search.exclude_build(build)
    assert search.group_indistinguishable_hypotheses() == ((0,), (1,), (2, 3, 4), (5,), (6,))
    asked = set()
    while not search.is_settled():
        question = search.choose_question()
        assert question is not None
        asked.add(question.build)
        search.record_answer(question.build, question.case, failed=question.build >= 3)
    posterior = search.compute_posterior()
    assert sum(posterior[2:5]) >= 0.95
    assert max(posterior) < 0.5
    assert not asked & {2, 3}


def test_a_case_broken_by_another_build_is_separated():
    """A case that breaks at another build does not change the reported build.

    Three cases break at build 3 and the fourth at build 6. Build 3 is reported, and only the failure of the fourth
    case probably has another cause.
    """
    search = BuildSearch(8, 4)
    for build in range(8):
        for case in range(4):
            search.record_answer(build, case, failed=build >= (6 if case == 3 else 3))
    posterior = search.compute_posterior()
    assert posterior.index(max(posterior)) == 3
    doubts = [search.compute_other_cause_probability(case) > 0.5 for case in range(4)]
    assert doubts == [False, False, False, True]


answers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans()), max_size=25)


@settings(max_examples=scale_examples(40), deadline=None)
@given(answers, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter_and_chances_add_up(given_answers, chance):
    """The order of answers does not matter, and the probabilities of all builds add up to one."""
    one, other = BuildSearch(6, 3), BuildSearch(6, 3)
    shuffled = list(given_answers)
    chance.shuffle(shuffled)
    for search, order in ((one, given_answers), (other, shuffled)):
        for build, case, failed in order:
            search.record_answer(build, case, failed=failed)
    assert sum(one.compute_posterior()) == pytest.approx(1)
    assert one.compute_posterior() == pytest.approx(other.compute_posterior())
    question = one.choose_question()
    assert question is None or (question.information > 0 and question.build in one.reachable_builds)


@settings(max_examples=scale_examples(30), deadline=None)
@given(answers, st.integers(1, 5), st.integers(0, 2))
def test_a_failure_never_speaks_for_a_later_break(given_answers, build, case):
    """A failure at a build is no evidence that a later build is the first bad one.

    After the failure, the probability that the first bad build is this one or an earlier one is at most 0.02 lower
    than before.
    """
    search = BuildSearch(6, 3)
    for at, of, failed in given_answers:
        search.record_answer(at, of, failed=failed)
    before = sum(search.compute_posterior()[: build + 1])
    search.record_answer(build, case, failed=True)
    assert sum(search.compute_posterior()[: build + 1]) >= before - 0.02


def test_a_search_needs_builds_and_cases():
    """With one build, or without cases, the search is refused."""
    for builds, cases in ((1, 1), (2, 0)):
        with pytest.raises(ValueError, match="two builds and one case"):
            BuildSearch(builds, cases)
