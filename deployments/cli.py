"""The command ``lookout``. Commands import their heavy parts themselves, so that ``--help`` is instant."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from deployments import (
    alerts_commands,
    doctor_options,
    gate_options,
    gold_commands,
    init_options,
    pipes,
    pool_options,
    review_options,
    warehouse_commands,
)
from deployments.exit_codes import ExitCode, of_error
from monitors.errors import MonitorError

app = typer.Typer(
    name="lookout",
    help="Watch a deployed LLM application the way its users meet it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 usage or configuration, 3 INCONCLUSIVE, 4 the monitor itself failed.",
)

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
DEFAULT_CONFIG = Path("lookout.toml")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    if show_version:
        typer.echo(f"lookout {version('lookout-monitor')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def verify(
    target: Annotated[str, typer.Argument(help="a target of the configuration, or the address of any chat page")],
    config: ConfigOption = DEFAULT_CONFIG,
    suite: Annotated[Path | None, typer.Option(help="gold questions, JSON lines; needed with an address")] = None,
    commit: Annotated[str | None, typer.Option(help="the deployed commit, when it is known")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="questions under way at once")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="do not go on with a run that was stopped")] = False,
    allow_production: Annotated[
        str | None, typer.Option(help="a CI run may not touch production; a reason here lets it, and is said")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a live page the whole suite in a real browser; grade, gate, store, alert."""
    from deployments.verify_command import verify_command  # rich, httpx and pydantic's models

    _exit(
        verify_command(
            target,
            config,
            suite=suite,
            commit=commit,
            concurrency=concurrency,
            fresh=fresh,
            as_json=as_json,
            environment=os.environ,
            allow_production=allow_production,
        )
    )


