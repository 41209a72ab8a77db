"""The options of ``lookout review``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command()(review)


def review(
    target: Annotated[str | None, typer.Argument(help="a target of the configuration; all when left out")] = None,
    *,
    config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
    data_folder: Annotated[Path | None, typer.Option(help="instead of the configuration's")] = None,
    by: Annotated[str | None, typer.Option(help="who reviews; asked once and remembered when left out")] = None,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="share of judged answers to look at; 0.05 unless configured")
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="how far back to look at what was judged")] = 30,
    figures: Annotated[
        bool, typer.Option("--figures", help="each judge's agreement with people and its error rates instead")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="show texts as they are, personal data too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="list what is to be reviewed, as JSON lines")] = False,
) -> None:
    """Look at a share of what the judge graded: is the answer right? Its verdict is shown after yours."""
    from deployments.review_command import review_command  # rich, duckdb and pydantic's models

    code = review_command(
        config,
        data_folder=data_folder,
        target=target,
        by=by,
        share=share,
        days=days,
        figures=figures,
        raw=raw,
        as_json=as_json,
    )
    raise typer.Exit(int(code))
