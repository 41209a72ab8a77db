"""P4: appending under contention, and ten million grades.

    python -m tests.bench.bench_warehouse [--grades 10000000] [--folder DIR] [--write docs/warehouse.md]

Beside it, in the same run: DuckDB's own ``executemany`` and one big Appender transaction on a bare table. Wall time is
what counts on an idle machine; the CPU time beside it says what a busy one hides.
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

from tests.bench.warehouse_archives import CASES, GRADES_EACH, six_grades, write_archives
from tests.figures import measured_where, table, write_section
from tests.warehouse.crash_worker import Plan, open_store
from tests.warehouse.sample_rows import assessment
from warehouse.database.check import DERIVED
from warehouse.database.rebuild import rebuild
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow

APPENDS = 50
WRITERS = 4
WARM_TIMES = 7
LISTINGS = dict.fromkeys(("graded_answers", "judged_answers"), "where run_id = 'run-7'")
"""Views of single answers with their texts, which nobody reads whole: of one run."""

LONGEST_APPEND_MS = 1000.0
LONGEST_VIEW_MS = 250.0
SLOWEST_REBUILD = 300_000
"""P4's numbers; the last in rows per second."""


@dataclass
class Figures:
    """What was measured, and what missed its number."""

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

    def lines(self) -> list[str]:
        views = table(("view", "cold ms", "warm ms", "warm CPU ms"), self.views)
        missed = [f"Missed: {'; '.join(self.missed)}."] if self.missed else ["Every number of P4 is met."]
        return [measured_where(), "", *table(("what", "figure"), self.rows), "", *views, "", *missed]


