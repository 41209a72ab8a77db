"""The warehouse for flows and commands: load the journal into the tables, and query the tables."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
from pydantic import ValidationError

from monitors.errors import QueryInvalid, WarehouseDamaged
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.incidents import Incident
from monitors.records.runs import RunReport
from warehouse.database.connection import CHECKSUM_ERROR, WaitPolicy
from warehouse.database.database import Database, Ledger, Schema, load_bundled_schema, read_ledger, write_ledger
from warehouse.database.load import LoadReport, list_segments_to_load, load_journal
from warehouse.journal.journal import Journal
from warehouse.journal.segments import Clock, Entropy

DATABASE_FILE = "warehouse.duckdb"
JOURNAL_FOLDER = "journal"

DEFAULT_READ_WAIT_S = 5.0
"""Default time in seconds for which a reader waits for a writer."""

VIEWS_SQL = """
select view_name as "view", comment as "what it answers"
from duckdb_views() where not internal and schema_name = 'main' order by view_name
"""
"""The SQL query that lists the views with their names and descriptions."""

Stored = TypeVar("Stored", bound=Record)

Parameter = str | int | float | bool | None
"""The value for a ``?`` or a ``$name`` in a query."""


@dataclass(frozen=True, slots=True)
class Table:
    """The result of a query. Times are in UTC, and decimal numbers have the type ``Decimal``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


_QUERY_KINDS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
"""Kinds of statements that only read. DuckDB parses FROM, WITH, DESCRIBE, SHOW and SUMMARIZE as SELECT."""
_CHANGES_STATE = re.compile(
    r"\b(?:(?:enable|disable)_(?:logging|profil\w+)|write_log|(?:force_)?checkpoint|truncate_duckdb_logs"
    r"|\w+_external_resource\w*|json_execute_serialized_sql|sleep_ms)\"?\s*\(",
    re.IGNORECASE,
)
"""Matches the names of SQL functions that change the state of the DuckDB process or write files."""


