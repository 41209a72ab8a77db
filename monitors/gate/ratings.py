"""Compute the ratings of an agent's reports, their average, and its change since the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from monitors.records.comparisons import CaseRating, CriteriaCounts, RatingFall, RubricAverage, RubricChange
from monitors.records.grades import NO_REPORT, Aspect, Assessment, Criterion, Judged
from monitors.records.runs import CaseResult
from monitors.stats.ratings import compute_mean_lower_bound

Ratings = Mapping[str, float]
"""Ratings from 1 to 5, keyed by case id. If a case was asked several times, its rating is the average."""

MIN_RATING: Final = 1
MAX_RATING: Final = 5
"""The highest rating that a judge can give. `MIN_RATING` is the lowest rating."""


def collect_ratings(assessments: Sequence[Assessment]) -> Ratings:
    """Return the rating of each case. The result is empty if the judge rated no report.

    A reply that is not a report gets the rating 1, as the rubric says. The judge is not asked about such a reply.
    """
    if all(find_lowest_judge_rating(assessment) is None for assessment in assessments):
        return {}
    rubrics_by_case: dict[str, list[int]] = {}
    for assessment in assessments:
        rubric = MIN_RATING if _is_not_a_report(assessment) else find_lowest_judge_rating(assessment)
        if rubric is not None:
            rubrics_by_case.setdefault(assessment.case_id, []).append(rubric)
    return {case_id: fmean(rubrics) for case_id, rubrics in rubrics_by_case.items()}


def find_lowest_judge_rating(assessment: Assessment) -> int | None:
    """Return the judge's lowest rating of the report. Return ``None`` if no judge rated the report."""
    rated = find_rating_grade(assessment)
    return rated and rated.rubric


def find_rating_grade(assessment: Assessment) -> Judged | None:
    """Return the grade with the judge's lowest rating of the report.

    Return ``None`` if no judge rated the report.
    """
    grades = [g for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.USEFULNESS]
    return min((g for g in grades if g.rubric is not None), key=lambda g: g.rubric or MAX_RATING, default=None)


def count_met_criteria(assessments: Sequence[Assessment]) -> CriteriaCounts | None:
    """For each criterion, count the issues whose reports meet the criterion every time.

    Return ``None`` if the judge has no criteria. A reply that is not a report meets no criterion. Criteria that the
    judge did not answer are not counted.
    """
    scores = dict[str, list[dict[Criterion, int]]]()
    unrated = set[str]()
    for assessment in assessments:
        grade = find_rating_grade(assessment)
        if grade is not None and grade.criteria:
            scores.setdefault(assessment.case_id, []).append({c.name: c.score for c in grade.criteria})
        elif grade is not None and grade.criteria_problem:
            unrated.add(assessment.case_id)
    if not scores and not unrated:
        return None
    for assessment in assessments:
        if find_rating_grade(assessment) is None and _is_not_a_report(assessment):
            scores.setdefault(assessment.case_id, []).append(dict.fromkeys(Criterion, 0))
    return CriteriaCounts(
        rated=len(scores),
        unrated=len(unrated - set(scores)),
        met={name: sum(all(ask[name] for ask in asks) for asks in scores.values()) for name in Criterion},
    )


def _is_not_a_report(assessment: Assessment) -> bool:
    forms = (g for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.REPORT_FORM)
    return any(not grade.passed for grade in forms)


def is_report(assessment: Assessment) -> bool:
    """Return whether the reply is a report on an issue that a judge can rate."""
    return any(grade.aspect is Aspect.REPORT_FORM for grade in assessment.grades) and not NO_REPORT.intersection(
        assessment.failure_kinds
    )


def find_unrated_report_ids(results: Sequence[CaseResult], rated: Ratings) -> frozenset[str]:
    """Return the ids of the issues whose report has no rating.

    Issues whose reply is not a report are not returned.
    """
    return frozenset(
        result.case.id
        for result in results
        if result.case.triage is not None
        and result.case.id not in rated
        and not NO_REPORT.intersection(result.assessment.failure_kinds)
    )


def map_ratings_by_case(average: RubricAverage | None) -> Ratings:
    """Return the ratings of single reports that are stored together with their average, keyed by case id."""
    return {rating.case_id: rating.rating for rating in average.ratings} if average else {}


def compute_average_rating(rated: Ratings, criteria: CriteriaCounts | None = None) -> RubricAverage | None:
    """Return the average rating with its lower bound and the counts of criteria.

    Return ``None`` if there are no ratings.
    """
    if not rated:
        return None
    mean = fmean(rated.values())
    return RubricAverage(
        mean=mean,
        bound=compute_mean_lower_bound(mean, len(rated), lowest=MIN_RATING, highest=MAX_RATING),
        criteria=criteria,
        ratings=tuple(CaseRating(case_id=case_id, rating=rating) for case_id, rating in rated.items()),
    )


def compute_rating_change(before: Ratings, now: Ratings) -> RubricChange | None:
    """Return how the average rating changed over the cases that have a rating in both runs.

    Return ``None`` if there are no such cases.
    """
    changes = {case_id: rating - before[case_id] for case_id, rating in now.items() if case_id in before}
    if not changes:
        return None
    fell = sorted(
        (case_id for case_id in changes if changes[case_id] < 0), key=lambda case_id: (changes[case_id], case_id)
    )
    return RubricChange(
        shared=len(changes),
        before=fmean(before[case_id] for case_id in changes),
        now=fmean(now[case_id] for case_id in changes),
        change=fmean(changes.values()),
        fell=tuple(RatingFall(case_id=i, before=before[i], now=now[i]) for i in fell),
    )


def remove_lowest_rated_flaky(rated: Ratings, flaky: frozenset[str]) -> Ratings:
    """Remove one rating: the lowest one that belongs to a flaky case. Return the other ratings."""
    return _remove_rating(rated, min((i for i in rated if i in flaky), key=lambda i: rated[i], default=None))


def remove_most_dropped_flaky_rating(before: Ratings, now: Ratings, flaky: frozenset[str]) -> Ratings:
    """Remove one rating from ``now``: that of the flaky case whose rating dropped most.

    Return the other ratings.
    """
    shared = [i for i in now if i in flaky and i in before]
    return _remove_rating(now, min(shared, key=lambda i: now[i] - before[i], default=None))


def sort_cases_by_rating(rated: Ratings) -> Sequence[str]:
    """Return the case ids, sorted by rating. The lowest rating comes first."""
    return sorted(rated, key=lambda case_id: (rated[case_id], case_id))


def _remove_rating(rated: Ratings, left_out: str | None) -> Ratings:
    return {case_id: rating for case_id, rating in rated.items() if case_id != left_out}
