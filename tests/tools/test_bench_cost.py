"""Test that the costs in the cost benchmark equal the sum of tokens times prices."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal

import pytest

from monitors.judge.consensus import Cost
from monitors.judge.model import find_price_row
from tests.bench import bench_cost
from tests.bench.bench_cost import (
    OTHER_FAMILY,
    PROVIDERS,
    Spent,
    build_money_table,
    build_price_table,
    measure_night,
    sum_costs,
    usd,
)

HAIKU, SONNET, OPUS, OTHER = PROVIDERS
ROUNDING = Decimal("0.000000001")
"""The unit to which the price of each call is rounded up: a billionth of a dollar."""


def spent(model: str, work: str, cost_usd: str, uncached_usd: str) -> Spent:
    return Spent(
        model=model,
        work=work,
        replies=10,
        cost=Cost(calls=12, input_tokens=30_000, cached_tokens=8_000, output_tokens=1_400, usd=Decimal(cost_usd)),
        uncached=Cost(calls=10, usd=Decimal(uncached_usd)),
    )


def test_a_row_has_a_cell_for_each_piece_of_work_with_money_baseline_and_share(snapshot):
    """Each cell shows the cost, the cost without caching and batches, and the first as a share of the second.

    For example, 0.0432 is 65 % of 0.0666.
    """
    table = build_money_table(
        [
            spent("a", "night of 10", "0.0432", "0.0666"),
            spent("a", "night of 2,000", "7.351", "13.40"),
            spent("b", "night of 10", "0.00195", "0.00333"),
            spent("b", "night of 2,000", "3.94", "2.49"),
        ]
    )
    assert [re.findall(r"\d+ %", row) for row in table[2:]] == [["65 %", "55 %"], ["59 %", "158 %"]]
    assert table == snapshot


@pytest.mark.parametrize(
    ("money", "text"),
    [("0", "$0.0000"), ("0.03789", "$0.0379"), ("0.1968", "$0.197"), ("1", "$1.00"), ("1234.5", "$1234.50")],
)
def test_money_has_the_digits_that_a_small_sum_needs(money, text):
    assert usd(Decimal(money)) == text


def test_replies_that_come_again_cost_what_they_cost_before():
    costs = [Cost(calls=1, usd=Decimal(1)), Cost(calls=1, usd=Decimal(10))]
    assert sum_costs(costs, 5) == Cost(calls=5, usd=Decimal(23))


@pytest.mark.whole_only
def test_a_night_of_ten_by_batches_costs_half_of_its_tokens_price():
    """If ten answers of a night are judged in batches, the cost is half of the normal price of their tokens.

    Haiku costs 0.10 dollars for a million input tokens and 0.50 for a million output tokens. The prefix is too
    short for the cache. Two canaries are judged with the answers.
    """
    said = asyncio.run(measure_night(HAIKU, 10))
    assert (said.judged, said.calls, said.cached_tokens) == (10, 12, 0)
    by_hand = (said.input_tokens * Decimal("0.10") + said.output_tokens * Decimal("0.50")) / 1_000_000 / 2
    assert by_hand <= said.cost_usd <= by_hand + 12 * ROUNDING


def test_a_night_of_ten_at_another_makers_endpoint_costs_the_full_price_less_what_was_cached():
    """At a provider without batches, ten answers cost the full price, except for cached tokens.

    The prices in dollars for a million tokens are 2 for input, 0.20 for cached input, and 10 for output.
    """
    said = asyncio.run(measure_night(OTHER, 10))
    assert (said.judged, said.calls) == (10, 12)
    by_hand = (said.input_tokens * 2 + said.cached_tokens * Decimal("0.20") + said.output_tokens * 10) / 1_000_000
    assert by_hand <= said.cost_usd <= by_hand + 12 * ROUNDING


def test_the_baseline_pays_the_full_price_for_every_token():
    """The baseline has the full price for every token, even if the prefix is long enough to be cached.

    Sonnet costs 2 dollars for a million input tokens and 10 for output.
    """
    cases = bench_cost.build_cases(bench_cost.build_conversations(3))
    for one in asyncio.run(bench_cost.compute_uncached_cost(SONNET, cases)):
        assert (one.calls, one.cached_tokens) == (1, 0)
        by_hand = (one.input_tokens * 2 + one.output_tokens * 10) / Decimal(1_000_000)
        assert by_hand <= one.usd <= by_hand + ROUNDING


def test_a_night_that_reaches_its_budget_stays_below_it_and_is_partial():
    said = asyncio.run(measure_night(OPUS, 10, budget_usd=Decimal("0.05")))
    assert said.budget_reached
    assert said.judged < 10
    assert said.cost_usd <= Decimal("0.05")


def test_every_price_on_the_page_has_its_date_and_source():
    page = "\n".join(build_price_table())
    for one in PROVIDERS:
        row = find_price_row(one.model, 0, (OTHER_FAMILY,))
        assert f"| `{one.model}` | {row.input} |" in page
        assert f"| {row.as_of} | {row.source} |" in page
