"""``lookout gold translate``: let a model draft translations of English cases, which a person reviews."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.draft import (
    DEFAULT_DRAFTS,
    DraftsOption,
    ModelOption,
    find_suite_grader_settings,
    format_model_cost,
    format_rejected_proposals,
)
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.clock import utc_now
from flows.goldset.drafting import (
    CASES_PER_PROMPT,
    DraftResult,
    open_metered_model,
    select_cases_to_translate,
    select_drafting_model,
    translate_cases,
)
from flows.runtime.secrets import generate_nonce, get_environment
from flows.terminal import write_json, write_text
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import ConfigError
from monitors.goldset.drafts import append_new_drafts, read_drafts
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import build_rule_panel
from monitors.plural import plural
from monitors.records.base import Language
from monitors.records.cases import GoldCase, GoldDraft

ACCEPTED = (Language.HINDI, Language.HINGLISH)


@dataclass(frozen=True)
class _TranslateSession:
    drafts: Path
    panel: Sequence[Grader]


@dataclass
class _TranslateReport:
    asked: int = 0
    added: list[GoldDraft] = field(default_factory=list[GoldDraft])
    result: DraftResult = field(default_factory=DraftResult)


def parse_target_languages(text: str) -> tuple[Language, ...]:
    """Parse a list of languages such as ``hi,hinglish``. Raises a `ConfigError` with the accepted languages."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    accepted = {language.value: language for language in ACCEPTED}
    unknown = [name for name in names if name not in accepted]
    if unknown or not names:
        raise ConfigError(
            f"--to {text!r} is not valid. Accepted: {', '.join(accepted)}, or several separated by commas"
        )
    return tuple(dict.fromkeys(accepted[name] for name in names))


def translate_command(
    suite: Annotated[Path, typer.Argument(help="the file with the suite (JSON Lines)")],
    *,
    to: Annotated[
        str, typer.Option("--to", help="the languages: hi, hinglish, or both separated by a comma")
    ] = "hi,hinglish",
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case", help="the id of a case to translate; repeat the option for more cases; default: all cases"
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="the maximum number of cases for each language")
    ] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Let a model draft missing translations of English cases. Accept each draft with `lookout gold review`."""
    languages = parse_target_languages(to)
    cases = _load_cases_with_translations(suite, case or ())
    loaded = load_config(config)
    chosen, settings = select_drafting_model(loaded.judge, model)
    session = _TranslateSession(drafts, build_rule_panel(*find_suite_grader_settings(loaded, suite)))
    drafted = read_drafts(drafts) if drafts.exists() else ()
    todo = {language: select_cases_to_translate(cases, language, drafted)[:limit] for language in languages}

    async def run() -> tuple[_TranslateReport, str]:
        tally = _TranslateReport()
        async with open_metered_model(chosen, settings, get_environment()) as asker:
            for language, open_cases in todo.items():
                for at in range(0, len(open_cases), CASES_PER_PROMPT):
                    # Drafts are saved after each prompt, so that a later error does not lose them.
                    cases = open_cases[at : at + CASES_PER_PROMPT]
                    result = await translate_cases(
                        asker, cases, language, panel=session.panel, nonce=generate_nonce, now=utc_now
                    )
                    tally.asked += len(cases)
                    tally.added += append_new_drafts(session.drafts, result.drafts)
                    tally.result.refused += result.refused
            return tally, f"{format_model_cost(asker.cost)}, {chosen.model}"

    with show_waiting(f"Asking {chosen.model} to translate {plural(sum(map(len, todo.values())), 'case')}"):
        tally, cost = asyncio.run(run()) if any(todo.values()) else (_TranslateReport(), "nothing was asked")
    if as_json:
        _print_translations_json(drafts, tally, cost)
    else:
        _print_translations(suite, drafts, tally, cost)
    return ExitCode.PASS if tally.added or not tally.asked else ExitCode.INCONCLUSIVE


def _load_cases_with_translations(suite: Path, case_ids: Sequence[str]) -> Sequence[GoldCase]:
    """Return all cases of the suite, or only the cases in ``case_ids`` with their translations."""
    cases = load_suite(suite).cases
    suite_cases = {case.id: case for case in cases}
    unknown = [case_id for case_id in case_ids if case_id not in suite_cases]
    if unknown:
        raise ConfigError(f"{suite} has no case with the id {unknown[0]!r}")
    if not case_ids:
        return cases
    pairs = {suite_cases[case_id].pair or case_id for case_id in case_ids}
    return [case for case in cases if case.id in case_ids or case.pair in pairs]


def _print_translations_json(drafts: Path, tally: _TranslateReport, cost: str) -> None:
    summary = {
        "drafts_file": str(drafts),
        "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in tally.added],
        "refused": [
            {"about": redact(proposal.about), "reason": redact(proposal.reason)}
            for proposal in tally.result.refused
        ],
        "cost": cost,
    }
    write_json(json.dumps(summary, ensure_ascii=False) + "\n")


def _print_translations(suite: Path, drafts: Path, tally: _TranslateReport, cost: str) -> None:
    if not tally.asked:
        write_text(f"Every English case of {suite} already has its translations, or drafts of its translations.\n")
        return
    lines = [f"Lookout stored {len(tally.added)} of {plural(tally.asked, 'translation')} as drafts in {drafts}:"]
    lines += [f"  {draft.case.question}\n    {draft.case.gold}" for draft in tally.added]
    write_text("\n".join(lines) + "\n" + format_rejected_proposals(tally.result.refused) + f"cost: {cost}\n")
    if tally.added:
        write_text(f"To review the drafts: lookout gold review {drafts} --suite {suite}\n")
