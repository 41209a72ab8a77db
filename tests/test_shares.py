"""Tests are dealt out so that slow ones begin, and none is lost or run twice; of long tables a run takes some rows."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from tests.conftest import ROOT
from tests.shares import LONG_FILES, beyond_the_slice, in_shares

MODULES = st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30)


@given(modules=MODULES, workers=st.integers(1, 5))
def test_each_worker_s_share_begins_with_slow_modules_and_every_test_is_there_once(modules, workers):
    """Whatever the modules: a permutation; slow before fast in each part as xdist cuts it; modules stay together."""
    tests = [(number, case) for number, (_, count) in enumerate(modules) for case in range(count)]
    ordered = in_shares(tests, workers, module=lambda test: test[0], slow=lambda test: modules[test[0]][0])
    assert sorted(ordered) == tests
    for number, (slow, _) in enumerate(modules):
        if slow:
            places = [place for place, test in enumerate(ordered) if test[0] == number]
            assert places == list(range(places[0], places[0] + len(places)))
    assert [test for test in ordered if not modules[test[0]][0]] == [
        test for test in tests if not modules[test[0]][0]
    ]


def test_slow_modules_are_spread_over_the_workers():
    """Four slow modules among two workers: two each, at the head of its half."""
    tests = [(number, case) for number in range(8) for case in range(5)]
    ordered = in_shares(tests, 2, module=lambda test: test[0], slow=lambda test: test[0] % 2 == 0)
    heads = [{number for number, _ in half[:10]} for half in (ordered[:20], ordered[20:])]
    assert heads == [{0, 4}, {2, 6}]


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), unique=True)


@given(rows=ROWS, seed=st.integers(0, 99))
def test_a_slice_is_the_same_for_each_worker_and_no_test_outside_a_table_is_left_out(rows, seed):
    most = {"a": 2, "b": 5, "c": None}
    left_out, again = (
        beyond_the_slice(order, seed, family=lambda row: row[0], most=lambda row: most[row[0]])
        for order in (rows, rows[::-1])
    )
    assert sorted(left_out) == sorted(again)
    for name, count in most.items():
        there = sum(row[0] == name for row in rows)
        assert sum(row[0] == name for row in left_out) == (0 if count is None else max(0, there - count))


def test_each_row_has_its_turn():
    rows = [("a", number) for number in range(12)]
    taken = {
        row
        for seed in range(40)
        for row in set(rows) - set(beyond_the_slice(rows, seed, family=lambda row: row[0], most=lambda _: 3))
    }
    assert taken == set(rows)


def test_each_long_file_is_there():
    assert [name for name in LONG_FILES if not (ROOT / "tests" / name).is_file()] == []
