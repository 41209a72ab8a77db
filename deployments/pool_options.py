"""``lookout prefect-yaml`` and ``lookout automations``: for installations whose runs are done by a work pool.

``lookout up`` does on one machine what these do once for many.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

POOL: Final = "lookout"


def register(app: typer.Typer, environment: Mapping[str, str]) -> None:
    """Add the commands to a command line; who is told is looked up in ``environment``."""
    app.command("prefect-yaml")(print_prefect_yaml)

    @app.command()
    def automations(
        *,
        config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
        as_json: Annotated[bool, typer.Option("--json", help="print what became of each as JSON")] = False,
    ) -> None:
        """Have Prefect's server tell of runs that do not come or whose process is gone; again changes nothing."""
        _automations(config, environment, as_json=as_json)


def print_prefect_yaml(
    *,
    config: Annotated[Path, typer.Option("--config", help="the configuration file")] = Path("lookout.toml"),
    at: Annotated[
        Path | None, typer.Option(help="where workers find that file; the same path as here when left out")
    ] = None,
    pool: Annotated[str, typer.Option(help="the work pool whose workers do the runs")] = POOL,
    image: Annotated[str | None, typer.Option(help="the image of a pool of containers")] = None,
) -> None:
    """Print a prefect.yaml with every deployment and schedule, for workers of a work pool."""
    from deployments.prefect_yaml import prefect_yaml  # pydantic's models
    from monitors.config import load_config

    sys.stdout.write(prefect_yaml(load_config(config), at or config.resolve(), pool=pool, image=image))


def _automations(config: Path, environment: Mapping[str, str], *, as_json: bool) -> None:
    from flows.alert_wiring import slack_way  # slack_sdk, duckdb
    from flows.schedules import planned_deployments
    from flows.wiring import connect_prefect
    from monitors.config import load_config

    loaded = load_config(config)
    planned = planned_deployments(loaded, config.resolve(), loaded.schedules)
    way = slack_way(loaded, environment)  # before anything is started: it may refuse
    connect_prefect(loaded)
    from flows.registration import watched_over  # Prefect reads its settings at import, so it must be connected

    changes = asyncio.run(watched_over(planned, way))
    if as_json:
        sys.stdout.write(json.dumps(changes, indent=2) + "\n")
        return
    for name, change in changes.items():
        sys.stdout.write(f"{change:<9}  {name}\n")
    if way is None:
        sys.stdout.write("Without SLACK_BOT_TOKEN or SLACK_WEBHOOK_URL lost runs are marked, and nobody is told.\n")
