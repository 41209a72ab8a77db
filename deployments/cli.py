"""The command ``lookout``. Commands import their heavy parts themselves, so that ``--help`` is instant."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from deployments import pipes, warehouse_commands
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
    as_json: JsonOption = False,
) -> None:
    """Ask a live page the whole suite in a real browser; grade, gate, store, alert."""
    from deployments.verify_command import verify_command  # rich, httpx and pydantic's models

    _exit(
        verify_command(
            target, config, suite=suite, commit=commit, concurrency=concurrency, fresh=fresh, as_json=as_json
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
def gate(
    results: Annotated[Path, typer.Argument(help="the results.json of a run")],
    config: Annotated[Path | None, typer.Option("--config", help="take the gate's settings from here")] = None,
    as_json: JsonOption = False,
) -> None:
    """Weigh the results of a run again, with the gate's settings as they are now; the exit code is the verdict."""
    from deployments.results_commands import gate_command  # rich and pydantic's models

    _exit(gate_command(results, config, as_json=as_json))


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
) -> None:
    """Ask the warehouse. Reading only, also while runs are going on."""
    from deployments.sql_command import sql_command  # duckdb

    _exit(sql_command(query, config, data_folder=data_folder, as_json=as_json))


pipes.register(app)
app.add_typer(warehouse_commands.app, name="warehouse")


def _exit(code: ExitCode) -> None:
    raise typer.Exit(int(code))


def main() -> None:
    """Run the command; every error is one line that says what to do, and an exit code."""
    try:
        app()
    except MonitorError as error:
        if os.environ.get("LOOKOUT_DEBUG"):
            raise
        sys.stderr.write(f"lookout: {error}\n")
        sys.exit(int(of_error(error)))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(int(ExitCode.INCONCLUSIVE))
    except Exception as error:
        if os.environ.get("LOOKOUT_DEBUG"):
            raise
        sys.stderr.write(
            f"lookout: this is a fault of Lookout itself: {type(error).__name__}: {error}\n"
            "LOOKOUT_DEBUG=1 shows where it happened.\n"
        )
        sys.exit(int(ExitCode.MONITOR))


if __name__ == "__main__":
    main()
