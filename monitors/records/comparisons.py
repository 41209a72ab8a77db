"""Comparisons of a run with its baseline, and of other languages with English.

The module also contains records of the smallest drop that a run can detect, of flaky cases, and of the balance of a
suite.
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
"""The difference between two shares, from -1 to 1."""


class ParityGap(Record):
    """How often the application is right in English and in ``language``, for questions asked in both languages.

    - ``both``, ``english_only``, ``other_only`` and ``neither`` count the questions by the languages in which the
      answer was right.
    - ``left_out`` counts the questions for which at least one of the two answers was not graded.
    - ``gap`` is the share of right answers in English minus the share in the other language. ``low`` and ``high``
      are the limits of its 95 % interval.
    - ``met`` is yes if the whole interval is within ``target``, no if the gap is above the target, and ungraded
      otherwise.
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
        """Return the number of questions that were graded in both languages."""
        return self.both + self.english_only + self.other_only + self.neither


RubricMean = Annotated[float, Field(ge=1, le=5)]
"""An average of a judge's ratings, from 1 (wrong or empty) to 5 (right, exact, clear and actionable)."""


class Direction(StrEnum):
    """Whether more cases got worse or better between two runs. Only cases that both runs asked count."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    """As many cases got better as got worse, or no case changed."""


class SeverityChange(Record):
    """How the cases of one severity changed from the baseline to this run. Only cases that both runs asked count.

    ``p_value`` is the probability that chance alone makes the numbers of worse and of better cases differ at least
    this much (McNemar's test, exact and two-sided).
    """

    severity: Severity
    shared: Count
    newly_failing: tuple[Identifier, ...] = ()
    newly_fixed: tuple[Identifier, ...] = ()
    p_value: Probability = 1.0


class CaseRating(Record):
    """A judge's average rating of a case's report, from 1 to 5."""

    case_id: Identifier
    rating: RubricMean


class RatingFall(Record):
    """A case whose report has a lower rating than in the baseline."""

    case_id: Identifier
    before: RubricMean
    now: RubricMean


class _RatingFigure(Record):
    """A figure about ratings. Reports of older runs also contain an interval for the figure, which is ignored."""

    @model_validator(mode="before")
    @classmethod
    def _ignore_former_fields(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        stored = cast("dict[str, object]", fields)
        return {name: value for name, value in stored.items() if name not in _FORMER_RATING_FIELDS}


_FORMER_RATING_FIELDS = frozenset({"low", "high", "clusters", "detectable", "needed"})


class CriteriaCounts(Record):
    """How many of an agent's reports meet each criterion of usefulness.

    ``rated`` counts the reports for which the judge answered the criteria, and ``met`` counts the reports that meet
    each criterion. ``unrated`` counts the reports that have a rating, but no answers to the criteria.
    """

    rated: Count
    unrated: Count = 0
    met: dict[Criterion, Count]

    @property
    def shares(self) -> dict[Criterion, str]:
        """Return, for each criterion, how many of the rated reports meet it, such as ``18/20``.

        The result is empty if ``rated`` is 0.
        """
        return {name: f"{self.met.get(name, 0):,}/{self.rated:,}" for name in Criterion if self.rated}

    @property
    def text(self) -> str:
        """Return the counts as text: ``helpful 18/20, complete 15/20, accurate 19/20``."""
        rated = ", ".join(f"{CRITERION_LABELS[name]} {share}" for name, share in self.shares.items())
        unrated = f"criteria not rated for {plural(self.unrated, 'report')}" if self.unrated else ""
        return "; ".join(filter(None, (rated, unrated)))


class RubricAverage(_RatingFigure):
    """The average of a judge's ``ratings`` of a run's reports.

    The run asked only some of all possible issues. ``bound`` is a lower limit for the average over all issues of
    this kind: with 95 % confidence, that average is not lower. In older runs, ``bound`` and ``criteria`` are
    ``None``.
    """

    mean: RubricMean
    bound: RubricMean | None = None
    criteria: CriteriaCounts | None = None
    ratings: Annotated[tuple[CaseRating, ...], Field(min_length=1)]


def format_rating_bound(average: RubricAverage) -> str:
    """Format the lower limit of the average rating over all issues (`RubricAverage.bound`).

    The result is empty for an older run without a limit.
    """
    if average.bound is None:
        return ""
    return f"the average over all such issues is at least {average.bound:.2f} (95 % confidence, one-sided)"


class RubricChange(_RatingFigure):
    """The change of the average rating since the baseline, for cases rated in both runs. A drop is negative.

    ``fell`` contains the cases whose rating is lower in this run, the largest fall first.
    """

    shared: Annotated[int, Field(ge=1)]
    before: RubricMean
    now: RubricMean
    change: Annotated[float, Field(ge=-4, le=4)]
    fell: tuple[RatingFall, ...] = ()


class DimensionChange(Record):
    """The values of one figure about an agent's reports in the baseline (``before``) and in this run (``now``).

    ``shared`` counts the issues that have the figure in both runs. The values are computed over these issues only.
    """

    shared: Annotated[int, Field(ge=1)]
    before: Annotated[float, Field(ge=0)]
    now: Annotated[float, Field(ge=0)]


class TriageChange(Record):
    """How the figures about an agent's reports changed. Changes of ratings are in `Comparison.rubric`.

    ``accuracy`` is the share of correct reports, and ``steps`` the average number of steps for an issue. A figure
    is ``None`` if one of the runs does not have this figure.
    """

    accuracy: DimensionChange | None = None
    steps: DimensionChange | None = None


class Comparison(Record):
    """The comparison of a run with its baseline, an accepted earlier run.

    - ``refused`` contains the reasons why the comparison does not count. For example, the suites or judges are
      different, or the other run was stopped or not accepted. ``refused`` is empty if the comparison counts.
    - ``shared`` is the number of cases that both runs graded.
    - ``no_longer_graded`` contains the cases that were right in the baseline and were not graded in this run.
    - ``p_value`` is the probability that chance alone makes the numbers of worse and of better cases differ at
      least this much (McNemar's test, exact and two-sided, over the shared cases). ``cluster_p_value`` is the same
      probability if all cases of a cluster count as one change.
    - Scores are ``None`` if nothing was graded.
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

    def with_changes(
        self,
        *,
        shared: int,
        severities: tuple[SeverityChange, ...],
        p_value: float,
        cluster_p_value: float | None,
        direction: Direction,
        no_longer_graded: tuple[str, ...],
    ) -> Self:
        """Return a copy of the comparison that contains the differences between the two runs.

        Only cases that both runs graded are compared.
        """
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

    def with_scores(
        self,
        *,
        weighted_before: float | None,
        weighted_now: float | None,
        flat_before: float | None,
        flat_now: float | None,
        rubric: RubricChange | None,
    ) -> Self:
        """Return a copy of the comparison that contains both runs' scores and the change of the average rating."""
        return self.model_copy(
            update={
                "weighted_before": weighted_before,
                "weighted_now": weighted_now,
                "flat_before": flat_before,
                "flat_now": flat_now,
                "rubric": rubric,
            }
        )

    def with_triage(self, triage: TriageChange | None) -> Self:
        """Return a copy of the comparison with ``triage``: how the figures about an agent's reports changed."""
        return self.model_copy(update={"triage": triage})

    @property
    def newly_failing(self) -> tuple[str, ...]:
        """Return the ids of the cases that were right in the baseline but not in this run, most severe first."""
        worst_first = sorted(self.severities, key=lambda change: -change.severity)
        return tuple(case_id for change in worst_first for case_id in change.newly_failing)

    @property
    def newly_fixed(self) -> tuple[str, ...]:
        """Return the ids of the cases that were right in this run but not in the baseline, most severe first."""
        worst_first = sorted(self.severities, key=lambda change: -change.severity)
        return tuple(case_id for change in worst_first for case_id in change.newly_fixed)


class DetectableDrop(Record):
    """The smallest drop that the cases of one severity can detect.

    - ``failing_at_most`` is an upper limit for the true share of failing cases, with 95 % confidence.
    - ``pairs`` counts the cases that the baseline also graded.
    - ``smallest_drop`` is a share of these cases: if at least this share breaks, the comparison detects the drop in
      80 % of all such runs. If nothing breaks, at most 5 % of runs report a change. ``smallest_drop`` is ``None``
      if the comparison would not even detect the failure of all cases.
    """

    severity: Severity
    cases: Count
    not_correct: Count
    failing_at_most: Probability
    pairs: Count
    smallest_drop: Probability | None = None


class FlakyCase(Record):
    """A case that was asked several times and was answered correctly in only some of the attempts.

    ``severity`` is the severity of the worst failure.
    """

    case_id: Identifier
    severity: Severity
    asked: Annotated[int, Field(ge=2)]
    right: Annotated[int, Field(ge=1)]

    @property
    def text(self) -> str:
        """Return the number of right answers as text: ``right 2 of 3 times``."""
        return f"right {self.right} of {self.asked} times"


class GroupCount(Record):
    """The number of cases in one group of a suite, such as the cases in the language ``hi``."""

    group: Identifier
    key: str
    cases: Count


class Balance(Record):
    """The number of a suite's cases in each group, and what the suite lacks.

    ``shortfalls`` has a text for each thing that the suite lacks, and is empty if the suite is balanced.
    ``benign_per_severe`` is the number of severity-1 cases for each severity-3 case.
    """

    cases: Count
    groups: tuple[GroupCount, ...]
    benign_per_severe: Annotated[float, Field(ge=0)] | None = None
    shortfalls: tuple[str, ...] = ()
