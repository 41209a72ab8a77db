"""``lookout automations``: create Prefect automations that alert on missing or crashed runs."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption
from flows.terminal import write_json, write_text
from flows.waiting import show_waiting


def automations_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="print the change of each automation as JSON")] = False,
) -> ExitCode:
    """Create Prefect automations that send alerts about missing or crashed runs. It is safe to run this again."""
    from flows.runtime.run import start_or_connect_to_prefect  # slow: imports duckdb and slack_sdk
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and slack_sdk
    from flows.runtime.slack import build_slack_endpoint  # slow: imports duckdb and slack_sdk
    from flows.server.schedules import plan_deployments
    from monitors.config.file import load_config

    loaded = load_config(config)
    planned = plan_deployments(loaded, config.resolve(), loaded.schedules)
    way = build_slack_endpoint(loaded, get_environment())  # first, because it may raise an error
    with show_waiting("Waiting for the Prefect server"):
        start_or_connect_to_prefect(loaded)
    from flows.server.registration import (
        ensure_automations_of_deployments,  # Prefect reads its settings at import, so it must be connected
    )

    with show_waiting("Creating the automations on the Prefect server"):
        changes = asyncio.run(ensure_automations_of_deployments(planned, way, loaded.prefect.tag))
    if as_json:
        write_json(json.dumps(changes, indent=2) + "\n")
        return ExitCode.PASS
    for name, change in changes.items():
        write_text(f"{change:<9}  {name}\n")
    if way is None:
        write_text(
            "Prefect marks crashed runs but sends no message to Slack. To get messages, set SLACK_BOT_TOKEN or "
            "SLACK_WEBHOOK_URL.\n"
        )
    return ExitCode.PASS
