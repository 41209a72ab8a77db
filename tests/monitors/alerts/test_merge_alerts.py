"""Test merging later alerts into the first one: no item is lost or repeated, and the first alert keeps its id."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.records.base import Severity
from monitors.records.incidents import Alert, Link, RunSummary
from tests.monitors.alerts.sample_observations import alert, observation


def batch(numbers: list[int], **changes: object) -> Alert:
    return alert(*(observation(f"leak-{number}", **changes) for number in numbers))


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), min_size=1, max_size=5))
def test_f11_all_alerted_items_are_shown_once_under_the_first_id(batches):
    first, *later = [batch(numbers) for numbers in batches]
    whole = first.merge_alerts(later)
    cases = [item.incident.case_id for item in whole.items]
    assert sorted(cases) == sorted({f"leak-{number}" for numbers in batches for number in numbers})
    assert (whole.id, whole.created_at, whole.reason) == (first.id, first.created_at, first.reason)
    assert whole.merge_alerts(later) == whole


def test_the_worst_comes_first_and_sets_the_colour():
    mild = batch([1], severity=Severity.MAJOR)
    whole = mild.merge_alerts([batch([2])])
    assert whole.severity is Severity.CRITICAL
    assert whole.items[0].incident.case_id == "leak-2"


def test_scores_and_links_are_the_newest_there_are():
    early = batch([1]).model_copy(update={"flat": None, "weighted": None, "links": ()})
    final = batch([2])
    assert (early.merge_alerts([final]).weighted, early.merge_alerts([final]).links) == (
        final.weighted,
        final.links,
    )
    assert final.merge_alerts([early]).weighted == final.weighted
    moved = final.model_copy(update={"dimensions": "Usefulness 4.3 → 3.8"})
    assert (early.merge_alerts([moved]).dimensions, moved.merge_alerts([early]).dimensions) == (
        moved.dimensions,
    ) * 2


def test_only_news_of_a_run_that_has_a_message_continues_it():
    one = batch([1])
    assert not one.is_added_to_earlier_message
    assert one.with_items_sorted_by_urgency(
        item.place_in_thread("1.1", "C1") for item in one.items
    ).is_added_to_earlier_message


def test_the_newer_summary_counts_and_what_it_leaves_empty_stays():
    early = RunSummary(
        commit="c0ffee1", links=(Link(label="Evidence", href="here"),), under_way=True, production=True
    )
    final = RunSummary(flat="0.900", weighted="0.800", changed=("a model",))
    whole = final.fill_empty_fields_from(early)
    assert (whole.flat, whole.links, whole.commit, whole.production) == ("0.900", early.links, "c0ffee1", True)
    assert not whole.under_way
    assert RunSummary(under_way=True).fill_empty_fields_from(final).under_way
    assert set(Alert.model_fields) > set(RunSummary.model_fields)
