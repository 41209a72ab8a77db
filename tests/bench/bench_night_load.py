"""Load and export nights of 1,000,000 conversations, each in 60 s, into one warehouse.

    python -m tests.bench.bench_night_load [--conversations 1000000] [--nights 3] [--folder DIR]

The bench writes segments as a nightly run does: segments of 5,000 counted conversations each, then the sample with
its texts and grades, and the report. The first process of the next nightly run loads these segments. Then
maintenance exports the day as Parquet. No night may take longer than the first night, although the tables already
contain the earlier nights. The baseline is DuckDB alone on the same files, measured in turn with each night:
`read_json` of all lines into a table without a key, and a `copy` of that table to one Parquet file.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from flows.nightly.checkpoint import ROWS_PER_SEGMENT
from tests.bench.measurements import Figure, report
from tests.warehouse.crash_worker import Plan, open_store
from tests.warehouse.sample_nights import night_report, seen
from tests.warehouse.sample_rows import NOON, assessment, exchange
from warehouse.database.parquet import export_parquet
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ConversationRow, JournalRow, NightlyRunRow, ResultRow
from warehouse.journal.segments import EncodedRows

MAX_S = 60.0
MAX_GROWTH = 1.5
SAMPLED = 500
DAY_S = 80_000
TEXT = "Is cataract covered, and after how many months? " * 12
WAIT_S = 60.0


class Span(NamedTuple):
    """Wall seconds and CPU seconds."""

    wall_s: float
    cpu_s: float


def measure_s(job: Callable[[], object]) -> Span:
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return Span(time.perf_counter() - wall, time.process_time() - cpu)


def write_night(store: Store, night: int, count: int) -> list[str]:
    """Write the segments of one night, and return their paths."""
    chance, run_id, known_segments = (
        random.Random(night),
        f"night-{night}",
        set(store.journal.segments.list_segments()),
    )
    begun = NOON + timedelta(days=night)
    line = ConversationRow(row=seen("CONVERSATION", run_id)).model_dump_json()
    before, _, rest = line.partition("CONVERSATION")
    middle, moment, end = rest.partition("2026-03-01T12:00:00Z")
    assert moment
    for first in range(0, count, ROWS_PER_SEGMENT):
        numbers = range(first, min(first + ROWS_PER_SEGMENT, count))
        lines = [
            f"{before}{chance.getrandbits(128):032x}{middle}"
            f"{begun + timedelta(seconds=number * DAY_S // count):%Y-%m-%dT%H:%M:%SZ}{end}\n"
            for number in numbers
        ]
        rows = EncodedRows("".join(lines).encode(), {"conversations": len(numbers)})
        store.journal.append_encoded_rows(rows, run_id=None)
    store.journal.append(build_sample(run_id, night), run_id=run_id)
    store.journal.append([NightlyRunRow(row=night_report(run_id, nights=night))], run_id=run_id)
    return [
        store.journal.segments.format_location(name)
        for name in store.journal.segments.list_segments()
        if name not in known_segments
    ]


def build_sample(run_id: str, night: int) -> list[JournalRow]:
    """Build the sample of one night: conversations with one reply each, and the grades of these replies."""
    rows: list[JournalRow] = []
    for number in range(SAMPLED):
        name = f"talk-{night}-{number}"
        rows.append(ConversationRow(row=seen(name, run_id, sampled_in=TEXT, minutes=1440 * night)))
        rows.append(ResultRow(row=exchange(run_id, name, text=TEXT)))
        rows.append(AssessmentRow(row=assessment(run_id, name)))
    return rows


def measure_bare(paths: list[str], folder: Path) -> tuple[Span, Span]:
    """Measure DuckDB alone: load the lines of ``paths`` into a table without a key, and copy it to Parquet."""
    file = folder / "bare.duckdb"
    connection = duckdb.connect(str(file))
    read = (
        "create table bare as select unnest(\"row\") from read_json(?, format = 'newline_delimited', columns = {"
        "'table': 'VARCHAR', 'row': 'STRUCT(target VARCHAR, source VARCHAR, run_id VARCHAR, id VARCHAR, completed_at"
        " TIMESTAMPTZ, stratum VARCHAR, sampled JSON)'}) where \"table\" = 'conversations'"
    )
    loaded = measure_s(lambda: connection.execute(read, [paths]))
    out = folder / "bare.parquet"
    exported = measure_s(lambda: connection.execute(f"copy bare to '{out}' (format parquet, codec zstd)"))
    connection.close()
    for path in (file, out):
        path.unlink(missing_ok=True)
    return loaded, exported


def format_day(night: int) -> date:
    return (NOON + timedelta(days=night)).date()


def measure_night(store: Store, night: int, count: int, folder: Path) -> tuple[Span, Span, Span, Span]:
    """Measure the load and export of one night, and the baseline."""
    paths = write_night(store, night, count)
    load = measure_s(lambda: store.load_pending(WAIT_S))
    since, until = format_day(night), format_day(night + 1)
    out = measure_s(lambda: export_parquet(store, folder / "export", since=since, until=until, wait_s=WAIT_S))
    counted = store.query(
        "select count(*) from conversations where run_id = $run", {"run": f"night-{night}"}, wait_s=WAIT_S
    )
    assert counted.rows == ((count + SAMPLED,),)
    return load, out, *measure_bare(paths, folder)


def build_figures(nights: list[tuple[Span, Span, Span, Span]], count: int) -> list[Figure]:
    cpu = " and ".join(f"{sum(night[part].cpu_s for night in nights) / len(nights):.1f}" for part in (0, 1))
    note = f"{len(nights)} nights one after the other, since each takes half a minute; {cpu} s of CPU"
    columns = list(zip(*[[span.wall_s for span in night] for night in nights], strict=True))
    loads, exports, bare_loads, bare_exports = columns
    whole = tuple(load + out for load, out in zip(loads, exports, strict=True))
    bare_whole = tuple(load + out for load, out in zip(bare_loads, bare_exports, strict=True))
    rows = f"{count:,} conversations"
    growth = tuple(night[0].cpu_s for night in nights[1:])
    pair: dict[str, Any] = {"unit": "s", "baseline": "DuckDB alone, without key"}
    goal = MAX_S * max(count / 1_000_000, 1.0)
    built = [
        Figure(id="night load", what=f"load of {rows}", values=loads, baselines=bare_loads, **pair),
        Figure(id="night export", what=f"export of {rows}", values=exports, baselines=bare_exports, **pair),
        Figure(
            id="night",
            what=f"load and export of {rows}",
            values=whole,
            baselines=bare_whole,
            goal=goal,
            note=note,
            **pair,
        ),
    ]
    if growth:
        built.append(
            Figure(
                id="night later",
                what="CPU of a load into tables that have nights",
                unit="s",
                values=growth,
                baseline="of the first night",
                baselines=(nights[0][0].cpu_s,) * len(growth),
                of="ratio",
                goal=MAX_GROWTH,
            )
        )
    return built


def main() -> int:
    """Print the figures. Return exit code 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--conversations", type=int, default=1_000_000)
    options.add_argument("--nights", type=int, default=3)
    options.add_argument("--folder", type=Path, default=None, help="where to work: two gigabytes of a real disk")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        store = open_store(Plan(folder / "data", 1))
        (folder / "data").mkdir()
        store.load_pending(WAIT_S)
        nights = [measure_night(store, night, arguments.conversations, folder) for night in range(arguments.nights)]
    missed = [figure.id for figure in build_figures(nights, arguments.conversations) if not report(figure)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
