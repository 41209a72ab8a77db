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
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Look for what makes a suite lie. Exit code 1 when something must be mended."""
    from deployments.gold_check_command import check_command  # pydantic's models

    raise typer.Exit(int(check_command(suite, as_json=as_json)))
