"""A process that uses a warehouse until it is killed, and a check of the data that remains.

When a change is durable, the process acknowledges the change through a pipe. `survivors` then proves that every
acknowledged change exists exactly once.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from monitors.records.incidents import Incident
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import NOON, alert, assessment, exchange, incident, run_report
from tests.warehouse.temporary_stores import REAL_PATIENCE
from warehouse.database.check import check_database
from warehouse.database.database import Migration, Schema, load_bundled_schema
from warehouse.database.load import load_journal
from warehouse.database.parquet import export_parquet
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments, remove_personal_data
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow

FAULTS = ("leak", "wrong", "slow")
WAIT_S = 30.0


@dataclass(frozen=True)
class Plan:
    """The folder and the parameters of a worker.

    If ``extra_migrations`` is set, the worker's schema has migrations that were not applied to the file yet, so the
    file is older than the worker.
    """

    folder: Path
    seed: int
    extra_migrations: int = 0


def open_store(plan: Plan) -> Store:
    return Store(
        plan.folder,
        clock=lambda: datetime.now(UTC),
        entropy=os.urandom,
        patience=REAL_PATIENCE,
        schema=longer_schema(plan.extra_migrations),
    )


def longer_schema(extra: int) -> Schema:
    """Return the bundled schema with ``extra`` further migrations.

    Each further migration is slow enough that a kill can interrupt it.
    """
    schema = load_bundled_schema()
    further = [
        Migration(
            schema.newest + step,
            f"extra_{step}",
            f"create table extra_{step} as select range as n, 'x' || range as t from range(20000);"
            f"alter table segments add column extra_{step} integer default {step};",
        )
        for step in range(1, extra + 1)
    ]
    return Schema([*schema.migrations, *further], schema.views)


_TO_BEGIN_WITH = ("append", "append", "append", "finish")
"""The steps with which a worker starts: append rows that can be loaded, and finish a run.

