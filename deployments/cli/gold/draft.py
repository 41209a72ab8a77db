"""``lookout gold draft``: let a model draft questions about a document, and store the drafts for review.

A draft is stored only if the document proves its answer. Drafts are checked with the graders of the suite's target.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.clock import utc_now
from flows.goldset.drafting import (
    DraftResult,
    draft_questions,
    open_metered_model,
    read_document,
    select_drafting_model,
)
from flows.runtime.secrets import generate_nonce, get_environment
from flows.terminal import write_json, write_text
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.domains.pack import Domain, load_domain
from monitors.goldset.drafts import append_new_drafts, read_drafts
from monitors.goldset.proposals import Document, DraftDefaults, RejectedProposal
from monitors.goldset.versions import read_suite_cases
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel
from monitors.judge.consensus import Cost
from monitors.plural import plural
from monitors.records.base import Language
from monitors.records.cases import GoldCase, GoldDraft


def load_suite_grader_settings(config: Path, suite: Path | None) -> tuple[GraderSettings, Domain]:
    """Return the grader settings and the domain for a suite, as `find_suite_grader_settings` does.

    If the configuration file does not exist, return the defaults.
    """
    return (
        find_suite_grader_settings(load_config(config), suite)
        if config.exists()
        else (GraderSettings(), load_domain())
    )


def find_suite_grader_settings(config: Config, suite: Path | None) -> tuple[GraderSettings, Domain]:
    """Return the grader settings and the domain of the target that has this suite.

    If no target has the suite, the only target is used. If there is not exactly one target, the defaults are
    returned.
    """
    targets = list(config.targets.values())
    if suite is not None:
        matching = [settings for settings in targets if settings.suite.resolve() == suite.resolve()]
        targets = matching[:1] or targets
    if len(targets) == 1:
        return targets[0].graders, targets[0].domain
    return GraderSettings(), load_domain()


DraftsOption = Annotated[Path, typer.Option("--drafts", help="the file for the drafts (JSON Lines)")]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="the name of a model in [[judge.models]]; default: the first model")
]
DEFAULT_DRAFTS: Final = Path("gold-drafts.jsonl")


@dataclass(frozen=True)
class DraftOptions:
    """The options of ``lookout gold draft``."""

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


def draft_command(
    *,
    document: Annotated[Path, typer.Option("--document", help="the document: plain text or Markdown, UTF-8")],
    count: Annotated[int, typer.Option("--count", min=1, max=40, help="the number of questions")] = 5,
    name: Annotated[
        str | None, typer.Option("--name", help="the name of the document; default: the name of the file")
    ] = None,
    citation: Annotated[
        str | None, typer.Option("--citation", help="a text that the citation in each answer must contain")
    ] = None,
    language: Annotated[
        Language, typer.Option("--language", help="the language of the questions")
    ] = Language.ENGLISH,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="a suite whose questions must not be drafted again")
    ] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> ExitCode:
    """Let a model draft questions about a document. A person must accept each draft with `lookout gold review`."""
    options = DraftOptions(
        document=document,
        config=config,
        drafts=drafts,
        count=count,
        name=name,
        citation=citation,
        language=language,
        model=model,
        suite=suite,
        as_json=as_json,
    )
    read = read_document(document, name)
    with show_waiting(f"Asking the model for {plural(count, 'question')} about {read.name}"):
        result, cost, used = asyncio.run(_draft_with_model(options, read, get_environment()))
    added = append_new_drafts(drafts, result.drafts)
    print_result = _print_draft_json if as_json else _print_draft_summary
    print_result(options, read, added, result.refused, f"{format_model_cost(cost)}, {used}")
    return ExitCode.PASS if result.drafts else ExitCode.INCONCLUSIVE


async def _draft_with_model(
    options: DraftOptions, document: Document, environment: Mapping[str, str]
) -> tuple[DraftResult, Cost, str]:
    config = load_config(options.config)
    chosen, settings = select_drafting_model(config.judge, options.model)
    graders, domain = find_suite_grader_settings(config, options.suite)
    defaults = DraftDefaults(
        count=options.count,
        language=options.language,
        citation=options.citation,
        cluster=derive_cluster_name(options.name),
        account_patterns=graders.account_patterns,
    )
    async with open_metered_model(chosen, settings, environment) as asker:
        result = await draft_questions(
            asker,
            document,
            defaults,
            others=load_cases_of_suite_and_drafts(options.drafts, options.suite),
            panel=build_rule_panel(graders, domain),
            nonce=generate_nonce,
            now=utc_now,
        )
        return result, asker.cost, chosen.model


def load_cases_of_suite_and_drafts(drafts: Path, suite: Path | None) -> tuple[GoldCase, ...]:
    """Load the cases of the suite and of all drafts, including rejected drafts."""
    waiting = tuple(draft.case for draft in read_drafts(drafts)) if drafts.exists() else ()
    return (*(read_suite_cases(suite) if suite else ()), *waiting)


def derive_cluster_name(name: str | None) -> str | None:
    """Return the cluster for cases about a document with this name, or ``None`` if ``name`` is ``None``.

    For example, "Suraksha Gold" gives suraksha-gold.
    """
    return re.sub(r"[^a-z0-9]+", "-", (name or "").lower()).strip("-") or None


def format_model_cost(cost: Cost) -> str:
    """Format a model's cost, number of calls and number of tokens as one line."""
    tokens = f"{cost.input_tokens + cost.cached_tokens:,} tokens in, {cost.output_tokens:,} out"
    return f"${cost.usd:.4f}, {plural(cost.calls, 'call')}, {tokens}"


def format_rejected_proposals(refused: Sequence[RejectedProposal]) -> str:
    """Format each rejected proposal with its reason. Personal data is masked."""
    return "".join(
        f"rejected: {redact(proposal.about)}\n  because {redact(proposal.reason)}\n" for proposal in refused
    )


def _print_draft_summary(
    options: DraftOptions,
    document: Document,
    added: Sequence[GoldDraft],
    refused: Sequence[RejectedProposal],
    cost: str,
) -> None:
    lines = [
        (
            f"Lookout stored {len(added)} of {plural(options.count, 'question')} about {document.name} as drafts "
            "in "
            f"{options.drafts}:"
        )
    ]
    for draft in added:
        lines += [f"  {draft.case.question}", f"    {draft.case.gold}  (severity {int(draft.case.severity)})"]
    write_text("\n".join(lines) + "\n" + format_rejected_proposals(refused) + f"cost: {cost}\n")
    if added:
        suite = options.suite or "SUITE"
        write_text(f"To review the drafts: lookout gold review {options.drafts} --suite {suite}\n")


def _print_draft_json(
    options: DraftOptions,
    document: Document,
    added: Sequence[GoldDraft],
    refused: Sequence[RejectedProposal],
    cost: str,
) -> None:
    summary = {
        "document": document.name,
        "drafts_file": str(options.drafts),
        "drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in added],
        "refused": [{"about": redact(proposal.about), "reason": redact(proposal.reason)} for proposal in refused],
        "cost": cost,
    }
    write_json(json.dumps(summary, ensure_ascii=False) + "\n")
