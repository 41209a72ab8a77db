"""One measured figure, with how sure it is and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass, replace

from monitors.stats.intervals import compute_wilson_interval


@dataclass(frozen=True)
class Figure:
    """A share (0..1) that was measured on a labelled set.

    ``low`` and ``high`` are its 95 % Wilson interval, ``count`` how many rows stand behind it. ``target`` is
    what to reach (at least, or at most where ``at_most``), ``baseline`` what the simplest method scores.
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
        """Whether the target is reached; ``None`` where there is none."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass(frozen=True)
class TellingError:
    """A row that went wrong and what it teaches, in our own words: never the row itself."""

    set: str
    row_id: str
    what: str
    teaches: str


@dataclass(frozen=True)
class Measured:
    """What one set gave: its figures, its most telling errors, and notes about how it was counted."""

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
    """``hits`` of ``total`` as a figure; 0 with the interval (0, 1) where nothing was counted."""
    low, high = compute_wilson_interval(hits, total)
    value = hits / total if total else 0.0
    return Figure(of, what, value, low, high, total, target, at_most, baseline)


@dataclass(frozen=True)
class Detection:
    """Hits, false alarms and misses of something that is looked for."""

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
        """Precision, recall and F1.

        F1 is found / (found + (false alarms + missed) / 2), so its interval is Wilson's over that many rows.
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
    """How a grader's verdicts compare with a person's."""

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
        """Agreement where it decided, how much it decided, and both kinds of error over all rows of each label."""
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
