"""P4: measure appending by several processes, and a rebuild and every view with ten million grades.

    python -m tests.bench.bench_warehouse [--grades 10000000] [--folder DIR] [--write docs/warehouse.md]

Each measurement has a baseline in the same run. The baseline of an append is an Appender transaction with the same
number of rows into a bare file that no other process uses. The baseline of the rebuild is reading the archives'
lines into a table without a key, and that of each view is a bare ``count(*)`` of the grades. A view without rows
measures nothing and counts as missed, so `warehouse_archives` must write rows for it. Wall time counts on an idle
machine. The CPU time shows the cost on a busy machine.

What limits a rebuild: of 4.2 s of CPU time for an archive of 820,000 rows, 3.1 s run on one thread after the other.
DuckDB gives a thread at least 122,880 rows, and an archive has at most that many rows of one kind. Therefore one
thread inserts all rows of a kind. DuckDB also commits on one thread. If the largest insertion was split between two
threads, its commit became slower by the same amount.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import duckdb

from tests.bench.measurements import Figure, report
from tests.bench.warehouse_archives import CASES, GRADES_EACH, build_six_grades, write_archives, write_others
from tests.figures import measured_where, table, write_section
from tests.warehouse.crash_worker import Plan, open_store
from tests.warehouse.sample_rows import assessment
from warehouse.database.check import DERIVED_TABLES
from warehouse.database.rebuild import rebuild_database
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow

APPENDS = 50
WRITERS = 4
WARM_TIMES = 7
LISTINGS = dict.fromkeys(("graded_answers", "judged_answers"), "where run_id = 'run-7'")
"""Views that list single answers with their texts, and the filter for one run with which they are measured.

In practice, these views are read for one run, not as a whole.
"""

MAX_APPEND_MS = 1000.0
MAX_VIEW_MS = 250.0
SLOWEST_REBUILD = 300_000
"""The goal of P4 for a rebuild: minimum number of rows per second."""


@dataclass
class Figures:
    """The measured figures, and the missed goals."""

    rows: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    views: list[tuple[str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str]])
    missed: list[str] = field(default_factory=list[str])

    def note(self, what: str, figure: str) -> None:
        print(f"{what}: {figure}", flush=True)
        self.rows.append((what, figure))

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            print(f"MISSED: {what}", flush=True)
            self.missed.append(what)

    def judge(self, figure: Figure) -> None:
        if not report(figure):
            self.missed.append(f"{figure.id} {figure.what}")

    def lines(self) -> list[str]:
        views = table(("view", "cold ms", "warm ms", "warm CPU ms"), self.views)
        missed = [f"Missed: {'; '.join(self.missed)}."] if self.missed else ["Every number of P4 is met."]
        return [measured_where(), "", *table(("what", "figure"), self.rows), "", *views, "", *missed]


@dataclass
class Span:
    """Wall seconds and CPU seconds of a measurement."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def of(self, rows: int) -> str:
        return (
            f"{self.wall_s:.2f} s, {self.cpu_s:.2f} s of CPU: {rows / self.wall_s:,.0f} rows/s, "
            f"{rows / self.cpu_s:,.0f} per CPU second"
        )


@contextmanager
def measure_s() -> Iterator[Span]:
    span = Span()
    started, cpu = time.perf_counter(), time.process_time()
    yield span
    span.wall_s, span.cpu_s = time.perf_counter() - started, time.process_time() - cpu


def milliseconds(job: Callable[[], object]) -> float:
    with measure_s() as span:
        job()
    return span.wall_s * 1000


def bench_append(folder: Path, figures: Figures) -> None:
    """Measure an append of 1,000 grades while four other processes append without a pause."""
    store, bare = open_store(Plan(folder, 1)), BareFile(folder / "bare.duckdb")
    store.load_pending(60)
    others = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.warehouse.contention", "write", str(folder), f"other-{number}", "100000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        for number in range(WRITERS)
    ]
    try:
        wait_until_writing(store, len(others))
        pairs = [
            (milliseconds(lambda number=number: append_thousand(store, number)), bare.append(number))
            for number in range(APPENDS)
        ]
    finally:
        for other in others:
            other.kill()
            other.communicate()
    waits = [wait for wait, _ in pairs]
    what = f"append of 1,002 grades while {WRITERS} other processes append without a pause, {APPENDS} times"
    figures.note(what, f"median {median(waits):.0f} ms, longest {max(waits):.0f} ms, no failure")
    figures.judge(
        Figure(
            id="P4",
            what=f"append of 1,002 grades while {WRITERS} others append, the longest",
            unit="ms",
            values=tuple(waits),
            goal=MAX_APPEND_MS,
            worst=True,
            baseline="a bare Appender transaction into a file of its own",
            baselines=tuple(alone for _, alone in pairs),
        )
    )


