"""Test that a cost is the number of tokens times a dated price, as a `Decimal`, and is never understated."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from monitors.judge.model import (
    BUILT_IN_PRICES,
    PriceRow,
    Usage,
    build_price_function,
    compute_cost_usd,
    find_price_row,
)
from monitors.records.runs import format_missing_price

MINE = PriceRow(model="acme-*", input=Decimal(1), output=Decimal(4), as_of=date(2026, 11, 1), source="our contract")
tokens = st.integers(0, 50_000)
usages = st.builds(
    Usage,
    input_tokens=tokens,
    output_tokens=tokens,
    cache_write_5m_tokens=tokens,
    cache_write_1h_tokens=tokens,
    cache_read_tokens=tokens,
    batch=st.booleans(),
)


def test_a_reply_costs_what_the_price_list_says():
    """The cost of a Sonnet 5.5 reply equals the cost that was calculated by hand from the price list.

    Tokens, with prices in USD per million: 1,000 input at 2, 2,000 written to the cache at 2.50, 4,000 read from
    the cache at 0.10, 300 output at 10.
    """
    usage = Usage(input_tokens=1000, cache_write_5m_tokens=2000, cache_read_tokens=4000, output_tokens=300)
    assert compute_cost_usd(usage, "claude-sonnet-5-5") == Decimal("0.0104")
    assert compute_cost_usd(usage.model_copy(update={"batch": True}), "claude-sonnet-5-5") == Decimal("0.0052")


def test_a_long_prompt_costs_more_where_the_price_list_says_so_and_cached_tokens_count():
    short = Usage(input_tokens=50_000, cache_read_tokens=50_000, output_tokens=1000)
    long = Usage(input_tokens=50_001, cache_read_tokens=50_000, output_tokens=1000)
    assert compute_cost_usd(short, "claude-haiku-5-5") == Decimal("0.006")
    assert compute_cost_usd(long, "claude-haiku-5-5") == Decimal("0.0300005")


def test_a_row_of_the_configuration_comes_before_the_built_in_ones():
    mine = MINE.model_copy(update={"model": "claude-haiku-5-5"})
    assert find_price_row("claude-haiku-5-5", 10, [mine]) is mine
    assert find_price_row("claude-haiku-5-5-20261007", 10, [mine]).output == Decimal("0.50")
    assert find_price_row("ACME-large", 10, [MINE]) is MINE


def test_without_prices_for_caching_a_cached_token_costs_as_any_other():
    usage = Usage(input_tokens=10, cache_write_5m_tokens=10, cache_write_1h_tokens=10, cache_read_tokens=10)
    assert compute_cost_usd(usage, "acme-1", [MINE]) == Decimal("0.00004")


def test_a_model_without_a_price_has_the_row_to_add_and_no_invented_cost():
    assert find_price_row("acme-1", 10) is None
    assert compute_cost_usd(Usage(input_tokens=10), "acme-1") == 0
    assert '[[judge.prices]] model = "acme-1"' in format_missing_price("acme-1")


def test_every_built_in_row_has_a_date_and_a_source_and_the_usual_proportions():
    """Every built-in price has a date, a source and the usual ratios, which a typing mistake would break.

    Writing to the cache costs 1.25 times the input price for 5 minutes and twice the input price for 1 hour. A
    batch costs half.
    """
    for row in BUILT_IN_PRICES:
        assert row.source
        assert row.as_of.year == 2026
        assert row.cache_write_5m == row.input * Decimal("1.25")
        assert row.cache_write_1h == row.input * 2
        assert row.output == row.input * 5
        assert row.cache_read is not None
        assert row.cache_read <= row.input / 10
        assert row.batch_factor == Decimal("0.5")


@given(usages, st.sampled_from(["claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"]))
def test_money_is_exact_and_never_negative(usage, model):
    cost = compute_cost_usd(usage, model)
    assert cost >= 0
    assert -cost.as_tuple().exponent <= 9
    assert (cost == 0) == (usage.model_copy(update={"batch": False}) == Usage())


@given(usages, st.sampled_from(["claude-haiku-5-5", "claude-sonnet-5-5"]))
def test_a_batch_never_costs_more(usage, model):
    single = compute_cost_usd(usage.model_copy(update={"batch": False}), model)
    batch = compute_cost_usd(usage.model_copy(update={"batch": True}), model)
    assert batch <= single
    assert batch * 2 - single < Decimal("0.00000001")


def test_a_price_list_is_a_function_of_model_and_usage():
    price = build_price_function([MINE])
    assert price("acme-1", Usage(input_tokens=1_000_000)) == 1
    assert price("claude-opus-5-5", Usage(output_tokens=1_000_000)) == 20
    assert price("other", Usage(output_tokens=1_000_000)) == 0
