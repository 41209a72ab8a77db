"""Compare a judge's grades with human grades: compute the agreement beyond chance and the judge's error rates.

These error rates can correct other rates that are based on the judge's grades.

Counts may be weighted sums. Answers that were sampled with a small probability represent many other answers: the
weight of an answer is 1 divided by its sampling probability. `compute_effective_counts` scales the sums to the
number of equally weighted answers that would give the same precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

from monitors.stats.intervals import compute_wilson_interval

Counts = Sequence[Sequence[float]]
"""A square table of counts. The rows are the grades of one rater, and the columns are the other rater's grades."""


class Estimate(NamedTuple):
    """An estimated value and its confidence interval."""

    value: float
    low: float
    high: float


class Confusion(NamedTuple):
    """The number of answers for each pair of a judge's grade (first word) and a human grade (second word).

    ``passed_wrong`` counts the judge's false passes. ``failed_right`` counts the judge's false failures.
    """

    passed_right: float
    passed_wrong: float
    failed_right: float
    failed_wrong: float

    @property
    def total(self) -> float:
        """Return the number of answers that were graded by both the judge and people."""
        return sum(self)


def compute_effective_counts(answers: Sequence[tuple[bool, bool, float]]) -> Confusion:
    """Count ``answers``, given as (judge passed it, people found it right, sampling probability), with weights.

    The weight w of an answer is 1 divided by its sampling probability, which must be above 0. The counts are scaled
    so that their sum is Kish's effective size, ``(sum w)^2 / sum w^2`` (L. Kish, Survey Sampling, 1965). This size
    is the number of equally weighted answers with the same precision. If all probabilities are equal, the result is
    the plain counts.
    """
    if not answers:
        return Confusion(0, 0, 0, 0)
    weights = [1 / probability for *_, probability in answers]
    scale = sum(weights) / sum(weight * weight for weight in weights)
    cells = {(True, True): 0.0, (True, False): 0.0, (False, True): 0.0, (False, False): 0.0}
    for (judge, people, _), weight in zip(answers, weights, strict=True):
        cells[judge, people] += weight * scale
    return Confusion(*cells.values())


def compute_cohen_kappa(counts: Counts, *, confidence: float = 0.95) -> Estimate | None:
    """Return Cohen's kappa, which measures how far two raters agree beyond chance, with its interval.

    Kappa is 1 for perfect agreement, and 0 if the raters agree only as often as expected by chance. The result is
    ``None`` if there are no counts, or if both raters always gave the same single grade.

    The standard error is the large-sample error of J. L. Fleiss, J. Cohen, B. S. Everitt, "Large sample standard
    errors of kappa and weighted kappa", Psychological Bulletin 72 (1969). If a cell of the table is empty, half an
    answer is added to every cell for the interval. Otherwise, perfect agreement on ten answers would seem to prove
    that the judge is perfect.
    """
    size = len(counts)
    weights = [[float(i == j) for j in range(size)] for i in range(size)]
    return _estimate_kappa(counts, weights, added=0.5, confidence=confidence)


def compute_weighted_kappa(counts: Counts, *, confidence: float = 0.95) -> Estimate | None:
    """Return Cohen's kappa for ratings such as 1 to 5, where a large disagreement counts more than a small one.

    The weight of a disagreement is the square of the distance between the two ratings: J. Cohen, "Weighted kappa",
    Psychological Bulletin 70 (1968). With these weights, kappa is an intraclass correlation (J. L. Fleiss, J.
    Cohen, Educational and Psychological Measurement 33, 1973).

    The interval is computed as in `compute_cohen_kappa`, and ``None`` is returned in the same cases. If a cell of
    the table is empty, two answers in total are added for the interval, spread evenly over all cells.
    """
    size = len(counts)
    weights = [[1 - ((i - j) / (size - 1)) ** 2 for j in range(size)] for i in range(size)]
    return _estimate_kappa(counts, weights, added=2 / size**2, confidence=confidence)


def _estimate_kappa(counts: Counts, weights: Counts, *, added: float, confidence: float) -> Estimate | None:
    value = _compute_kappa(counts, weights)
    if value is None:
        return None
    middle, error = value, _compute_kappa_error(counts, weights)
    if any(cell == 0 for row in counts for cell in row):
        smoothed = [[cell + added for cell in row] for row in counts]
        middle, error = _compute_kappa(smoothed, weights) or 0.0, _compute_kappa_error(smoothed, weights)
    reach = _compute_z(confidence) * error
    return Estimate(value, max(-1.0, min(value, middle - reach)), min(1.0, max(value, middle + reach)))


def compute_agreement(confusion: Confusion, *, confidence: float = 0.95) -> Estimate | None:
    """Return Cohen's kappa between a judge and people. See `compute_cohen_kappa`."""
    table = (
        (confusion.passed_right, confusion.passed_wrong),
        (confusion.failed_right, confusion.failed_wrong),
    )
    return compute_cohen_kappa(table, confidence=confidence)


def compute_false_pass_rate(confusion: Confusion, *, confidence: float = 0.95) -> Estimate | None:
    """Return the judge's false pass rate, with Wilson's interval.

    The rate is the share of answers that the judge passes, among the answers that people found wrong.
    """
    return _estimate_share(confusion.passed_wrong, confusion.passed_wrong + confusion.failed_wrong, confidence)


