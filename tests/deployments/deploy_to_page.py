"""A deploy from end to end: a signed delivery, a verified run and a message, with each part as its own process.

The parts are the demo's Space, the local Slack server, and ``lookout up`` with Prefect's server, the runner, the
deploy receiver, and a process with a browser for each run. The test uses only what the parts record anyway: the
times are from the Space's log, from Prefect's record of the run, and from the arrival of messages at the Slack
server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from deployments.demo.bot import TURNS
from deployments.demo.configuration import SUITE, find_free_port, write_and_load_config
from flows.server.prefect_server import find_running_server
from monitors.alerts.wording import KIND_WORDS
from monitors.records.incidents import IncidentKind
from tests.conftest import ROOT, serving
from tests.deployments.triggers.senders import COMMIT, REPOSITORY
from tests.deployments.up_process import Up, runs_of_deploys, up
from tests.flows.chat import ASKED_ONCE
from tests.process_tree import descendants
from tests.servers.slack import TOKEN

RUN_S = 1200
TARGET = "demo"
PARTS = {
    "Prefect's server": "prefect server start",
    "the receiver and the runner": "deployments.up.service",
    "the run": "prefect.engine",
    "the browser": "chrom",
}
"""The parts of ``lookout up``, each with a text by which its processes are recognised in a command line."""


class Leg(NamedTuple):
    """A step that a deploy reached, and when it did so: a Unix timestamp in seconds."""

    name: str
    at: float


@dataclass(frozen=True)
class Way:
    """Everything that was observed about one deploy.

    ``legs`` are in the expected order of the steps, but the last question may come before the alert. ``messages``
    are the messages and edits that the Slack server logged, oldest first.
    """

    legs: tuple[Leg, ...]
    answers: tuple[int, int]
    """The HTTP status of the response to the first delivery, and of the response to the repeated delivery."""
    runs: list[dict[str, Any]]
    questions: list[str]
    messages: list[dict[str, Any]]
    processes: dict[str, frozenset[int]]


def followed(folder: Path, *options: str, suite: Path = SUITE) -> Way:
    """Deploy the faulty demo once, report it to ``lookout up`` by a signed delivery, and follow it to its end.

    ``options`` are options of the Space.
    """
    space, log = folder / "space", folder / "slack.jsonl"
    space.mkdir()
    with (
        _slack(log) as slack,
        serving(space, "--faults", "--commit", COMMIT, *options) as page,
        up(_configured(folder, page, slack, suite), SLACK_BOT_TOKEN=TOKEN) as running,
    ):
        running.until(running.receives, "the receiver answers")
        running.until(running.serves, "the runner serves")
        api = _api(folder)
        running.until(lambda: _is_registered(api), "the deployment is registered")
        sent = time.time()
        first = running.deliver(COMMIT).status_code
        acknowledged = time.time()
        again = running.deliver(COMMIT).status_code
        seen = _Processes(running)
        running.until(lambda: seen.look() and _ended(api), "the run ends", RUN_S)
        runs, messages, turns = runs_of_deploys(api, TARGET), _lines(log), _lines(space / TURNS)
    legs = (
        Leg("delivery sent", sent),
        Leg("delivery acknowledged", acknowledged),
        *_legs(runs[0], messages, turns),
    )
    return Way(legs, (first, again), runs, [turn["user_text"] for turn in turns], messages, seen.found)


class KilledWay(NamedTuple):
    """A deploy whose run was killed: its Prefect runs, the questions sent to the Space, and the messages."""

    runs: list[dict[str, Any]]
    questions: list[str]
    messages: list[dict[str, Any]]


def follow_killed(folder: Path, suite: Path, answers: int) -> KilledWay:
    """Deploy the demo, kill its run's process after ``answers`` answers, and follow ``lookout up`` to the end."""
    space, log = folder / "space", folder / "slack.jsonl"
    space.mkdir()
    with (
        _slack(log) as slack,
        serving(space, "--faults", "--commit", COMMIT, "--delay-s", "1") as page,
        up(_configured(folder, page, slack, suite), SLACK_BOT_TOKEN=TOKEN) as running,
    ):
        running.until(running.receives, "the receiver answers")
        running.until(running.serves, "the runner serves")
        api = _api(folder)
        running.until(lambda: _is_registered(api), "the deployment is registered")
        running.deliver(COMMIT)
        turns = space / TURNS
        running.until(lambda: turns.exists() and len(_lines(turns)) >= answers, "the first answers", RUN_S)
        os.kill(running.pid_of("prefect.engine"), signal.SIGKILL)
        running.until(lambda: len(runs_of_deploys(api, TARGET)) == 2, "the run is started again", RUN_S)
        running.until(lambda: _ended(api), "the second run ends", RUN_S)
        return KilledWay(runs_of_deploys(api, TARGET), [turn["user_text"] for turn in _lines(turns)], _lines(log))