@app.command()
def demo(
    faults: Annotated[bool, typer.Option("--faults/--no-faults", help="plant faults in the demo's bot")] = True,
    data_folder: Annotated[Path, typer.Option(help="where the demo keeps everything")] = Path(".lookout-demo"),
    port: Annotated[int | None, typer.Option(help="the demo Space's port; a free one when left out")] = None,
    slack_api_url: Annotated[str | None, typer.Option(help="another Slack API, such as a test server")] = None,
    slack_channel: Annotated[str, typer.Option(help="channel for the bot token in SLACK_BOT_TOKEN")] = "#alerts",
    keep: Annotated[bool, typer.Option("--keep", help="leave the Space and Prefect's pages running")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="do not go on with a run that was stopped")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start a real chat page on this machine, with faults, and verify it: the whole line in two minutes."""
    from deployments.demo.command import DemoOptions, run_demo  # as for verify

    options = DemoOptions(
        faults=faults,
        data_folder=data_folder,
        port=port,
        slack_api_url=slack_api_url,
        slack_channel=slack_channel,
        keep=keep,
        fresh=fresh,
        as_json=as_json,
    )
    _exit(run_demo(options))


@app.command()
def report(
    run: Annotated[
        str | None, typer.Argument(help="a run's id or its folder; the newest run when left out")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[Path | None, typer.Option(help="instead of the configuration's")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the reports of a run again from its results.json, and say where they are."""
    from deployments.results_commands import report_command  # rich and pydantic's models

    _exit(report_command(run, config, data_folder=data_folder, as_json=as_json))


@app.command()
def sql(
    query: Annotated[str | None, typer.Argument(help="a query; the views there are when left out")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[Path | None, typer.Option(help="instead of the configuration's")] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print the rows as CSV, safe for spreadsheets")] = False,
) -> None:
    """Ask the warehouse. Reading only, also while runs are going on."""
    from deployments.sql_command import sql_command  # duckdb

    _exit(sql_command(query, config, data_folder=data_folder, as_json=as_json, as_csv=as_csv))


@app.command()
def nightly(
    target: Annotated[
        str | None, typer.Argument(help="a target with live traffic; all of them when left out")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    plan: Annotated[bool, typer.Option("--plan", help="only say what it would take and tell")] = False,
    until: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%dT%H:%M"],
            help="grade what was completed by then (UTC) instead of the last night",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Grade a night of live traffic: what real users were told, drawn, graded, estimated for all of them."""
    from deployments.nightly_command import nightly_command  # duckdb, pydantic's models

    night = until.replace(tzinfo=UTC) if until is not None else None
    _exit(nightly_command(config, target, night=night, plan=plan, as_json=as_json))


@app.command()
def reconcile(
    target: Annotated[str | None, typer.Argument(help="a target; all of them when left out")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option(min=1, help="how many days back")] = 7,
    as_json: JsonOption = False,
) -> None:
    """What the application's own guard held back, what the nights found, and what neither saw."""
    from deployments.reconcile_command import reconcile_command  # duckdb, pydantic's models

    _exit(reconcile_command(config, target, days=days, as_json=as_json))


@app.command()
def watch(
    target: Annotated[
        str | None, typer.Argument(help="a target with a hallucination_log; all of them when left out")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="look once and end")] = False,
    as_json: JsonOption = False,
) -> None:
    """Follow the applications' hallucination logs; new entries are kept, and told as alerts."""
    from deployments.watch_command import watch_command  # duckdb, pydantic's models

    _exit(watch_command(config, target, once=once, as_json=as_json))


@app.command("slack-actions")
def slack_actions(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen on")] = 8067,
) -> None:
    """Receive the buttons of Slack's messages; needs SLACK_SIGNING_SECRET."""
    from deployments.slack_actions_command import slack_actions_command  # uvicorn, slack_sdk, duckdb

    _exit(slack_actions_command(config, host=host, port=port, environment=os.environ))


@app.command()
def receive(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen on")] = 8066,
) -> None:
    """Receive deploys from Hugging Face, GitHub and others by webhook; each commit is verified once."""
    from deployments.webhook_command import receive_command  # starlette, uvicorn
    from monitors.config import load_config  # pydantic's models

    loaded = load_config(config)
    _exit(receive_command(loaded, loaded.deploys, config, host=host, port=port, environment=os.environ))


@app.command()
def up(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address that receivers listen on")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=1, max=65_534, help="port for deploys; Slack's buttons have the next one")
    ] = 8066,
) -> None:
    """Run the whole monitor on this machine: server, schedules, receivers; until it is told to stop."""
    from deployments.up_command import up_command  # uvicorn, slack_sdk, duckdb

    _exit(up_command(config, host=host, port=port, environment=os.environ))


pipes.register(app)
review_options.register(app)
gate_options.register(app)
init_options.register(app)
doctor_options.register(app, os.environ)
pool_options.register(app, os.environ)
app.add_typer(warehouse_commands.app, name="warehouse")
app.add_typer(alerts_commands.app, name="alerts")
app.add_typer(gold_commands.app, name="gold")


def _exit(code: ExitCode) -> None:
    raise typer.Exit(int(code))


def _masked(error: Exception) -> str:
    from monitors.alerts.redact import redact  # only where something went wrong

    return redact(str(error))


def main() -> None:
    """Run the command; every error is one line that says what to do, and an exit code."""
    try:
        app()
    except MonitorError as error:
        if os.environ.get("LOOKOUT_DEBUG"):
            raise
        sys.stderr.write(f"lookout: {_masked(error)}\n")
        sys.exit(int(of_error(error)))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(int(ExitCode.INCONCLUSIVE))
    except Exception as error:
        if os.environ.get("LOOKOUT_DEBUG"):
            raise
        sys.stderr.write(
            f"lookout: this is a fault of Lookout itself: {type(error).__name__}: {_masked(error)}\n"
            "LOOKOUT_DEBUG=1 shows where it happened.\n"
        )
        sys.exit(int(ExitCode.MONITOR))


if __name__ == "__main__":
    main()
