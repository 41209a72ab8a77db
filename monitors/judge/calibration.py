"""Compute how reliable each judge and each grader is.

The grades are compared with people's reviews of the same answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from monitors.plural import plural
from monitors.records.base import Identifier, Probability, Record
from monitors.records.grades import Aspect, JudgeLineage
from monitors.records.reviews import RatingCount, ReviewedAnswer, ReviewedGrade, ReviewedRating, VerdictCount
from monitors.stats.agreement import (
    Confusion,
    Estimate,
    compute_agreement,
    compute_corrected_pass_rate,
    compute_effective_counts,
    compute_false_fail_rate,
    compute_false_pass_rate,
    compute_weighted_kappa,
)
from monitors.stats.ratings import Rated, compute_rating_mean

MIN_REVIEWS = 30
"""Minimum number of reviewed answers for reliable figures.

With fewer answers, the intervals are too wide for decisions, and a note beside the figures says so.
"""
_UNRELIABLE_NOTE = f"; these figures are not reliable with fewer than {MIN_REVIEWS} reviews"

Count = Annotated[int, Field(ge=0)]
_HASH_CHARACTERS = 8
_ROUNDING = 0.0005
"""If two shares differ by less than this, they count as equal, because percentages are shown with one decimal."""


MIN_RATE_REVIEWS = 5
"""Minimum number of wrong answers (or of right answers) for which an error rate is computed.

For 0 errors of 4 answers, Wilson's interval would be 0 to 49 %.
"""
_TOO_FEW_REVIEWS = f"unknown, because people reviewed fewer than {MIN_RATE_REVIEWS} {{}} answers"

ASPECT_LABELS = {
    Aspect.FACTUAL_MATCH: "facts",
    Aspect.CITATION: "sources",
    Aspect.REFUSAL: "refusals",
    Aspect.LANGUAGE: "language",
    Aspect.DISCLOSURE: "personal data",
    Aspect.ERROR_LEAK: "errors shown",
    Aspect.USEFULNESS: "usefulness",
    Aspect.REPORT_FORM: "form of reports",
    Aspect.RELEVANT_FILES: "relevant files",
    Aspect.ROOT_CAUSE: "root causes",
    Aspect.ISSUE_SEVERITY: "severity of issues",
    Aspect.EFFICIENCY: "steps taken",
}


class RateInterval(Record):
    """A rate and its 95 % interval."""

    value: float
    low: float
    high: float


class Calibration(Record):
    """The agreement of one judge with people, on one target.

    - ``both_graded`` is the number of answers that both people and the judge graded.
    - ``agreed`` is the number of these answers on which people and the judge agree.
    - ``judged`` is the number of all answers that the judge graded, and ``pass_rate`` the share of them that
      passed.
    - ``kappa`` is Cohen's kappa.
    - ``false_pass_rate`` is the share of the wrong answers (as people decided) that the judge passed.
    - ``false_fail_rate`` is the share of the right answers (as people decided) that the judge failed.
    - ``corrected_pass_rate`` estimates the share of answers that people would pass.

    In the last four figures, each answer has the weight 1 / (its sampling probability). A figure that cannot be
    computed is ``None``.
    """

    target: Identifier
    lineage: JudgeLineage
    both_graded: Count
    agreed: Count
    judged: Count
    pass_rate: Probability
    kappa: RateInterval | None = None
    false_pass_rate: RateInterval | None = None
    false_fail_rate: RateInterval | None = None
    corrected_pass_rate: RateInterval | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of text that report the figures. The first line names the judge."""
        judge = f"{self.lineage.model}, prompt {self.lineage.prompt_sha256[:_HASH_CHARACTERS]}"
        head = f"{judge}, rubric {self.lineage.rubric_version}, on {self.target}"
        if not self.both_graded:
            return head, f"{plural(self.judged, 'answer')}, none reviewed yet. Start with `lookout review`"
        corrected = _format_percent(self.corrected_pass_rate, "unknown, too few reviews")
        few = _UNRELIABLE_NOTE if self.both_graded < MIN_REVIEWS else ""
        return (
            head,
            f"people and the judge agree on {self.agreed} of {plural(self.both_graded, 'answer')}{few}",
            f"kappa {_format_interval(self.kappa)}",
            f"passes wrong answers: {_format_percent(self.false_pass_rate, _TOO_FEW_REVIEWS.format('wrong'))}",
            f"fails right answers: {_format_percent(self.false_fail_rate, _TOO_FEW_REVIEWS.format('right'))}",
            f"passed {100 * self.pass_rate:.1f} % of {self.judged} answers; corrected for its errors: {corrected}",
        )


