"""``lookout gold bite``: the catch rate of a suite's twins, by operator and by grader."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from deployments.exit_codes import ExitCode
from deployments.gold_settings import grader_settings
from flows.twin_catch import GradedTwin, grade_right, grade_twins
from flows.twin_counts import count_twins
from monitors.alerts.redact import redact
from monitors.goldset.load import load_suite
from monitors.graders.panel import default_panel
from monitors.records.bites import CatchCount, SuiteBite
from monitors.records.cases import GoldCase

SEVERE_FLOOR = 0.95
"""Least share of severity-3 twins that graders without a model must catch: the product's own target."""


def bite_command(path: Path, *, config: Path | None, target: str | None, missed: int, as_json: bool) -> ExitCode:
    """Grade all twins; FAIL when too few of severity 3 are caught, or one is passed as right."""
    suite = load_suite(path)
    settings = grader_settings(config, target)
    panel = default_panel(settings)
    usable = [case for case in suite.cases if not grade_right(case, panel).wrong]
    graded = list(grade_twins(usable, panel, citation_required=settings.citation_required))
    counts = count_twins(graded)
    if as_json:
        _print_json(suite.sha256, len(suite.cases) - len(usable), counts, graded)
    else:
        lines = (*_told(path, len(suite.cases) - len(usable), counts), *_missed(graded, suite.cases, missed))
        typer.echo("\n".join(lines))
    return ExitCode.PASS if bites(counts) else ExitCode.FAIL


def bites(counts: SuiteBite) -> bool:
    """Whether enough severe twins are caught, and none is passed as right."""
    severe = counts.severe_without_personal_data
    return severe.rate >= SEVERE_FLOOR and counts.severe.rate >= SEVERE_FLOOR and not counts.severe.passed


def _told(path: Path, left_out: int, counts: SuiteBite) -> Iterator[str]:
    yield f"{path}: {counts.whole.twins} twins of {counts.cases} cases"
    if left_out:
        yield f"  {left_out} cases left out: their own gold fails; `lookout gold check` names them"
    yield ""
    yield f"  {'what was done':20} {'twins':>6} {'caught':>7} {'judge':>6} {'passed':>6}  by"
    for one in (*counts.by_operator, *counts.by_severity, counts.whole):
        yield _row(one)
    severe, plain = counts.severe, counts.severe_without_personal_data
    yield ""
    yield (
        f"Of {severe.twins} twins of severity 3, {severe.caught} are caught: {severe.rate:.1%} "
        f"[{severe.low:.1%}, {severe.high:.1%}]; without the {severe.twins - plain.twins} that add personal data "
        f"{plain.rate:.1%}. Wanted: {SEVERE_FLOOR:.0%}, and none passed as right."
    )


def _row(one: CatchCount) -> str:
    graders = ", ".join(f"{name} {count}" for name, count in sorted(one.by_grader.items(), key=lambda i: -i[1]))
    return f"  {one.name:20} {one.twins:6} {one.rate:7.1%} {one.left:6} {one.passed:6}  {graders}"


def _missed(graded: Sequence[GradedTwin], suite: Sequence[GoldCase], most: int) -> Iterator[str]:
    """Passed as right first, then by severity."""
    cases = {case.id: case for case in suite}
    missed = sorted((one for one in graded if not one.caught_by), key=lambda one: (not one.passed, -one.severity))
    if not missed or not most:
        return
    yield f"\nMissed ({len(missed)}), the worst first:"
    for one in missed[:most]:
        said = "passed as right" if one.passed else "left to the judge"
        yield f"  {one.case_id} · {one.operator} · severity {int(one.severity)} · {said}"
        yield f"      asked  {redact(cases[one.case_id].question)}"
        yield f"      gold   {redact(cases[one.case_id].gold)}"
        yield f"      twin   {redact(one.reply)}"


def _print_json(sha256: str, left_out: int, counts: SuiteBite, graded: Sequence[GradedTwin]) -> None:
    plain = {
        "suite_sha256": sha256,
        "cases_left_out": left_out,
        "bites": bites(counts),
        "counts": counts.model_dump(mode="json"),
        "missed": [
            one.model_dump(mode="json") | {"reply": redact(one.reply)} for one in graded if not one.caught_by
        ],
    }
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
