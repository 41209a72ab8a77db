"""Run `lookout verify`, and kill the app, the browser and Lookout at random moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from flows.data_folder import open_store_in
from flows.verify.run_folder import DONE_FILE
from monitors.records.exchanges import Exchange
from tests.process_tree import all_processes, descendants
from tests.soak.soak_plans import write_suite
from warehouse.journal.rows import ResultRow

ROOT = Path(__file__).parents[2]
MAX_OUTAGE_S = 6.0
"""The maximum time in seconds until a killed app is restarted. An orchestrator also needs a few seconds."""

MAX_FAILURES = 5
"""The maximum number of times that Lookout may end without a kill before the run is complete.

After each end, Lookout is started again, as a scheduler would do.
"""

WATCHING_S = 0.02
PATIENCE_S = 2400.0


class Victim(StrEnum):
    """The process that a kill ends."""

    BROWSER = "chromium"
    APP = "app"
    LOOKOUT = "lookout"


@dataclass(frozen=True)
class Kill:
    """A planned kill of ``victim``.

    The victim is killed when ``after_answers`` answers are acknowledged, and at least ``delay_s`` seconds have
    passed since Lookout's start and since the previous kill.
    """

    victim: Victim
    after_answers: int
    delay_s: float


@dataclass
class Story:
    """The planned kills of a run, and what happened. ``chance`` is the only source of randomness.

    ``closing_kills`` are further kills of Lookout at the end of the run, while it evaluates, records and notifies.
    """

    folder: Path
    cases: int
    environment: Mapping[str, str]
    chance: random.Random
    plan: Sequence[Kill]
    closing_kills: int = 3
    port: int = 0
    done: list[Victim] = field(default_factory=list)
    closing: int = 0
    starts: int = 0
    exit_codes: list[int] = field(default_factory=list)
    orphans: int = 0
    seconds: float = 0.0

    @property
    def journal(self) -> Path:
        """Return the folder of the journal, which contains the acknowledged answers."""
        return self.folder / "data" / "journal"

    @property
    def asked_file(self) -> Path:
        """Return the file into which the app writes the questions that it received."""
        return self.folder / "asked.jsonl"


def planned(cases: int, kills: int, chance: random.Random) -> list[Kill]:
    """Plan ``kills`` kills at random moments of the run. Each kind of victim occurs about equally often."""
    kinds = [list(Victim)[number % len(Victim)] for number in range(kills)]
    chance.shuffle(kinds)
    at = sorted(chance.randrange(cases - 4) for _ in range(kills))
    return [Kill(kind, after, _delay(kind, chance)) for kind, after in zip(kinds, at, strict=True)]


def _delay(kind: Victim, chance: random.Random) -> float:
    """Return a random delay in seconds before a kill.

    A third of the delays before a kill of Lookout may be longer, so that kills occur at all moments of its start.
    """
    long = kind is Victim.LOOKOUT and chance.random() < 1 / 3
    return chance.uniform(0, 8 if long else 1.5)


def write_configuration(story: Story) -> None:
    """Write the suite and the configuration of the target for this story."""
    write_suite(story.folder / "plans.jsonl", story.cases)
    (story.folder / "lookout.toml").write_text(
        'data_folder = "data"\n'
        f'[targets.mortal]\nurl = "http://127.0.0.1:{story.port}"\nsuite = "plans.jsonl"\n'
        "[gate]\nmin_severity_3_cases = 0\n",
        encoding="utf-8",
    )


class App:
    """The app under test, and the code that restarts it after a kill."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._process: subprocess.Popen[bytes] | None = None
        self._down_until = 0.0

    def look_after(self) -> None:
        """Start the app if its restart is due."""
        if self._process is None and time.monotonic() >= self._down_until:
            command = [sys.executable, "-m", "tests.soak.mortal_app", "--port", str(self._story.port)]
            self._process = subprocess.Popen([*command, "--asked", str(self._story.asked_file)], cwd=ROOT)

    def kill(self) -> bool:
        """Kill the app, and return whether it was running."""
        if self._process is None:
            return False
        self._process.kill()
        self._process.wait()
        self._process = None
        self._down_until = time.monotonic() + self._story.chance.uniform(0.1, MAX_OUTAGE_S)
        return True