class ErrorRate(Record):
    """The error rate of a grader, either on the wrong answers or on the right answers.

    In ``rate``, each answer has the weight 1 / (its sampling probability). ``rate`` is ``None`` for fewer than
    `MIN_RATE_REVIEWS` reviewed answers. ``errors`` and ``reviewed`` are counts without weights.
    """

    errors: Count
    reviewed: Count
    rate: RateInterval | None = None

    def format_line(self, label: str, kind: str) -> str:
        """Return the rate as a line of text.

        ``label`` is the name of the error, and ``kind`` is the kind of the answers: wrong or right.
        """
        if not self.reviewed:
            return f"{label}: unknown, because people reviewed no {kind} answer"
        counted = f"{self.errors} of {plural(self.reviewed, f'reviewed {kind} answer')}"
        if self.rate is None:
            return f"{label}: unknown, too few reviews: {counted}"
        weighted = "" if abs(self.rate.value - self.errors / self.reviewed) < _ROUNDING else " weighted"
        low, high = 100 * self.rate.low, 100 * self.rate.high
        return f"{label}: {counted} ({100 * self.rate.value:.1f} %{weighted}, 95 % CI {low:.1f} to {high:.1f})"


class GraderCheck(Record):
    """The agreement of people with one grader that uses no model, on one target.

    ``verdicts`` is the number of verdicts that the grader gave. A false pass is a wrong answer that the grader
    passed. A false fail is a right answer that the grader failed. People decide whether an answer is wrong or
    right. They judge only the aspect that this grader checks.
    """

    target: Identifier
    grader: Identifier
    version: str
    aspect: Aspect
    verdicts: Count
    failed: Count
    reviewed: Count
    false_passes: ErrorRate
    false_fails: ErrorRate

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of text that report the figures. The first line names the grader."""
        return (
            f"{self.grader} {self.version} ({ASPECT_LABELS[self.aspect]}) on {self.target}",
            f"failed {self.failed} of {plural(self.verdicts, 'answer')}; reviewed by people: {self.reviewed}",
            self.false_passes.format_line("false passes", "wrong"),
            self.false_fails.format_line("false fails", "right"),
        )


def check_graders(
    reviewed: Sequence[ReviewedGrade], verdict_counts: Sequence[VerdictCount]
) -> tuple[GraderCheck, ...]:
    """Compare each grader that uses no model with people's grades. The results are sorted by target and name.

    ``verdict_counts`` has the number of verdicts of each grader.
    """
    grades: dict[tuple[str, str, str], list[ReviewedGrade]] = defaultdict(list)
    for grade in reviewed:
        grades[grade.target, grade.grader, grade.version].append(grade)
    return tuple(
        _compare_grader_with_people(count, grades.get((count.target, count.grader, count.version), []))
        for count in sorted(verdict_counts, key=lambda count: (count.target, count.grader, count.version))
        if count.lineage is None
    )


def _compare_grader_with_people(count: VerdictCount, grades: Sequence[ReviewedGrade]) -> GraderCheck:
    return GraderCheck(
        target=count.target,
        grader=count.grader,
        version=count.version,
        aspect=count.aspect,
        verdicts=count.total,
        failed=count.total - count.passed,
        reviewed=len(grades),
        false_passes=_compute_error_rate(
            [grade for grade in grades if not grade.people_right], compute_false_pass_rate
        ),
        false_fails=_compute_error_rate([grade for grade in grades if grade.people_right], compute_false_fail_rate),
    )


def _compute_error_rate(grades: Sequence[ReviewedGrade], rate: Callable[[Confusion], Estimate | None]) -> ErrorRate:
    """Return the error rate of a grader on ``grades``.

    People found either all of these answers wrong, or all of them right.
    """
    counts = compute_effective_counts(
        [(grade.passed, grade.people_right, grade.inclusion_probability) for grade in grades]
    )
    return ErrorRate(
        errors=sum(grade.passed != grade.people_right for grade in grades),
        reviewed=len(grades),
        rate=_to_interval(rate(counts)) if len(grades) >= MIN_RATE_REVIEWS else None,
    )


def compare_judges_with_people(
    reviewed: Sequence[ReviewedAnswer], verdict_counts: Sequence[VerdictCount]
) -> tuple[Calibration, ...]:
    """Compare each judge of each target with people's grades. The judge with the most reviews comes first.

    ``verdict_counts`` has the number of verdicts of each judge.
    """
    by_judge: dict[tuple[str, JudgeLineage], list[ReviewedAnswer]] = defaultdict(list)
    for answer in reviewed:
        by_judge[answer.target, answer.lineage].append(answer)
    graded: dict[tuple[str, JudgeLineage], list[VerdictCount]] = defaultdict(list)
    for count in verdict_counts:
        if count.lineage is not None and count.aspect is Aspect.FACTUAL_MATCH:
            graded[count.target, count.lineage].append(count)
    calibrations = [
        _compare_judge_with_people(
            *judge,
            by_judge.get(judge, []),
            sum(count.passed for count in counts),
            sum(count.total for count in counts),
        )
        for judge, counts in graded.items()
    ]
    return tuple(
        sorted(calibrations, key=lambda answer: (-answer.both_graded, answer.target, answer.lineage.model))
    )


class RatingCalibration(Record):
    """The agreement of one judge's ratings of reports (1 to 5) with people's ratings, on one target.

    - ``judged`` is the number of reports that the judge rated, and ``average`` the average of these ratings.
    - ``ratings`` is the number of people's ratings, and ``reports`` the number of reports that people rated.
    - ``same`` is the number of people's ratings that equal the judge's rating.
    - ``kappa`` is Cohen's kappa with quadratic weights.
    - ``difference`` is the average of the judge's rating minus the person's rating. ``absolute_difference`` is the
      average of this difference without its sign. Their intervals are clustered by case, because the reports on a
      case are similar in all runs.

    In ``kappa`` and the differences, each report has the weight 1 / (its sampling probability). A report that
    several people rated counts only once.
    """

    target: Identifier
    lineage: JudgeLineage
    judged: Count
    average: float
    ratings: Count
    reports: Count
    same: Count
    kappa: RateInterval | None = None
    absolute_difference: RateInterval | None = None
    difference: RateInterval | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of text that report the figures. The first line names the judge."""
        judge = f"{self.lineage.model}, prompt {self.lineage.prompt_sha256[:_HASH_CHARACTERS]}"
        head = f"{judge}, rubric {self.lineage.rubric_version}, ratings of reports of {self.target}"
        rated = f"{plural(self.judged, 'report')} rated, {self.average:.2f} of 5 on average"
        if not self.ratings:
            return head, f"{rated}; people have rated none yet. Start with `lookout review`"
        few = _UNRELIABLE_NOTE if self.reports < MIN_REVIEWS else ""
        reports = plural(self.reports, "report")
        return (
            head,
            rated,
            f"people gave the judge's rating {self.same} of {plural(self.ratings, 'time')}, for {reports}{few}",
            f"kappa (quadratic weights) {_format_interval(self.kappa)}",
            f"differs from people's ratings by {_format_interval(self.absolute_difference)} on average",
            f"rates higher than people by {_format_interval(self.difference)} (a value below 0 means lower)",
        )


