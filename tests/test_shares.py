"""Tests are dealt out so that slow ones begin, and none is lost or run twice."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from tests.shares import in_shares

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
