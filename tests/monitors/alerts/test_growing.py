"""A first message that grows: nothing is lost from it, nothing comes twice, and its id stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.grouping import continues_an_alert, grown
from monitors.records.base import Severity
from monitors.records.incidents import Alert
from tests.monitors.alerts.sightings import alert, sighting


def batch(numbers: list[int], **changes: object) -> Alert:
    return alert(*(sighting(f"leak-{number}", **changes) for number in numbers))


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), min_size=1, max_size=5))
def test_f11_all_that_was_told_is_shown_once_under_the_first_id(batches):
    first, *later = [batch(numbers) for numbers in batches]
    whole = grown(first, later)
    cases = [item.incident.case_id for item in whole.items]
    assert sorted(cases) == sorted({f"leak-{number}" for numbers in batches for number in numbers})
    assert (whole.id, whole.created_at, whole.reason) == (first.id, first.created_at, first.reason)
    assert grown(whole, later) == whole


def test_the_worst_comes_first_and_sets_the_colour():
    mild = batch([1], severity=Severity.WRONG)
    whole = grown(mild, [batch([2])])
    assert whole.severity is Severity.PAGE
    assert whole.items[0].incident.case_id == "leak-2"


def test_scores_and_links_are_the_newest_there_are():
    early = batch([1]).model_copy(update={"flat": None, "weighted": None, "links": ()})
    final = batch([2])
    assert (grown(early, [final]).weighted, grown(early, [final]).links) == (final.weighted, final.links)
    assert grown(final, [early]).weighted == final.weighted
    moved = final.model_copy(update={"dimensions": "Usefulness 4.3 → 3.8"})
    assert (grown(early, [moved]).dimensions, grown(moved, [early]).dimensions) == (moved.dimensions,) * 2


def test_only_news_of_a_run_that_has_a_message_continues_it():
    one = batch([1])
    assert not continues_an_alert(one)
    place = {"thread": "1.1", "channel": "C1"}
    items = tuple(i.model_copy(update={"incident": i.incident.model_copy(update=place)}) for i in one.items)
    assert continues_an_alert(one.model_copy(update={"items": items}))