def compare_ratings_with_people(
    reviewed: Sequence[ReviewedRating], rating_counts: Sequence[RatingCount]
) -> tuple[RatingCalibration, ...]:
    """Compare the ratings of each judge of each target with people's ratings.

    The judge with the most reviews comes first. ``rating_counts`` has the number of ratings of each judge.
    """
    by_judge: dict[tuple[str, JudgeLineage], list[ReviewedRating]] = defaultdict(list)
    for rating in reviewed:
        by_judge[rating.target, rating.lineage].append(rating)
    calibrations = [
        _compare_judge_ratings_with_people(count, by_judge.get((count.target, count.lineage), []))
        for count in rating_counts
    ]
    return tuple(sorted(calibrations, key=lambda rating: (-rating.reports, rating.target, rating.lineage.model)))


def _compare_judge_ratings_with_people(count: RatingCount, pairs: Sequence[ReviewedRating]) -> RatingCalibration:
    reports = frozenset(pair.answer_id for pair in pairs)
    return RatingCalibration(
        target=count.target,
        lineage=count.lineage,
        judged=count.reports,
        average=count.average,
        ratings=len(pairs),
        reports=len(reports),
        same=sum(pair.judge == pair.person for pair in pairs),
        kappa=_to_interval(compute_weighted_kappa(_build_rating_table(pairs))),
        absolute_difference=_compute_mean_difference(pairs, abs, min_difference=0) if pairs else None,
        difference=_compute_mean_difference(pairs, float, min_difference=-_MAX_DIFFERENCE) if pairs else None,
    )


