"""What pages remember between two requests: figures of one copy of the warehouse, and judges' words on reviews.

Both are there for speed alone: forgetting changes no page.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final, TypeVar, cast

from monitors.records.reviews import AnswerId, ReviewedAnswer
from warehouse.database.snapshot import Snapshot
from warehouse.database.store import Store
from warehouse.queries.site.reviewing import PeopleVerdict, judge_verdicts, people_verdicts

FORGET_AFTER: Final = timedelta(hours=1)
"""A run that was graded anew under its old name is read anew by then."""
MOST_FIGURES: Final = 64
Figure = TypeVar("Figure")


@dataclass
class CopyMemory:
    """Figures that depend on the copy alone: each is reckoned once for a copy. Safe for threads."""

    snapshot: Snapshot
    _copy: str = ""
    _known: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    _guard: Lock = field(default_factory=Lock)

    def once(self, key: Hashable, reckon: Callable[[], Figure]) -> Figure:
        """What ``reckon`` gave for ``key`` over this copy; two that ask at once may both reckon."""
        copy = self.snapshot.copy_name
        with self._guard:
            if copy != self._copy or len(self._known) >= MOST_FIGURES:
                self._known.clear()
                self._copy = copy
            if key in self._known:
                return cast("Figure", self._known[key])
        found = reckon()
        with self._guard:
            if self._copy == copy:
                self._known[key] = found
        return found


@dataclass
class ReviewMemory:
    """Reviewed answers with what judges said of them. Only what is newly reviewed is sought among all grades."""

    _judged: dict[AnswerId, tuple[ReviewedAnswer, ...]] = field(
        default_factory=dict[AnswerId, tuple[ReviewedAnswer, ...]]
    )
    _since: datetime | None = None
    _guard: Lock = field(default_factory=Lock)

    def answers(self, store: Store, target: str | None, now: datetime) -> tuple[ReviewedAnswer, ...]:
        """As `warehouse.queries.reviews.reviewed` gives them, in no order."""
        said = people_verdicts(store)
        with self._guard:
            if self._since is None or abs(now - self._since) > FORGET_AFTER:
                self._judged, self._since = {}, now
            self._learn(store, [one for one in said if not self._knows(one)])
            answers = [answer for one in said for answer in self._judged[one.answer_id]]
        return tuple(one for one in answers if target in {None, one.target})

    def _knows(self, said: PeopleVerdict) -> bool:
        known = self._judged.get(said.answer_id)
        return known is not None and all(
            (one.people_right, one.inclusion_probability) == (said.right, said.inclusion_probability)
            for one in known
        )

    def _learn(self, store: Store, new: list[PeopleVerdict]) -> None:
        if not new:
            return
        self._judged |= dict.fromkeys((one.answer_id for one in new), ())
        by_id = {one.answer_id: one for one in new}
        for answer_id, lineage, passed in judge_verdicts(store, list(by_id)):
            said = by_id[answer_id]
            answer = ReviewedAnswer(
                answer_id=answer_id,
                target=said.target,
                lineage=lineage,
                judge_passed=passed,
                people_right=said.right,
                inclusion_probability=said.inclusion_probability,
            )
            self._judged[answer_id] = (*self._judged[answer_id], answer)
