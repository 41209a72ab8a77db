"""The options of ``lookout gold bite``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(bite)


def bite(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    config: Annotated[
        Path | None, typer.Option("--config", help="take a target's grader settings from this configuration")
    ] = None,
    target: Annotated[str | None, typer.Option(help="which target of the configuration")] = None,
    missed: Annotated[int, typer.Option(min=0, help="how many missed twins to show")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")] = False,
) -> None:
    """Do the graders bite? Known-bad twins of every gold, and how many the graders catch without a judge."""
    from deployments.gold_bite_command import bite_command  # pydantic's models

    raise typer.Exit(int(bite_command(suite, config=config, target=target, missed=missed, as_json=as_json)))