_RATINGS = 5
_MAX_DIFFERENCE = _RATINGS - 1


def _compute_sampling_weight(rating: ReviewedRating) -> float:
    """Return the weight of a rating: 1 / (sampling probability of the report * number of its raters)."""
    return 1 / (rating.inclusion_probability * rating.people)


def _build_rating_table(pairs: Sequence[ReviewedRating]) -> list[list[float]]:
    """Return a table of weighted counts, with a row for each judge's rating and a column for each person's rating.

    The counts are scaled to Kish's effective sample size.
    """
    cells = [[0.0] * _RATINGS for _ in range(_RATINGS)]
    weights = [_compute_sampling_weight(pair) for pair in pairs]
    scale = sum(weights) / sum(weight * weight for weight in weights) if weights else 0.0
    for pair, weight in zip(pairs, weights, strict=True):
        cells[pair.judge - 1][pair.person - 1] += weight * scale
    return cells


def _compute_mean_difference(
    pairs: Sequence[ReviewedRating], measure: Callable[[float], float], *, min_difference: float
) -> RateInterval:
    rated = [
        Rated(measure(pair.judge - pair.person), pair.answer_id.case_id, _compute_sampling_weight(pair))
        for pair in pairs
    ]
    estimate = compute_rating_mean(rated, lowest=min_difference, highest=_MAX_DIFFERENCE)
    return RateInterval(value=estimate.value, low=estimate.low, high=estimate.high)


def _compare_judge_with_people(
    target: str, lineage: JudgeLineage, answers: Sequence[ReviewedAnswer], passed: int, judged: int
) -> Calibration:
    counts = compute_effective_counts(
        [(answer.judge_passed, answer.people_right, answer.inclusion_probability) for answer in answers]
    )
    right = sum(answer.people_right for answer in answers)
    enough_right, enough_wrong = right >= MIN_RATE_REVIEWS, len(answers) - right >= MIN_RATE_REVIEWS
    return Calibration(
        target=target,
        lineage=lineage,
        both_graded=len(answers),
        agreed=sum(answer.judge_passed == answer.people_right for answer in answers),
        judged=judged,
        pass_rate=passed / judged,
        kappa=_to_interval(compute_agreement(counts)),
        false_pass_rate=_to_interval(compute_false_pass_rate(counts)) if enough_wrong else None,
        false_fail_rate=_to_interval(compute_false_fail_rate(counts)) if enough_right else None,
        corrected_pass_rate=_to_interval(compute_corrected_pass_rate(passed, judged, counts))
        if len(answers) >= MIN_RATE_REVIEWS
        else None,
    )


def _to_interval(estimate: Estimate | None) -> RateInterval | None:
    return RateInterval(value=estimate.value, low=estimate.low, high=estimate.high) if estimate else None


def _format_interval(interval: RateInterval | None) -> str:
    if interval is None:
        return "is not defined, because people and the judge gave only one and the same verdict"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _format_percent(interval: RateInterval | None, otherwise: str) -> str:
    if interval is None:
        return otherwise
    return f"{100 * interval.value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
