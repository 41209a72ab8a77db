"""Damage a warehouse's log and file many times: Lookout must detect the damage and restore all rows.

    python -m tests.soak.soak_damage --rounds 400 [--write docs/warehouse.md]

Each round loads data and kills the loader before it closes the file, so that some rows are only in the log. Then
the round does one of these: it tears the log, flips one of its bytes, deletes it, overwrites a block of the file,
or aborts a checkpoint at one of its three steps and is killed there. A plain DuckDB reads a copy to find out
whether rows are missing or changed; the check must report this too. Loading, or a rebuild if the file cannot be
loaded into, must restore everything.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from monitors.errors import WarehouseDamaged
from tests.figures import measured_where, table, write_section
from tests.soak.forked_process import forked
from tests.warehouse.crash_worker import Plan, open_store, survivors
from tests.warehouse.sample_rows import assessment, exchange
from warehouse.database.check import DERIVED_TABLES, check_database
from warehouse.database.load import load_journal
from warehouse.database.rebuild import rebuild_database
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow

ABORTS = ("before_header", "before_truncate", "after_free_list_write")
BLOCK_BYTES = 4096


def _leave(store: Store, _: random.Random) -> None:
    """Damage nothing. This is the case in which the loader was killed, but its log is complete."""


def _tear(store: Store, rng: random.Random) -> None:
    log = log_of(store)
    os.truncate(log, rng.randrange(log.stat().st_size))


def _flip(store: Store, rng: random.Random) -> None:
    _overwrite(log_of(store), rng, 1)


def _delete(store: Store, _: random.Random) -> None:
    log_of(store).unlink()


def _block(store: Store, rng: random.Random) -> None:
    _overwrite(store.database.file, rng, BLOCK_BYTES)


def _overwrite(file: Path, rng: random.Random, size: int) -> None:
    data = bytearray(file.read_bytes())
    place = rng.randrange(len(data) - size + 1)
    data[place : place + size] = bytes(byte ^ 0xFF for byte in data[place : place + size])
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Store, random.Random], None]] = {
    "log whole": _leave,
    "log torn": _tear,
    "log flipped": _flip,
    "log deleted": _delete,
    "block overwritten": _block,
    **{f"checkpoint aborted {step}": _leave for step in ABORTS},
}


@dataclass
class Tally:
    """The counts of the soak test, by kind of damage.

    ``rounds`` counts all rounds, ``harmed`` those in which rows were lost or changed, and ``detected`` those in
    which the check reported the damage.
    """

    rounds: Counter[str] = field(default_factory=Counter[str])
    harmed: Counter[str] = field(default_factory=Counter[str])
    detected: Counter[str] = field(default_factory=Counter[str])
    restored_by: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])


def one_round(kind: str, folder: Path, seed: int, tally: Tally) -> None:
    rng = random.Random(seed)
    store = open_store(Plan(folder, seed))
    acknowledged = append(store, rng, "early")
    store.load_pending(30)
    acknowledged |= append(store, rng, "late")
    wanted = killed_while_loading(store, kind)
    DAMAGES[kind](store, rng)
    harmed = as_duckdb_finds_it(store, folder / "copy") != wanted
    is_detected = not check_database(store, wait_s=30).is_sound
    tally.rounds[kind] += 1
    tally.harmed[kind] += harmed
    tally.detected[kind] += is_detected
    if harmed and not is_detected:
        tally.failures.append(f"{kind}, seed {seed}: rows are missing or changed, and the check is content")
    tally.restored_by[f"{kind}: {restore(store, is_detected=is_detected)}"] += 1
    tally.failures += [f"{kind}, seed {seed}: {wrong}" for wrong in survivors(Plan(folder, seed), acknowledged)]


def append(store: Store, rng: random.Random, word: str) -> set[str]:
    cases = [f"{word}-{number}" for number in range(rng.randrange(1, 40))]
    for case in cases:
        rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
        store.journal.append(rows, run_id="run-1")
    return {f"case {case}" for case in cases}


def killed_while_loading(store: Store, kind: str) -> object:
    """Load data in a process that is killed before it closes the warehouse file.

    Return the content of the tables before the kill.
    """
    step = kind.removeprefix("checkpoint aborted ") if kind.startswith("checkpoint") else None

    def job(say: Callable[[str], None]) -> None:
        with store.database.open_for_writing(30) as connection:
            load_journal(connection, store.journal, store.database.scratch)
            store.save_ledger_if_complete(connection)
            say(repr(_prints(connection)))
            if step is not None:
                connection.execute(f"set debug_checkpoint_abort = '{step}'")
                try:
                    connection.execute("checkpoint")
                except duckdb.Error:
                    say("aborted")
            os.kill(os.getpid(), signal.SIGKILL)

    heard = forked(job).rest()
    if heard[0].startswith("broken ") or (step is not None) != ("aborted" in heard):
        raise SystemExit(f"{kind}: the loader said {heard}")
    return heard[0]


def as_duckdb_finds_it(store: Store, copy: Path) -> object:
    """Return what a plain DuckDB reads from a copy of the warehouse's file and log, or the error if it fails."""
    copy.mkdir()
    for path in (store.database.file, log_of(store)):
        if path.exists():
            shutil.copy(path, copy / path.name)

    def job(say: Callable[[str], None]) -> None:
        try:
            with duckdb.connect(str(copy / store.database.file.name)) as connection:
                connection.execute("set timezone = 'UTC'")
                say(repr(_prints(connection)))
        except duckdb.Error as error:
            say(f"cannot be read: {str(error).splitlines()[0]}")

    return forked(job).rest()[0]  # in a process of its own: DuckDB may abort it


