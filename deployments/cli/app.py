"""The command ``lookout``. Commands import their heavy parts themselves, so that ``--help`` is instant."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from typer.main import get_command

from deployments.cli import options, pipes, warehouse
from deployments.cli.alerts import commands as alerts
from deployments.cli.exit_codes import ExitCode, of_error
from deployments.cli.gold import app as gold
from flows.terminal import guarded_output, print_text, write_note
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
        from importlib.metadata import version  # slow to load, like all that --help can do without

        print_text(f"lookout {version('lookout-monitor')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_text(context.get_help())


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
    from deployments.cli.verify import verify_command  # rich, httpx and pydantic's models

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
    """Start a real chat page on this machine, with faults, and verify it: end to end in two minutes."""
    from deployments.demo.command import DemoOptions, run_demo  # as for verify

    wanted = DemoOptions(
        faults=faults,
        data_folder=data_folder,
        port=port,
        slack_api_url=slack_api_url,
        slack_channel=slack_channel,
        keep=keep,
        fresh=fresh,
        as_json=as_json,
    )
    _exit(run_demo(wanted))


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
    from deployments.cli.gate.gate import report_command  # rich and pydantic's models

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
    from deployments.cli.sql import sql_command  # duckdb

    _exit(sql_command(query, config, data_folder=data_folder, as_json=as_json, as_csv=as_csv))


@app.command()
def nightly(
    target: Annotated[
        str | None, typer.Argument(help="a target with live traffic; all of them when left out")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    plan: Annotated[
        bool, typer.Option("--plan", help="only show the plan: sample, cost and expected intervals")
    ] = False,
    until: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
            help="grade what was completed by then (UTC; a date is its first minute) instead of the last night",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Grade a night of live traffic: sample what real users got as answers, grade it, estimate the rate for all."""
    from deployments.cli.nightly import nightly_command  # duckdb, pydantic's models

    due_at = until.replace(tzinfo=UTC) if until is not None else None
    _exit(nightly_command(config, target, due_at=due_at, plan=plan, as_json=as_json))


@app.command()
def reconcile(
    target: Annotated[str | None, typer.Argument(help="a target; all of them when left out")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    days: Annotated[int, typer.Option(min=1, help="how many days back")] = 7,
    as_json: JsonOption = False,
) -> None:
    """Compare the app's own guard with the nightly judge, and estimate what both missed."""
    from deployments.cli.reconcile import reconcile_command  # duckdb, pydantic's models

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
    """Follow the applications' hallucination logs; store new entries and send alerts about them."""
    from deployments.cli.watch import watch_command  # duckdb, pydantic's models

    _exit(watch_command(config, target, once=once, as_json=as_json))


@app.command("slack-actions")
def slack_actions(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen on")] = 8067,
) -> None:
    """Receive the buttons of Slack's messages; needs SLACK_SIGNING_SECRET."""
    from deployments.cli.receive import slack_actions_command  # uvicorn, slack_sdk, duckdb

    _exit(slack_actions_command(config, host=host, port=port, environment=os.environ))


@app.command()
def login(
    target: Annotated[str, typer.Argument(help="a target of the configuration that has a login")],
    config: ConfigOption = DEFAULT_CONFIG,
    window: Annotated[
        bool, typer.Option("--window", help="have a person sign in, though the form's user is configured")
    ] = False,
    from_file: Annotated[
        Path | None, typer.Option("--from", help="take a storage state that another tool or machine wrote")
    ] = None,
) -> None:
    """Sign in to a page behind a login, in a window or by its form, and store the session for the runs."""
    from deployments.cli.login import login_command  # playwright, duckdb

    _exit(login_command(target, config, window=window, from_file=from_file, environment=os.environ))


@app.command()
def receive(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen on")] = 8066,
    only: Annotated[
        bool, typer.Option("--only", help="start no server and no runner: others see to the runs (a work pool)")
    ] = False,
) -> None:
    """Receive deploys from Hugging Face, GitHub and others by webhook, and verify each commit once."""
    from deployments.cli.receive import receive_command  # starlette, uvicorn
    from monitors.config.file import load_config  # pydantic's models

    loaded = load_config(config)
    _exit(receive_command(loaded, loaded.deploys, config, host=host, port=port, environment=os.environ, only=only))


@app.command()
def up(
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address that receivers listen on")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=1, max=65_534, help="port for deploys; Slack's buttons have the next one")
    ] = 8066,
) -> None:
    """Run the whole monitor on this machine: server, schedules, receivers; until SIGTERM or Ctrl-C."""
    from deployments.cli.up import up_command  # uvicorn, slack_sdk, duckdb

    _exit(up_command(config, host=host, port=port, environment=os.environ))


