"""``lookout demo``: a real Space on this machine, verified like any other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from deployments.cli.exit_codes import ExitCode
from deployments.cli.verify import verify_and_print
from deployments.demo.configuration import free_port, written_config
from deployments.demo.space import DEFAULT_PORT, HOST
from flows.context import connect_prefect, console, prefect_home
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


@dataclass(frozen=True)
class DemoOptions:
    """What ``lookout demo`` was asked for."""

    faults: bool
    data_folder: Path
    port: int | None
    slack_api_url: str | None
    slack_channel: str
    keep: bool
    fresh: bool
    as_json: bool


def run_demo(options: DemoOptions) -> ExitCode:
    """Start the Space, verify it, stop it; the exit code is the verdict's. With faults a FAIL is promised."""
    folder = options.data_folder.absolute()
    port = free_port(HOST, options.port or DEFAULT_PORT)
    if options.port not in (None, port):
        raise ConfigError(
            f"--port {options.port}: taken by another program on {HOST}; leave it out to get a free one"
        )
    planted = "with planted faults" if options.faults else "without faults"
    console.print(f"Starting the demo Space {planted} at http://{HOST}:{port} …", highlight=False)
    with _space(options, port, folder):
        config = written_config(folder, port, slack_api_url=options.slack_api_url, channel=options.slack_channel)
        commit = FAULTY if options.faults else HEALTHY
        request = VerifyRequest(target=TARGET, config=config, commit=commit, fresh=options.fresh)
        try:
            code = verify_and_print(request, as_json=options.as_json)
            _say_what_next(options, folder, code)
            if options.keep:
                _wait_for_a_person(f"The page: http://{HOST}:{port}   Prefect: {connect_prefect(config)}")
        finally:
            if not options.keep:
                prefect_server.stop_server(prefect_home(config))
    return code


@contextmanager
def _space(options: DemoOptions, port: int, folder: Path) -> Generator[subprocess.Popen[bytes]]:
    logs = folder / "space"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseUnwritable(f"{folder}: cannot be written ({error.strerror}); see --data-folder") from error
    command = [sys.executable, "-m", "deployments.demo.space", "--port", str(port), "--log-folder", str(logs)]
    command += ["--commit", FAULTY if options.faults else HEALTHY]
    command += ["--faults"] if options.faults else []
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


def _say_what_next(options: DemoOptions, folder: Path, code: ExitCode) -> None:
    shown = os.path.relpath(folder)
    out = terminal_console(stderr=True, highlight=False)
    out.print()
    if options.faults and code is ExitCode.FAIL:
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
