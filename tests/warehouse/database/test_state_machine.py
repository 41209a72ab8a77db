"""Test that after any sequence of steps, the warehouse contains the same data as a plain dictionary."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from monitors.errors import WarehouseError
from monitors.records.incidents import DeliveryStatus
from tests.warehouse.crash_worker import longer_schema, once_more
from tests.warehouse.database.test_faults import flip, leave_log_behind, tear
from tests.warehouse.decisions import decide
from tests.warehouse.sample_rows import assessment, exchange, list_unsent_alerts, receipt, run_report
from tests.warehouse.temporary_stores import SteppingClock, bare_store_in, store_in
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow
from warehouse.queries.outbox import claim_alerts, record_receipt

CASES = st.sampled_from(["a", "b", "c", "d"])
RUNS = st.sampled_from(["run-1", "run-2"])
FAULTS = st.sampled_from(["leak", "slow"])


STEPS_TAKEN: Counter[str] = Counter()
"""How often each rule of the state machine was executed. The soak test reports these numbers."""


def step(**strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a rule of the state machine. The decorator counts how often the rule is executed."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def counted(*args: Any, **values: Any) -> None:
            STEPS_TAKEN[function.__name__] += 1
            function(*args, **values)

        return rule(**strategies)(counted)

    return decorate


class Warehouse(RuleBasedStateMachine):
    """The state machine of the warehouse.

    Its rules are: append, load, decide, send, kill, lose or damage the log or the file, rebuild, compact, migrate.
    """

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = SteppingClock()
        self.store = store_in(self.folder, clock=self.clock)
        self.migrations = 0
        self.seed = 1
        self.texts: dict[tuple[str, str], str] = {}
        self.finished: set[str] = set()
        self.occurrences: dict[str, int] = {}
        self.unsent: set[str] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @step(run_id=RUNS, case=CASES, text=st.text(st.characters(codec="utf-8"), max_size=5))
    def append(self, run_id: str, case: str, text: str) -> None:
        rows = [ResultRow(row=exchange(run_id, case, text=text)), AssessmentRow(row=assessment(run_id, case))]
        self.store.journal.append(rows, run_id=run_id)
        self.texts[run_id, case] = text

    @step(run_id=RUNS)
    def finish(self, run_id: str) -> None:
        self.store.journal.append([RunRow(row=run_report(run_id))], run_id=run_id)
        self.finished.add(run_id)

    @step(name=FAULTS)
    def decide(self, name: str) -> None:
        decided = decide(self.store, self.store.journal, "helpdesk", lambda known: once_more(known, name), wait_s=9)
        self.occurrences[name] = self.occurrences.get(name, 0) + 1
        assert [each.id for each in decided.alerts] == [f"{name}-{self.occurrences[name]}"]
        self.unsent.add(decided.alerts[0].id)

    @step()
    def send_one(self) -> None:
        store = self.store
        claim = claim_alerts(store, owner="ann", lease_s=0.5, limit=1, wait_s=9)
        assert {each.id for each in claim.alerts} <= self.unsent
        assert bool(claim.alerts) == bool(self.unsent)
        for each in claim.alerts:
            record_receipt(store, store.journal, receipt(each.id, DeliveryStatus.SENT), wait_s=9)
            self.unsent.remove(each.id)

    @step()
    def load(self) -> None:
        self.store.load_pending(9)

    @step()
    def another_process(self) -> None:
        self.seed += 1
        self.store = bare_store_in(
            self.folder, seed=self.seed, clock=self.clock, schema=longer_schema(self.migrations)
        )

    @precondition(lambda self: self.migrations < 2)
    @step()
    def newer_version(self) -> None:
        self.migrations += 1
        self.another_process()

    @step(case=CASES)
    def killed_and_log_lost(self, case: str) -> None:
        self.append("run-1", case, "in the log")
        leave_log_behind(self.store).unlink()

    @step(case=CASES, damage=st.sampled_from([tear, flip]), seed=st.integers(0, 1000))
    def killed_and_log_damaged(self, case: str, damage: Callable[[Path, Random], None], seed: int) -> None:
        self.append("run-1", case, "in the log")
        damage(leave_log_behind(self.store), Random(seed))
        self.repair()

    @step(seed=st.integers(0, 1000))
    def block_overwritten(self, seed: int) -> None:
        file = self.store.database.file
        if not file.exists():
            return
        place = Random(seed).randrange(file.stat().st_size)
        with file.open("r+b") as handle:
            handle.seek(place)
            handle.write(b"\xa5" * 64)
            handle.truncate(max(file.stat().st_size, place))
        self.repair()
        self.everything_is_there_once()
        rebuild_database(
            self.store, wait_s=9
        )  # an index is read by writes alone, so what harmed it would come to light later

    def repair(self) -> None:
        """Repair the warehouse as the documentation says: load.

        If loading fails or the check finds a fault, rebuild.
        """
        try:
            self.store.load_pending(9)
            sound = check_database(self.store, wait_s=9).is_sound
        except WarehouseError:
            sound = False
        if not sound:
            rebuild_database(self.store, wait_s=9)

    @step()
    def file_lost(self) -> None:
        self.store.database.file.unlink(missing_ok=True)

    @step()
    def file_is_garbage(self) -> None:
        self.store.database.file.write_bytes(b"garbage" * 100)
        self.repair()

    @step()
    def rebuild(self) -> None:
        rebuild_database(self.store, wait_s=9)

    @step()
    def compact(self) -> None:
        compact_segments(self.store, before=self.clock(), wait_s=9)

    @invariant()
    def everything_is_there_once(self) -> None:
        if not hasattr(self, "store"):
            return
        store = self.store
        store.load_pending(9)
        rows = store.query("select run_id, case_id, visible_text from results").rows
        assert {(row[0], row[1]): row[2] for row in rows} == self.texts
        assert len(rows) == len(self.texts)
        assert store.query("select count(*) from grades").rows == ((3 * len(self.texts),),)
        assert {row[0] for row in store.query("select run_id from runs").rows} == self.finished
        found = {each.title: each.occurrences for each in store.load_incidents("helpdesk").values()}
        assert found == self.occurrences
        assert {each.id for each in list_unsent_alerts(store)} == self.unsent

    @step()
    def the_check_agrees(self) -> None:
        report = check_database(self.store, wait_s=9)
        assert report.problems == ()
        assert report.pending == 0


TestWarehouse = Warehouse.TestCase
TestWarehouse.settings = settings(
    max_examples=3,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
