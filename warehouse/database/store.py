"""The warehouse as flows and people use it: load what runs wrote, ask it questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import ValidationError

from monitors.errors import QueryInvalid, WarehouseDamaged
from monitors.records.base import Record
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Alert, Incident
from monitors.records.runs import RunReport
from warehouse.database.connection import WaitPolicy
from warehouse.database.database import Database, Ledger, Schema, load_bundled_schema, read_ledger, write_ledger
from warehouse.database.load import LoadReport, load_journal
from warehouse.journal.journal import Journal
from warehouse.journal.segments import Clock, Entropy

DATABASE_FILE = "warehouse.duckdb"
JOURNAL_FOLDER = "journal"

DEFAULT_READ_WAIT_S = 5.0
"""How long a reader waits by default: a hundred times what a usual load takes."""

VIEWS_SQL = """
select view_name as "view", comment as "what it answers"
from duckdb_views() where not internal and schema_name = 'main' order by view_name
"""
"""What people can ask: each view with its comment."""

Parameter = str | int | float | bool | None
"""What may be bound to a ``?`` or a ``$name`` of a query."""


@dataclass(frozen=True, slots=True)
class Table:
    """A query's answer. Times are in UTC with zone, decimals are ``Decimal``, lists are lists."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class CaseStanding(Record):
    """What one case of a run came to: enough to compare two runs case by case."""

    case_id: str
    repeat: int
    outcome: CaseOutcome


class Store:
    """The warehouse of one data folder: ``warehouse.duckdb`` beside ``journal/``.

    ``clock`` gives the present with a zone, ``entropy(n)`` n random bytes, ``patience`` how to wait. Nothing is
    opened between calls, so that any number of processes can take turns; safe for threads.
    """

    def __init__(
        self,
        data_folder: Path,
        *,
        clock: Clock,
        entropy: Entropy,
        patience: WaitPolicy,
        journal: Journal | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.journal = journal or Journal(data_folder / JOURNAL_FOLDER, clock=clock, entropy=entropy)
        self.database = Database(data_folder / DATABASE_FILE, schema or load_bundled_schema(), clock, patience)
        self.clock = clock

    def with_database(self, database: Database) -> Store:
        """The same store with another file than the folder's own, such as a snapshot of it."""
        store = copy(self)
        store.database = database
        return store

    def load_pending(self, wait_s: float) -> LoadReport:
        """Take everything that the journal has and the file has not; waits ``wait_s`` seconds at most for it.

        Raises `WarehouseBusy` when it could not have the file: nothing is lost, whoever comes next loads it.
        """
        with self.database.open_for_writing(wait_s) as connection:
            restored = self.count_missing(connection)
            report = load_journal(connection, self.journal, self.database.scratch)
            self.save_ledger(connection)
        return report.model_copy(update={"restored": restored, "swept": self.journal.sweep()})

    def query(
        self,
        sql: str,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] = (),
        *,
        wait_s: float = DEFAULT_READ_WAIT_S,
    ) -> Table:
        """Run one query for reading only; ``parameters`` are bound, never pasted.

        It sees what is loaded. Files and network are out of its reach. Raises `QueryInvalid` with DuckDB's own
        explanation, and `WarehouseBusy` when a writer held the file for longer than ``wait_s`` seconds.
        """
        with self.database.open_for_reading(wait_s) as connection:
            connection.execute("SET enable_external_access = false")
            try:
                result = connection.execute(sql, parameters or None)
                columns = tuple(str(column[0]) for column in result.description or ())
                return Table(columns, tuple(result.fetchall()) if columns else ())
            except duckdb.FatalException:
                raise
            except duckdb.Error as error:
                raise QueryInvalid(str(error)) from error

    def open_incidents(self, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> tuple[Incident, ...]:
        """A target's incidents that are not resolved, worst first."""
        incidents = self.incidents(target, wait_s=wait_s).values()
        unresolved = [
            incident for incident in incidents if incident.resolved_at is None or incident.state != "resolved"
        ]
        return tuple(sorted(unresolved, key=lambda incident: (-incident.severity, incident.opened_at)))

    def incidents(self, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> Mapping[str, Incident]:
        """All of a target's incidents as they stand, by fingerprint."""
        with self.database.open_for_reading(wait_s) as connection:
            return read_incidents(connection, target)

    def last_report(
        self, target: str, suite_sha256: str, *, before: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
    ) -> RunReport | None:
        """The newest report of a finished run over the same cases, for comparison; not that of run ``before``."""
        table = self.query(
            "select report from runs where target = $target and suite_sha256 = $suite and not interrupted"
            " and run_id is distinct from $before order by finished_at desc, run_id desc limit 1",
            {"target": target, "suite": suite_sha256, "before": before},
            wait_s=wait_s,
        )
        return _parse_report(str(table.rows[0][0])) if table.rows else None

    def report(self, run_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> RunReport | None:
        """A run's report, or ``None`` when no such run is loaded."""
        table = self.query("select report from runs where run_id = $run", {"run": run_id}, wait_s=wait_s)
        return _parse_report(str(table.rows[0][0])) if table.rows else None

    def outcomes(self, run_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> tuple[CaseStanding, ...]:
        """What each case of a run came to, by case and repeat."""
        table = self.query(
            "select case_id, repeat, outcome from assessments where run_id = $run order by case_id, repeat",
            {"run": run_id},
            wait_s=wait_s,
        )
        return tuple(
            CaseStanding.model_validate({"case_id": case, "repeat": repeat, "outcome": outcome})
            for case, repeat, outcome in table.rows
        )

    def list_unsent_alerts(self, *, wait_s: float = DEFAULT_READ_WAIT_S) -> tuple[Alert, ...]:
        """Messages that have no final receipt (sent, printed, rejected), worst first, whoever is sending them."""
        table = self.query(
            "select record from alerts semi join unsent_alerts using (id) order by severity desc, created_at, id",
            wait_s=wait_s,
        )
        return tuple(Alert.model_validate_json(str(row[0])) for row in table.rows)

    def save_ledger(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write beside the file how much it holds now, so that a loss can be noticed."""
        write_ledger(self.database.file, self.build_ledger(connection))

    def build_ledger(self, connection: duckdb.DuckDBPyConnection) -> Ledger:
        """How much an open file holds now."""
        return Ledger(segments=_count_segments(connection), as_of=self.clock())

    def count_missing(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Segments that were committed to the file and are not in it any more."""
        ledger = read_ledger(self.database.file)
        return max(0, ledger.segments - _count_segments(connection)) if ledger else 0


def read_incidents(connection: duckdb.DuckDBPyConnection, target: str) -> Mapping[str, Incident]:
    """A target's incidents as they stand, by fingerprint, on an open connection."""
    rows = connection.execute("select record from incidents where target = ?", [target]).fetchall()
    incidents = (Incident.model_validate_json(str(row[0])) for row in rows)
    return {incident.fingerprint: incident for incident in incidents}


def _count_segments(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute("select count(*) from segments").fetchone()
    return int(row[0]) if row else 0


def _parse_report(text: str) -> RunReport:
    try:
        return RunReport.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WarehouseDamaged(
            f"a stored report was written in another form ({'.'.join(map(str, first['loc']))}: {first['msg']}); "
            "its figures are still in the views"
        ) from error
