"""Comparisons: a run with its baseline, a language with English; and the smallest drop that a run can detect.

Languages are compared on questions that were asked in both.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self, cast

from pydantic import Field, model_validator

from monitors.plural import plural
from monitors.records.base import Finding, Identifier, Language, Probability, Record, Severity, UtcTime
from monitors.records.grades import CRITERION_LABELS, Criterion
from monitors.records.targets import Environment

Count = Annotated[int, Field(ge=0)]
Difference = Annotated[float, Field(ge=-1.0, le=1.0)]
"""A share minus another, from -1 to 1."""


class ParityGap(Record):
    """English against ``language`` over the pairs that were graded in both.

    ``gap`` is the share right in English minus the share right in the other; positive means the other is behind.
    ``low`` and ``high`` are its 95 % interval. ``met`` is `Finding.YES` when all of the interval is within
    ``target``, `Finding.NO` when the gap itself is above it, and `Finding.UNGRADED` between the two, with too few
    pairs, or without a target. ``left_out`` counts pairs of which one side is ungraded.
    """

    language: Language
    both: Count
    english_only: Count
    other_only: Count
    neither: Count
    left_out: Count = 0
    gap: Difference
    low: Difference
    high: Difference
    target: Probability | None = None
    met: Finding

    @property
    def pairs(self) -> int:
        """How many questions were graded in both languages."""
        return self.both + self.english_only + self.other_only + self.neither


RubricMean = Annotated[float, Field(ge=1, le=5)]
"""An average on the judge's scale: 1 wrong or empty, 5 right, exact, clear and actionable."""


class Direction(StrEnum):
    """Which way the shared cases moved."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    """As many got better as got worse, perhaps none."""


class SeverityChange(Record):
    """The shared cases of one severity. ``p_value`` is McNemar's, exact and two-sided, over these cases only."""

    severity: Severity
    shared: Count
    newly_failing: tuple[Identifier, ...] = ()
    newly_fixed: tuple[Identifier, ...] = ()
    p_value: Probability = 1.0


class CaseRating(Record):
    """A judge's rating of a case's report: 1 to 5, on average over its asks."""

    case_id: Identifier
    rating: RubricMean


class RatingFall(Record):
    """A case whose report was rated higher before than now."""

    case_id: Identifier
    before: RubricMean
    now: RubricMean