def _require_single_read_only_query(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raise `QueryInvalid` if ``sql`` contains more than one statement, or a statement that is not a query."""
    kinds = [statement.type for statement in connection.extract_statements(sql)]
    if len(kinds) != 1 or kinds[0] not in _QUERY_KINDS:
        got = "nothing" if not kinds else plural(len(kinds), "statement") if len(kinds) > 1 else kinds[0].name
        raise QueryInvalid(f"expected one SELECT, FROM, WITH, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN, and got {got}")
    if match := _CHANGES_STATE.search(sql):
        raise QueryInvalid(f"{match[0].rstrip('( ')} changes settings or files, but a query may only read")


@contextmanager
def _raise_query_invalid() -> Generator[None]:
    """Raise `QueryInvalid` for an error of the query. Errors of the file are raised unchanged."""
    try:
        yield
    except duckdb.FatalException:
        raise
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise QueryInvalid(
            "the result does not fit into memory: select fewer columns, add LIMIT, or use count(*)"
        ) from None
    except duckdb.Error as error:
        if str(error).startswith(CHECKSUM_ERROR):
            raise
        raise QueryInvalid(str(error)) from error


class Store:
    """The warehouse of one data folder: ``warehouse.duckdb`` beside ``journal/``.

    No file is open between calls. Therefore, any number of processes can take turns, and several threads can use
    the same store. ``clock`` returns the present time, ``entropy(n)`` returns n random bytes, and ``patience``
    contains the clock and the pause function for waiting.
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
        self._load_errors: list[WarehouseDamaged] = []

    def with_database(self, database: Database) -> Store:
        """Return a store that reads another database file, such as a snapshot, with the same journal."""
        store = copy(self)
        store.database = database
        return store

    def load_pending(self, wait_s: float) -> LoadReport:
        """Load the segments that are not in the warehouse file yet.

        Waits at most ``wait_s`` seconds for the lock. Raises `WarehouseBusy` if the file stays locked. No data is
        lost: the next load continues.
        """
        with self.database.open_for_writing(wait_s) as connection:
            lost_before, missing_before = (
                self.count_lost_segments(),
                self.count_segments_missing_from_file(connection),
            )
            report = self.load_pending_segments_into(connection)
            self.save_ledger_if_complete(connection)
        restored = max(0, missing_before - (report.missing - lost_before))
        return report.model_copy(update={"restored": restored, "swept": self.journal.remove_stale_files()})

    def load_pending_segments_into(
        self, connection: duckdb.DuckDBPyConnection, folder: str | None = None
    ) -> LoadReport:
        """Through an open connection, load the segments that are not loaded yet. The caller must hold the lock.

        ``folder`` limits the load to the segments of one folder. Lost segments are recorded in the ledger. Errors
        are also stored for `pop_load_errors`, because the next load does not find these errors again.
        """
        report = load_journal(connection, self.journal, self.database.scratch, folder)
        missing = self.count_segments_missing_from_file(connection)
        if missing and (loss := missing - len(list_segments_to_load(connection, self.journal))) > 0:
            ledger = read_ledger(self.database.file)
            if ledger is not None:
                write_ledger(self.database.file, ledger.with_more_lost_segments(loss))
        report = report.with_missing_count(self.count_lost_segments())
        self._load_errors.extend(report.errors())
        return report

    def pop_load_errors(self) -> Sequence[WarehouseDamaged]:
        """Return the load errors of this process since the last call, and clear them."""
        errors = self._load_errors.copy()
        self._load_errors.clear()
        return errors

    def load_and_list_losses(self, wait_s: float) -> Sequence[str]:
        """Load the journal, and return a message for each loss: stored data that can no longer be read.

        The list is empty if the warehouse is complete. Raises `WarehouseBusy`.
        """
        with self.database.open_for_writing(wait_s) as connection:
            report = self.load_pending_segments_into(connection)
            self.save_ledger_if_complete(connection)
        aside = [
            f"{place} was damaged and moved out of the journal; restore the segment from a backup, or delete it"
            for place in self.journal.segments.list_set_aside()
            if all(segment.stored_at != place for segment in report.damaged)
        ]
        return [*map(str, report.errors()), *aside]

    def query(
        self,
        sql: str,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] = (),
        *,
        wait_s: float = DEFAULT_READ_WAIT_S,
    ) -> Table:
        """Run one of Lookout's own queries with ``parameters`` for its placeholders.

        Raises `QueryInvalid` with DuckDB's message for an invalid query and for a result that does not fit into
        memory. Raises `WarehouseBusy` if a writer holds the lock for more than ``wait_s`` seconds.
        """
        with self.database.open_for_reading(wait_s) as connection, _raise_query_invalid():
            return _run_interruptible_query(connection, sql, parameters)

    def query_for_user(self, sql: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> Table:
        """Run one query that a person wrote.

        The query can read loaded data, but cannot access files or the network. Raises the errors of `query`, and
        `QueryInvalid` if ``sql`` is not exactly one statement that only reads.
        """
        with self.database.open_for_reading(wait_s) as connection:
            connection.execute("SET enable_external_access = false")
            with _raise_query_invalid():
                _require_single_read_only_query(connection, sql)
                return _run_interruptible_query(connection, sql, ())

    def list_open_incidents(self, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> tuple[Incident, ...]:
        """Return a target's unresolved incidents, worst first."""
        incidents = self.load_incidents(target, wait_s=wait_s).values()
        unresolved = [
            incident for incident in incidents if incident.resolved_at is None or incident.state != "resolved"
        ]
        return tuple(sorted(unresolved, key=lambda incident: (-incident.severity, incident.opened_at)))

    def load_incidents(self, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> Mapping[str, Incident]:
        """Return the current state of all incidents of a target, by fingerprint."""
        with self.database.open_for_reading(wait_s) as connection:
            return read_incidents(connection, target)

    def find_last_report(
        self,
        target: str,
        suite_sha256: str,
        *,
        except_run: str | None = None,
        wait_s: float = DEFAULT_READ_WAIT_S,
    ) -> RunReport | None:
        """Find the report of the newest finished run of a target with the suite ``suite_sha256``.

        The run ``except_run`` is skipped. Returns ``None`` if there is no such run.
        """
        table = self.query(
            "select report from runs where target = $target and suite_sha256 = $suite and not interrupted"
            " and run_id is distinct from $except_run order by finished_at desc, run_id desc limit 1",
            {"target": target, "suite": suite_sha256, "except_run": except_run},
            wait_s=wait_s,
        )
        return _parse_report(table.rows[0]) if table.rows else None

    def find_report(self, run_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> RunReport | None:
        """Find a run's report. Returns ``None`` if no such run is loaded."""
        table = self.query("select report from runs where run_id = $run", {"run": run_id}, wait_s=wait_s)
        return _parse_report(table.rows[0]) if table.rows else None

    def save_ledger_if_complete(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write the ledger, unless segments are missing in the warehouse file.

        Later loads compare the ledger with the warehouse file to detect lost segments.
        """
        if not self.count_segments_missing_from_file(connection):
            ledger = self.build_ledger(connection)
            write_ledger(
                self.database.file,
                Ledger(segments=ledger.segments, as_of=ledger.as_of, lost=self.count_lost_segments()),
            )

    def build_ledger(self, connection: duckdb.DuckDBPyConnection) -> Ledger:
        """Build the ledger from the number of segments in an open warehouse file."""
        return Ledger(segments=_count_segments(connection), as_of=self.clock())

    def count_segments_missing_from_file(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Count the segments that were committed to the warehouse file and are no longer in the file."""
        ledger = read_ledger(self.database.file)
        return max(0, ledger.segments - _count_segments(connection)) if ledger else 0

    def count_lost_segments(self) -> int:
        """Count the segments that were loaded once and are now in neither the file nor the journal."""
        ledger = read_ledger(self.database.file)
        return ledger.lost if ledger else 0


def read_incidents(connection: duckdb.DuckDBPyConnection, target: str) -> Mapping[str, Incident]:
    """Read the current state of a target's incidents with an open connection. The keys are fingerprints."""
    rows = connection.execute("select record from incidents where target = ?", [target]).fetchall()
    incidents = (Incident.model_validate_json(str(row[0])) for row in rows)
    return {incident.fingerprint: incident for incident in incidents}


def _run_interruptible_query(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Parameter] | Mapping[str, Parameter]
) -> Table:
    """Run a query and fetch its rows. Ctrl-C in the main thread cancels the query."""

    def run() -> Table:
        result = connection.execute(sql, parameters or None)
        columns = tuple(str(column[0]) for column in result.description or ())
        return Table(columns, tuple(result.fetchall()) if columns else ())

    if threading.current_thread() is not threading.main_thread():
        return run()
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(run)
        try:
            return running.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _count_segments(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute("select count(*) from segments").fetchone()
    return int(row[0]) if row else 0


def parse_record_text(text: object, kind: type[Stored], name: str, remains: str) -> Stored:
    """Parse the JSON of a stored record as a record of the type ``kind``.

    Raises `WarehouseDamaged` if the record has another format. The error message contains ``name``, the name of the
    record, and ``remains``, a text about the data that is still available.
    """
    try:
        return kind.model_validate_json(str(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WarehouseDamaged(
            f"Lookout cannot read a stored {name} ({'.'.join(map(str, first['loc']))}: {first['msg']}); {remains}"
        ) from error


def _parse_report(row: Sequence[object]) -> RunReport:
    return parse_record_text(row[0], RunReport, "report", "its figures are still in the views")
