"""Tests of the search for common attributes of failed cases. Nothing is reported for random failures."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from monitors.explain.first_look import find_shared_causes
from tests.monitors.explain.planted import Planted, planted_suite
from tests.monitors.explain.planted_otherwise import nested_suite, sessions_suite

SUITES = 16
Maker = Callable[[int, int], Planted]


def rows(count: int, **attributes: int) -> list[dict[str, object]]:
    """Return ``count`` cases. An attribute such as ``page=4`` takes four values in turn."""
    return [{name: f"{name}-{at % values}" for name, values in attributes.items()} for at in range(count)]


def claims(cases: list[dict[str, object]], failed: list[bool]) -> list[dict[str, object]]:
    return [dict(cause.conditions) for cause in find_shared_causes(cases, failed).causes]


def test_one_value_is_named_with_its_exceptions_and_the_rest():
    cases = rows(120, page=4, language=3, hour=7)
    failed = [(case["page"] == "page-1" and at % 8 != 1) or at == 0 for at, case in enumerate(cases)]
    found = find_shared_causes(cases, failed)
    (cause,) = found.causes
    assert cause.conditions == {"page": "page-1"}
    assert (cause.cases, cause.failed) == (30, sum(failed) - 1)
    assert (cause.elsewhere, cause.elsewhere_failed) == (90, 1)
    assert (found.cases, found.failed, found.covered) == (120, sum(failed), sum(failed) - 1)


def test_two_values_together_are_named():
    cases = rows(400, page=4, language=3, hour=7)
    failed = [case["page"] == "page-1" and case["language"] == "language-2" for case in cases]
    assert claims(cases, failed) == [{"language": "language-2", "page": "page-1"}]


def test_two_causes_that_overlap_are_both_named():
    cases = rows(420, page=5, language=6, hour=7)
    failed = [case["page"] == "page-1" or case["hour"] == "hour-3" for case in cases]
    assert sorted(map(str, claims(cases, failed))) == ["{'hour': 'hour-3'}", "{'page': 'page-1'}"]


def test_missing_attributes_count_as_a_value():
    cases: list[dict[str, object]] = [
        {"hour": at % 5} | ({} if at % 10 == 3 else {"source": "handbook"}) for at in range(100)
    ]
    assert claims(cases, ["source" not in case for case in cases]) == [{"source": None}]


@pytest.mark.parametrize("failures", [0, 1, 2, 60])
def test_too_few_failures_or_nothing_else_support_no_claim(failures: int):
    cases = rows(60, page=4, hour=7)
    assert find_shared_causes(cases, [at < failures for at in range(60)]).causes == ()


def test_no_case_at_all_is_no_fault():
    assert find_shared_causes([], []).causes == ()


def test_each_case_needs_its_outcome():
    with pytest.raises(ValueError, match="shorter"):
        find_shared_causes(rows(3, page=2), [True])


def test_the_order_of_attributes_means_nothing():
    suite = planted_suite(7, 2)
    turned = [dict(reversed(case.items())) for case in suite.cases]
    assert claims(suite.cases, suite.failed) == claims(turned, suite.failed)


def test_failures_that_fall_where_they_fall_are_no_cause():
    """In suites with random failures, the search claims a cause in at most 3 of 32 suites.

    A search that claims a cause in 1 % of such suites would exceed 3 of 32 with a probability of about 0.0003.
    """
    suites = [planted_suite(seed, 0) for seed in range(2 * SUITES)]
    assert sum(bool(claims(suite.cases, suite.failed)) for suite in suites) <= 3


@pytest.mark.parametrize("made", [nested_suite, sessions_suite])
def test_no_other_maker_gets_a_claim_by_chance_either(made: Maker):
    suites = [made(seed, 0) for seed in range(SUITES)]
    assert sum(bool(claims(suite.cases, suite.failed)) for suite in suites) <= 2


@pytest.mark.parametrize(
    ("made", "causes", "least"),
    [
        (planted_suite, 1, 0.85),
        (planted_suite, 2, 0.75),
        (nested_suite, 1, 0.75),
        (nested_suite, 2, 0.75),
        (sessions_suite, 1, 0.75),
        (sessions_suite, 2, 0.75),
    ],
)
@pytest.mark.whole_only
def test_planted_causes_are_named(made: Maker, causes: int, least: float):
    suites = [made(seed, causes) for seed in range(SUITES)]
    said = [claims(suite.cases, suite.failed) for suite in suites]
    named = sum(suite.named(one) for suite, one in zip(suites, said, strict=True))
    wrong = sum(suite.wrong(one) for suite, one in zip(suites, said, strict=True))
    assert named >= least * causes * SUITES, (named, wrong)
    assert wrong <= (0.1 if made is planted_suite else 0.15) * sum(map(len, said)), (named, wrong)


def test_of_two_that_share_their_failures_one_stays():
    """If two possible causes explain the same failures, one of them is still reported.

    Next to the other one, each of the two seems weak. The search removes only the one that explains less.
    """
    suite = planted_suite(2010, 1)
    assert suite.named(claims(suite.cases, suite.failed)) == 1


def test_a_cause_of_a_few_in_a_thousand_is_found():
    random = Random(3)
    cases = [
        {"page": random.randrange(4), "hour": random.randrange(24), "topic": random.randrange(30)}
        for _ in range(1_000)
    ]
    failed = [case["topic"] == 4 or random.random() < 0.01 for case in cases]
    assert claims(cases, failed) == [{"topic": 4}]
