"""``lookout gold translate``: a model drafts partners of English cases; a person accepts them."""

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
    cost_line,
    graders_in,
    refused_lines,
)
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.clock import utc_now
from flows.goldset.drafting import (
    AT_ONCE,
    DraftResult,
    MeteredModel,
    chosen_model,
    open_asker,
    to_translate,
    translate_cases,
)
from flows.runtime.secrets import environment, nonce
from flows.terminal import write_json, write_text
from flows.waiting import waiting
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import ConfigError
from monitors.goldset.drafts import add_drafts, read_drafts
from monitors.goldset.load import load_suite
from monitors.goldset.proposals import TRANSLATIONS_SCHEMA
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
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
    found: DraftResult = field(default_factory=DraftResult)


def languages_of(text: str) -> tuple[Language, ...]:
    """The languages of ``hi,hinglish``. `ConfigError` names what is accepted."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = {language.value: language for language in ACCEPTED}
    strange = [name for name in names if name not in known]
    if strange or not names:
        raise ConfigError(f"--to cannot be {text!r}; accepted: {', '.join(known)}, several with commas")
    return tuple(dict.fromkeys(known[name] for name in names))


def translate_command(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    to: Annotated[str, typer.Option("--to", help="hi, hinglish, or both with a comma")] = "hi,hinglish",
    case: Annotated[list[str] | None, typer.Option("--case", help="only this case, by id; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="most cases for each language")] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Let a model draft translations of the English cases that have none. Gold only after `lookout gold review`."""
    languages = languages_of(to)
    cases = _wanted(suite, case or ())
    loaded = load_config(config)
    chosen, settings = chosen_model(loaded.judge, model)
    session = _TranslateSession(drafts, default_panel(*graders_in(loaded, suite)))
    drafted = read_drafts(drafts) if drafts.exists() else ()
    todo = {language: to_translate(cases, language, drafted)[:limit] for language in languages}

    async def run() -> tuple[_TranslateReport, str]:
        tally = _TranslateReport()
        async with open_asker(chosen, settings, environment(), TRANSLATIONS_SCHEMA) as asker:
            for language, open_cases in todo.items():
                for at in range(0, len(open_cases), AT_ONCE):
                    await _one_prompt(asker, open_cases[at : at + AT_ONCE], language, session, tally)
            return tally, f"{cost_line(asker.cost)}, {chosen.model}"

    with waiting(f"Asking {chosen.model} to translate {plural(sum(map(len, todo.values())), 'case')}"):
        tally, cost = asyncio.run(run()) if any(todo.values()) else (_TranslateReport(), "nothing was asked")
    if as_json:
        _print_json(drafts, tally, cost)
    else:
        _print_summary(suite, drafts, tally, cost)
    return ExitCode.PASS if tally.added or not tally.asked else ExitCode.INCONCLUSIVE


async def _one_prompt(
    asker: MeteredModel,
    cases: Sequence[GoldCase],
    language: Language,
    session: _TranslateSession,
    tally: _TranslateReport,
) -> None:
    """Ask one prompt and save its drafts before the next: a later error loses no money."""
    found = await translate_cases(asker, cases, language, panel=session.panel, nonce=nonce, now=utc_now)
    tally.asked += len(cases)
    tally.added += add_drafts(session.drafts, found.drafts)
    tally.found.refused += found.refused


def _wanted(suite: Path, named: Sequence[str]) -> Sequence[GoldCase]:
    """The suite's cases; those that were named with all partners they have."""
    cases = load_suite(suite).cases
    known = {case.id: case for case in cases}
    strange = [case_id for case_id in named if case_id not in known]
    if strange:
        raise ConfigError(f"{suite} holds no case {strange[0]!r}")
    if not named:
        return cases
    pairs = {known[case_id].pair or case_id for case_id in named}
    return [case for case in cases if case.id in named or case.pair in pairs]


def _print_json(drafts: Path, tally: _TranslateReport, cost: str) -> None:
    shown = {
        "drafts_file": str(drafts),
        "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in tally.added],
        "refused": [{"about": redact(o.about), "reason": redact(o.reason)} for o in tally.found.refused],
        "cost": cost,
    }
    write_json(json.dumps(shown, ensure_ascii=False) + "\n")


def _print_summary(suite: Path, drafts: Path, tally: _TranslateReport, cost: str) -> None:
    if not tally.asked:
        write_text(f"Every English case of {suite} has its partners, in it or among the drafts.\n")
        return
    lines = [f"{len(tally.added)} of {plural(tally.asked, 'translation')} wait in {drafts}:"]
    lines += [f"  {one.case.question}\n    {one.case.gold}" for one in tally.added]
    write_text("\n".join(lines) + "\n" + refused_lines(tally.found.refused) + f"cost: {cost}\n")
    if tally.added:
        write_text(f"None is gold yet: lookout gold review {drafts} --suite {suite}\n")
