"""``lookout demo``: start a demo chat page or triage agent on this machine, and verify it like any target."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import httpx
import typer

from deployments.cli.data_folder import DEMO_FOLDER
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import JsonOption
from deployments.cli.verify import verify_and_print_verdict
from deployments.demo.agent.outcome import format_outcomes
from deployments.demo.configuration import JudgeAddress, find_free_port, write_and_load_config
from deployments.demo.space import DEFAULT_PORT, HOST
from flows.server import prefect_server
from flows.terminal import write_note
from flows.terminal_console import make_terminal_console
from flows.verify.run_folder import VerifyRequest
from monitors.config.file import FILE_NAME
from monitors.errors import ConfigError, MonitorError, WarehouseUnwritable
from monitors.reports.results_json import read_results

START_TIMEOUT_S: Final = 90.0
"""Maximum time, in seconds, that the demo application may take until it answers.

Importing Gradio takes 5 s or longer on two idle cores.
"""

STOP_TIMEOUT_S: Final = 10.0
FAULTY: Final = "planted"
HEALTHY: Final = "healthy"
"""The commits of the demo's two builds, with and without planted faults.

Each has seven characters, like git's short hashes.
"""


@dataclass(frozen=True)
class DemoApp:
    """An application of the demo: its name, its target, and the module that serves it."""

    name: str
    target: str
    module: str
    folder: Path
    port: int


CHAT: Final = DemoApp("demo Space", "demo", "deployments.demo.space", DEMO_FOLDER, DEFAULT_PORT)
AGENT: Final = DemoApp(
    "demo agent", "agent", "deployments.demo.agent.service", DEMO_FOLDER / "agent", DEFAULT_PORT + 1
)


class DemoSpaceFailed(MonitorError):
    """Raised if the demo's application did not start."""