class _RatingFigure(Record):
    """A figure of ratings. Intervals that older runs stored beside it are ignored."""

    @model_validator(mode="before")
    @classmethod
    def _ignore_former_fields(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        stored = cast("dict[str, object]", fields)
        return {name: value for name, value in stored.items() if name not in _FORMER_RATING_FIELDS}


_FORMER_RATING_FIELDS = frozenset({"low", "high", "clusters", "detectable", "needed"})


class CriteriaCounts(Record):
    """How many issues meet each criterion of usefulness, of the ``rated`` ones.

    ``unrated`` is the number of issues with a rating whose criteria the judge's reply did not give.
    """

    rated: Count
    unrated: Count = 0
    met: dict[Criterion, Count]

    @property
    def shares(self) -> dict[Criterion, str]:
        """``18/20`` for each criterion; empty if no issue was rated."""
        return {name: f"{self.met.get(name, 0):,}/{self.rated:,}" for name in Criterion if self.rated}

    @property
    def text(self) -> str:
        """``helpful 18/20, complete 15/20, accurate 19/20``, and how many are not rated."""
        rated = ", ".join(f"{CRITERION_LABELS[name]} {share}" for name, share in self.shares.items())
        unrated = f"criteria not rated for {plural(self.unrated, 'report')}" if self.unrated else ""
        return "; ".join(filter(None, (rated, unrated)))


class RubricAverage(_RatingFigure):
    """The average of the ``ratings`` that a judge gave a run's reports.

    ``bound`` is what so many ratings show of the agent on issues in general: the average that it reaches there with
    95 % confidence, one-sided. It and ``criteria`` are ``None`` in older runs.
    """

    mean: RubricMean
    bound: RubricMean | None = None
    criteria: CriteriaCounts | None = None
    ratings: Annotated[tuple[CaseRating, ...], Field(min_length=1)]


def format_rating_bound(average: RubricAverage) -> str:
    """Format what the ratings show of the agent in general; empty for an older run, which did not store it."""
    if average.bound is None:
        return ""
    return f"over all issues like these, the average is at least {average.bound:.2f} (95 % confidence, one-sided)"


class RubricChange(_RatingFigure):
    """How far the average rubric moved on the cases rated in both runs: ``now - before``; a drop is negative.

    ``fell`` are the cases that were rated lower, the largest fall first.
    """

    shared: Annotated[int, Field(ge=1)]
    before: RubricMean
    now: RubricMean
    change: Annotated[float, Field(ge=-4, le=4)]
    fell: tuple[RatingFall, ...] = ()


class DimensionChange(Record):
    """A figure over the ``shared`` issues for which both runs have it."""

    shared: Annotated[int, Field(ge=1)]
    before: Annotated[float, Field(ge=0)]
    now: Annotated[float, Field(ge=0)]


class TriageChange(Record):
    """How an agent's reports on issues moved; their ratings are in `Comparison.rubric`.

    ``accuracy`` is the share of correct reports, ``steps`` the average number of steps per issue. ``None`` is a
    figure that one of the two runs does not have.
    """

    accuracy: DimensionChange | None = None
    steps: DimensionChange | None = None


class Comparison(Record):
    """A run against its baseline, case by case.

    If ``refused`` has reasons, the comparison does not count. If the runs are not comparable (another suite or
    judge), or the other run was stopped, counts and p-values are empty. If the other run only was not accepted,
    they say what changed since, but decide nothing; scores and ratings are empty.
    ``baseline_finished_at`` is when the baseline got its verdict. ``shared`` counts the cases graded in both runs;
    ``no_longer_graded`` were right in the baseline and are ungraded now.
    ``p_value`` is McNemar's, exact and two-sided, over all shared cases; ``cluster_p_value`` is the same by policy,
    ``None`` if no shared cases share a policy. The scores are those of the whole runs under this run's weights,
    ``None`` if nothing was graded. ``triage`` is ``None`` if the runs share no issue.
    """

    baseline_run_id: Identifier
    baseline_target: Identifier
    baseline_environment: Environment
    baseline_commit: Identifier | None = None
    baseline_finished_at: UtcTime
    refused: tuple[str, ...] = ()
    shared: Count = 0
    severities: tuple[SeverityChange, ...] = ()
    p_value: Probability = 1.0
    cluster_p_value: Probability | None = None
    direction: Direction = Direction.SAME
    no_longer_graded: tuple[Identifier, ...] = ()
    weighted_before: Probability | None = None
    weighted_now: Probability | None = None
    flat_before: Probability | None = None
    flat_now: Probability | None = None
    rubric: RubricChange | None = None
    triage: TriageChange | None = None

    def add_changes(
        self,
        *,
        shared: int,
        severities: tuple[SeverityChange, ...],
        p_value: float,
        cluster_p_value: float | None,
        direction: Direction,
        no_longer_graded: tuple[str, ...],
    ) -> Self:
        """Add the changes of the cases that both runs graded."""
        return self.model_copy(
            update={
                "shared": shared,
                "severities": severities,
                "p_value": p_value,
                "cluster_p_value": cluster_p_value,
                "direction": direction,
                "no_longer_graded": no_longer_graded,
            }
        )

    def add_scores(
        self,
        *,
        weighted_before: float | None,
        weighted_now: float | None,
        flat_before: float | None,
        flat_now: float | None,
        rubric: RubricChange | None,
    ) -> Self:
        """Add the scores and ratings of both runs."""
        return self.model_copy(
            update={
                "weighted_before": weighted_before,
                "weighted_now": weighted_now,
                "flat_before": flat_before,
                "flat_now": flat_now,
                "rubric": rubric,
            }
        )

    def add_triage(self, triage: TriageChange | None) -> Self:
        """Add how the reports on issues changed."""
        return self.model_copy(update={"triage": triage})

    @property
    def newly_failing(self) -> tuple[str, ...]:
        """Ids of the shared cases that the baseline got right and this run did not, severest first."""
        worst_first = sorted(self.severities, key=lambda change: -change.severity)
        return tuple(case_id for change in worst_first for case_id in change.newly_failing)

    @property
    def newly_fixed(self) -> tuple[str, ...]:
        """Ids of the shared cases that this run got right and the baseline did not, severest first."""
        worst_first = sorted(self.severities, key=lambda change: -change.severity)
        return tuple(case_id for change in worst_first for case_id in change.newly_fixed)


class DetectableDrop(Record):
    """The smallest drop that the cases of one severity can detect, whatever the run found.

    ``failing_at_most`` is the upper limit of the failing share, given ``not_correct`` of ``cases`` (one-sided,
    95 %): about 3/cases without a failure. ``pairs`` are the cases that the baseline graded too; without a
    baseline, those that it could grade. ``smallest_drop`` is the smallest share of them that must break for the
    comparison to detect it (exact McNemar at 5 %, with 80 % power); ``None`` if even all would not be enough.
    """

    severity: Severity
    cases: Count
    not_correct: Count
    failing_at_most: Probability
    pairs: Count
    smallest_drop: Probability | None = None


class FlakyCase(Record):
    """A case that was right in only ``right`` of ``asked`` asks. Ungraded asks do not count.

    ``severity`` is that of its worst failure.
    """

    case_id: Identifier
    severity: Severity
    asked: Annotated[int, Field(ge=2)]
    right: Annotated[int, Field(ge=1)]

    @property
    def text(self) -> str:
        """``right in 2 of 3 asks``."""
        return f"right in {self.right} of {self.asked} asks"


class GroupCount(Record):
    """How many cases a suite has of one kind: ``group`` is severity, type, language or theme, ``key`` its value."""

    group: Identifier
    key: str
    cases: Count


class Balance(Record):
    """Whether a suite has enough severe cases. ``shortfalls`` says in words what it lacks; empty if balanced.

    ``benign_per_severe`` is severity-1 cases for each severity-3 case, ``None`` without a severity-3 case.
    """

    cases: Count
    groups: tuple[GroupCount, ...]
    benign_per_severe: Annotated[float, Field(ge=0)] | None = None
    shortfalls: tuple[str, ...] = ()
