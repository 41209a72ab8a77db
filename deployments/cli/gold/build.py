"""``lookout gold build``: build cases of a suite from fact sheets and question templates."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import JsonOption
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.domains.pack import INSURANCE
from monitors.errors import GoldSetError
from monitors.goldset.build.build import (
    PHRASED_LANGUAGES,
    BuildResult,
    TemplateBook,
    build_cases,
    load_templates,
)
from monitors.goldset.build.sheets import load_fact_schema, read_fact_sheets
from monitors.goldset.versions import RenewReport, replace_template_generated_cases
from monitors.plural import plural
from monitors.records.base import Language

MAX_REASONS = 8


def build_command(
    *,
    facts: Annotated[
        Path,
        typer.Option(
            "--facts", help="a folder of fact sheets (*.json), one fact sheet, or a file with rows (*.jsonl)"
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="the suite file to write; its cases that do not come from a template stay unchanged"
        ),
    ],
    domain: Annotated[
        str | None,
        typer.Option(
            help="the domain pack with the fields and the templates: a name, or a folder such as ./my_domain; "
            "default: health_insurance"
        ),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(
            help="the language: en, hi or hinglish; repeat the option for more languages; default: the languages "
            "of the templates"
        ),
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="list every fact without a case, with the reason")] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Build cases from fact sheets: one question for each template and policy, with its right answer and clause."""
    pack = domain or INSURANCE
    schema = load_fact_schema(pack)
    book = load_templates(schema, pack)
    with show_waiting(f"Building cases from {facts}"):
        built = build_cases(read_fact_sheets(facts, schema), schema, book, _parse_languages(language or (), book))
    if not built.cases:
        reasons = "; ".join(f"{fact.field}: {fact.reason}" for fact in built.not_asked[:3])
        explanation = reasons or "no template has a question about the fields of these facts"
        raise GoldSetError(f"{facts}: Lookout could not build a case from any fact: {explanation}")
    renewed = replace_template_generated_cases(out, built.cases)
    if as_json:
        write_json(json.dumps(_build_json_summary(out, built, renewed), ensure_ascii=False, indent=2) + "\n")
    else:
        print_text("\n".join(_format_build_summary(out, built, renewed, why=why)))
    return ExitCode.PASS


def _parse_languages(names: Sequence[str], book: TemplateBook) -> tuple[Language, ...]:
    accepted = {language.value: language for language in PHRASED_LANGUAGES}
    unknown = next((name for name in names if name not in accepted), None)
    if unknown is not None:
        raise GoldSetError(f"--language {unknown!r} is not supported. Accepted: {', '.join(accepted)}")
    return tuple(accepted[name] for name in dict.fromkeys(names)) or book.languages


def _format_build_summary(out: Path, built: BuildResult, renewed: RenewReport, *, why: bool) -> list[str]:
    stored = f"; {plural(renewed.unchanged, 'other case')} unchanged" if renewed.unchanged else ""
    policies = plural(built.policies, "policy", "policies")
    lines = [
        f"{out}: {plural(len(built.cases), 'case')} from {policies}{stored}",
        f"  sha256 {renewed.sha256}",
        f"  added {renewed.added}, changed {renewed.changed}, removed {renewed.removed}, unchanged {renewed.same}",
        f"  types       {_count_and_format_values(case.type for case in built.cases)}",
        f"  severities  {_count_and_format_values(str(int(case.severity)) for case in built.cases)}",
        f"  languages   {_count_and_format_values(case.language.value for case in built.cases)}",
        f"  refusals    {sum(case.expected_refusal for case in built.cases)} expected",
    ]
    if why:
        lines += [
            "Facts without a case:",
            *(f"  {fact.sheet_id} {fact.field}: {fact.reason}" for fact in built.not_asked),
        ]
    elif built.not_asked:
        # The part after a colon or "from" differs for each fact.
        kinds = Counter(fact.reason.split(" from ")[0].split(":")[0] for fact in built.not_asked)
        lines.append(f"{plural(len(built.not_asked), 'fact')} without a case (--why lists each fact):")
        lines += [f"  {count:4}  {reason}" for reason, count in kinds.most_common(MAX_REASONS)]
    return lines


def _count_and_format_values(values: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(Counter(values).items()))


def _build_json_summary(out: Path, built: BuildResult, renewed: RenewReport) -> dict[str, object]:
    return {
        "suite": str(out),
        "sha256": renewed.sha256,
        "policies": built.policies,
        "cases": len(built.cases),
        "unchanged": renewed.unchanged,
        "added": renewed.added,
        "changed": renewed.changed,
        "removed": renewed.removed,
        "not_asked": [
            {"id": fact.sheet_id, "field": fact.field, "reason": fact.reason} for fact in built.not_asked
        ],
    }