def demo_command(
    *,
    agent: Annotated[
        bool, typer.Option("--agent", help="use a demo agent that triages issues, instead of a chat page")
    ] = False,
    faults: Annotated[
        bool, typer.Option("--faults/--no-faults", help="plant faults in the demo application")
    ] = True,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge", help="with --agent: also rate the agent's reports with a model; needs ANTHROPIC_API_KEY"
        ),
    ] = False,
    judge_url: Annotated[
        str | None, typer.Option(help="with --judge: the address of another Anthropic API, such as a test server")
    ] = None,
    data_folder: Annotated[
        Path | None,
        typer.Option(help=f"data folder of the demo [default: {DEMO_FOLDER}; with --agent: {DEMO_FOLDER}/agent]"),
    ] = None,
    port: Annotated[int | None, typer.Option(help="the port of the demo; default: a free port")] = None,
    slack_api_url: Annotated[
        str | None, typer.Option(help="the address of another Slack API, such as a test server")
    ] = None,
    slack_channel: Annotated[
        str, typer.Option(help="the Slack channel for alerts, if SLACK_BOT_TOKEN is set")
    ] = "#alerts",
    keep: Annotated[
        bool, typer.Option("--keep", help="leave the demo and the Prefect UI running after the result")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="start a new run instead of continuing a stopped run")
    ] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Try Lookout in two minutes: start a demo application with planted faults and run Lookout against it."""
    from flows.data_folder import get_prefect_home  # slow: imports duckdb and slack_sdk
    from flows.runtime.run import start_or_connect_to_prefect  # slow: imports duckdb and slack_sdk
    from flows.runtime.slack import console  # slow: imports duckdb and slack_sdk

    if not agent and find_spec("gradio") is None:
        raise ModuleNotFoundError("the demo's page needs gradio", name="gradio")
    app, rated_by = _choose_app_and_judge_or_raise(agent=agent, judge=judge, judge_url=judge_url)
    folder = (data_folder or app.folder).absolute()
    free = find_free_port(HOST, port or app.port)
    if port not in (None, free):
        raise ConfigError(
            f"--port {port} is not free on {HOST}. Choose another port, or omit --port to use a free port"
        )
    planted, commit = ("with planted faults", FAULTY) if faults else ("without faults", HEALTHY)
    console.print(f"Starting the {app.name} {planted} at http://{HOST}:{free} …", highlight=False)
    with _serve_app(app, free, folder, faults=faults):
        config = write_and_load_config(
            folder, free, slack_api_url=slack_api_url, channel=slack_channel, agent=agent, judge=rated_by
        )
        request = VerifyRequest(target=app.target, config=config, commit=commit, fresh=fresh)
        try:
            code = verify_and_print_verdict(request, as_json=as_json)
            _print_next_steps(app, folder, code, faults=faults)
            if keep:
                _wait_for_interrupt(
                    f"The page: http://{HOST}:{free}   Prefect: {start_or_connect_to_prefect(config)}"
                )
        finally:
            if not keep:
                prefect_server.stop_server(get_prefect_home(config))
    return code


def _choose_app_and_judge_or_raise(
    *, agent: bool, judge: bool, judge_url: str | None
) -> tuple[DemoApp, JudgeAddress | None]:
    if judge and not agent:
        raise ConfigError(
            "--judge needs --agent, because the answers of the demo's chat page are graded without a model"
        )
    if judge_url and not judge:
        raise ConfigError("--judge-url needs --judge, which turns on the rating of the agent's reports")
    return (AGENT if agent else CHAT), (JudgeAddress(judge_url) if judge else None)


@contextmanager
def _serve_app(app: DemoApp, port: int, folder: Path, *, faults: bool) -> Generator[subprocess.Popen[bytes]]:
    logs = folder / "space"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseUnwritable(
            f"{folder} cannot be written ({error.strerror}). Choose another folder with --data-folder"
        ) from error
    log = logs / "space.log"
    with log.open("wb") as output:
        command = [sys.executable, "-P", "-m", app.module, "--port", str(port)]
        command += ["--commit", FAULTY if faults else HEALTHY]
        command += ["--log-folder", str(logs)] if app is CHAT else []
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [*command, "--faults"] if faults else command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        _wait_until_served(app, process, port, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_served(app: DemoApp, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            output = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            raise DemoSpaceFailed(f"the {app.name} ended with code {process.returncode}: {output}")
        try:
            if httpx.get(f"http://{HOST}:{port}/version", timeout=2, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        # A starting page sends no event, so it is polled.
        time.sleep(0.2)
    raise DemoSpaceFailed(
        f"the {app.name} did not answer within {START_TIMEOUT_S:g} s. For the reason, see its log: {log}"
    )


def _print_next_steps(app: DemoApp, folder: Path, code: ExitCode, *, faults: bool) -> None:
    shown = os.path.relpath(folder)
    out = make_terminal_console(stderr=True, highlight=False)
    out.print()
    again = "lookout demo --agent" if app is AGENT else "lookout demo"
    if app is AGENT:
        _print_fault_outcomes_of_newest_run(folder, faults=faults)
    elif faults and code is ExitCode.FAIL:
        out.print(
            "This FAIL is expected: Lookout found the planted data leak, although nine in ten answers are right."
        )
    if faults and code is ExitCode.FAIL:
        out.print(
            f"Run [bold]{again}[/] again: no alert is sent twice · "
            f"[bold]{again} --no-faults[/] resolves the incidents"
        )
    out.print(f"[bold]lookout sql --data-folder {shown} 'from run_summary'[/] queries the warehouse")
    config = os.path.relpath(folder / FILE_NAME)
    out.print(f"[bold]lookout site --config {config}[/] serves all results as web pages and prints their address")


def _print_fault_outcomes_of_newest_run(folder: Path, *, faults: bool) -> None:
    """Print for each planted fault whether the newest run detected it."""
    newest = max((folder / "runs").glob("*/results.json"), default=None)
    if newest is not None:
        report, cases = read_results(newest)
        for line in format_outcomes(report, cases, faults=faults):
            write_note(f"{line}\n")


def _wait_for_interrupt(places: str) -> None:
    make_terminal_console(stderr=True, highlight=False).print(f"{places}\nPress Ctrl-C to stop.")
    try:
        while True:
            # Ctrl-C ends the page.
            time.sleep(3600)
    except KeyboardInterrupt:
        return
