"""``lookout gold draft``: a model writes questions over a document; what can be proved is kept for a person."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployments.exit_codes import ExitCode
from deployments.gold_target import graders_in
from flows.asking import chosen_model, open_asker
from flows.draft_questions import Drafted, draft_questions, read_document
from flows.keys import nonce
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.config import load_config
from monitors.goldset.draft_checks import Document, Wanted
from monitors.goldset.drafting import DRAFTS_SCHEMA, Refused
from monitors.goldset.drafts_file import add_drafts, read_drafts
from monitors.goldset.join import cases_in
from monitors.graders.panel import default_panel
from monitors.judge.ruling import Cost
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.drafts import GoldDraft


@dataclass(frozen=True)
class DraftOptions:
    """What ``lookout gold draft`` was told."""

    document: Path
    config: Path
    drafts: Path
    count: int
    name: str | None
    citation: str | None
    language: Language
    model: str | None
    suite: Path | None
    as_json: bool


def draft_command(options: DraftOptions, environment: Mapping[str, str]) -> ExitCode:
    """Draft, keep, and tell what was kept, what was refused and why, and what it cost."""
    document = read_document(options.document, options.name)
    found, cost, model = asyncio.run(_drafted(options, document, environment))
    added = add_drafts(options.drafts, found.drafts)
    tell = _tell_json if options.as_json else _tell
    tell(options, document, added, found.refused, f"{cost_line(cost)}, {model}")
    return ExitCode.PASS if found.drafts else ExitCode.INCONCLUSIVE


async def _drafted(
    options: DraftOptions, document: Document, environment: Mapping[str, str]
) -> tuple[Drafted, Cost, str]:
    config = load_config(options.config)
    chosen, settings = chosen_model(config.judge, options.model)
    graders = graders_in(config, options.suite)
    wanted = Wanted(
        count=options.count,
        language=options.language,
        citation=options.citation,
        cluster=cluster_of(options.name),
        account_patterns=graders.account_patterns,
    )
    async with open_asker(chosen, settings, environment, DRAFTS_SCHEMA) as asker:
        found = await draft_questions(
            asker,
            document,
            wanted,
            others=known_cases(options.drafts, options.suite),
            panel=default_panel(graders),
            nonce=nonce,
            now=utc_now,
        )
        return found, asker.cost, chosen.model


def known_cases(drafts: Path, suite: Path | None) -> tuple[GoldCase, ...]:
    """What is asked already: in the suite, and in the drafts, rejected ones too."""
    waiting = tuple(draft.case for draft in read_drafts(drafts)) if drafts.exists() else ()
    return (*(cases_in(suite) if suite else ()), *waiting)


def cluster_of(name: str | None) -> str | None:
    """What cases of one document share: "Suraksha Gold" is suraksha-gold. None without Latin letters."""
    return re.sub(r"[^a-z0-9]+", "-", (name or "").lower()).strip("-") or None


def cost_line(cost: Cost) -> str:
    """Money and tokens in one line."""
    calls = "1 call" if cost.calls == 1 else f"{cost.calls} calls"
    tokens = f"{cost.input_tokens + cost.cached_tokens:,} tokens in, {cost.output_tokens:,} out"
    return f"${cost.usd:.4f}, {calls}, {tokens}"


def refused_lines(refused: Sequence[Refused]) -> str:
    """One line for each proposal that is no draft; personal data masked."""
    return "".join(f"refused: {redact(one.about)}\n  because {redact(one.reason)}\n" for one in refused)


def _tell(
    options: DraftOptions, document: Document, added: Sequence[GoldDraft], refused: Sequence[Refused], cost: str
) -> None:
    lines = [f"{len(added)} of {options.count} questions on {document.name} wait in {options.drafts}:"]
    for draft in added:
        lines += [f"  {draft.case.question}", f"    {draft.case.gold}  (severity {int(draft.case.severity)})"]
    sys.stdout.write("\n".join(lines) + "\n" + refused_lines(refused) + f"cost: {cost}\n")
    if added:
        suite = options.suite or "SUITE"
        sys.stdout.write(f"None is gold yet: lookout gold review {options.drafts} --suite {suite}\n")


def _tell_json(
    options: DraftOptions, document: Document, added: Sequence[GoldDraft], refused: Sequence[Refused], cost: str
) -> None:
    told = {
        "document": document.name,
        "drafts_file": str(options.drafts),
        "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in added],
        "refused": [{"about": redact(one.about), "reason": redact(one.reason)} for one in refused],
        "cost": cost,
    }
    sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
