"""Nightly runs under `lookout up`.

The cron schedule starts one on time, and a user starts one on Prefect's page.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import sync_playwright

from flows.data_folder import open_store_in
from flows.server.prefect_server import find_running_server
from monitors.records.nightly import NightlyReport
from tests import fork_server
from tests.builders import gold_case
from tests.deployments.site.browser_pages import CHROMIUM
from tests.deployments.up.moved_clock import Clock
from tests.deployments.up_process import Up, up
from tests.prefect_home import with_tables
from warehouse.queries.traffic import list_recent_nightly_reports

pytestmark = [pytest.mark.prefect, pytest.mark.whole_only]

PERIOD = gold_case("period", turns=("How long is the guarantee?",), gold="24 months")
DAY = timedelta(days=1)


def configure(folder: Path, targets: Sequence[str], ended: datetime) -> Path:
    """Write a configuration in which each target has three conversations in the night that ends at ``ended``."""
    (folder / "suite.jsonl").write_text(PERIOD.model_dump_json() + "\n", encoding="utf-8")
    text = 'data_folder = "data"\n[schedules]\nverify_cron = ""\nrepeatability_cron = ""\n'
    for target in targets:
        rows = [
            {
                "id": f"{target}-{number}",
                "ts": (ended - timedelta(hours=number + 1)).isoformat(),
                "question": PERIOD.question,
                "answer": f"The guarantee lasts {months} months.",
            }
            for number, months in enumerate((24, 24, 36))
        ]
        log = folder / f"{target}.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        text += (
            f'[targets.{target}]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
            f'[targets.{target}.traffic.sources.log]\nkind = "file"\nat = "{log.name}"\n'
        )
    with_tables(folder / "data" / "prefect")
    path = folder / "lookout.toml"
    path.write_text(text, encoding="utf-8")
    return path


def ask(api: str, path: str, **body: Any) -> Any:
    """Send a request to Prefect's API."""
    return httpx.post(f"{api}{path}", json=body, timeout=30, trust_env=False).json()


def list_runs(api: str, target: str) -> list[dict[str, Any]]:
    """List the flow runs of a target's nightly deployment, the earliest first."""
    deployment = {"name": {"any_": [f"grade-traffic-{target}"]}}
    return ask(api, "/flow_runs/filter", deployments=deployment, sort="EXPECTED_START_TIME_ASC")


def wait_for_schedule(running: Up, folder: Path, target: str) -> str:
    """Wait until Prefect has planned the next nightly run, and return the address of Prefect's API."""
    home = folder / "data" / "prefect"
    running.until(lambda: "deployments: " in running.said(), "the runner serves")
    server = find_running_server(home)
    assert server is not None
    running.until(lambda: bool(list_runs(server.api_url, target)), "the next nights are planned")
    return server.api_url


def load_reports(folder: Path, target: str) -> tuple[NightlyReport, ...]:
    store = open_store_in(folder / "data")
    store.load_pending(30)
    return list_recent_nightly_reports(store, target, 5)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="the clock is moved by a library")
def test_the_cron_of_a_night_fires_at_its_own_time(tmp_path):
    """The cron schedule of a nightly run starts the run at the scheduled time, two o'clock.

    All processes start at one o'clock. Then the clock is set to five seconds before two. The test sends no request
    that could start the run.
    """
    now = datetime.now(UTC)
    due_at = now.replace(hour=2, minute=0, second=0, microsecond=0) + 2 * DAY
    clock = Clock(tmp_path)
    clock.set(due_at - timedelta(hours=1) - now)
    path = configure(tmp_path, ["shop"], due_at)
    with up(path, environment=fork_server.bare(), **clock.variables) as running:
        api = wait_for_schedule(running, tmp_path, "shop")
        first = list_runs(api, "shop")[0]
        assert (first["expected_start_time"], first["state_name"]) == (f"{due_at:%Y-%m-%dT%H:%M:%SZ}", "Scheduled")
        assert load_reports(tmp_path, "shop") == ()
        clock.set(due_at - timedelta(seconds=5) - datetime.now(UTC))
        running.until(lambda: list_runs(api, "shop")[0]["state_type"] == "COMPLETED", "the night is graded")
        done = list_runs(api, "shop")[0]
    assert (done["id"], done["state_name"]) == (first["id"], "Graded")
    assert datetime.fromisoformat(done["start_time"]) >= due_at
    (report,) = load_reports(tmp_path, "shop")
    assert (report.due_at, report.until, report.read) == (due_at, due_at, 3)


@pytest.mark.browser
def test_a_person_starts_a_night_with_other_parameters_on_prefect_s_page(tmp_path):
    """A user starts a nightly run with other parameters on Prefect's page.

    The deployment grades one target. The user enters another target on the page for custom runs.
    """
    now = datetime.now(UTC)
    ended = now.replace(hour=2, minute=0, second=0, microsecond=0)
    path = configure(tmp_path, ["shop", "bar"], ended if ended <= now else ended - DAY)
    with up(path, environment=fork_server.bare()) as running:
        api = wait_for_schedule(running, tmp_path, "shop")
        with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM) as browser:
            page = browser.new_page(viewport={"width": 1300, "height": 1000})
            page.set_default_timeout(60_000)
            page.goto(api.removesuffix("/api") + "/deployments")
            page.get_by_role("link", name="grade-traffic-shop").first.click()
            page.get_by_role("button", name="Run", exact=True).click()
            page.get_by_text("Custom run").click()
            name, _, target = (page.get_by_role("textbox").nth(place) for place in range(3))
            page.wait_for_function("document.querySelectorAll('input, textarea')[2]?.value === 'shop'")
            name.fill("asked-by-hand")
            target.fill("bar")
            page.get_by_role("button", name="Submit").click()
            page.get_by_text("asked-by-hand").first.wait_for()

        def find_run() -> dict[str, Any]:
            return next(run for run in list_runs(api, "shop") if run["name"] == "asked-by-hand")

        running.until(lambda: find_run()["state_type"] == "COMPLETED", "the night that was asked for is graded")
        assert (find_run()["state_name"], find_run()["parameters"]["target"]) == ("Graded", "bar")
    assert [(report.target, report.read) for report in load_reports(tmp_path, "bar")] == [("bar", 3)]
    assert load_reports(tmp_path, "shop") == ()
