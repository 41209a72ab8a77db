"""P11: measure every page of the site with ten million grades, the size of its scripts, and the first paint.

    python -m tests.bench.bench_site [--grades 10000000] [--folder DIR] [--write docs/site.md]

With ``--folder``, the warehouse is created in that folder once and reused. One visitor requests the pages over
HTTP, from a site in a separate process. In each round, each page is requested in turn, and one that does no work
(`/healthz`) is the baseline. The goal applies to the slowest page of the slowest round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx
from playwright.sync_api import sync_playwright

from deployments.cli.reviews.session import REVIEWER_FILE
from deployments.demo.configuration import find_free_port
from deployments.site.application import PAGES
from deployments.site.rendering import load_asset
from monitors.records.grades import FailureKind
from monitors.records.incidents import Redacted
from monitors.records.operator_actions import HumanLabel
from monitors.records.reviews import AnswerVerdict, LabelSource
from monitors.stats.intervals import compute_percentile
from tests.bench.measurements import Figure, report
from tests.bench.warehouse_archives import CASES, GRADES_EACH, build_six_grades, write_archives
from tests.deployments.site.site_server import EXAMPLES
from tests.figures import measured_where, table, write_section
from tests.warehouse.crash_worker import Plan, open_store
from tests.warehouse.sample_rows import assessment, exchange, incident, run_report
from warehouse.database.rebuild import rebuild_database
from warehouse.database.snapshot import build_snapshot_and_store
from warehouse.database.store import Store
from warehouse.journal.rows import (
    AssessmentRow,
    IncidentRow,
    IncidentVersion,
    JournalRow,
    LabelRow,
    ResultRow,
    RunRow,
)

ROUNDS = 5
REQUESTS = 20
"""Number of requests to each page in each round."""
MAX_MS = 200.0
MAX_SCRIPT_BYTES = 60_000
MAX_PAINT_MS = 1000.0
START_S = 120
RECENT_RUNS = 30
"""Number of recent runs, one for each day.

The answers that people are asked to review come from these runs.
"""
REVIEWS = 5_000
LAST = 2**62
"""A sequence number that is larger than all others, so that the example page's incident is sorted last."""
IDLE = "/healthz"
SYSTEM_CHROMIUM = Path("/usr/bin/chromium-headless-shell")
FILTERED = {
    "/runs": "?verdict=FAIL&page=20",
    "/runs/{run}": "?outcome=failed",
    "/cases": "?severity=2&outcome=correct&page=3",
    "/cases/{case}": "?outcome=failed",
    "/judge": "?target=helpdesk&page=20",
    "/review": "?said=wrong&page=5",
    "/compare": "?before=run-7&now=run-40&way=broke",
}
"""Pages whose filters change the warehouse query. They are measured with and without their filters."""