@app.command()
def down(
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: Annotated[Path | None, typer.Option(help="instead of the configuration's")] = None,
    force: Annotated[bool, typer.Option("--force", help="also while a run needs it")] = False,
    as_json: JsonOption = False,
) -> None:
    """End the local Prefect server that runs have left running, and list those of other data folders."""
    from deployments.cli.up import down_command  # httpx, duckdb, pydantic's models

    _exit(down_command(config, data_folder=data_folder, force=force, as_json=as_json, environment=os.environ))


pipes.register(app)
options.register_review(app)
options.register_gate(app)
options.register_init(app)
options.register_doctor(app, os.environ)
options.register_pools(app, os.environ)
app.add_typer(warehouse.app, name="warehouse")
app.add_typer(alerts.app, name="alerts")
app.add_typer(gold.app, name="gold")


def _exit(code: ExitCode) -> None:
    raise typer.Exit(int(code))


def main() -> None:
    """Run the command; every error is one line that says what to do, and an exit code."""
    with guarded_output():
        _run()


def _run() -> None:
    try:
        command = get_command(app)
        escape_help(command)
        command()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(int(ExitCode.INCONCLUSIVE))
    except Exception as error:  # noqa: BLE001 - whatever it is, people get a line and an exit code
        write_note(_fault_text(error))
        sys.exit(int(of_error(error) if isinstance(error, MonitorError) else ExitCode.MONITOR))


def _fault_text(error: Exception) -> str:
    """The error as a person reads it; with LOOKOUT_DEBUG, where it happened too. The exit code is the same."""
    from monitors.alerts.redact import redact  # only where something went wrong

    text = redact(str(error))
    if _is_of_prefect(error):
        text = f"the Prefect server does not answer any more ({text}). {GOES_ON}"
    elif not isinstance(error, MonitorError):
        text = f"this is a fault of Lookout itself: {type(error).__name__}: {text}"
    if os.environ.get("LOOKOUT_DEBUG"):
        import traceback

        return f"{redact(''.join(traceback.format_exception(error)))}lookout: {text}\n"
    hint = "" if isinstance(error, MonitorError) else "LOOKOUT_DEBUG=1 shows where it happened.\n"
    return f"lookout: {text}\n{hint}"


GOES_ON: Final = "What was answered is kept: the same command goes on from there within the hour"


def _is_of_prefect(error: Exception) -> bool:
    """Whether Prefect's client has no server any more: the ends of other connections are translated there."""
    broken = {"ConnectError", "ReadError", "RemoteProtocolError"}
    connection = type(error).__module__.startswith("httpx") and type(error).__name__ in broken
    return connection or str(error).startswith("Failed to reach API at")


def escape_help(command: Any) -> None:
    """Have help show brackets as they are written: to its renderer ``[[judge.models]]`` is markup."""
    for part in (command, *command.params):
        for name in ("help", "short_help", "epilog"):
            text = getattr(part, name, None)
            if text:
                setattr(part, name, escape(text))
    for inner in getattr(command, "commands", {}).values():
        escape_help(inner)


if __name__ == "__main__":
    main()
