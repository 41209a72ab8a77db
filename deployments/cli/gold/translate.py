"""``lookout gold translate``: a model drafts partners of English cases; a person accepts them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.draft import cost_line, graders_in, refused_lines
from flows.context import nonce, utc_now
from flows.goldset.drafting import (
    AT_ONCE,
    DraftResult,
    MeteredModel,
    chosen_model,
    open_asker,
    to_translate,
    translate_cases,
)
from flows.terminal import write_json, write_text
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import ConfigError
from monitors.goldset.drafts import add_drafts, read_drafts
from monitors.goldset.load import load_suite
from monitors.goldset.proposals import TRANSLATIONS_SCHEMA
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.drafts import GoldDraft

ACCEPTED = (Language.HINDI, Language.HINGLISH)


@dataclass(frozen=True)
class TranslateOptions:
    """The options of ``lookout gold translate``."""

    suite: Path
    to: str
    cases: Sequence[str]
    limit: int | None
    drafts: Path
    config: Path
    model: str | None
    as_json: bool


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


def translate_command(options: TranslateOptions, environment: Mapping[str, str]) -> ExitCode:
    """Translate what has no partner yet, save the drafts, and print what was refused and what it cost."""
    languages = languages_of(options.to)
    cases = _wanted(options)
    config = load_config(options.config)
    chosen, settings = chosen_model(config.judge, options.model)
    session = _TranslateSession(options.drafts, default_panel(*graders_in(config, options.suite)))
    waiting = read_drafts(options.drafts) if options.drafts.exists() else ()
    todo = {language: to_translate(cases, language, waiting)[: options.limit] for language in languages}

    async def run() -> tuple[_TranslateReport, str]:
        tally = _TranslateReport()
        async with open_asker(chosen, settings, environment, TRANSLATIONS_SCHEMA) as asker:
            for language, open_cases in todo.items():
                for at in range(0, len(open_cases), AT_ONCE):
                    await _one_prompt(asker, open_cases[at : at + AT_ONCE], language, session, tally)
            return tally, f"{cost_line(asker.cost)}, {chosen.model}"

    tally, cost = asyncio.run(run()) if any(todo.values()) else (_TranslateReport(), "nothing was asked")
    _print_summary(options, tally, cost)
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


def _wanted(options: TranslateOptions) -> Sequence[GoldCase]:
    """The suite's cases; those that were named with all partners they have."""
    cases = load_suite(options.suite).cases
    known = {case.id: case for case in cases}
    strange = [case_id for case_id in options.cases if case_id not in known]
    if strange:
        raise ConfigError(f"{options.suite} holds no case {strange[0]!r}")
    if not options.cases:
        return cases
    pairs = {known[case_id].pair or case_id for case_id in options.cases}
    return [case for case in cases if case.id in options.cases or case.pair in pairs]


def _print_summary(options: TranslateOptions, tally: _TranslateReport, cost: str) -> None:
    if options.as_json:
        shown = {
            "drafts_file": str(options.drafts),
            "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in tally.added],
            "refused": [{"about": redact(o.about), "reason": redact(o.reason)} for o in tally.found.refused],
            "cost": cost,
        }
        write_json(json.dumps(shown, ensure_ascii=False) + "\n")
        return
    if not tally.asked:
        write_text(f"Every English case of {options.suite} has its partners, in it or among the drafts.\n")
        return
    lines = [f"{len(tally.added)} of {tally.asked} translations wait in {options.drafts}:"]
    lines += [f"  {one.case.question}\n    {one.case.gold}" for one in tally.added]
    write_text("\n".join(lines) + "\n" + refused_lines(tally.found.refused) + f"cost: {cost}\n")
    if tally.added:
        write_text(f"None is gold yet: lookout gold review {options.drafts} --suite {options.suite}\n")
