"""Many processes use one warehouse: writers, deciders, readers, a loader, and a process that only locks the file.

Each is a separate process: ``python -m tests.warehouse.contention ROLE FOLDER NAME AMOUNT``. The last line of a
process's output is its result as JSON. Writers, deciders and loaders end by themselves, after a number of rounds or
(``write_for``, ``load_for``) seconds. Readers and holders end when their standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from monitors.errors import WarehouseBusy
from tests.warehouse.crash_worker import Plan, once_more, open_store
from tests.warehouse.decisions import decide
from tests.warehouse.sample_rows import assessment, exchange
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow
from warehouse.queries.outbox import claim_alerts, record_receipt


@dataclass(frozen=True)
class Role:
    """The role of one process: its name, its number of rounds or seconds (``amount``), and its store."""

    name: str
    amount: int
    store: Store

    def over(self) -> bool:
        """Return whether the parent process has closed the standard input of this process."""
        return bool(select.select([sys.stdin], [], [], 0)[0])


def write(role: Role) -> dict[str, object]:
    """Append rows ``amount`` times, and return how long the appends took."""
    return _written([_append(role, number) for number in range(role.amount)])


def write_for(role: Role) -> dict[str, object]:
    """Append rows for ``amount`` seconds without a pause."""
    end = time.monotonic() + role.amount
    waits: list[float] = []
    while time.monotonic() < end:
        waits.append(_append(role, len(waits)))
    return _written(waits)


def _append(role: Role, number: int) -> float:
    case = f"{role.name}-{number}"
    rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
    started = time.perf_counter()
    role.store.journal.append(rows, run_id=f"run-{role.name}")
    return (time.perf_counter() - started) * 1000


def _written(waits: list[float]) -> dict[str, object]:
    waits.sort()
    middle, late = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    times = {"median_ms": middle, "p99_ms": late, "longest_ms": waits[-1]}
    return {"appended": len(waits), **{name: round(value, 1) for name, value in times.items()}}


def make_decisions(role: Role) -> dict[str, object]:
    """Increase the count of one incident ``amount`` times, while all other deciders increase the same count."""
    for _ in range(role.amount):
        decide(role.store, role.store.journal, "helpdesk", lambda known: once_more(known, "leak"), wait_s=60)
    return {"decided": role.amount}


def send(role: Role) -> dict[str, object]:
    """Claim and "send" messages until no message is left, and return the messages."""
    from tests.warehouse.sample_rows import receipt

    sent: list[str] = []
    store = role.store
    while True:
        claim = claim_alerts(store, owner=role.name, lease_s=600, limit=2, wait_s=60)
        if not claim.alerts:
            return {"sent": sent}
        for alert in claim.alerts:
            sent.append(alert.id)
            record_receipt(store, store.journal, receipt(alert.id), wait_s=60)


def load(role: Role) -> dict[str, object]:
    """Load new rows ``amount`` times.

    If another process has locked the file, the attempt is counted as busy and is not a failure.
    """
    busy = 0
    for _ in range(role.amount):
        try:
            role.store.load_pending(0.2)
        except WarehouseBusy:
            busy += 1
    return {"busy": busy}


def load_for(role: Role) -> dict[str, object]:
    """Load new rows for ``amount`` seconds, then once more at the end."""
    end = time.monotonic() + role.amount
    loads = busy = 0
    while time.monotonic() < end:
        try:
            role.store.load_pending(5)
            loads += 1
        except WarehouseBusy:
            busy += 1
        time.sleep(0.1)
    return {"loads": loads, "busy": busy}


def read(role: Role) -> dict[str, object]:
    """Query the warehouse until the parent process closes the standard input."""
    asked = 0
    longest_ms = 0.0
    while not role.over():
        started = time.perf_counter()
        role.store.query("select count(*) from results", wait_s=60)
        longest_ms = max(longest_ms, (time.perf_counter() - started) * 1000)
        asked += 1
    return {"asked": asked, "longest_ms": round(longest_ms, 1)}


def hold(role: Role) -> dict[str, object]:
    """Keep the file open for reading about half of the time, as a person with a database browser does."""
    held = 0
    while not role.over():
        try:
            with duckdb.connect(str(role.store.database.file), read_only=True):
                held += 1
                select.select([sys.stdin], [], [], 0.3)
        except duckdb.IOException:
            pass  # a loader has it
        select.select([sys.stdin], [], [], 0.3)
    return {"held": held}


ROLES: dict[str, Callable[[Role], dict[str, object]]] = {
    "write": write,
    "write_for": write_for,
    "decide": make_decisions,
    "send": send,
    "load": load,
    "load_for": load_for,
    "read": read,
    "hold": hold,
}


def run_together(folder: Path, parts: Sequence[tuple[str, int]]) -> list[tuple[str, dict[str, object]]]:
    """Start a process for each part. Wait for the processes that end by themselves, then end readers and holders.

    Return the result of each process.

    Raises an error if a process fails.
    """
    started = [
        (
            role,
            subprocess.Popen(
                [sys.executable, "-m", "tests.warehouse.contention", role, str(folder), f"p{number}", str(amount)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ),
        )
        for number, (role, amount) in enumerate(parts)
    ]
    endless = ("read", "hold")
    saw: list[tuple[str, dict[str, object]]] = []
    for role, process in sorted(started, key=lambda each: each[0] in endless):
        out, err = process.communicate()
        if process.returncode != 0:
            raise AssertionError(f"{role} failed: {err}")
        saw.append((role, json.loads(out.splitlines()[-1])))
    return saw


def main() -> None:
    role, folder, name, amount = sys.argv[1:]
    store = open_store(Plan(Path(folder), os.getpid()))
    print(json.dumps(ROLES[role](Role(name, int(amount), store))))


if __name__ == "__main__":
    main()
