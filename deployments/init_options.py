"""The options of ``lookout init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(init)


def init(
    *,
    config: Annotated[Path, typer.Option("--config", help="where to write; the rest goes beside it")] = Path(
        "lookout.toml"
    ),
    target: Annotated[
        str | None, typer.Option(help="what to watch: the address of a chat page, or a Space as owner/name")
    ] = None,
    environment: Annotated[str | None, typer.Option(help="where it stands: staging or production")] = None,
    model_family: Annotated[
        str | None, typer.Option(help="family or name of the model that answers, or unknown")
    ] = None,
    slack_channel: Annotated[
        str | None, typer.Option(help="where alerts go: #name, a channel's id, or none")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing: take the defaults of what is left out")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="where a file is there already, give it the name FILE.old and go on")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what was written as JSON")] = False,
) -> None:
    """Ask four questions; write a lookout.toml, a first suite, and what to enter where deploys are told."""
    from deployments.init_command import init_command  # pydantic's models

    answers = {
        "--target": target,
        "--environment": environment,
        "--model-family": model_family,
        "--slack-channel": slack_channel,
    }
    given = {flag: answer for flag, answer in answers.items() if answer is not None}
    raise typer.Exit(int(init_command(config, given, take_defaults=yes, force=force, as_json=as_json)))