Rows are compacted only if a run is finished.
"""


def work(plan: Plan, say: Callable[[str], None], *, first: str) -> None:
    """Run a few steps in random order, then the step ``first``, then more steps, until the process is killed.

    ``say`` reports the start and the end of each step.
    """
    store = open_store(plan)
    rng = random.Random(plan.seed)
    before = 0 if first == "migrate" else rng.randrange(8)
    kinds = ["append"] * 12 + ["load"] * 4 + ["decide"] * 4 + list(STEPS)
    for number in count():
        kind = first if number == before else rng.choice(_TO_BEGIN_WITH if number < before else kinds)
        say(f"step {kind}")
        started = time.perf_counter()
        if (acknowledged := STEPS[kind](Turn(store, plan.seed, number, rng))) is not None:
            say(acknowledged)
        say(f"done {kind} {time.perf_counter() - started:.4f}")


@dataclass(frozen=True)
class Turn:
    """The input of a step: the store, the seed of the worker, the number of the step, and the random generator."""

    store: Store
    seed: int
    number: int
    rng: random.Random


def _append(turn: Turn) -> str:
    case_id = f"w{turn.seed}-{turn.number}"
    rows = [ResultRow(row=exchange(case_id=case_id)), AssessmentRow(row=assessment(case_id=case_id))]
    turn.store.journal.append(rows, run_id="run-1")
    return f"case {case_id}"


def _decide(turn: Turn) -> str:
    store, name = turn.store, turn.rng.choice(FAULTS)
    decided = decide(store, store.journal, "helpdesk", lambda known: once_more(known, name), wait_s=WAIT_S)
    return f"decision {decided.alerts[0].id}"


def _checkpoint(turn: Turn) -> None:
    """Load what is pending, and checkpoint the log into the file twice.

    The first checkpoint is explicit. The second one happens when the file is closed.
    """
    store = turn.store
    _append(turn)
    with store.database.open_for_writing(WAIT_S) as connection:
        load_journal(connection, store.journal, store.database.scratch)
        connection.execute("force checkpoint")
        store.save_ledger_if_complete(connection)


def _migrate(turn: Turn) -> None:
    with turn.store.database.open_for_writing(WAIT_S):
        return


def _export(turn: Turn) -> None:
    goal = turn.store.database.file.parent / "export"
    export_parquet(turn.store, goal, since=NOON.date(), until=NOON.date(), wait_s=WAIT_S)


def _silently(job: Callable[[Store], object]) -> Callable[[Turn], None]:
    return lambda turn: job(turn.store) and None


STEPS: Mapping[str, Callable[[Turn], str | None]] = {
    "append": _append,
    "load": _silently(lambda store: store.load_pending(WAIT_S)),
    "decide": _decide,
    "checkpoint": _checkpoint,
    "migrate": _migrate,
    "export": _export,
    "finish": _silently(lambda store: store.journal.append([RunRow(row=run_report("run-1"))], run_id="run-1")),
    "check": _silently(lambda store: check_database(store, wait_s=WAIT_S)),
    "rebuild": _silently(lambda store: rebuild_database(store, wait_s=WAIT_S)),
    "compact": _silently(lambda store: compact_segments(store, before=store.clock(), wait_s=WAIT_S)),
    "age": _silently(
        lambda store: remove_personal_data(store, before=store.clock(), key=b"sixteen byte key", wait_s=WAIT_S)
    ),
}
"""The steps of a worker, by name. A step that acknowledges something returns it as text."""


def once_more(known: Mapping[str, Incident], name: str) -> OutboxDecision:
    """Return the decision that adds one to the count of the incident ``name``.

    The decision has an alert whose id contains the new count.
    """
    fresh = incident(name)
    before = known[fresh.fingerprint].occurrences if fresh.fingerprint in known else 0
    changed = fresh.model_copy(update={"occurrences": before + 1})
    return OutboxDecision(incidents=(changed,), alerts=(alert(f"{name}-{before + 1}", about=changed),))


def survivors(plan: Plan, acknowledged: set[str], *, thorough: bool = True) -> list[str]:
    """Return a text for each fault after a kill. The list is empty if every acknowledged change exists once.

    If ``thorough`` is true, the check must find no fault before and after loading, and a second load must change
    nothing.
    """
    store = open_store(plan)
    before = check_database(store, wait_s=WAIT_S).problems if thorough else ()
    wrong = [f"before loading: {problem.text}" for problem in before]
    report = store.load_pending(WAIT_S)
    wrong += [f"damaged: {each.error}" for each in report.damaged]
    if store.load_pending(WAIT_S).segments:
        wrong.append("a second load found something to load")
    if thorough:
        after = check_database(store, wait_s=WAIT_S)
        wrong += [f"after loading: {problem.text}" for problem in after.problems]
        wrong += [f"{after.pending} segments are still pending"] if after.pending else []
    return wrong + _cases_wrong(store, acknowledged) + _decisions_wrong(store, acknowledged)


def _cases_wrong(store: Store, acknowledged: set[str]) -> list[str]:
    wrong: list[str] = []
    for table, rows_each in (("results", 1), ("assessments", 1), ("grades", 3)):
        found = Counter(str(row[0]) for row in store.query(f"select case_id from {table}").rows)
        lost = {word.removeprefix("case ") for word in acknowledged if word.startswith("case ")} - found.keys()
        twice = [case for case, times in found.items() if times != rows_each]
        wrong += [f"{table}: lost {sorted(lost)}"] if lost else []
        wrong += [f"{table}: not {rows_each} times: {twice}"] if twice else []
    return wrong


def _decisions_wrong(store: Store, acknowledged: set[str]) -> list[str]:
    wrong: list[str] = []
    history = store.query("select title, occurrences from incident_history order by sequence").rows
    alerts = sorted(str(row[0]) for row in store.query("select id from alerts").rows)
    if alerts != sorted(f"{title}-{times}" for title, times in history):
        wrong.append("alerts and incidents do not match")
    for name in FAULTS:
        counted = [times for title, times in history if title == name]
        if counted != list(range(1, len(counted) + 1)):
            wrong.append(f"{name} was decided as {counted}")
    lost = {word.removeprefix("decision ") for word in acknowledged if word.startswith("decision ")} - set(alerts)
    return wrong + ([f"lost decisions {sorted(lost)}"] if lost else [])
