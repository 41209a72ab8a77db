"""Compares an agent's tool calls with reference calls, and measures how often all runs of a task solve it."""

from __future__ import annotations

from collections import defaultdict
from math import comb
from pathlib import Path
from typing import Any

from monitors.facts.tool_calls import ToolCall, find_repeated_call_indexes
from tests.accuracy.figure import Figure, Measured
from tests.accuracy.rows import read_rows

NAME = "triage/trajectories"


def measure(data: Path) -> Measured:
    """Measure pass^k, the calls of solved and failed runs, and repeated calls.

    pass^k is the probability that ``k`` runs of a task all solve it. Each figure is compared with the published
    figure. Calls are also compared with the reference.
    """
    rows = list(read_rows(data / "triage" / "trajectories.jsonl"))
    calls = sum(len(row["calls"]) for row in rows)
    repeats = sum(
        len(find_repeated_call_indexes([ToolCall(name=c["name"], arguments=c["arguments"]) for c in r["calls"]]))
        for r in rows
    )
    figures = [
        _build_figure("pass^1, published 0.352", compute_pass_hat(rows, 1), 0.352, 0.0006, len(rows)),
        _build_figure("pass^4, published 0.136", compute_pass_hat(rows, 4), 0.136, 0.0006, len(rows)),
        _build_figure("repeated calls, published 11 of 524", repeats / calls, 11 / 524, 0.0, calls),
    ]
    for solved, published in ((True, (5.0, 2.2)), (False, (6.5, 3.0))):
        mine = [row for row in rows if row["solved"] is solved]
        for key, value in zip(("calls", "reference"), published, strict=True):
            mean = sum(len(row[key]) for row in mine) / len(mine)
            what = f"{'solved' if solved else 'failed'} runs: {key} a run, published {value}"
            figures.append(_build_figure(what, mean, value, 0.06, len(mine)))
    return Measured(tuple(figure for pair in figures for figure in pair))


def compute_pass_hat(rows: list[dict[str, Any]], k: int) -> float:
    """Compute the probability that ``k`` runs of a task all solve it.

    It is C(solved, k) / C(runs, k), averaged over tasks.
    """
    tasks: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        tasks[row["task"]].append(row["solved"])
    return sum(comb(sum(solved), k) / comb(len(solved), k) for solved in tasks.values()) / len(tasks)


def _build_figure(what: str, value: float, published: float, near: float, count: int) -> tuple[Figure, Figure]:
    off = abs(value - published)
    return (
        Figure(NAME, what, value, value, value, count),
        Figure(NAME, f"{what.partition(',')[0]}: distance", off, off, off, count, near, at_most=True),
    )
