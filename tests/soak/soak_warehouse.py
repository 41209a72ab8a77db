"""Kill a warehouse's user at random moments, over and over, and prove each time that nothing is lost or doubled.

    python -m tests.soak.soak_warehouse --kills 1000

Each round forks a process that appends, loads, decides, checks, rebuilds, compacts, ages, exports and migrates, kills it with SIGKILL after a
random time, and lets another process compare what was acknowledged with what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.warehouse.crash_worker import WAIT_S, Plan, survivors, work
from tests.warehouse.sample_rows import NOON, run_report
from warehouse.check import check
from warehouse.compact import compact
from warehouse.export import export
from warehouse.rebuild import rebuild
from warehouse.retention import age
from warehouse.rows import RunRow

LONGEST_LIFE_S = 0.8
"""A worker lives up to this long: enough for a new file (0.4 s), a migration and some dozens of steps."""

KILLS_PER_FOLDER = 25
KILLS_PER_SCHEMA = 4
KILLS_PER_CHECK = 3
"""Acknowledged rows and decisions are counted after every kill; the tables are made anew and compared every third."""

STEPS = {
    "check": lambda store: check(store, wait_s=WAIT_S),
    "rebuild": lambda store: rebuild(store, wait_s=WAIT_S),
    "finish": lambda store: store.journal.append([RunRow(row=run_report("run-1"))], run_id="run-1"),
    "compact": lambda store: compact(store, before=store.clock(), wait_s=WAIT_S),
    "age": lambda store: age(store, before=store.clock(), key=b"sixteen byte key", wait_s=WAIT_S),
    "export": lambda store: export(
        store,
        store.database.file.parent / "export",
        since=NOON.date(),
        until=NOON.date(),
        wait_s=WAIT_S,
    ),
}


def forked(job: Callable[[Callable[[str], None]], None]) -> tuple[int, int]:
    """Run ``job`` in a child; its process id and the pipe that it talks through."""
    out, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        return child, out
    os.close(out)
    try:
        job(lambda line: os.write(into, f"{line}\n".encode()) and None)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked child must never run on into its parent's code
        os.write(into, f"broken {json.dumps(traceback.format_exc())}\n".encode())
        os._exit(1)


def listen(pipe: int, until: float | None) -> str:
    """Read until the time has come or the other side ends."""
    heard = b""
    while until is None or time.monotonic() < until:
        left = None if until is None else max(0.0, until - time.monotonic())
        if select.select([pipe], [], [], left)[0]:
            chunk = os.read(pipe, 65536)
            if not chunk:
                break
            heard += chunk
    return heard.decode()


def kill_once(plan: Plan, life_s: float) -> set[str]:
    """Let a worker live for a while; what it acknowledged."""
    child, pipe = forked(lambda say: work(plan, say, STEPS))
    heard = listen(pipe, time.monotonic() + life_s)
    os.kill(child, signal.SIGKILL)
    heard += listen(pipe, None)
    os.close(pipe)
    os.waitpid(child, 0)
    lines = heard.split("\n")[:-1]
    broken = [line for line in lines if line.startswith("broken ")]
    if broken:
        raise SystemExit(f"the worker failed by itself: {json.loads(broken[0][7:])}")
    return set(lines)


def verdict(plan: Plan, acknowledged: set[str], *, thorough: bool) -> list[str]:
    """What another process finds wrong."""
    child, pipe = forked(lambda say: say(json.dumps(survivors(plan, acknowledged, thorough=thorough))))
    heard = listen(pipe, None).split("\n")[0]
    os.close(pipe)
    os.waitpid(child, 0)
    return [heard] if heard.startswith("broken ") else json.loads(heard)


def soak(kills: int, seed: int, root: Path) -> tuple[int, int]:
    """Kill that many times; how many things were acknowledged, and how often something was wrong."""
    rng = random.Random(seed)
    total = failures = 0
    acknowledged: set[str] = set()
    for number in range(kills):
        folder = root / f"round-{number // KILLS_PER_FOLDER}"
        if number % KILLS_PER_FOLDER == 0:
            total += len(acknowledged)
            print(f"{number} kills, {total} acknowledged, {failures} rounds wrong", flush=True)
            acknowledged = set()
            shutil.rmtree(root / f"round-{number // KILLS_PER_FOLDER - 1}", ignore_errors=True)
        plan = Plan(folder, seed * 1_000_000 + number, number % KILLS_PER_FOLDER // KILLS_PER_SCHEMA)
        acknowledged |= kill_once(plan, rng.uniform(0.0, LONGEST_LIFE_S))
        wrong = verdict(plan, acknowledged, thorough=number % KILLS_PER_CHECK == 0 or number == kills - 1)
        failures += bool(wrong)
        for text in wrong:
            print(f"kill {number} (seed {seed}): {text}", flush=True)
    return total + len(acknowledged), failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        acknowledged, failures = soak(asked.kills, asked.seed, Path(folder))
    print(
        f"{asked.kills} kills, {acknowledged} acknowledged writes and decisions, {failures} rounds with a loss, "
        f"a doubling or a wrong check, {time.monotonic() - started:.0f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
