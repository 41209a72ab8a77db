"""Test the distribution of tests over workers, the rows that the quick tier runs, the shards and the quarantine."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from tests.conftest import ROOT
from tests.tiers import SLICES, WHOLE_ONLY, is_in_shard, order_for_workers, read_quarantine, rows_beyond_slice

MODULES = st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30)


@given(modules=MODULES, workers=st.integers(1, 5))
def test_each_worker_s_share_begins_with_slow_modules_and_every_test_is_there_once(modules, workers):
    """The order contains each test once, keeps each slow module together, and does not reorder fast tests."""
    tests = [(number, case) for number, (_, count) in enumerate(modules) for case in range(count)]
    ordered = order_for_workers(tests, workers, module=lambda test: test[0], slow=lambda test: modules[test[0]][0])
    assert sorted(ordered) == tests
    for number, (slow, _) in enumerate(modules):
        if slow:
            places = [place for place, test in enumerate(ordered) if test[0] == number]
            assert places == list(range(places[0], places[0] + len(places)))
    assert [test for test in ordered if not modules[test[0]][0]] == [
        test for test in tests if not modules[test[0]][0]
    ]


def test_slow_modules_are_spread_over_the_workers():
    """If there are four slow modules and two workers, each worker's half begins with two slow modules."""
    tests = [(number, case) for number in range(8) for case in range(5)]
    ordered = order_for_workers(tests, 2, module=lambda test: test[0], slow=lambda test: test[0] % 2 == 0)
    heads = [{number for number, _ in half[:10]} for half in (ordered[:20], ordered[20:])]
    assert heads == [{0, 4}, {2, 6}]


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), unique=True)


@given(rows=ROWS, seed=st.integers(0, 99))
def test_a_slice_is_the_same_for_each_worker_and_no_test_outside_a_table_is_skipped(rows, seed):
    most = {"a": 2, "b": 5, "c": None}
    skipped, again = (
        rows_beyond_slice(order, seed, family=lambda row: row[0], limit=lambda row: most[row[0]])
        for order in (rows, rows[::-1])
    )
    assert sorted(skipped) == sorted(again)
    for name, count in most.items():
        there = sum(row[0] == name for row in rows)
        assert sum(row[0] == name for row in skipped) == (0 if count is None else max(0, there - count))


def test_each_row_has_its_turn():
    rows = [("a", number) for number in range(12)]
    taken = {
        row
        for seed in range(40)
        for row in set(rows) - set(rows_beyond_slice(rows, seed, family=lambda row: row[0], limit=lambda _: 3))
    }
    assert taken == set(rows)


@given(name=st.text(max_size=40), count=st.integers(1, 5))
def test_each_file_is_in_exactly_one_shard(name, count):
    assert sum(is_in_shard(name, f"{number}/{count}") for number in range(1, count + 1)) == 1


def test_each_named_file_exists():
    assert [name for name in {*SLICES, *WHOLE_ONLY} if not (ROOT / "tests" / name).is_file()] == []


def test_each_quarantined_test_exists_and_has_a_reason():
    for node_id, reason in read_quarantine().items():
        file, _, name = node_id.partition("::")
        assert f"def {name.rpartition('::')[2].partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")
        assert len(reason.split()) >= 5