def warehouse_in(folder: Path, grades: int) -> Store:
    """Return the warehouse in ``folder``. If the warehouse has no grades yet, create ``grades`` grades."""
    store = open_store(Plan(folder, 3))
    if not store.database.file.exists():
        write_archives(store, -(-grades // (CASES * GRADES_EACH)))
        rebuild_database(store, wait_s=60)
        for run in range(RECENT_RUNS):
            store.journal.append(write_recent_run(f"recent-{run}", days_ago=run), run_id=f"recent-{run}")
        store.journal.append(reviews(), run_id=None)
        store.journal.append(
            [IncidentRow(row=IncidentVersion(sequence=LAST, incident=incident("leak")))], run_id=None
        )
        store.load_pending(60)
        (folder / REVIEWER_FILE).write_text("bench\n", encoding="utf-8")
    return store


def write_recent_run(run_id: str, *, days_ago: int) -> list[JournalRow]:
    """Return the rows of a run that ended ``days_ago`` days ago.

    The run is recent enough that people are still asked to review its answers.
    """
    at = datetime.now(UTC) - timedelta(days=days_ago, hours=1)
    rows: list[JournalRow] = []
    for case in range(CASES):
        asked = exchange(run_id, f"case-{case}", text="The waiting period is two years. " * 8)
        failed = FailureKind.WRONG_FACT if case % 25 == 0 else None
        assessed = assessment(run_id, f"case-{case}", failed=failed)
        assessed = assessed.model_copy(update={"grades": build_six_grades(failed=failed is not None)})
        rows += [ResultRow(row=asked.model_copy(update={"asked_at": at})), AssessmentRow(row=assessed)]
    report = run_report(run_id).model_copy(update={"started_at": at - timedelta(minutes=5), "finished_at": at})
    return [*rows, RunRow(row=report)]


def reviews() -> list[JournalRow]:
    """Return reviews by people, spread over all runs. One reviewed answer in ten is labelled wrong."""
    return [
        LabelRow(
            row=HumanLabel(
                id=f"review-asha-{number}",
                at=datetime.now(UTC) - timedelta(minutes=number),
                by="asha",
                target="helpdesk",
                run_id=f"run-{number % 3000}",
                case_id=f"case-{number * 7 % CASES}",
                reason=Redacted("seen"),
                source=LabelSource.REVIEW,
                answer=AnswerVerdict.WRONG if number % 10 == 0 else AnswerVerdict.RIGHT,
                inclusion_probability=1.0 if number % 25 == 0 else 0.05,
            )
        )
        for number in range(REVIEWS)
    ]


@contextmanager
def serve_site(folder: Path) -> Iterator[tuple[str, int]]:
    """Start ``lookout site`` with the data of ``folder`` in a separate process.

    Yield its address and process id.
    """
    port = find_free_port("127.0.0.1", 0)
    config = folder / "lookout.toml"
    config.write_text(
        f'data_folder = "."\n[targets.helpdesk]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n[site]\nport = {port}\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "deployments.cli.app", "site", "--config", str(config)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": "."})
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + START_S
        while not answers(address):
            if time.monotonic() > until:
                raise SystemExit("the site did not start")
            time.sleep(0.1)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_ms(pid: int) -> float:
    """Return the CPU time that a process has used so far, in milliseconds."""
    spent = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(spent[11]) + int(spent[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


class PageTimes:
    """The response times of one page: of the first response, and of all responses in each round.

    ``cpu_ms`` is the server's CPU time for the responses in all rounds.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.first_ms = 0.0
        self.rounds: list[list[float]] = []
        self.cpu_ms = 0.0

    def ask(self, client: httpx.Client, address: str, pid: int) -> None:
        """Request the page as often as one round requires."""
        url = address + self.path.format(**EXAMPLES)
        if not self.rounds:
            self.first_ms = measure_answer_ms(client, url)
        before = cpu_ms(pid)
        self.rounds.append([measure_answer_ms(client, url) for _ in range(REQUESTS)])
        self.cpu_ms += cpu_ms(pid) - before

    @property
    def all_ms(self) -> list[float]:
        """Return the response times of all rounds, in milliseconds."""
        return [took for one in self.rounds for took in one]

    def p95_ms(self, number: int) -> float:
        """Return the 95th percentile of the response times of one round, in milliseconds."""
        return compute_percentile(self.rounds[number], 0.95)

    def row(self) -> tuple[str, ...]:
        """Format the page's row of the table in the document."""
        took = self.all_ms
        figures = (f"{median(took):.1f}", f"{compute_percentile(took, 0.95):.1f}", f"{self.cpu_ms / len(took):.1f}")
        return (f"`{self.path}`", f"{self.first_ms:.0f}", *figures)


def measure_answer_ms(client: httpx.Client, url: str) -> float:
    """Return the time until the whole response has arrived, in milliseconds."""
    started = time.perf_counter()
    answer = client.get(url)
    took = (time.perf_counter() - started) * 1000
    if answer.status_code != 200:
        raise SystemExit(f"{url}: {answer.status_code}")
    return took


def measure_paint_ms(address: str) -> float:
    """Return the first contentful paint that Chromium reports, in milliseconds."""
    path = os.environ.get("CHROMIUM_PATH") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        started_at = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return float(started_at)


def main() -> int:
    """Report the figures, and update the section of the document if ``--write`` is given.

    Return exit code 1 if a goal is missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grades", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        store = warehouse_in(folder, asked.grades)
        pages, painted = measure_pages(folder)
        copied_s, facts = describe_baseline(store)
    figures = [
        *build_speed_figures(pages, facts[0][1].rpartition(", ")[0]),
        *build_weight_figure(painted),
        copy_page(copied_s, facts[-1][1]),
    ]
    missed = [figure for figure in figures if not report(figure)]
    slowest = max(painted, key=lambda timed: timed[1])
    rows = [
        *(timed.row() for timed in pages),
        (f"first paint in a browser, `{slowest[0]}`", f"{slowest[1]:.0f}", "", "", ""),
    ]
    lines = [
        measured_where(),
        "",
        *table(("page", "first, ms", "median, ms", "p95, ms", "CPU of the server, ms"), rows),
        "",
        *table(("what", "figure"), facts),
        "",
        f"Missed: {'; '.join(timed.what for timed in missed)}." if missed else "Every number of P11 is met.",
    ]
    if asked.write:
        write_section(asked.write, "bench", lines)
    else:
        print("\n".join(lines))
    return int(bool(missed))


def measure_pages(folder: Path) -> tuple[list[PageTimes], list[tuple[str, float]]]:
    """Measure the response times of every page, the baseline first, and the first paint of each page.

    The first paint is measured in a browser, in milliseconds, and without filters.
    """
    paths = [route.path for route in PAGES if route.path != "/now"]
    pages = [PageTimes(path) for path in [IDLE, *paths, *(path + query for path, query in FILTERED.items())]]
    with serve_site(folder) as (address, pid), httpx.Client(trust_env=False, timeout=60) as client:
        for _ in range(ROUNDS):
            for page in pages:
                page.ask(client, address, pid)
        painted = [(path, measure_paint_ms(address + path.format(**EXAMPLES))) for path in paths]
    return pages, painted


def build_speed_figures(pages: Sequence[PageTimes], size: str) -> list[Figure]:
    """Build the figures with the slowest page of each round, compared with the page that does no work."""
    idle, others = pages[0], pages[1:]
    slowest = [max(others, key=lambda page, number=number: page.p95_ms(number)) for number in range(ROUNDS)]
    names = ", ".join(dict.fromkeys(f"`{page.path}`" for page in slowest))
    return [
        Figure(
            id="P11",
            what=f"slowest of {len(others)} pages over {size} grades, p95",
            unit="ms",
            values=tuple(page.p95_ms(number) for number, page in enumerate(slowest)),
            goal=MAX_MS,
            baseline="a page that does nothing, p95, ms",
            baselines=tuple(idle.p95_ms(number) for number in range(ROUNDS)),
            worst=True,
            note=f"the slowest is {names}; {ROUNDS} rounds of {REQUESTS} requests to each page",
        ),
        Figure(
            id="P11",
            what="the middle page, median",
            unit="ms",
            values=tuple(median(median(page.rounds[number]) for page in others) for number in range(ROUNDS)),
            baseline="a page that does nothing, median, ms",
            baselines=tuple(median(idle.rounds[number]) for number in range(ROUNDS)),
        ),
    ]


def build_weight_figure(painted: Sequence[tuple[str, float]]) -> list[Figure]:
    """Build two figures about a first visit: the size of the script, and the time until the first paint."""
    script = len(load_asset("site.js").encode())
    return [
        Figure(
            id="P11",
            what="script that a page loads, uncompressed",
            unit="bytes",
            values=(float(script),),
            goal=MAX_SCRIPT_BYTES,
        ),
        Figure(
            id="P11",
            what=f"first paint in a browser, {len(painted)} pages",
            unit="ms",
            values=tuple(took for _, took in painted),
            goal=MAX_PAINT_MS,
            worst=True,
            note=f"the slowest is `{max(painted, key=lambda painted_page: painted_page[1])[0]}`",
        ),
    ]


def copy_page(took_s: float, label: str) -> Figure:
    """Build the figure about the time to renew the copy of the warehouse that the site's pages read."""
    return Figure(
        id="P11",
        what="a new copy of the warehouse, opened",
        unit="s",
        values=(took_s,),
        note=label.partition("for ")[2],
    )


def describe_baseline(store: Store) -> tuple[float, list[tuple[str, str]]]:
    """Return the seconds that a new copy of the warehouse takes, and rows that describe the measured site."""
    script = len(load_asset("site.js").encode())
    with store.database.open_for_writing(60) as connection:
        grades = connection.execute("select count(*) from grades").fetchone()
        runs = connection.execute("select count(*) from runs").fetchone()
        connection.execute("create or replace table bench_marker as select 1 as n")
        connection.execute("drop table bench_marker")
    snapshot, _ = build_snapshot_and_store(store)
    started = time.perf_counter()
    snapshot.refresh(60)
    took = time.perf_counter() - started
    snapshot.close()
    size = store.database.file.stat().st_size / 1e6
    return took, [
        ("grades, runs", f"{grades[0] if grades else 0:,}, {runs[0] if runs else 0:,}"),
        ("script that a page loads, uncompressed", f"{script:,} bytes"),
        ("a new copy of the warehouse, opened", f"{took:.2f} s for {size:,.0f} MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
