"""``lookout gold mutants``: count how many wrong answers the graders catch without a judge.

A mutant is a wrong answer that Lookout makes from a gold, for example with another amount. The settings of the
graders are those of a target, or the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import JsonOption
from flows.goldset.mutation_testing import GradedMutant, count_caught_mutants, grade_gold_as_reply, grade_mutants
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.domains.pack import Domain, load_domain
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.plural import plural
from monitors.records.cases import GoldCase
from monitors.records.runs import MutantCount, MutationScores


def load_target_grader_settings(config: Path | None, target: str | None) -> tuple[GraderSettings, Domain]:
    """Load the graders and the domain of ``target`` or of the only target. Without ``config``, use the defaults."""
    if config is None:
        if target is not None:
            raise ConfigError(f"--target {target} also needs --config with the configuration file of this target")
        return GraderSettings(), load_domain()
    loaded = load_config(config)
    if target is None and len(loaded.targets) > 1:
        raise ConfigError(
            f"{config} has several targets. Choose a target with --target: {', '.join(loaded.targets)}"
        )
    settings = loaded.require_target(target or next(iter(loaded.targets)))
    return settings.graders, settings.domain


def load_gate_settings(config: Path | None) -> GateSettings:
    """Load the settings of the gate. Without ``config``, use the defaults."""
    return GateSettings() if config is None else load_config(config).gate


SEVERE_FLOOR = 0.95
"""Minimum share of severity-3 mutants that the rules must detect."""


def mutants_command(
    suite: Annotated[Path, typer.Argument(help="the file with the suite (JSON Lines)")],
    *,
    config: Annotated[
        Path | None, typer.Option("--config", help="the configuration file with the graders to use")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="the target with the graders to use; required if the configuration has several targets"),
    ] = None,
    missed: Annotated[
        int,
        typer.Option(
            min=0, help="the maximum number of wrong answers to show, of those that the rules did not catch"
        ),
    ] = 5,
    as_json: JsonOption = False,
) -> ExitCode:
    """Test the graders: make wrong answers from every gold, and count how many the rules catch without a judge."""
    loaded = load_suite(suite)
    settings, domain = load_target_grader_settings(config, target)
    panel = build_rule_panel(settings, domain)
    with show_waiting(f"Grading wrong replies to {plural(len(loaded.cases), 'case')}"):
        usable = [case for case in loaded.cases if not grade_gold_as_reply(case, panel).wrong]
        graded = list(grade_mutants(usable, panel, citation_required=settings.citation_required))
    counts = count_caught_mutants(graded)
    if as_json:
        _print_mutation_summary_json(loaded.sha256, len(loaded.cases) - len(usable), counts, graded)
    else:
        lines = (
            *_iterate_summary_lines(suite, len(loaded.cases) - len(usable), counts),
            *_iterate_missed_mutants(graded, loaded.cases, missed),
        )
        print_text("\n".join(lines))
    return ExitCode.PASS if has_enough_caught_severe_mutants(counts) else ExitCode.FAIL


def has_enough_caught_severe_mutants(counts: MutationScores) -> bool:
    """Return whether the rules fail enough of the severity-3 mutants, and pass no severity-3 mutant.

    The rules may leave the remaining mutants ungraded. Only mutants that contradict their gold are counted.
    """
    severe = counts.severe_without_personal_data
    return severe.rate >= SEVERE_FLOOR and not severe.passed


def _iterate_summary_lines(path: Path, left_out: int, counts: MutationScores) -> Iterator[str]:
    yield f"{path}: {plural(counts.whole.mutants, 'mutant')} (wrong answers) of {plural(counts.cases, 'case')}"
    if left_out:
        yield (
            f"  {plural(left_out, 'case')} skipped, because their gold itself fails. `lookout gold check` lists "
            "these cases."
        )
    yield ""
    yield f"  {'what was done':20} {'mutants':>7} {'caught':>7} {'judge':>6} {'passed':>6}  by"
    for count in (*counts.by_operator, *counts.by_severity, counts.whole):
        yield _format_mutant_count(count)
    severe, plain = counts.severe, counts.severe_without_personal_data
    yield ""
    yield (
        f"The rules catch {severe.caught} of {plural(severe.mutants, 'mutant')} of severity 3: {severe.rate:.1%} "
        f"[{severe.low:.1%}, {severe.high:.1%}]. Of the {plain.mutants} mutants that contradict their gold, the "
        f"rules catch {plain.rate:.1%}. The rules must catch at least {SEVERE_FLOOR:.0%} of these and pass none."
    )
    if hard := counts.misplaced:
        yield (
            f"Of {plural(hard.mutants, 'mutant')} with a right value in the wrong place, the rules catch "
            f"{hard.caught}, leave {hard.left} to a judge and pass {hard.passed}. A judge checks the severity-3 "
            "answers that the rules pass."
        )


def _format_mutant_count(count: MutantCount) -> str:
    graders = ", ".join(f"{name} {count}" for name, count in sorted(count.by_grader.items(), key=lambda i: -i[1]))
    return f"  {count.name:20} {count.mutants:7} {count.rate:7.1%} {count.left:6} {count.passed:6}  {graders}"


def _iterate_missed_mutants(graded: Sequence[GradedMutant], suite: Sequence[GoldCase], most: int) -> Iterator[str]:
    """Yield the mutants that were not detected.

    Mutants that passed come first. In each group, the most severe mutant comes first.
    """
    cases = {case.id: case for case in suite}
    missed = sorted(
        (mutant for mutant in graded if not mutant.caught_by),
        key=lambda mutant: (not mutant.passed, -mutant.severity),
    )
    if not missed or not most:
        return
    yield f"\nNot caught ({len(missed)}), passed mutants first:"
    for mutant in missed[:most]:
        outcome = "passed" if mutant.passed else "left to the judge"
        yield f"  {mutant.case_id} · {mutant.operator} · severity {int(mutant.severity)} · {outcome}"
        yield f"      asked  {redact(cases[mutant.case_id].question)}"
        yield f"      gold   {redact(cases[mutant.case_id].gold)}"
        yield f"      mutant {redact(mutant.reply)}"


def _print_mutation_summary_json(
    sha256: str, left_out: int, counts: MutationScores, graded: Sequence[GradedMutant]
) -> None:
    summary = {
        "suite_sha256": sha256,
        "cases_left_out": left_out,
        "catches_enough": has_enough_caught_severe_mutants(counts),
        "counts": counts.model_dump(mode="json"),
        "missed": [
            mutant.model_dump(mode="json") | {"reply": redact(mutant.reply)}
            for mutant in graded
            if not mutant.caught_by
        ],
    }
    write_json(json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
