"""``lookout gold translate``: a model drafts partners of English cases; a person accepts them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deployments.exit_codes import ExitCode
from deployments.gold_draft_command import cost_line, refused_lines
from deployments.gold_target import graders_in
from flows.asking import Asker, chosen_model, open_asker
from flows.draft_questions import Drafted
from flows.keys import nonce
from flows.translate_cases import AT_ONCE, to_translate, translate_cases
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.config import load_config
from monitors.errors import ConfigError
from monitors.goldset.drafting import TRANSLATIONS_SCHEMA
from monitors.goldset.drafts_file import add_drafts, read_drafts
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.drafts import GoldDraft

ACCEPTED = (Language.HINDI, Language.HINGLISH)


@dataclass(frozen=True)
class TranslateOptions:
    """What ``lookout gold translate`` was told."""

    suite: Path
    to: str
    cases: Sequence[str]
    limit: int | None
    drafts: Path
    config: Path
    model: str | None
    as_json: bool


@dataclass(frozen=True)
class _Desk:
    drafts: Path
    panel: Sequence[Grader]


@dataclass
class _Told:
    asked: int = 0
    added: list[GoldDraft] = field(default_factory=list[GoldDraft])
    found: Drafted = field(default_factory=Drafted)


def languages_of(text: str) -> tuple[Language, ...]:
    """The languages of ``hi,hinglish``. `ConfigError` names what is accepted."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = {language.value: language for language in ACCEPTED}
    strange = [name for name in names if name not in known]
    if strange or not names:
        raise ConfigError(f"--to cannot be {text!r}; accepted: {', '.join(known)}, several with commas")
    return tuple(dict.fromkeys(known[name] for name in names))


def translate_command(options: TranslateOptions, environment: Mapping[str, str]) -> ExitCode:
    """Translate what has no partner yet, keep the drafts, and tell what was refused and what it cost."""
    languages = languages_of(options.to)
    cases = _wanted(options)
    config = load_config(options.config)
    chosen, settings = chosen_model(config.judge, options.model)
    desk = _Desk(options.drafts, default_panel(graders_in(config, options.suite)))
    waiting = read_drafts(options.drafts) if options.drafts.exists() else ()
    todo = {language: to_translate(cases, language, waiting)[: options.limit] for language in languages}

    async def run() -> tuple[_Told, str]:
        told = _Told()
        async with open_asker(chosen, settings, environment, TRANSLATIONS_SCHEMA) as asker:
            for language, open_cases in todo.items():
                for at in range(0, len(open_cases), AT_ONCE):
                    await _one_prompt(asker, open_cases[at : at + AT_ONCE], language, desk, told)
            return told, f"{cost_line(asker.cost)}, {chosen.model}"

    told, cost = asyncio.run(run()) if any(todo.values()) else (_Told(), "nothing was asked")
    _tell(options, told, cost)
    return ExitCode.PASS if told.added or not told.asked else ExitCode.INCONCLUSIVE


async def _one_prompt(
    asker: Asker, cases: Sequence[GoldCase], language: Language, desk: _Desk, told: _Told
) -> None:
    """What a prompt brought is kept before the next is asked: a later error loses no money."""
    found = await translate_cases(asker, cases, language, panel=desk.panel, nonce=nonce, now=utc_now)
    told.asked += len(cases)
    told.added += add_drafts(desk.drafts, found.drafts)
    told.found.refused += found.refused


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


def _tell(options: TranslateOptions, told: _Told, cost: str) -> None:
    if options.as_json:
        shown = {
            "drafts_file": str(options.drafts),
            "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in told.added],
            "refused": [{"about": redact(o.about), "reason": redact(o.reason)} for o in told.found.refused],
            "cost": cost,
        }
        sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
        return
    if not told.asked:
        sys.stdout.write(f"Every English case of {options.suite} has its partners, in it or among the drafts.\n")
        return
    lines = [f"{len(told.added)} of {told.asked} translations wait in {options.drafts}:"]
    lines += [f"  {one.case.question}\n    {one.case.gold}" for one in told.added]
    sys.stdout.write("\n".join(lines) + "\n" + refused_lines(told.found.refused) + f"cost: {cost}\n")
    if told.added:
        sys.stdout.write(f"None is gold yet: lookout gold review {options.drafts} --suite {options.suite}\n")