class BareFile:
    """A DuckDB file with one table without a key, used by a single process."""

    def __init__(self, file: Path) -> None:
        self._connection = duckdb.connect(str(file))
        self._connection.execute(
            "create table g (run_id varchar, case_id varchar, repeat int, position int, grader varchar, passed bool,"
            " reason varchar)"
        )

    def append(self, number: int) -> float:
        """Append 1,002 grades, and return the milliseconds."""
        rows = [
            ("bench", f"case-{number}-{n // 6}", 0, n % 6, "quantities", True, "as it is") for n in range(1_002)
        ]

        def transaction() -> None:
            with self._connection.appender("g") as to:
                to.append_rows(rows)

        return milliseconds(transaction)


def wait_until_writing(store: Store, processes: int) -> None:
    until = time.monotonic() + 60
    while len({name.partition("/")[0] for name in store.journal.segments.list_segments()}) < processes:
        if time.monotonic() > until:
            raise SystemExit("the other writers did not start")
        time.sleep(0.05)


def append_thousand(store: Store, number: int) -> None:
    rows = [
        AssessmentRow(
            row=assessment("bench", f"case-{number}-{case}").model_copy(
                update={"grades": build_six_grades(failed=False)}
            )
        )
        for case in range(167)
    ]
    store.journal.append(rows, run_id="bench")


def bench_baselines(folder: Path, figures: Figures) -> None:
    """Measure bare DuckDB with a single process, as in a monitor that writes its grades directly."""
    rows = [(f"run-{n % 50}", f"case-{n}", 0, n % 6, "quantities", True, "as it should be") for n in range(2000)]
    connection = duckdb.connect(str(folder / "bare.duckdb"))
    connection.execute(
        "create table g (run_id varchar, case_id varchar, repeat int, position int, grader varchar, passed bool,"
        " reason varchar, primary key (run_id, case_id, repeat, position))"
    )
    with measure_s() as span:
        connection.executemany("insert into g values (?, ?, ?, ?, ?, ?, ?)", rows)
    figures.note("baseline: bare `executemany`, 2,000 grades of 7 columns", span.of(len(rows)))
    many: Sequence[tuple[object, ...]] = [(f"r{n}", *row[1:]) for n in range(100) for row in rows]
    with measure_s() as span, connection.appender("g") as to:
        to.append_rows(many)
    figures.note(f"baseline: one bare Appender transaction, {len(many):,} grades of 7 columns", span.of(len(many)))
    connection.close()


def bench_load(folder: Path, figures: Figures) -> None:
    """Measure how long it takes to append and to load segments like those of a run: one segment for each case."""
    store = open_store(Plan(folder, 2))
    store.load_pending(60)
    count = 1000
    with measure_s() as span:
        for number in range(count):
            graded = assessment("run-1", f"case-{number}").model_copy(
                update={"grades": build_six_grades(failed=False)}
            )
            store.journal.append([AssessmentRow(row=graded)], run_id="run-1")
    figures.note("append of one assessment with six grades, alone", f"{span.wall_s * 1000 / count:.1f} ms")
    with measure_s() as span:
        store.load_pending(60)
    figures.note(f"load of {count:,} such segments", span.of(count * (1 + GRADES_EACH)))