def compute_false_fail_rate(confusion: Confusion, *, confidence: float = 0.95) -> Estimate | None:
    """Return the judge's false fail rate, with Wilson's interval.

    The rate is the share of answers that the judge fails, among the answers that people found right.
    """
    return _estimate_share(confusion.failed_right, confusion.failed_right + confusion.passed_right, confidence)


def compute_corrected_pass_rate(
    passed: float, judged: float, confusion: Confusion, *, confidence: float = 0.95
) -> Estimate | None:
    """Estimate the share of answers that people would find right.

    The judge passed ``passed`` of ``judged`` answers. ``confusion`` shows how often the judge errs: the share of
    right answers that the judge passes, and the share of wrong answers that it fails. The estimate is the share of
    right answers for which a judge with these errors would pass the observed share of answers. The estimate is
    limited to values from 0 to 1.

    Returns ``None`` if ``confusion`` has no right answers or no wrong answers, or if the judge is not better than
    chance.

    Estimate: W. J. Rogan, B. Gladen, American Journal of Epidemiology 107 (1978). Interval: Zs. Lang, J. Reiczigel,
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity", Preventive
    Veterinary Medicine 113 (2014).
    """
    right = confusion.passed_right + confusion.failed_right
    wrong = confusion.passed_wrong + confusion.failed_wrong
    if not (right and wrong and judged):
        return None
    passes_right, fails_wrong = confusion.passed_right / right, confusion.failed_wrong / wrong
    if passes_right + fails_wrong <= 1:
        return None
    value = (passed / judged + fails_wrong - 1) / (passes_right + fails_wrong - 1)
    low, high = _compute_lang_reiczigel_limits(passed, judged, confusion, _compute_z(confidence))
    value = min(1.0, max(0.0, value))
    return Estimate(value, min(value, low), max(value, high))


def _compute_lang_reiczigel_limits(
    passed: float, judged: float, confusion: Confusion, z: float
) -> tuple[float, float]:
    """Return the limits of the corrected pass rate: equations 6, 7 and 15 to 17 of Lang and Reiczigel.

    A misprint in the paper is corrected here: ``(1 - p)^2`` instead of ``1 + p``.
    """
    right = confusion.passed_right + confusion.failed_right + 2
    wrong = confusion.passed_wrong + confusion.failed_wrong + 2
    passes_right, fails_wrong = (confusion.passed_right + 1) / right, (confusion.failed_wrong + 1) / wrong
    graded = judged + z * z
    apparent = (passed + z * z / 2) / graded
    gain = passes_right + fails_wrong - 1
    if gain <= 0:  # one more answer of each kind would make the judge no better than chance: no limit can be given
        return 0.0, 1.0
    middle = (apparent + fails_wrong - 1) / gain
    from_right = passes_right * (1 - passes_right) / right
    from_wrong = fails_wrong * (1 - fails_wrong) / wrong
    shift = 2 * z * z * (middle * from_right - (1 - middle) * from_wrong)
    variance = apparent * (1 - apparent) / graded + middle**2 * from_right + (1 - middle) ** 2 * from_wrong
    reach = z * sqrt(variance) / gain
    return max(0.0, middle + shift - reach), min(1.0, middle + shift + reach)


def _compute_kappa(counts: Counts, weights: Counts) -> float | None:
    if sum(map(sum, counts)) == 0:
        return None
    shares, rows, columns = _compute_shares_with_margins(counts)
    size = range(len(counts))
    observed = fsum(weights[i][j] * shares[i][j] for i in size for j in size)
    expected = fsum(weights[i][j] * rows[i] * columns[j] for i in size for j in size)
    return None if expected >= 1 - _CHANCE_TOLERANCE else (observed - expected) / (1 - expected)


_CHANCE_TOLERANCE = 1e-12
"""Kappa is undefined if chance agreement differs from 1 by less than this value.

This happens if both raters gave only one and the same grade.
"""


def _compute_shares_with_margins(counts: Counts) -> tuple[Counts, Sequence[float], Sequence[float]]:
    """Return the cells, the row sums and the column sums as shares of the total."""
    total = sum(map(sum, counts))
    shares = [[cell / total for cell in row] for row in counts]
    return shares, [sum(row) for row in shares], [sum(column) for column in zip(*shares, strict=True)]


def _compute_kappa_error(counts: Counts, weights: Counts) -> float:
    shares, rows, columns = _compute_shares_with_margins(counts)
    size = range(len(shares))
    of_row = [fsum(weights[i][j] * columns[j] for j in size) for i in size]
    of_column = [fsum(weights[i][j] * rows[i] for i in size) for j in size]
    expected = fsum(rows[i] * of_row[i] for i in size)
    kappa = _compute_kappa(counts, weights) or 0.0
    squares = fsum(
        shares[i][j] * (weights[i][j] - (of_row[i] + of_column[j]) * (1 - kappa)) ** 2 for i in size for j in size
    )
    variance = squares - (kappa - expected * (1 - kappa)) ** 2
    return sqrt(max(0.0, variance)) / ((1 - expected) * sqrt(sum(map(sum, counts))))


def _estimate_share(count: float, total: float, confidence: float) -> Estimate | None:
    if total <= 0:
        return None
    return Estimate(count / total, *compute_wilson_interval(min(count, total), total, confidence=confidence))


def _compute_z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
