"""Serves a site with a filled warehouse on loopback, in a thread, for real browsers and plain requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from deployments.site.serve import SiteEnvironment, build_protocol_class, build_site_application
from monitors.config.file import Config, parse_config
from monitors.records.grades import FailureKind
from monitors.records.incidents import Incident
from monitors.records.runs import Verdict
from tests.warehouse.sample_rows import assessment, exchange, incident, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, IncidentRow, IncidentVersion, ResultRow, RunRow

EXAMPLES = {
    "run": "run-1",
    "target": "helpdesk",
    "name": "site.css",
    "case": "case-0",
    "incident": incident("leak").fingerprint,
    "decision": "acknowledge",
    "silence": "S-1",
    "draft": "draft-1",
}
"""Example values for the placeholders in page addresses, for tests of all routes.

A new page needs its values here.
"""

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\"'{{7*7}} javascript:alert(3) ask@example.org"
)


def config_of(folder: Path, **site: object) -> Config:
    """Return a configuration with one target and the given settings of the site."""
    return parse_config(
        {
            "data_folder": str(folder),
            "targets": {"helpdesk": {"url": "http://127.0.0.1:1/", "suite": "suite.jsonl"}},
            "site": site,
        },
        "lookout.toml",
    )


@dataclass
class ServedSite:
    """A running site: its address, its warehouse and its server."""

    address: str
    store: Store
    config: Config


def filled(folder: Path, *, runs: int = 3, cases: int = 4) -> Store:
    """Fill a warehouse with runs of the target ``helpdesk``, whose answers are hostile.

    The last run was an hour ago.
    """
    store = store_in(folder)
    for number in range(runs):
        store.journal.append(run_rows(f"run-{number}", cases, hours_ago=runs - number), run_id=f"run-{number}")
    worst: Incident = incident("leak").model_copy(update={"title": "an account number was shown"})
    store.journal.append([IncidentRow(row=IncidentVersion(sequence=1, incident=worst))], run_id="run-0")
    store.load_pending(5)
    return store


def run_rows(run_id: str, cases: int, *, hours_ago: float) -> list[ResultRow | AssessmentRow | RunRow]:
    """Build the rows of a run with ``cases`` cases. The first case failed with a hostile answer."""
    rows: list[ResultRow | AssessmentRow | RunRow] = []
    for case in range(cases):
        failed = FailureKind.WRONG_FACT if case == 0 else None
        asked = exchange(run_id, f"case-{case}", text=HOSTILE).model_copy(update={"turns": (HOSTILE,)})
        said = assessment(run_id, f"case-{case}", failed=failed).model_copy(update={"reason": HOSTILE})
        rows += [ResultRow(row=asked), AssessmentRow(row=said)]
    finished = datetime.now(UTC) - timedelta(hours=hours_ago)
    report = run_report(run_id).model_copy(
        update={"finished_at": finished, "started_at": finished - timedelta(minutes=5), "verdict": Verdict.FAIL}
    )
    return [*rows, RunRow(row=report)]


@contextmanager
def serving_site(
    config: Config,
    store: Store,
    *,
    host: str = "127.0.0.1",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[ServedSite]:
    """Serve the site during the ``with`` block."""
    application = build_site_application(config, host, SiteEnvironment(now, "me"))
    with serving(application, build_protocol_class(config.site)) as address:
        yield ServedSite(address, store, config)


@contextmanager
def serving(application: ASGIApp, protocol: type[asyncio.Protocol] | str = "auto") -> Iterator[str]:
    """Serve an application on loopback in a thread, and yield its address."""
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            host="127.0.0.1",
            port=0,
            http=protocol,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
        )
    )
    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(server, started)), daemon=True)
    thread.start()
    assert started.wait(60)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


async def _serve(server: uvicorn.Server, started: threading.Event) -> None:
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn tells nobody when it has started
        await asyncio.sleep(0.01)
    started.set()
    await serving