def bench_many(store: Store, wanted: int, figures: Figures) -> None:
    """Rebuild ``wanted`` grades from archives, then measure every named view, cold and warm."""
    runs = -(-wanted // (CASES * GRADES_EACH))
    write_archives(store, runs)
    with measure_s() as span:
        rebuild_database(store, wait_s=60)
    with store.database.open_for_reading(60) as connection:
        rows = sum(count_rows(connection, name) for name in DERIVED_TABLES)
        what = f"rebuild of {runs:,} runs: {count_rows(connection, 'grades'):,} grades among {rows:,} rows"
    figures.note(what, span.of(rows))
    figures.judge(
        Figure(
            id="P4",
            what="rebuild",
            unit="rows/s",
            values=(rows / span.wall_s,),
            goal=SLOWEST_REBUILD,
            better="higher",
            baseline="lines of the same archives into a table without key, as rows/s",
            baselines=(rows / bare_lines(store).wall_s,),
            note=f"{span.cpu_s:.0f} s of CPU, three quarters of it one thread after the other; one pair, since it "
            "takes a minute",
        )
    )
    write_others(store, runs)
    store.load_pending(60)
    sizes = f"{store.database.file.stat().st_size / 1e6:,.0f} MB, its archives {measure_folder_mb(store):,.0f} MB"
    figures.note("file for these", sizes)
    for view in list_views(store):
        bench_view(store, view, figures)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    figures.note("most memory that all this took", f"{peak:.1f} GB")


def bare_lines(store: Store) -> Span:
    """Load the lines of all archives into a table without a key, without parsing their content."""
    archives = store.database.file.parent / "journal" / "_archive" / "*.parquet"
    with tempfile.TemporaryDirectory(dir=store.database.file.parent) as folder, measure_s() as span:
        connection = duckdb.connect(f"{folder}/bare.duckdb")
        connection.execute("create table bare as select * from read_parquet(?)", [str(archives)])
        connection.close()
    return span


def bench_view(store: Store, view: str, figures: Figures) -> None:
    """Measure how long it takes to read the first thousand rows of a view.

    "Cold" means the first query of a newly opened file, "warm" a query of a file that is already open.
    """
    ask = f"select * from {view} {LISTINGS.get(view, '')} limit 1000"
    cold = milliseconds(lambda: store.query(ask, wait_s=60))
    spans: list[Span] = []
    counts: list[float] = []
    with store.database.open_for_reading(60) as connection:
        rows = len(connection.execute(ask).fetchall())
        for _ in range(WARM_TIMES):
            with measure_s() as span:
                connection.execute(ask).fetchall()
            spans.append(span)
            counts.append(milliseconds(lambda: count_rows(connection, "grades")))
    warm, cpu = (median(times) * 1000 for times in ([s.wall_s for s in spans], [s.cpu_s for s in spans]))
    name = f"`{view}`, one run" if view in LISTINGS else f"`{view}`"
    figures.views.append((name, f"{cold:.0f}", f"{warm:.0f}", f"{cpu:.0f}"))
    figures.must(rows > 0, f"{view} is covered: it has a row")
    figures.judge(
        Figure(
            id="views",
            what=f"{view}, warm",
            unit="ms",
            values=tuple(span.wall_s * 1000 for span in spans),
            goal=MAX_VIEW_MS,
            baseline="count(*) of the grades",
            baselines=tuple(counts),
            note=f"{cold:.0f} ms cold, {cpu:.0f} ms of CPU warm, {rows:,} rows shown",
        )
    )


def list_views(store: Store) -> list[str]:
    views = store.query("select view_name from duckdb_views() where not internal order by view_name", wait_s=60)
    return [str(row[0]) for row in views.rows]


def count_rows(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f"select count(*) from {name}").fetchone()
    return int(row[0]) if row else 0


def measure_folder_mb(store: Store) -> float:
    archive = store.database.file.parent / "journal" / "_archive"
    return sum(file.stat().st_size for file in archive.iterdir()) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grades", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to work: some gigabytes of a real disk")
    parser.add_argument(
        "--write", type=Path, default=None, help="a document whose section figures:bench is renewed"
    )
    asked = parser.parse_args()
    figures = Figures()
    print(measured_where())
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for part in ("append", "load", "many", "bare"):
            (Path(folder) / part).mkdir()
        bench_baselines(Path(folder) / "bare", figures)
        bench_append(Path(folder) / "append", figures)
        bench_load(Path(folder) / "load", figures)
        bench_many(open_store(Plan(Path(folder) / "many", 3)), asked.grades, figures)
    if asked.write:
        write_section(asked.write, "bench", figures.lines())
    return int(bool(figures.missed))


if __name__ == "__main__":
    sys.exit(main())
