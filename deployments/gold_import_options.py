"""The options of ``lookout gold import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("import")(import_)


def import_(
    array: Annotated[Path, typer.Argument(help="a JSON array of another project: question, expected_answer, …")],
    *,
    out: Annotated[Path, typer.Option("--out", help="the suite to write; it must not be there yet")],
    severity: Annotated[
        list[str],
        typer.Option(help="TYPE=1, 2 or 3 for each question_type, or a bare number for all others; never guessed"),
    ],
) -> None:
    """Take over a suite of another project; it has no severities, so they are given here by type."""
    from deployments.gold_import_command import import_command  # pydantic's models

    raise typer.Exit(int(import_command(array, out, severity)))
