"""Replies that the guard held back, what people said of them, and which question of the traffic each was about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from warehouse.store import READ_WAIT_S, Store

TOGETHER: Final = timedelta(minutes=2)
"""An entry and the end of its conversation: a reply that is held back usually ends one, and clocks differ."""


class HeldBack(NamedTuple):
    """An entry of the hallucination log. ``verdict`` is right, wrong, or untold."""

    log: str
    id: str
    at: datetime
    user_text: str | None
    blocked_reply: str | None
    verdict: str


def held_back_entries(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = READ_WAIT_S
) -> tuple[HeldBack, ...]:
    """Entries of ``since`` (included) to ``until`` that people were told of, in the order of their times.

    An entry's time is its own account of it, unless that cannot be; then it is when it was read. A person's verdict
    on it is a label under its incident's fingerprint, or a case drafted from it: who wants the bad reply in the
    gold set calls it bad. Of one that people contradict each other about, nothing is told.
    """
    found = store.query(
        """
        with said as (
          select fingerprint, coalesce(finding_right, answer = 'wrong') as was_bad from labels
          where target = $target and (finding_right is not null or answer in ('right', 'wrong'))
          union all
          select fingerprint, true from case_drafts where target = $target and bad_reply is not null
        ), verdicts as (
          select fingerprint, bool_and(was_bad) as was_bad from said where fingerprint is not null
          group by fingerprint having bool_and(was_bad) = bool_or(was_bad)
        ), entries as (
          select log, id, user_text, blocked_reply, fingerprint,
            if(logged_at between read_at - interval 7 day and read_at, logged_at, read_at) as moment
          from hallucinations where target = $target and tell
        )
        select log, id, moment, user_text, blocked_reply,
          case when was_bad then 'right' when not was_bad then 'wrong' else 'untold' end
        from entries left join verdicts using (fingerprint)
        where moment >= $since::timestamptz and moment < $until::timestamptz
        order by moment, log, id
        """,
        {"target": target, "since": since.isoformat(), "until": until.isoformat()},
        wait_s=wait_s,
    )
    return tuple(_held_back(row) for row in found.rows)


def matched(
    entries: Sequence[HeldBack], questions: Sequence[tuple[datetime, str]]
) -> Sequence[tuple[HeldBack, int]]:
    """Entries with the place of the question they are about: the same words, at most two minutes apart.

    Each has at most one; of several the nearest in time. Words are compared as they are stored, masked on both
    sides, but for case and white space; entries without a text match none.
    """
    asked: dict[str, list[int]] = defaultdict(list)
    for place, (_, text) in enumerate(questions):
        asked[_plain(text)].append(place)
    near = sorted(
        (apart, number, place)
        for number, entry in enumerate(entries)
        for place in asked.get(_plain(entry.user_text or ""), ())
        if _plain(entry.user_text or "") and (apart := abs(questions[place][0] - entry.at)) <= TOGETHER
    )
    taken, pairs = set[int](), dict[int, int]()
    for _, number, place in near:
        if number not in pairs and place not in taken:
            pairs[number] = place
            taken.add(place)
    return [(entries[number], place) for number, place in sorted(pairs.items())]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _held_back(row: Sequence[object]) -> HeldBack:
    log, key, at, user_text, blocked_reply, verdict = row
    assert isinstance(at, datetime)
    asked = None if user_text is None else str(user_text)
    blocked = None if blocked_reply is None else str(blocked_reply)
    return HeldBack(str(log), str(key), at, asked, blocked, str(verdict))
