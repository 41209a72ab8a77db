"""Test that each conversation is taken once, in any order, over any number of nights, with any repetitions."""

from __future__ import annotations

import random
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind, Turn, Watermark
from monitors.sources.intake import Intake, IntakeDecision, IntakeWindow, advance_watermark, compute_intake_window

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def conversation(number: int, reply: str = "a", hours: float = 0.0) -> Conversation:
    turns = (Turn(user_text="q", reply_text=reply),)
    at = NOON + timedelta(hours=hours or number)
    return Conversation(id=f"c-{number}", origin_id=f"c-{number}", completed_at=at, turns=turns)


NIGHT = st.lists(
    st.builds(conversation, st.integers(0, 6), st.sampled_from("ab"), st.sampled_from([1, 2])), max_size=25
)
ALIKE = st.lists(st.integers(0, 9).map(conversation), max_size=25)


class Fresh(NamedTuple):
    """The conversations that a nightly run takes, ordered by time and id.

    ``known`` is the number of conversations that an earlier run took. ``again`` counts the repetitions of taken
    conversations.
    """

    taken: tuple[Conversation, ...]
    known: int
    again: int
    notices: tuple[SourceWarning, ...]


def fresh(conversations: Iterable[Conversation], known: AbstractSet[Identifier]) -> Fresh:
    """Return each conversation whose id is not in ``known`` once, however often it occurs and in any order.

    If several contents have one id, the latest one counts. If even the questions of these contents differ, a notice
    reports this. A conversation in ``known`` was taken by an earlier nightly run and is not taken again, even if it
    changed.
    """
    intake, taken, counts = Intake(known), dict[Identifier, Conversation](), dict.fromkeys(IntakeDecision, 0)
    for conversation in conversations:
        offer = intake.offer(conversation)
        counts[offer] += 1
        if offer in (IntakeDecision.TAKEN, IntakeDecision.REPLACED):
            taken[conversation.id] = conversation
    return Fresh(
        taken=tuple(sorted(taken.values(), key=lambda one: (one.completed_at, one.id))),
        known=counts[IntakeDecision.TAKEN_EARLIER],
        again=counts[IntakeDecision.DUPLICATE] + counts[IntakeDecision.REPLACED],
        notices=intake.build_duplicate_id_warnings(),
    )


@given(NIGHT, st.randoms(use_true_random=False))
def test_order_does_not_matter(offered: list[Conversation], chance: random.Random) -> None:
    once = fresh(offered, frozenset())
    chance.shuffle(offered)
    assert fresh(offered, frozenset())[:1] == once[:1]
    assert fresh(offered, frozenset()).notices == once.notices
    assert len({one.id for one in once.taken}) == len(once.taken) == len({one.id for one in offered})


@given(NIGHT, st.integers(1, 3))
def test_repetition_does_not_matter(offered: list[Conversation], times: int) -> None:
    assert fresh(offered * times, frozenset()).taken == fresh(offered, frozenset()).taken
    assert fresh(offered * times, frozenset()).notices == fresh(offered, frozenset()).notices


@given(ALIKE, st.lists(st.integers(0, 25), max_size=4), st.randoms(use_true_random=False))
def test_however_nights_are_cut_all_are_taken_once(
    offered: list[Conversation], cuts: list[int], chance: random.Random
) -> None:
    chance.shuffle(offered)
    known: set[str] = set()
    taken: list[Conversation] = []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(offered)], strict=True):
        tonight = fresh(offered[min(start, end) : end] + offered[:start], known)  # late ones, and all earlier ones
        taken += tonight.taken
        known |= {one.id for one in tonight.taken}
    assert sorted(taken, key=lambda one: one.id) == sorted(fresh(offered, set()).taken, key=lambda one: one.id)


@given(NIGHT, st.sets(st.integers(0, 6).map(lambda number: f"c-{number}")))
def test_known_conversations_are_skipped_and_all_are_counted(offered: list[Conversation], known: set[str]) -> None:
    tonight = fresh(offered, known)
    assert {one.id for one in tonight.taken} == {one.id for one in offered} - known
    assert len(tonight.taken) + tonight.known + tonight.again == len(offered)


def test_the_latest_of_several_contents_counts_and_is_reported() -> None:
    early, late = conversation(1, "early", hours=1), conversation(1, "late", hours=2)
    for offered in ([early, late], [late, early], [late, early, late]):
        tonight = fresh(offered, frozenset())
        assert tonight.taken == (late,)
        assert tonight.notices == (), "the same question with another reply or a thumb is a later version of it"


def test_several_questions_under_one_id_are_reported() -> None:
    other = conversation(1).model_copy(update={"turns": (Turn(user_text="another", reply_text="a"),)})
    for offered in ([conversation(1), other], [other, conversation(1), other]):
        ((kind, place),) = [(notice.kind, notice.place) for notice in fresh(offered, frozenset()).notices]
        assert (kind, place) == (SourceWarningKind.ITEM_CHANGED, "c-1")


def test_the_same_content_twice_is_no_news() -> None:
    tonight = fresh([conversation(1), conversation(1)], frozenset())
    assert (len(tonight.taken), tonight.again, tonight.notices) == (1, 1, ())


def test_one_by_one_it_says_what_to_do() -> None:
    intake = Intake(frozenset({"c-9"}))
    offered = [conversation(9), conversation(1, hours=2), conversation(1, hours=1), conversation(1, hours=3)]
    assert [intake.offer(one) for one in offered] == [
        IntakeDecision.TAKEN_EARLIER,
        IntakeDecision.TAKEN,
        IntakeDecision.DUPLICATE,
        IntakeDecision.REPLACED,
    ]


def test_a_night_begins_before_the_watermark_for_what_comes_late() -> None:
    mark = Watermark(source="chat", completed_to=NOON)
    assert compute_intake_window(mark, NOON + DAY, max_delay=timedelta(hours=6), first_period=DAY) == IntakeWindow(
        NOON - timedelta(hours=6), NOON + DAY
    )
    assert compute_intake_window(None, NOON, max_delay=timedelta(hours=6), first_period=DAY) == IntakeWindow(
        NOON - DAY, NOON
    )


@given(st.integers(-500, 500), st.integers(-500, 500))
def test_f16_the_watermark_never_goes_back_when_the_clock_does(before: int, until: int) -> None:
    mark = Watermark(source="chat", completed_to=NOON + timedelta(hours=before))
    read = compute_intake_window(
        mark, NOON + timedelta(hours=until), max_delay=timedelta(hours=6), first_period=DAY
    )
    assert read.since < read.until
    assert advance_watermark(mark, "chat", read).completed_to == max(mark.completed_to, read.until)
    assert read.since <= mark.completed_to, "nothing between two nights is left out"


def test_the_first_night_makes_the_watermark() -> None:
    assert advance_watermark(None, "chat", IntakeWindow(NOON - DAY, NOON)) == Watermark(
        source="chat", completed_to=NOON
    )
