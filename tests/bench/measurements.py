"""One figure of a benchmark: the measured value, the baseline, and whether the goal is met.

Each bench prints its figures as lines. If the variable ``LOOKOUT_BENCH_FIGURES`` contains the path of a file,
`report` also appends each figure to the file as a line of JSON, from which `make bench` builds one table.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from monitors.records.base import Record

FIGURES_VARIABLE = "BENCH_FIGURES"


class Figure(Record):
    """Samples of one measurement and, measured alternately with them, samples of a baseline.

    ``id`` is the requirement ("P3") or, without a requirement, a short name ("night load"). ``values`` are
    Lookout's samples in ``unit``. ``baselines`` have the same length and order, because each pair was measured
    directly one after the other. They are empty if the figure has no baseline. ``goal`` applies to the median of
    ``values``, or with ``of="ratio"`` to the median of value / baseline. With ``worst=True``, it applies to the
    worst sample instead of the median. A figure without a ``goal`` is only informative. ``note`` is an explanation
    for the reader, for example what limits the value if the goal is missed.
    """

    id: str
    what: str
    unit: str
    values: tuple[float, ...]
    goal: float | None = None
    baseline: str = ""
    baselines: tuple[float, ...] = ()
    of: Literal["value", "ratio"] = "value"
    better: Literal["lower", "higher"] = "lower"
    worst: bool = False
    note: str = ""

    @model_validator(mode="after")
    def _pairs(self) -> Figure:
        if not self.values:
            raise ValueError(f"{self.what}: nothing was measured")
        if self.baselines and len(self.baselines) != len(self.values):
            raise ValueError(f"{self.what}: {len(self.values)} values, {len(self.baselines)} baselines; give pairs")
        if self.of == "ratio" and not self.baselines:
            raise ValueError(f"{self.what}: a ratio needs baselines")
        return self

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return value / baseline for each pair."""
        return tuple(ours / theirs for ours, theirs in zip(self.values, self.baselines, strict=False))

    @property
    def compared(self) -> tuple[float, ...]:
        """Return the values to which the goal applies: those of Lookout, or the ratios."""
        return self.ratios if self.of == "ratio" else self.values

    @property
    def result(self) -> float:
        """Return the single number that is compared with the goal."""
        if not self.worst:
            return statistics.median(self.compared)
        return max(self.compared) if self.better == "lower" else min(self.compared)

    @property
    def met(self) -> bool | None:
        """Return whether the goal is met, or ``None`` without a goal."""
        if self.goal is None:
            return None
        return self.result <= self.goal if self.better == "lower" else self.result >= self.goal


def report(figure: Figure) -> bool:
    """Print the figure, and append it to the file for the table. Return ``False`` if its goal was missed."""
    print(format_line(figure), flush=True)
    place = os.environ.get(FIGURES_VARIABLE)
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(figure.model_dump_json() + "\n")
    return figure.met is not False


def format_line(figure: Figure) -> str:
    """Format a figure in one line.

    Example: ``P3 one reply of 1,000 characters: 0.94 ms [0.91 to 1.20], baseline digits 0.08 …, at most 1: met``.
    """
    parts = [f"{figure.id} {figure.what}: {format_spread(figure.values)} {figure.unit}"]
    if figure.baselines:
        parts.append(f"{figure.baseline} {format_spread(figure.baselines)}, ratio {format_spread(figure.ratios)}")
    if figure.goal is not None:
        bound = "at most" if figure.better == "lower" else "at least"
        parts.append(f"{'ratio ' if figure.of == 'ratio' else ''}{bound} {figure.goal:g}")
    mark = {None: "", True: ": met", False: ": MISSED"}[figure.met]
    return ", ".join(parts) + mark + (f" ({figure.note})" if figure.note else "")


def format_spread(values: Sequence[float]) -> str:
    """Format the median, followed by the smallest and largest value if there are several."""
    median = f"{statistics.median(values):.3g}" if max(values) < 1000 else f"{statistics.median(values):,.0f}"
    return median if len(values) == 1 else f"{median} [{min(values):.3g} to {max(values):.3g}]"
