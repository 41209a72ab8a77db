"""A measured figure, with its confidence interval, target and baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace

from monitors.stats.intervals import compute_wilson_interval


@dataclass(frozen=True)
class Figure:
    """A share (0 to 1) that was measured on a labelled set.

    ``low`` and ``high`` are its 95 % Wilson interval, and ``count`` is the number of rows. ``target`` is the
    minimum value to reach, or the maximum if ``at_most`` is true. ``baseline`` is the score of the simplest method.
    """

    set: str
    what: str
    value: float
    low: float
    high: float
    count: int
    target: float | None = None
    at_most: bool = False
    baseline: float | None = None

    @property
    def met(self) -> bool | None:
        """Return whether the target is reached, or ``None`` without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass(frozen=True)
class TellingError:
    """A row with a wrong result, and the lesson from this row in our own words. The row itself is never quoted."""

    set: str
    row_id: str
    what: str
    teaches: str


@dataclass(frozen=True)
class Measured:
    """The results of one set: its figures, its most telling errors, and notes on how they were counted."""

    figures: tuple[Figure, ...]
    errors: tuple[TellingError, ...] = ()
    notes: tuple[str, ...] = ()


def build_share(
    of: str,
    what: str,
    hits: int,
    total: int,
    *,
    target: float | None = None,
    at_most: bool = False,
    baseline: float | None = None,
) -> Figure:
    """Build the figure for the share ``hits`` / ``total``.

    If ``total`` is 0, the share is 0 and its interval is (0, 1). ``of`` is the name of the set, and ``what``
    describes what was measured.
    """
    low, high = compute_wilson_interval(hits, total)
    value = hits / total if total else 0.0
    return Figure(of, what, value, low, high, total, target, at_most, baseline)


@dataclass(frozen=True)
class Detection:
    """Numbers of hits, false alarms and misses of a detector."""

    found: int
    false_alarms: int
    missed: int

    def figures(
        self,
        of: str,
        what: str,
        *,
        target_f1: float | None = None,
        target_precision: float | None = None,
        target_recall: float | None = None,
        baseline_f1: float | None = None,
    ) -> tuple[Figure, ...]:
        """Return the figures for precision, recall and F1.

        F1 is found / (found + (false alarms + missed) / 2). The interval of F1 is the Wilson interval of a share
        with this denominator, rounded.
        """
        rows = self.found + round((self.false_alarms + self.missed) / 2)
        f1 = build_share(of, f"{what}: F1", self.found, rows, target=target_f1, baseline=baseline_f1)
        halves = 2 * self.found + self.false_alarms + self.missed
        f1 = replace(f1, value=2 * self.found / halves if halves else 0.0)
        return (
            build_share(
                of, f"{what}: precision", self.found, self.found + self.false_alarms, target=target_precision
            ),
            build_share(of, f"{what}: recall", self.found, self.found + self.missed, target=target_recall),
            f1,
        )


@dataclass(frozen=True)
class Verdicts:
    """Counts of how a grader's verdicts compare with a person's labels."""

    right_pass: int = 0
    right_fail: int = 0
    false_pass: int = 0
    false_fail: int = 0
    abstained: int = 0

    def figures(
        self,
        of: str,
        what: str,
        *,
        target_agreement: float | None = None,
        target_false_pass: float | None = None,
        baseline_agreement: float | None = None,
        baseline_false_pass: float | None = None,
        baseline_false_fail: float | None = None,
    ) -> tuple[Figure, ...]:
        """Return the agreement on decided rows, the share of decided rows, and the rates of both kinds of error.

        Both error rates count only decided rows. The rate of false passes is a share of the rows with the label
        "wrong". The rate of false fails is a share of the rows with the label "right".
        """
        agreed = self.right_pass + self.right_fail
        decided = agreed + self.false_pass + self.false_fail
        return (
            build_share(
                of,
                f"{what}: agreement where decided",
                agreed,
                decided,
                target=target_agreement,
                baseline=baseline_agreement,
            ),
            build_share(of, f"{what}: decided", decided, decided + self.abstained),
            build_share(
                of,
                f"{what}: false pass, of replies a person found wrong and the grader decided",
                self.false_pass,
                self.false_pass + self.right_fail,
                target=target_false_pass,
                at_most=True,
                baseline=baseline_false_pass,
            ),
            build_share(
                of,
                f"{what}: false fail, of replies a person found right and the grader decided",
                self.false_fail,
                self.false_fail + self.right_pass,
                at_most=True,
                baseline=baseline_false_fail,
            ),
        )
