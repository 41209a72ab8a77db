"""The table of `make bench`: each figure with its goal and baseline, and the names of missing figures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from monitors.records.base import Record
from tests.bench.measurements import Figure
from tests.bench.run_one_bench import CRASHED
from tests.figures import table

BENCHES: Final[dict[str, tuple[str, ...]]] = {
    "bench_probe": ("P1",),
    "bench_guard": ("P1 guard",),
    "bench_run": ("P2", "P5", "P12"),
    "bench_grading": ("P3",),
    "bench_warehouse": ("P4",),
    "bench_judge": ("P6",),
    "bench_log_tail": ("P7",),
    "bench_memory": ("P8",),
    "bench_webhook": ("P9",),
    "bench_night": ("P10",),
    "bench_night_load": ("night",),
    "bench_site": ("P11",),
    "bench_rest": ("P13",),
    "bench_help": ("help",),
    "bench_pool_start": ("pool",),
    "bench_cost": ("cost",),
    "bench_dataset": ("dataset",),
    "bench_deploy_to_page": ("deploy",),
    "bench_patterns": (),
}
"""All benches in the order in which they run, with the ids for which each bench reports at least one figure.

A bench without ids reports at least one figure with any id.
"""

HEAD: Final = ("id", "what", "goal", "figure", "baseline", "ratio", "spread", "result", "load", "note")
MET: Final = {True: "met", False: "**missed**", None: "no goal"}
_REQUIREMENT = re.compile(r"P(\d+)\Z")
_AFTER_ALL: Final = 10**6


class BenchRun(Record):
    """The result of one bench.

    ``load`` is the machine's load average just before the bench, and ``code`` is its exit code. ``stopped`` is true
    if the bench was ended because the time for all benches was used up.
    """

    name: str
    ids: tuple[str, ...]
    code: int
    took_s: float
    load: float
    figures: tuple[Figure, ...] = ()
    stopped: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the ids that the bench should have reported but did not.

        An empty text stands for a bench that must report any figure and reported none.
        """
        reported = {figure.id for figure in self.figures}
        wanted = self.ids or (() if reported else ("",))
        return tuple(figure_id for figure_id in wanted if figure_id not in reported)

    @property
    def missed(self) -> bool:
        """Return whether at least one of the bench's figures misses its goal."""
        return any(figure.met is False for figure in self.figures)

    @property
    def broke(self) -> bool:
        """Return whether the bench did not finish, or ended with an error that no missed goal explains."""
        crashed = self.code < 0 or self.code == CRASHED
        return self.stopped or crashed or (self.code > 0 and not self.missed)

    @property
    def failed(self) -> bool:
        """Return whether a goal was missed, a figure is missing, or the bench broke."""
        return self.broke or self.missed or bool(self.missing)


class _Row(NamedTuple):
    id: str
    cells: Sequence[str]


def build_summary(runs: Sequence[BenchRun], *, budget_min: float) -> list[str]:
    """Build the Markdown table of all figures, and below it the duration of each bench.

    P1 to P12 come first, then all other figures.
    """
    rows = [
        row
        for run in runs
        for row in (*map(_build_row, run.figures, [run] * len(run.figures)), *_build_absent_rows(run))
    ]
    ordered = sorted(rows, key=lambda row: _sort_key(row.id))
    took = ", ".join(f"{run.name.removeprefix('bench_')} {run.took_s / 60:.1f}" for run in runs)
    total = sum(run.took_s for run in runs) / 60
    return [
        *table(HEAD, [(row.id, *row.cells) for row in ordered]),
        "",
        f"Minutes: {took}; {total:.1f} in all, of {budget_min:g} that all benches may take.",
        "",
        _format_counts(runs),
    ]


def count_failures(runs: Sequence[BenchRun]) -> int:
    """Count the benches that missed a goal, did not report a figure, or broke: the exit code of `make bench`."""
    return sum(run.failed for run in runs)


def _format_counts(runs: Sequence[BenchRun]) -> str:
    met = [figure.met for run in runs for figure in run.figures]
    absent = sum(len(_build_absent_rows(run)) for run in runs)
    counted = f"Goals: {met.count(True)} met, {met.count(False)} missed; {met.count(None)} figures have none"
    return f"{counted}; missing: {absent}." if absent else f"{counted}."


def _sort_key(id_: str) -> int:
    """Return the sort key of an id: requirements by number, then all other ids in their original order."""
    match = _REQUIREMENT.match(id_)
    return int(match[1]) if match else _AFTER_ALL


def _build_row(figure: Figure, run: BenchRun) -> _Row:
    baseline = f"{figure.baseline} {format_number(statistics.median(figure.baselines))}" if figure.baselines else ""
    ratio = format_number(statistics.median(figure.ratios)) if figure.baselines else ""
    cells = (
        figure.what,
        format_goal(figure),
        f"{format_number(statistics.median(figure.values))} {figure.unit}",
        baseline,
        ratio,
        _format_spread(figure),
        MET[figure.met],
        f"{run.load:.1f}",
        figure.note,
    )
    return _Row(figure.id, [cell.replace("|", "\\|").replace("\n", " ") for cell in cells])


def format_goal(figure: Figure) -> str:
    """Format a goal: ``≤ 3 s``, ``ratio ≤ 1.1``, ``worst ≤ 200 ms``. The result is empty without a goal."""
    if figure.goal is None:
        return ""
    sign = "≤" if figure.better == "lower" else "≥"
    parts = ["worst"] if figure.worst else []
    parts += (
        ["ratio", sign, format_number(figure.goal)]
        if figure.of == "ratio"
        else [sign, format_number(figure.goal), figure.unit]
    )
    return " ".join(parts)


def format_number(value: float) -> str:
    """Format a number with three significant digits, or as a whole number from a thousand on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _format_spread(figure: Figure) -> str:
    if len(figure.values) == 1:
        return "one sample"
    ours = f"{format_number(min(figure.values))} to {format_number(max(figure.values))}"
    if not figure.baselines:
        return ours
    return f"{ours}, ratio {format_number(min(figure.ratios))} to {format_number(max(figure.ratios))}"


def _build_absent_rows(run: BenchRun) -> list[_Row]:
    """Build the rows for missing figures: one for each missing id, or a single row if the bench broke."""
    ended = f"was stopped after {run.took_s / 60:.0f} min: the time for all benches was used up"
    how = f"`{run.name}` {ended if run.stopped else f'ended with code {run.code}'}"
    if run.missing and run.broke:
        label = "no figures" if not run.figures else "not all of its figures"
        return [_build_absent_row(", ".join(filter(None, run.missing)), f"{how}: {label}", "broke", run)]
    if run.broke:
        return [_build_absent_row(", ".join(run.ids), f"{how}: figures may be missing", "broke", run)]
    return [
        _build_absent_row(figure_id, f"`{run.name}` reported no such figure", "missing", run)
        for figure_id in run.missing
    ]


def _build_absent_row(id_: str, label: str, result: str, run: BenchRun) -> _Row:
    return _Row(id_ or run.name, (label, "", "", "", "", "", f"**{result}**", f"{run.load:.1f}", ""))