def _prints(connection: duckdb.DuckDBPyConnection) -> list[object]:
    return [
        connection.execute(f"select count(*), bit_xor(hash(t)), sum(hash(t)) from {table} t").fetchone()
        for table in (*DERIVED_TABLES, "segments")
    ]


def restore(store: Store, *, is_detected: bool) -> str:
    """Restore the warehouse as the documentation says: load, and rebuild if the load is refused."""
    try:
        report = store.load_pending(30)
    except WarehouseDamaged:
        rebuild_database(store, wait_s=30)
        return "rebuilt"
    if check_database(store, wait_s=30).is_sound:
        return "loaded again" if report.restored else "nothing to do" if not is_detected else "loaded"
    rebuild_database(store, wait_s=30)
    return "rebuilt after loading"


def log_of(store: Store) -> Path:
    return store.database.file.with_name(f"{store.database.file.name}.wal")


def soak(rounds: int, seed: int, root: Path) -> Tally:
    tally = Tally()
    kinds = list(DAMAGES)
    for number in range(rounds):
        if number and number % 50 == 0:
            print(f"{number} damages, {len(tally.failures)} wrong", flush=True)
        folder = root / str(number)
        folder.mkdir()
        one_round(kinds[number % len(kinds)], folder, seed * 1_000_000 + number, tally)
        shutil.rmtree(folder)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", type=Path, default=None, help="a document whose section figures:damage is renewed"
    )
    asked = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = soak(asked.rounds, asked.seed, Path(folder))
    lines = figures_of(tally)
    summary = (
        f"The test damaged the file {asked.rounds} times in {time.monotonic() - started:.0f} s. Rows were changed or "
        f"removed in {sum(tally.harmed.values())} cases. Cases that Lookout did not report or did not restore: "
        f"{len(tally.failures)}"
    )
    print("\n".join([*lines, *tally.failures, summary]))
    if asked.write:
        write_section(asked.write, "damage", [measured_where(), "", f"{summary}.", "", *lines])
    return 1 if tally.failures else 0


def figures_of(tally: Tally) -> list[str]:
    """Return a table with one row for each kind of damage.

    Each row states how often rows were lost or changed, how often the check detected this, and how everything was
    restored.
    """
    rows: list[tuple[object, ...]] = []
    for kind, rounds in tally.rounds.items():
        ways = [(way.removeprefix(f"{kind}: "), n) for way, n in tally.restored_by.items() if way.startswith(kind)]
        how = ", ".join(f"{way} {times}" for way, times in sorted(ways))
        rows.append((kind, rounds, tally.harmed[kind], tally.detected[kind], how))
    return table(("damage", "rounds", "harmed rows", "reported by the check", "then"), rows)


if __name__ == "__main__":
    sys.exit(main())
