"""The changes between two suites are described in words, sorted by severity."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from monitors.goldset.versions import compare_suites, format_suite_diff
from tests.monitors.goldset.gold_cases import case_of

CASES = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.tuples(st.integers(1, 3), st.sampled_from(["24 months", "36 months"])),
    max_size=6,
).map(lambda rows: [case_of(id=name, severity=level, gold=gold) for name, (level, gold) in rows.items()])


def test_a_changed_key_shows_old_and_new_value(snapshot):
    """A changed key is shown with its old and new value.

    The severity comes first among the keys of a case, and the highest severity comes first among the cases.
    """
    old = [case_of(id="a"), case_of(id="b"), case_of(id="c")]
    new = [
        case_of(id="a", gold="36 months"),
        case_of(id="b", severity=3, alternatives=["two years"]),
        case_of(id="c"),
    ]
    assert format_suite_diff(compare_suites(old, new), max_cases=10) == snapshot


def test_provenance_changes_are_listed_by_key():
    """Changes of provenance, such as a moved clause, are listed by key for a review."""
    moved = case_of(provenance={"pipeline": "template", "field": "ped_waiting", "document": "Suraksha Gold v2"})
    (change,) = compare_suites([case_of()], [moved]).changed
    (key,) = change.changes
    assert (key.key, key.after) == ("provenance.document", '"Suraksha Gold v2"')


def test_added_and_removed_cases_are_listed_worst_first(snapshot):
    """Added and removed cases are listed with the highest severity first, so that severity 3 is not overlooked."""
    old = [case_of(id="mild", severity=1), case_of(id="severe", severity=3), case_of(id="stays")]
    lines = format_suite_diff(
        compare_suites(old, [case_of(id="stays"), case_of(id="new", expected_refusal=True)]), max_cases=1
    )
    assert "severe" in lines[1]
    assert lines == snapshot


def test_nothing_changed_is_said_so(snapshot):
    """If only the order of the lines differs, the report says that nothing changed."""
    cases = [case_of(id=name) for name in "abc"]
    assert format_suite_diff(compare_suites(cases, cases[::-1]), max_cases=5) == snapshot


@given(CASES, CASES, st.integers())
def test_a_diff_accounts_for_every_case_whatever_the_order(old, new, seed):
    """Each case of two suites is added, removed, changed or unchanged.

    If the suites are swapped, the added cases become the removed ones, and the reverse.
    """
    diff = compare_suites(old, new)
    assert len(diff.added) + len(diff.changed) + diff.same == len(new)
    assert len(diff.removed) + len(diff.changed) + diff.same == len(old)
    back = compare_suites(new, old)
    assert {case.id for case in back.added} == {case.id for case in diff.removed}
    shuffled = random.Random(seed).sample(old, len(old))
    assert compare_suites(shuffled, new).changed == diff.changed
    assert diff.is_empty == (sorted(old, key=lambda one: one.id) == sorted(new, key=lambda one: one.id))
