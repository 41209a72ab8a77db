"""The options of ``lookout gold freeze`` and ``lookout gold diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]


def register(app: typer.Typer) -> None:
    """Add the commands to a command line."""
    app.command()(freeze)
    app.command()(diff)


def freeze(
    suite: Annotated[Path, typer.Argument(help="the suite, JSON lines")],
    *,
    into: Annotated[
        Path | None, typer.Option(help="the folder of frozen versions; `frozen` beside the suite when left out")
    ] = None,
    note: Annotated[str, typer.Option(help="why this version was made")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="only say whether the suite is its newest frozen version")
    ] = False,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="freeze also what must be mended")] = False,
    as_json: JsonOption = False,
) -> None:
    """Freeze a suite: a numbered copy with its hash and counts. Exit code 1 when it must be mended first."""
    from deployments.gold_freeze_command import FreezeOptions, freeze_command  # pydantic's models
    from flows.wiring import utc_now  # duckdb

    options = FreezeOptions(
        suite, into or suite.parent / "frozen", note, verify=verify, unchecked=unchecked, as_json=as_json
    )
    raise typer.Exit(int(freeze_command(options, at=utc_now())))


def diff(
    old: Annotated[Path, typer.Argument(help="a suite, or the manifest of a frozen version")],
    new: Annotated[Path, typer.Argument(help="a suite, or the manifest of a frozen version")],
    *,
    most: Annotated[int, typer.Option(min=1, help="so many cases of each group are told")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Say in words what changed between two versions of a suite, severity changes first."""
    from deployments.gold_freeze_command import diff_command  # pydantic's models

    raise typer.Exit(int(diff_command(old, new, most=most, as_json=as_json)))
