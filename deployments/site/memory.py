"""Caches between requests: values from one copy of the warehouse, and judges' verdicts on reviewed answers.

The caches only make pages faster; they do not change results.
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
from warehouse.queries.site.reviewing import PeopleVerdict, list_judge_verdicts, list_people_verdicts

MAX_AGE: Final = timedelta(hours=1)
"""Maximum age of a cache entry. Older entries are read again, because a run may have been graded again."""
MAX_FIGURES: Final = 64
Figure = TypeVar("Figure")


@dataclass
class CopyMemory:
    """A cache of values that are computed once for each copy of the warehouse.

    It can be used by several threads.
    """

    snapshot: Snapshot
    _copy: str = ""
    _known: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    _guard: Lock = field(default_factory=Lock)

    def get_or_compute(self, key: Hashable, compute: Callable[[], Figure]) -> Figure:
        """Return the value for ``key`` in this copy of the warehouse. If the value is not cached, compute it."""
        copy = self.snapshot.copy_name
        with self._guard:
            if copy != self._copy or len(self._known) >= MAX_FIGURES:
                self._known.clear()
                self._copy = copy
            if key in self._known:
                return cast("Figure", self._known[key])
        figure = compute()
        with self._guard:
            if self._copy == copy:
                self._known[key] = figure
        return figure


@dataclass
class ReviewMemory:
    """A cache of reviewed answers with the judges' verdicts on them."""

    _answers_by_id: dict[AnswerId, tuple[ReviewedAnswer, ...]] = field(
        default_factory=dict[AnswerId, tuple[ReviewedAnswer, ...]]
    )
    _since: datetime | None = None
    _guard: Lock = field(default_factory=Lock)

    def load_reviewed_judged_answers(
        self, store: Store, target: str | None, now: datetime
    ) -> tuple[ReviewedAnswer, ...]:
        """Return the reviewed answers of one target, or of all targets, with the judges' verdicts, in any order."""
        verdicts = list_people_verdicts(store)
        with self._guard:
            if self._since is None or abs(now - self._since) > MAX_AGE:
                self._answers_by_id, self._since = {}, now
            self._cache_reviewed_answers(
                store, [verdict for verdict in verdicts if not self._is_cached_unchanged(verdict)]
            )
            answers = [answer for verdict in verdicts for answer in self._answers_by_id[verdict.answer_id]]
        return tuple(verdict for verdict in answers if target in {None, verdict.target})

    def _is_cached_unchanged(self, verdict: PeopleVerdict) -> bool:
        stored = self._answers_by_id.get(verdict.answer_id)
        return stored is not None and all(
            (answer.people_right, answer.inclusion_probability) == (verdict.right, verdict.inclusion_probability)
            for answer in stored
        )

    def _cache_reviewed_answers(self, store: Store, verdicts: list[PeopleVerdict]) -> None:
        if not verdicts:
            return
        self._answers_by_id |= dict.fromkeys((verdict.answer_id for verdict in verdicts), ())
        by_id = {verdict.answer_id: verdict for verdict in verdicts}
        for answer_id, lineage, passed in list_judge_verdicts(store, list(by_id)):
            people_verdict = by_id[answer_id]
            answer = ReviewedAnswer(
                answer_id=answer_id,
                target=people_verdict.target,
                lineage=lineage,
                judge_passed=passed,
                people_right=people_verdict.right,
                inclusion_probability=people_verdict.inclusion_probability,
            )
            self._answers_by_id[answer_id] = (*self._answers_by_id[answer_id], answer)