class _Processes:
    """The processes of each part.

    They are collected repeatedly, because the process of a run is short-lived.
    """

    def __init__(self, running: Up) -> None:
        self._running = running
        self.found = dict.fromkeys(PARTS, frozenset[int]())

    def look(self) -> bool:
        """Record the processes that exist now. Return ``True``, so that the call can be part of a condition."""
        known = [one for one in descendants(self._running.process.pid) if "deployments.up.guard" not in one.command]
        for part, words in PARTS.items():
            self.found[part] |= {one.pid for one in known if words in one.command}
        return True


def _legs(run: dict[str, Any], messages: list[dict[str, Any]], turns: list[dict[str, Any]]) -> Iterator[Leg]:
    yield Leg("run made", _seconds(run["created"]))
    yield Leg("run started", _seconds(run["start_time"]))
    yield Leg("first question asked", min(_seconds(turn["ts"]) - turn["latency_ms"] / 1000 for turn in turns))
    yield Leg("first severity-3 alert sent", first(messages, is_severe)["at"])
    yield Leg("last question answered", max(_seconds(turn["ts"]) for turn in turns))
    yield Leg("verdict message sent", first(messages, is_verdict)["at"])
    yield Leg("run over", _seconds(run["end_time"]))


def first(messages: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first message for which ``wanted`` is true."""
    return next(message for message in messages if wanted(message))


def is_severe(message: dict[str, Any]) -> bool:
    """Return whether a message is new, not an edit, and reports a failure of severity 3."""
    return not message["edits"] and "SEV 3" in message["text"] and not is_verdict(message)


def is_verdict(message: dict[str, Any]) -> bool:
    """Return whether a message is new, not an edit, and reports the verdict of the run."""
    return not message["edits"] and KIND_WORDS[IncidentKind.GATE_FAIL] in message["text"]


def _ended(api: str) -> bool:
    runs = runs_of_deploys(api, TARGET)
    return bool(runs) and all(run["end_time"] is not None for run in runs)


def _is_registered(api: str) -> bool:
    name = "deployments/name/verify-deploy/verify-deploy"
    return httpx.get(f"{api}/{name}", timeout=30, trust_env=False).is_success


def _api(folder: Path) -> str:
    server = find_running_server(folder / "prefect")
    assert server is not None
    return server.api_url


def _configured(folder: Path, page: str, slack: str, suite: Path) -> Path:
    """Write the demo's own configuration with a trigger."""
    port = int(page.rpartition(":")[2])
    write_and_load_config(folder, port, slack_api_url=f"{slack}/api/", channel="#alerts")
    file = folder / "lookout.toml"
    text = file.read_text(encoding="utf-8").replace(json.dumps(str(SUITE)), json.dumps(str(suite)))
    trigger = f'[[deploys.triggers]]\nprovider = "github"\nrepository = "{REPOSITORY}"\ntarget = "{TARGET}"\n'
    text = text.replace("[recheck]\n", ASKED_ONCE)
    file.write_text(f"{text}\n{trigger}", encoding="utf-8")
    return file


@contextmanager
def _slack(log: Path) -> Iterator[str]:
    """Start the Slack server as a separate process, and yield its address."""
    port = find_free_port("127.0.0.1", 0)
    command = [sys.executable, "-m", "tests.servers.slack", "--port", str(port), "--log", str(log)]
    log.touch()
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).astimezone(UTC).timestamp()