@dataclass
class Span:
    """Seconds of wall and of CPU that something took."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def of(self, rows: int) -> str:
        return (
            f"{self.wall_s:.2f} s, {self.cpu_s:.2f} s of CPU: {rows / self.wall_s:,.0f} rows/s, "
            f"{rows / self.cpu_s:,.0f} per CPU second"
        )


@contextmanager
def timed() -> Iterator[Span]:
    span = Span()
    started, cpu = time.perf_counter(), time.process_time()
    yield span
    span.wall_s, span.cpu_s = time.perf_counter() - started, time.process_time() - cpu


def milliseconds(job: Callable[[], object]) -> float:
    with timed() as span:
        job()
    return span.wall_s * 1000


def bench_append(folder: Path, figures: Figures) -> None:
    """1,000 grades in one append while four other processes append without a pause."""
    store = open_store(Plan(folder, 1))
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
        waits = [milliseconds(lambda number=number: append_thousand(store, number)) for number in range(APPENDS)]
    finally:
        for other in others:
            other.kill()
            other.communicate()
    what = f"append of 1,002 grades while {WRITERS} other processes append without a pause, {APPENDS} times"
    figures.note(what, f"median {median(waits):.0f} ms, longest {max(waits):.0f} ms, no failure")
    figures.must(max(waits) <= LONGEST_APPEND_MS, "no append above 1 s")


def wait_until_writing(store: Store, processes: int) -> None:
    until = time.monotonic() + 60
    while len({name.partition("/")[0] for name in store.journal.segments.names()}) < processes:
        if time.monotonic() > until:
            raise SystemExit("the other writers did not start")
        time.sleep(0.05)


def append_thousand(store: Store, number: int) -> None:
    rows = [
        AssessmentRow(
            row=assessment("bench", f"case-{number}-{case}").model_copy(update={"grades": six_grades(failed=False)})
        )
        for case in range(167)
    ]
    store.journal.append(rows, run_id="bench")


def bench_baselines(folder: Path, figures: Figures) -> None:
    """Bare DuckDB with one process alone: what a monitor would do that wrote its grades directly."""
    rows = [(f"run-{n % 50}", f"case-{n}", 0, n % 6, "quantities", True, "as it should be") for n in range(2000)]
    connection = duckdb.connect(str(folder / "bare.duckdb"))
    connection.execute(
        "create table g (run_id varchar, case_id varchar, repeat int, position int, grader varchar, passed bool,"
        " reason varchar, primary key (run_id, case_id, repeat, position))"
    )
    with timed() as span:
        connection.executemany("insert into g values (?, ?, ?, ?, ?, ?, ?)", rows)
    figures.note("baseline: bare `executemany`, 2,000 grades of 7 columns", span.of(len(rows)))
    many: Sequence[tuple[object, ...]] = [(f"r{n}", *row[1:]) for n in range(100) for row in rows]
    with timed() as span, connection.appender("g") as to:
        to.append_rows(many)
    figures.note(f"baseline: one bare Appender transaction, {len(many):,} grades of 7 columns", span.of(len(many)))
    connection.close()


def bench_load(folder: Path, figures: Figures) -> None:
    """Segments as runs leave them: one per case."""
    store = open_store(Plan(folder, 2))
    store.load_pending(60)
    count = 1000
    with timed() as span:
        for number in range(count):
            one = assessment("run-1", f"case-{number}").model_copy(update={"grades": six_grades(failed=False)})
            store.journal.append([AssessmentRow(row=one)], run_id="run-1")
    figures.note("append of one assessment with six grades, alone", f"{span.wall_s * 1000 / count:.1f} ms")
    with timed() as span:
        store.load_pending(60)
    figures.note(f"load of {count:,} such segments", span.of(count * (1 + GRADES_EACH)))


def bench_many(store: Store, wanted: int, figures: Figures) -> None:
    """Rebuild so many grades from archives, then every named view, cold and warm."""
    runs = -(-wanted // (CASES * GRADES_EACH))
    write_archives(store, runs)
    with timed() as span:
        rebuild(store, wait_s=60)
    with store.database.reading(60) as connection:
        rows = sum(count(connection, name) for name in DERIVED)
        what = f"rebuild of {runs:,} runs: {count(connection, 'grades'):,} grades among {rows:,} rows"
    figures.note(what, span.of(rows))
    figures.must(rows / span.wall_s >= SLOWEST_REBUILD, "rebuild of 300,000 rows/s")
    sizes = f"{store.database.file.stat().st_size / 1e6:,.0f} MB, its archives {folder_mb(store):,.0f} MB"
    figures.note("file for these", sizes)
    for view in named_views(store):
        bench_view(store, view, figures)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    figures.note("most memory that all this took", f"{peak:.1f} GB")


def bench_view(store: Store, view: str, figures: Figures) -> None:
    """Its first thousand rows: cold in a file opened for it, warm in an open one."""
    ask = f"select * from {view} {LISTINGS.get(view, '')} limit 1000"
    cold = milliseconds(lambda: store.query(ask, wait_s=60))
    spans: list[Span] = []
    with store.database.reading(60) as connection:
        connection.execute(ask).fetchall()
        for _ in range(WARM_TIMES):
            with timed() as span:
                connection.execute(ask).fetchall()
            spans.append(span)
    warm, cpu = (median(times) * 1000 for times in ([s.wall_s for s in spans], [s.cpu_s for s in spans]))
    print(f"view {view}: {cold:.0f} ms cold, {warm:.0f} ms warm, {cpu:.0f} ms of CPU", flush=True)
    name = f"`{view}`, one run" if view in LISTINGS else f"`{view}`"
    figures.views.append((name, f"{cold:.0f}", f"{warm:.0f}", f"{cpu:.0f}"))
    figures.must(warm <= LONGEST_VIEW_MS, f"{view} within 250 ms")


def named_views(store: Store) -> list[str]:
    found = store.query("select view_name from duckdb_views() where not internal order by view_name", wait_s=60)
    return [str(row[0]) for row in found.rows]


def count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f"select count(*) from {name}").fetchone()
    return int(row[0]) if row else 0


def folder_mb(store: Store) -> float:
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
