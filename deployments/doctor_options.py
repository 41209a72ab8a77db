"""The options of ``lookout doctor``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer, environment: Mapping[str, str]) -> None:
    """Add the command to a command line; the checks look at ``environment``."""

    @app.command()
    def doctor(
        target: Annotated[
            str | None,
            typer.Argument(help="a target or an address to look at; everything is checked when left out"),
        ] = None,
        *,
        config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
        ask: Annotated[
            bool | None,
            typer.Option("--ask/--no-ask", help="ask one harmless question; when left out, only if it must"),
        ] = None,
        picture: Annotated[
            Path | None, typer.Option(help="where the picture goes; the data folder when left out")
        ] = None,
        alert: Annotated[
            bool, typer.Option("--alert/--no-alert", help="send a test message by every way that is configured")
        ] = True,
        judge: Annotated[
            bool,
            typer.Option("--judge/--no-judge", help="have each judge grade two known answers, for about a cent"),
        ] = True,
        as_json: Annotated[
            bool, typer.Option("--json", help="print the result as JSON on standard output")
        ] = False,
    ) -> None:
        """Tell what is seen on a chat page, with a picture and the lines that pin it; or check what runs need."""
        from deployments.doctor_command import doctor_command  # rich, httpx and pydantic's models
        from monitors.probes.page_look import Asking  # pydantic's models

        asking = Asking.IF_NEEDED if ask is None else Asking.ALWAYS if ask else Asking.NEVER
        code = doctor_command(
            target,
            config,
            asking=asking,
            picture=picture,
            environment=environment,
            send_alerts=alert,
            ask_judges=judge,
            as_json=as_json,
        )
        raise typer.Exit(int(code))
