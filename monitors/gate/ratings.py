"""The ratings of a run's reports: one for each case, their average, and how far it moved. Pure.

Reports on issues of one repository tend to be good or bad together, so every interval is clustered
(`monitors.stats.ratings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Final

from monitors.records.comparisons import CaseRating, RatingFall, RubricAverage, RubricChange
from monitors.records.exchanges import Exchange
from monitors.records.grades import NO_REPORT, Aspect, Assessment, Judged
from monitors.records.runs import CaseResult
from monitors.stats.ratings import Rated, rating_mean, ratings_needed, smallest_shift

Ratings = Mapping[str, float]
"""Ratings by case id, 1 to 5: the average over a case's asks, so that asking oftener moves nothing."""

Clusters = Mapping[str, str | None]
"""What each case shares with related ones, by case id."""

WORST: Final = 1
BEST: Final = 5
"""The ends of the judge's scale."""


def ratings(assessments: Sequence[Assessment]) -> Ratings:
    """The ratings of a run, from all its assessments.

    A reply that is no report is rated 1, as the rubric has it, and no judge is asked for that. Where no judge rated
    any report there are no ratings: they are a judge's figure.
    """
    if all(rating_of(assessment) is None for assessment in assessments):
        return {}
    given: dict[str, list[int]] = {}
    for assessment in assessments:
        rubric = WORST if _is_no_report(assessment) else rating_of(assessment)
        if rubric is not None:
            given.setdefault(assessment.case_id, []).append(rubric)
    return {case_id: fmean(rubrics) for case_id, rubrics in given.items()}


def rating_of(assessment: Assessment) -> int | None:
    """What a judge gave the report, if it rated it; of several grades the lowest."""
    given = [g.rubric for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.USEFULNESS]
    return min((rubric for rubric in given if rubric is not None), default=None)


def _is_no_report(assessment: Assessment) -> bool:
    forms = (g for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.REPORT_FORM)
    return any(not grade.passed for grade in forms)


def is_report(assessment: Assessment) -> bool:
    """Whether it is of a reply to an issue that a judge would rate."""
    return any(grade.aspect is Aspect.REPORT_FORM for grade in assessment.grades) and not NO_REPORT.intersection(
        assessment.failure_kinds
    )


def unrated_reports(results: Sequence[CaseResult], rated: Ratings) -> frozenset[str]:
    """Ids of the cases whose report nobody rated, though a judge would be asked for it."""
    return frozenset(
        one.case.id
        for one in results
        if one.case.triage is not None
        and one.case.id not in rated
        and isinstance(one.result, Exchange)
        and not NO_REPORT.intersection(one.assessment.failure_kinds)
    )


def ratings_of(average: RubricAverage | None) -> Ratings:
    """The ratings of a run that was evaluated before."""
    return {one.case_id: one.rating for one in average.ratings} if average else {}


def average_of(rated: Ratings, clusters: Clusters, *, drop: float) -> RubricAverage | None:
    """The average with its interval; ``None`` where no report was rated. ``drop`` is what it should show."""
    if not rated:
        return None
    found = rating_mean(_clustered(rated, clusters), least=WORST, most=BEST)
    each = tuple(CaseRating(case_id=case_id, rating=rating) for case_id, rating in rated.items())
    return RubricAverage(
        mean=found.value,
        low=found.low,
        high=found.high,
        ratings=each,
        clusters=found.clusters,
        detectable=_finite(smallest_shift(found)),
        needed=ratings_needed(found, drop),
    )


def change_of(before: Ratings, now: Ratings, clusters: Clusters, *, drop: float) -> RubricChange | None:
    """How far the average moved on the cases that both runs rated, case by case; ``None`` without any.

    ``drop`` is what it should show.
    """
    moved = {case_id: rating - before[case_id] for case_id, rating in now.items() if case_id in before}
    if not moved:
        return None
    found = rating_mean(_clustered(moved, clusters), least=WORST - BEST, most=BEST - WORST)
    fell = sorted(
        (case_id for case_id in moved if moved[case_id] < 0), key=lambda case_id: (moved[case_id], case_id)
    )
    return RubricChange(
        shared=len(moved),
        before=fmean(before[case_id] for case_id in moved),
        now=fmean(now[case_id] for case_id in moved),
        change=found.value,
        low=found.low,
        high=found.high,
        fell=tuple(RatingFall(case_id=i, before=before[i], now=now[i]) for i in fell),
        clusters=found.clusters,
        detectable=_finite(smallest_shift(found)),
        needed=ratings_needed(found, drop),
    )


def _clustered(values: Ratings, clusters: Clusters) -> list[Rated]:
    return [Rated(value, clusters.get(case_id) or ("", case_id)) for case_id, value in sorted(values.items())]


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


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
