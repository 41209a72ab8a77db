"""``lookout gold vary``: write variants of questions: other words, typos, or two languages mixed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import JsonOption
from flows.terminal import write_json, write_text
from monitors.errors import ConfigError
from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite, parse_suite_lines
from monitors.goldset.variants import VariantKind, VariantSet, make_variants
from monitors.plural import plural
from monitors.storage import lock_parent_folder, replace_gold_file

MAX_SHOWN_IDS = 5
"""Maximum number of ids that are printed for cases without a variant. ``--json`` prints all ids."""


def parse_variant_kinds(text: str) -> tuple[VariantKind, ...]:
    """Parse a list of kinds such as ``typo,paraphrase``. Raises a `ConfigError` that lists the accepted kinds."""
    names = [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]
    accepted = {kind.value: kind for kind in VariantKind}
    if not names or any(name not in accepted for name in names):
        raise ConfigError(
            f"--kinds {text!r} is not valid. Accepted: {', '.join(accepted)}, or several separated by commas"
        )
    return tuple(dict.fromkeys(accepted[name] for name in names))


def vary_command(
    suite: Annotated[Path, typer.Argument(help="the file with the suite (JSON Lines)")],
    *,
    kinds: Annotated[
        str,
        typer.Option(
            "--kinds",
            help="the kinds of variants, separated by commas: paraphrase (other words), typo, code_switch (two "
            "languages mixed)",
        ),
    ] = "paraphrase,typo,code_switch",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="the random seed; the same number gives the same variants")
    ] = 1,
    each: Annotated[
        int, typer.Option("--each", min=1, max=20, help="the number of variants of each kind for each case")
    ] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", help="the output file; default: SUITE-variants.jsonl")
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write variants of a suite's questions, with the same expected answers and without a model."""
    wanted = parse_variant_kinds(kinds)
    if not suite.name:
        raise ConfigError(f"{suite} is not a file. Give the file of a suite (JSON Lines)")
    output_path = output or suite.with_name(f"{suite.stem}-variants.jsonl")
    if output_path.resolve() == suite.resolve():
        raise ConfigError(f"--output {output_path} is the file of the suite. Give another file")
    varied = make_variants(load_suite(suite).cases, wanted, seed=seed, per_kind=each)
    lines = [format_case_line(case) for case in varied.cases]
    if not lines:
        raise ConfigError(f"no case of {suite} has variants of the kinds {kinds}. Give other kinds with --kinds")
    sha256 = parse_suite_lines(lines, name="variants", source=str(output_path)).sha256
    with lock_parent_folder(output_path):
        replace_gold_file(output_path, "".join(f"{line}\n" for line in lines))
    print_result = _print_variants_json if as_json else _print_variants
    print_result(output_path, varied, wanted, sha256)
    return ExitCode.PASS


def _print_variants(output_path: Path, varied: VariantSet, wanted: Sequence[VariantKind], sha256: str) -> None:
    counts = varied.counts
    summary = ", ".join(f"{counts[kind.value]} {kind.value}" for kind in wanted)
    lines = [
        f"Lookout wrote {plural(len(varied.cases), 'variant')} to {output_path}: {summary}. sha256 {sha256[:12]}"
    ]
    missing: Counter[VariantKind] = Counter(kind for kind, _ in varied.without)
    for kind, count in missing.items():
        ids = [case_id for case_kind, case_id in varied.without if case_kind is kind]
        more = " …" if len(ids) > MAX_SHOWN_IDS else ""
        lines.append(
            f"{plural(count, 'case has', 'cases have')} no variant of the kind {kind.value}: "
            f"{', '.join(ids[:MAX_SHOWN_IDS])}{more}"
        )
    write_text("\n".join(lines) + "\n")


def _print_variants_json(output_path: Path, varied: VariantSet, wanted: Sequence[VariantKind], sha256: str) -> None:
    summary = {
        "output": str(output_path),
        "sha256": sha256,
        "variants": {kind.value: varied.counts[kind.value] for kind in wanted},
        "without": [{"kind": kind.value, "case": case_id} for kind, case_id in varied.without],
    }
    write_json(json.dumps(summary, ensure_ascii=False) + "\n")
