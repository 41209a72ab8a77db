"""The options of ``lookout gold draft``, ``translate``, ``review``, ``grow`` and ``vary``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitors.records.base import Language

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
DraftsOption = Annotated[Path, typer.Option("--drafts", help="where drafts are kept, JSON lines")]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="a model of [[judge.models]]; the first one when left out")
]
ByOption = Annotated[str | None, typer.Option("--as", help="who reviews; asked once and remembered when left out")]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
DEFAULT_CONFIG = Path("lookout.toml")
DEFAULT_DRAFTS = Path("gold-drafts.jsonl")


def register(app: typer.Typer) -> None:
    """Add the commands to a command line."""
    app.command()(draft)
    app.command()(review)
    app.command()(translate)
    app.command()(grow)
    app.command()(vary)


def draft(
    *,
    document: Annotated[Path, typer.Option("--document", help="plain text or Markdown, UTF-8")],
    count: Annotated[int, typer.Option("--count", min=1, max=40, help="how many questions")] = 5,
    name: Annotated[
        str | None, typer.Option("--name", help="what the document is called; its file's name when left out")
    ] = None,
    citation: Annotated[
        str | None, typer.Option("--citation", help="text that a citation of the answers must contain")
    ] = None,
    language: Annotated[Language, typer.Option("--language", help="what the questions are in")] = Language.ENGLISH,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="a suite whose questions are not to be asked again")
    ] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Let a model draft buyers' questions over a document. A draft is gold only after `lookout gold review`."""
    from deployments.gold_draft_command import DraftOptions, draft_command  # pydantic's models, an SDK
    from flows.wiring import environment

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
    raise typer.Exit(int(draft_command(options, environment())))


def review(
    drafts: Annotated[Path, typer.Argument(help="the file of drafts")] = DEFAULT_DRAFTS,
    *,
    suite: Annotated[Path, typer.Option("--suite", help="the suite that accepted cases join; made when not there")],
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[
        Path | None, typer.Option("--data-folder", help="where your name is remembered; the configuration's")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="show texts as they are, personal data too")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read each draft beside its clause and say yes, no, or how it must read. Only a yes makes it gold."""
    from deployments.gold_review_command import review_drafts_command  # rich, pydantic's models
    from deployments.gold_target import graders_for
    from monitors.config import load_config

    folder = data_folder or (load_config(config).data_folder if config.exists() else None)
    code = review_drafts_command(
        drafts,
        suite=suite,
        by=by,
        remember_in=folder,
        raw=raw,
        as_json=as_json,
        graders=graders_for(config, suite),
    )
    raise typer.Exit(int(code))


def translate(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    to: Annotated[str, typer.Option("--to", help="hi, hinglish, or both with a comma")] = "hi,hinglish",
    case: Annotated[list[str] | None, typer.Option("--case", help="only this case, by id; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="most cases for each language")] = None,
    drafts: DraftsOption = DEFAULT_DRAFTS,
    model: ModelOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Let a model draft translations of the English cases that have none. Gold only after `lookout gold review`."""
    from deployments.gold_translate_command import TranslateOptions, translate_command  # as for draft
    from flows.wiring import environment

    options = TranslateOptions(
        suite=suite,
        to=to,
        cases=tuple(case or ()),
        limit=limit,
        drafts=drafts,
        config=config,
        model=model,
        as_json=as_json,
    )
    raise typer.Exit(int(translate_command(options, environment())))


def grow(
    *,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="the suite that cases join; without it, what waits is listed")
    ] = None,
    take: Annotated[
        str | None, typer.Option("--take", help="RUN/CASE: make a draft of this conversation first")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="of this target only")] = None,
    by: ByOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[
        Path | None, typer.Option("--data-folder", help="instead of the configuration's")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make gold of what went wrong: drafts of incidents, of Slack's "Add to gold", of reviews, of live traffic."""
    from deployments.gold_grow_command import GrowOptions, grow_command  # rich, duckdb, pydantic's models

    options = GrowOptions(
        suite=suite, config=config, data_folder=data_folder, target=target, take=take, by=by, as_json=as_json
    )
    raise typer.Exit(int(grow_command(options)))


def vary(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    kinds: Annotated[
        str, typer.Option("--kinds", help="paraphrase, typo, code_switch; several with commas")
    ] = "paraphrase,typo,code_switch",
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same file")] = 1,
    each: Annotated[int, typer.Option("--each", min=1, max=20, help="variants of each kind for a case")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", help="where they go; SUITE-variants.jsonl when left out")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write other wordings of a suite's questions that keep what is expected. No model; the same every time."""
    from deployments.gold_vary_command import vary_command  # pydantic's models

    code = vary_command(suite, kinds=kinds, seed=seed, each=each, output=output, as_json=as_json)
    raise typer.Exit(int(code))
