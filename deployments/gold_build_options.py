"""The options of ``lookout gold build``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(build)


def build(
    *,
    facts: Annotated[
        Path, typer.Option("--facts", help="a folder of fact sheets (*.json), one sheet, or rows (*.jsonl)")
    ],
    out: Annotated[Path, typer.Option("--out", help="the suite; cases in it that no template made are kept")],
    schema: Annotated[
        Path | None, typer.Option(help="fields and kinds, JSON; Indian health insurance when left out")
    ] = None,
    templates: Annotated[Path | None, typer.Option(help="questions, TOML; the shipped ones when left out")] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="en, hi or hinglish, several times; as the templates say when left out")
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="list each fact that made no case, with its reason")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Make cases of facts: each template asks each policy, the gold traces to field and clause."""
    from deployments.gold_build_command import BuildOptions, build_command  # pydantic's models

    options = BuildOptions(facts, out, schema, templates, tuple(language or ()), why=why, as_json=as_json)
    raise typer.Exit(int(build_command(options)))