def live_through(story: Story) -> None:
    """Restart Lookout until the run is complete, Lookout has failed too often, or the time limit is reached."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        story.port = free.getsockname()[1]
    write_configuration(story)
    app = App(story)
    began = time.monotonic()
    try:
        while time.monotonic() - began < PATIENCE_S * max(1, story.cases / 100):
            app.look_after()
            if not _one_process(story, app) and (_is_done(story) or len(story.exit_codes) > MAX_FAILURES):
                break
    finally:
        app.kill()
        story.seconds = time.monotonic() - began


def _is_done(story: Story) -> bool:
    return any((story.folder / "data" / "runs").glob(f"*/{DONE_FILE}"))


def _one_process(story: Story, app: App) -> bool:
    """Run one Lookout process to its end, and return whether it was killed."""
    said = (story.folder / "lookout.log").open("ab")
    with said:
        process = subprocess.Popen(
            [sys.executable, "-m", "deployments.cli.app", "verify", "mortal", "--json"],
            cwd=story.folder,
            env={**story.environment, "PYTHONPATH": str(ROOT)},
            stdout=said,
            stderr=said,
        )
    story.starts += 1
    killed = _watch(story, app, process)
    process.wait()
    if not killed:
        story.exit_codes.append(process.returncode)
    return killed


def _watch(story: Story, app: App, process: subprocess.Popen[bytes]) -> bool:
    answers = Acknowledged(story)
    armed = time.monotonic()
    while process.poll() is None:
        app.look_after()
        due = _due(story, answers)
        if due is not None and time.monotonic() - armed >= due.delay_s and _kill(story, app, process, due.victim):
            armed = time.monotonic()
            if due.victim is Victim.LOOKOUT:
                return True
        time.sleep(WATCHING_S)
    return False


def _due(story: Story, answers: Acknowledged) -> Kill | None:
    count = answers.count()
    if len(story.done) < len(story.plan):
        due = story.plan[len(story.done)]
        return due if count >= due.after_answers else None
    if count >= story.cases and story.closing < story.closing_kills:
        return Kill(Victim.LOOKOUT, story.cases, story.chance.uniform(0, 1.0))
    return None


def _kill(story: Story, app: App, process: subprocess.Popen[bytes], victim: Victim) -> bool:
    """Kill the victim, and return whether its process was running."""
    match victim:
        case Victim.APP:
            hit = app.kill()
        case Victim.BROWSER:
            hit = _kill_browser(story, process.pid)
        case Victim.LOOKOUT:
            hit = True
            started = [one.pid for one in descendants(process.pid)]
            process.kill()
            process.wait()
            story.orphans += _outliving(started)
    if hit and len(story.done) < len(story.plan):
        story.done.append(victim)
    elif hit:
        story.closing += 1
    return hit


def _kill_browser(story: Story, lookout: int) -> bool:
    """Kill one process of the browser: the browser itself, a page or its network service."""
    mine = [one.pid for one in descendants(lookout) if one.is_browser]
    if not mine:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(story.chance.choice(mine), signal.SIGKILL)
    return True


def _outliving(pids: Sequence[int], patience_s: float = 20.0) -> int:
    """Return how many of the processes ``pids`` are still alive after ``patience_s`` seconds, and kill them."""
    until = time.monotonic() + patience_s
    left = list(pids)
    while left and time.monotonic() < until:
        alive = all_processes()
        left = [pid for pid in left if pid in alive]
        time.sleep(WATCHING_S)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


class Acknowledged:
    """The acknowledged answers, read from the journal while it is written."""

    def __init__(self, story: Story) -> None:
        self._journal = open_store_in(story.folder / "data").journal
        self._known: set[str] = set()
        self._answered: Counter[str] = Counter()

    def count(self) -> int:
        """Return the number of cases with an answer."""
        runs = [name for name in self._journal.segments.list_segments() if not name.startswith("_")]
        for name in runs:
            if name not in self._known:
                self._known.add(name)
                rows = [row.row for row in self._journal.read(name).rows() if isinstance(row, ResultRow)]
                self._answered.update(row.case_id for row in rows if isinstance(row, Exchange))
        return len(self._answered)
