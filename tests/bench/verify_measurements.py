"""Start a real `lookout verify` in a separate process and measure it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from monitors.records.base import Record
from tests.soak.soak_plans import write_suite

ROOT = Path(__file__).parents[2]
START_S = 30.0
KILOBYTES = 1000.0


class Noted(Record):
    """A line that the application recorded: a question and the time of the question in seconds since 1970."""

    question: str
    at: float


@dataclass(frozen=True)
class Ended:
    """A finished run of the command. ``max_rss_mb`` is its peak memory in MB, without browser and server."""

    began_at: float
    ended_at: float
    max_rss_mb: float
    code: int


@contextmanager
def serve_app(module: str, *options: str) -> Iterator[str]:
    """In a separate process, run a test module that serves an application. Yield the server's address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", module, "--port", str(port), *options]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
        process.kill()


def _wait_for(port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"nothing listens on port {port}")


def write_configuration(folder: Path, address: str, cases: int, *, probe: str = "", alerts: str = "") -> None:
    """Write a suite and a lookout.toml with the target ``bench``. ``probe`` and ``alerts`` are lines of TOML."""
    folder.mkdir(parents=True, exist_ok=True)
    write_suite(folder / "plans.jsonl", cases)
    (folder / "lookout.toml").write_text(
        f'data_folder = "data"\n[targets.bench]\nurl = "{address}"\nsuite = "plans.jsonl"\n'
        f"[targets.bench.probe]\n{probe}\n[alerts]\n{alerts}\n",
        encoding="utf-8",
    )


def start_verify(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `lookout verify`. Its output is written to ``lookout.log``."""
    with (folder / "lookout.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "deployments.cli.app", "verify", "bench", "--fresh"],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )


def run_verify(folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run `lookout verify` from start to end."""
    began = time.time()
    process = start_verify(folder, environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(began, time.time(), used.ru_maxrss / KILOBYTES, process.returncode)


def read_noted(file: Path) -> list[Noted]:
    """Read the lines that the application recorded, first line first."""
    return [Noted.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]


def print_figure(label: str, value: float, most: float, unit: str) -> bool:
    """Print a figure with its goal, and return whether the goal was met."""
    met = value <= most
    print(f"{label}: {value:.2f} {unit} (at most {most:g}): {'met' if met else 'MISSED'}", flush=True)
    return met
