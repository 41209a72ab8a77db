"""``lookout demo``: a real Space on this machine, verified like any other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import httpx
import typer

from deployments.cli.data_folder import DEMO_FOLDER
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import JsonOption
from deployments.cli.verify import verify_and_print
from deployments.demo.configuration import free_port, written_config
from deployments.demo.space import DEFAULT_PORT, HOST
from flows.server import prefect_server
from flows.terminal_console import terminal_console
from flows.verify.run_folder import VerifyRequest
from monitors.errors import ConfigError, MonitorError, WarehouseUnwritable

SPACE_START_S: Final = 90.0
"""Importing Gradio takes 5 s on an idle machine of two cores, and much longer on a busy one."""

STOP_S: Final = 10.0
TARGET: Final = "demo"
FAULTY: Final = "planted"
HEALTHY: Final = "healthy"
"""Names of the two commits that the demo deploys: seven characters, like git's own short ones."""


class DemoSpaceFailed(MonitorError):
    """The demo's chat page did not come up."""


def demo_command(
    *,
    faults: Annotated[bool, typer.Option("--faults/--no-faults", help="plant faults in the demo's bot")] = True,
    data_folder: Annotated[Path, typer.Option(help="where the demo keeps everything")] = DEMO_FOLDER,
    port: Annotated[int | None, typer.Option(help="the demo Space's port; a free one when left out")] = None,
    slack_api_url: Annotated[str | None, typer.Option(help="another Slack API, such as a test server")] = None,
    slack_channel: Annotated[str, typer.Option(help="channel for the bot token in SLACK_BOT_TOKEN")] = "#alerts",
    keep: Annotated[bool, typer.Option("--keep", help="leave the Space and Prefect's pages running")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="do not go on with a run that was stopped")] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Start a real chat page on this machine, with faults, and verify it: end to end in two minutes."""
    from flows.context import connect_prefect, console, prefect_home  # duckdb, slack_sdk

    folder = data_folder.absolute()
    free = free_port(HOST, port or DEFAULT_PORT)
    if port not in (None, free):
        raise ConfigError(f"--port {port}: taken by another program on {HOST}; leave it out to get a free one")
    planted, commit = ("with planted faults", FAULTY) if faults else ("without faults", HEALTHY)
    console.print(f"Starting the demo Space {planted} at http://{HOST}:{free} …", highlight=False)
    with _space(free, folder, faults=faults):
        config = written_config(folder, free, slack_api_url=slack_api_url, channel=slack_channel)
        request = VerifyRequest(target=TARGET, config=config, commit=commit, fresh=fresh)
        try:
            code = verify_and_print(request, as_json=as_json)
            _say_what_next(folder, fault_found=faults and code is ExitCode.FAIL)
            if keep:
                _wait_for_a_person(f"The page: http://{HOST}:{free}   Prefect: {connect_prefect(config)}")
        finally:
            if not keep:
                prefect_server.stop_server(prefect_home(config))
    return code


@contextmanager
def _space(port: int, folder: Path, *, faults: bool) -> Generator[subprocess.Popen[bytes]]:
    logs = folder / "space"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseUnwritable(f"{folder}: cannot be written ({error.strerror}); see --data-folder") from error
    command = [sys.executable, "-m", "deployments.demo.space", "--port", str(port), "--log-folder", str(logs)]
    command += ["--commit", FAULTY if faults else HEALTHY]
    command += ["--faults"] if faults else []
    with (logs / "space.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)  # noqa: S603 - our own interpreter
    try:
        _wait_until_served(process, port, logs / "space.log")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_served(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + SPACE_START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            raise DemoSpaceFailed(f"the demo Space ended with code {process.returncode}: {said}")
        try:
            if httpx.get(f"http://{HOST}:{port}/version", timeout=2, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise DemoSpaceFailed(f"the demo Space did not answer within {SPACE_START_S:g} s; its log: {log}")


def _say_what_next(folder: Path, *, fault_found: bool) -> None:
    shown = os.path.relpath(folder)
    out = terminal_console(stderr=True, highlight=False)
    out.print()
    if fault_found:
        out.print(
            "That FAIL is what the demo is for: the planted leak was found, although nearly all answers are right."
        )
        out.print("[bold]lookout demo[/] again tells nobody twice · [bold]lookout demo --no-faults[/] resolves it")
    out.print(f"[bold]lookout sql --data-folder {shown} 'from run_summary'[/] asks the warehouse")


def _wait_for_a_person(places: str) -> None:
    terminal_console(stderr=True, highlight=False).print(f"{places}\nCtrl-C ends it.")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
