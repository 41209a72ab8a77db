"""The rubric of a run's reports: one rating for each case, its average, and how far it moved. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from monitors.bootstrap import change_interval, mean_interval
from monitors.records.comparisons import CaseRating, RubricAverage, RubricChange
from monitors.records.grades import Aspect, Assessment, Judged

Ratings = Mapping[str, float]
"""By case id, 1 to 5: the average over its asks, so that asking oftener moves nothing."""


def rating_of(assessment: Assessment) -> int | None:
    """What a judge gave the report, if it rated one; of several grades the lowest."""
    given = [g.rubric for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.USEFULNESS]
    return min((rubric for rubric in given if rubric is not None), default=None)


def ratings(assessments: Iterable[Assessment]) -> Ratings:
    """The ratings of a run, from all its assessments."""
    given: dict[str, list[int]] = {}
    for assessment in assessments:
        rubric = rating_of(assessment)
        if rubric is not None:
            given.setdefault(assessment.case_id, []).append(rubric)
    return {case_id: fmean(rubrics) for case_id, rubrics in given.items()}


def ratings_of(average: RubricAverage | None) -> Ratings:
    """The ratings of a run that was weighed before."""
    return {one.case_id: one.rating for one in average.ratings} if average else {}


def average_of(rated: Ratings) -> RubricAverage | None:
    """The average with its bootstrap interval; ``None`` where no report was rated."""
    if not rated:
        return None
    found = mean_interval(list(rated.values()))
    each = tuple(CaseRating(case_id=case_id, rating=rating) for case_id, rating in rated.items())
    return RubricAverage(mean=found.value, low=found.low, high=found.high, ratings=each)


def change_of(before: Ratings, now: Ratings) -> RubricChange | None:
    """How far the average moved on the cases that both runs rated, by a paired bootstrap; ``None`` without any."""
    shared = sorted(before.keys() & now.keys())
    if not shared:
        return None
    moved = change_interval([(before[case_id], now[case_id]) for case_id in shared])
    return RubricChange(
        shared=len(shared),
        before=fmean(before[case_id] for case_id in shared),
        now=fmean(now[case_id] for case_id in shared),
        change=moved.value,
        low=moved.low,
        high=moved.high,
    )


def without_worst(rated: Ratings, flaky: frozenset[str]) -> Ratings:
    """The same without the flaky case that was rated lowest: what is left decides without it."""
    return _without(rated, min((i for i in rated if i in flaky), key=lambda i: rated[i], default=None))


def without_most_dropped(before: Ratings, now: Ratings, flaky: frozenset[str]) -> Ratings:
    """``now`` without the flaky case that fell furthest."""
    shared = [i for i in now if i in flaky and i in before]
    return _without(now, min(shared, key=lambda i: now[i] - before[i], default=None))


def lowest_first(rated: Ratings) -> Sequence[str]:
    """Ids, the lowest rated first."""
    return sorted(rated, key=lambda case_id: (rated[case_id], case_id))


def _without(rated: Ratings, left_out: str | None) -> Ratings:
    return {case_id: rating for case_id, rating in rated.items() if case_id != left_out}
