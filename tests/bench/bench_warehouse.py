"""P4: appending under contention, and ten million grades.

    python -m tests.bench.bench_warehouse [--grades 10000000] [--folder DIR]

Beside it, in the same run: DuckDB's own ``executemany`` and one big Appender transaction on a bare table.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from monitors.records.base import Finding
from monitors.records.grades import Aspect, FailureKind, Judged
from tests.warehouse.crash_worker import Plan, open_store
from tests.warehouse.sample_rows import assessment, exchange, grades, run_report
from warehouse.archive import ArchivedSegment, Manifest, file_sha256
from warehouse.compact import publish
from warehouse.rebuild import rebuild
from warehouse.rows import AssessmentRow
from warehouse.segment import SegmentHeader
from warehouse.store import Store

CASES = 512
GRADES_EACH = 6
RUNS_PER_ARCHIVE = 200
VIEWS = (
    "run_summary",
    "score_trend",
    "failures_by_kind",
    "metric_targets",
    "path_winners",
    "latency",
    "cost",
    "judge_agreement",
    "flaky_cases",
    "open_incidents",
    "coverage",
    "unsent_alerts",
)


@contextmanager
def timed(label: str, of: int = 0) -> Iterator[None]:
    started, cpu = time.perf_counter(), time.process_time()
    yield
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    rate = f", {of / seconds:,.0f} rows/s ({of / cpu_s:,.0f} per CPU second)" if of else ""
    print(f"{label}: {seconds:.2f} s, {cpu_s:.2f} s of CPU{rate}", flush=True)


def six_grades(*, failed: bool) -> tuple[Judged, ...]:
    """Five plain graders and a judge, as a case has them."""
    plain = [
        Judged(grader=f"grader-{number}", version="1", aspect=aspect, passed=True, reason="as it should be")
        for number, aspect in enumerate((Aspect.CITATION, Aspect.REFUSAL, Aspect.DISCLOSURE, Aspect.ERROR_LEAK))
    ]
    fact = Judged(
        grader="quantities",
        version="1",
        aspect=Aspect.FACTUAL_MATCH,
        passed=not failed,
        failure_kind=FailureKind.WRONG_FACT if failed else None,
        reason="24 months against 36 months" if failed else "24 months is there",
    )
    judge = next(each for each in grades() if isinstance(each, Judged) and each.lineage)
    return (*plain, fact, judge.model_copy(update={"aspect": Aspect.FACTUAL_MATCH}))


def templates() -> tuple[str, str, str, str]:
    """JSON of a good and a bad assessment, an exchange and a report, with RUN and CASE to be filled in."""
    good = assessment("RUN", "CASE").model_copy(update={"grades": six_grades(failed=False)})
    bad = assessment("RUN", "CASE", failed=FailureKind.WRONG_FACT).model_copy(
        update={"grades": six_grades(failed=True), "factual_match": Finding.NO}
    )
    answer = exchange("RUN", "CASE", text="The waiting period is two years. " * 8)
    return (
        good.model_dump_json(),
        bad.model_dump_json(),
        answer.model_dump_json(),
        run_report("RUN").model_dump_json(),
    )


def write_archives(store: Store, runs: int) -> None:
    """Archives as a compaction leaves them, made in bulk: one segment per run, 512 cases of six grades each."""
    good, bad, answer, report = templates()
    connection = duckdb.connect()
    for first in range(0, runs, RUNS_PER_ARCHIVE):
        chosen = range(first, min(first + RUNS_PER_ARCHIVE, runs))
        file = store.database.scratch
        connection.execute(
            "create or replace temp table picked as select unnest(?::integer[]) as run", [list(chosen)]
        )
        connection.execute(
            f"""
            copy (
              select segment_of(run) as segment_id, position, table_name, row_json from (
                select run, 2 * c as position, 'results' as table_name,
                  replace(replace(replace($answer, 'RUN', 'run-' || run), 'CASE', 'case-' || c),
                    '1500.0', (900 + hash(run * 1000 + c) % 4000)::varchar || '.5') as row_json
                from picked, range({CASES}) t(c)
                union all
                select run, 2 * c + 1, 'assessments',
                  replace(replace(if(hash(run * 1000 + c) % 25 = 0, $bad, $good), 'RUN', 'run-' || run),
                    'CASE', 'case-' || c)
                from picked, range({CASES}) t(c)
                union all
                select run, {2 * CASES}, 'runs', replace(replace($report, 'RUN', 'run-' || run), '2026-03-01T12',
                  strftime(timestamp '2023-01-01' + interval (run * 3) hour, '%Y-%m-%dT%H'))
                from picked
              ) order by segment_id, position
            ) to '{file}' (format parquet, codec zstd)
            """.replace("segment_of(run)", "'20230101T000000.' || lpad(run::varchar, 6, '0') || 'Z-00'"),
            {"answer": answer, "good": good, "bad": bad, "report": report},
        )
        segments = tuple(archived(run) for run in chosen)
        publish(store.journal, Manifest(sha256=file_sha256(file), segments=segments), file)


def archived(run: int) -> ArchivedSegment:
    name = f"20230101T000000.{run:06d}Z-00"
    header = SegmentHeader(
        id=name,
        run_id=f"run-{run}",
        rows={"results": CASES, "assessments": CASES, "runs": 1},
        sha256=hashlib.sha256(name.encode()).hexdigest(),
    )
    return ArchivedSegment(header=header, name=f"run-{run}/{name}.jsonl", size_bytes=1)


def bench_many(store: Store, wanted: int) -> None:
    runs = -(-wanted // (CASES * GRADES_EACH))
    total = runs * CASES * GRADES_EACH
    lines = runs * (2 * CASES + 1)
    with timed(f"{runs:,} runs written as archives ({lines:,} lines)"):
        write_archives(store, runs)
    with timed(f"rebuild: {total:,} grades, {runs * CASES:,} assessments, as many results", total + lines):
        rebuild(store, wait_s=60)
    print(f"file: {store.database.file.stat().st_size / 1e6:,.0f} MB, archives: {folder_mb(store):,.0f} MB")
    for view in VIEWS:
        cold = milliseconds(lambda view=view: store.query(f"select * from {view} limit 1000", wait_s=60))
        with store.database.reading(60) as connection:
            ask = f"select * from {view} limit 1000"
            warm = min(milliseconds(lambda ask=ask: connection.execute(ask).fetchall()) for _ in range(5))
        print(f"view {view}: {cold:.0f} ms cold (opened for it), {warm:.0f} ms warm", flush=True)


def folder_mb(store: Store) -> float:
    archive = store.database.file.parent / "journal" / "_archive"
    return sum(file.stat().st_size for file in archive.iterdir()) / 1e6


def milliseconds(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    job()
    return (time.perf_counter() - started) * 1000


def bench_append(folder: Path) -> None:
    """1,000 grades in one append while four other processes append without a pause."""
    store = open_store(Plan(folder, 1))
    store.load_pending(60)
    others = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.warehouse.contention", "write", str(folder), f"other-{number}", "100000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    try:
        wait_until_writing(store, len(others))
        waits = [milliseconds(lambda number=number: append_thousand(store, number)) for number in range(50)]
    finally:
        for other in others:
            other.kill()
            other.communicate()
    waits.sort()
    print(
        f"append of 1,002 grades beside four writers: median {waits[25]:.1f} ms, longest {waits[-1]:.1f} ms (50 times)"
    )


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


def bench_baselines(folder: Path) -> None:
    """Bare DuckDB with one process alone: what a monitor would do that wrote its grades directly."""
    rows = [(f"run-{n % 50}", f"case-{n}", 0, n % 6, "quantities", True, "as it should be") for n in range(2000)]
    connection = duckdb.connect(str(folder / "bare.duckdb"))
    connection.execute(
        "create table g (run_id varchar, case_id varchar, repeat int, position int, grader varchar, passed bool,"
        " reason varchar, primary key (run_id, case_id, repeat, position))"
    )
    with timed("baseline executemany, 2,000 grades", len(rows)):
        connection.executemany("insert into g values (?, ?, ?, ?, ?, ?, ?)", rows)
    many: Sequence[tuple[object, ...]] = [(f"r{n}", *row[1:]) for n in range(100) for row in rows]
    with (
        timed(f"baseline one Appender transaction, {len(many):,} grades", len(many)),
        connection.appender("g") as to,
    ):
        to.append_rows(many)
    connection.close()


def bench_load(folder: Path) -> None:
    """Segments as runs leave them: one per case."""
    store = open_store(Plan(folder, 2))
    count = 1000
    with timed(f"{count:,} appends of an assessment with six grades, one after the other"):
        for number in range(count):
            one = assessment("run-1", f"case-{number}").model_copy(update={"grades": six_grades(failed=False)})
            store.journal.append([AssessmentRow(row=one)], run_id="run-1")
    with timed(f"load of {count:,} segments", count * (1 + GRADES_EACH)):
        store.load_pending(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    print(f"P4 at {datetime.now(UTC):%Y-%m-%d}, DuckDB {duckdb.__version__}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for part in ("append", "load", "many", "bare"):
            (Path(folder) / part).mkdir()
        bench_baselines(Path(folder) / "bare")
        bench_append(Path(folder) / "append")
        bench_load(Path(folder) / "load")
        bench_many(open_store(Plan(Path(folder) / "many", 3)), asked.grades)


if __name__ == "__main__":
    main()
