"""The options of ``lookout gold check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(check)


def check(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    documents: Annotated[
        Path | None, typer.Option(help="a folder with the documents as text: clauses are looked up in them")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="take a target's graders and the gate from this configuration")
    ] = None,
    target: Annotated[str | None, typer.Option(help="which target of the configuration")] = None,
    twins: Annotated[
        bool, typer.Option("--twins/--no-twins", help="try wrong replies on the severity-3 cases")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Look for what makes a suite lie, leak or miss. Exit code 1 when something must be mended."""
    from deployments.gold_check_command import CheckOptions, check_command  # pydantic's models

    options = CheckOptions(suite, documents, config, target, twins=twins, as_json=as_json)
    raise typer.Exit(int(check_command(options)))
