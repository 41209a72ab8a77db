"""Test the nightly maintenance of the warehouse on a real Prefect server: its steps, messages and final state."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from flows.clock import utc_now
from flows.data_folder import open_store_in
from monitors.alerts.resolve import TARGET_REMOVED
from monitors.records.base import Severity
from monitors.records.incidents import Capability, IncidentKind
from tests import fork_server
from tests.builders import NOON, assessment, exchange, gold_case
from tests.conftest import ROOT
from tests.polling import wait_until
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import incident
from warehouse.journal.rows import AssessmentRow, ResultRow

pytestmark = pytest.mark.prefect

KEY = "a key that is long enough"


class Night(NamedTuple):
    """The result of one maintenance run: the state of the run, and the run's output for users."""

    kind: str
    name: str
    words: str
    said: str


@pytest.fixture(scope="module")
def worker(prefect_environment, tmp_path_factory) -> Iterator[fork_server.Process]:
    """Start one worker process for all maintenance runs of this file."""
    log = (tmp_path_factory.mktemp("night") / "log").open("w")
    with fork_server.start(
        module="tests.flows.maintenance.night_worker",
        cwd=ROOT,
        env=prefect_environment | fork_server.WARM,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
    ) as process:
        yield process
    log.close()


@pytest.fixture
def night(tmp_path, worker) -> Callable[..., Night]:
    """Return a function that runs the maintenance flow on a data folder with three answers from yesterday."""
    store = open_store_in(tmp_path / "data")
    for number in range(3):
        case = gold_case(f"case-{number}", severity=Severity.MAJOR)
        answer = exchange(case).model_copy(update={"asked_at": utc_now() - timedelta(days=1)})
        store.journal.append((ResultRow(row=answer), AssessmentRow(row=assessment(case))), run_id="run-1")
    config = tmp_path / "lookout.toml"

    def run(settings: str = "", *, wait_s: float = 60, ahead_h: float = 0, **variables: str) -> Night:
        config.write_text(
            'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
            f"[warehouse]\n{settings}",
            encoding="utf-8",
        )
        worker.stdin.write(json.dumps([str(config), wait_s, ahead_h, {"LOOKOUT_AGE_KEY": ""} | variables]) + "\n")
        worker.stdin.flush()
        return Night(*json.loads(worker.stdout.readline()))

    return run


def answers(folder: Path) -> list[object]:
    return [row[0] for row in open_store_in(folder / "data").query("select visible_text from results").rows]


def states_on(server: str) -> set[tuple[str, str]]:
    """Return the name and the state of each task in the newest maintenance run on the Prefect server ``server``."""
    with httpx.Client(base_url=server, trust_env=False) as client:
        flows = {"flows": {"name": {"any_": ["load-warehouse"]}}}
        runs = client.post("/flow_runs/filter", json={"sort": "START_TIME_DESC", "limit": 1} | flows).json()
        if not runs:
            return set()
        tasks = client.post("/task_runs/filter", json={"flow_runs": {"id": {"any_": [runs[0]["id"]]}}}).json()
    return {(each["name"].partition("-")[0], each["state_name"]) for each in tasks}


@pytest.mark.whole_only
def test_a_usual_night_does_everything_it_is_asked_to_and_says_nothing(night, tmp_path, prefect_environment):
    settings = 'export_folder = "lake"\npersonal_data_days = 1\ncompact_after_days = 0\n'
    kind, name, words, said = night(settings, LOOKOUT_AGE_KEY=KEY)
    assert (kind, name) == ("COMPLETED", "Sound")
    loaded, _, aged, compacted, checked = (int(part.split()[0].replace(",", "")) for part in words.split("; "))
    assert (loaded, aged, compacted, checked) == (3, 0, 0, 3)
    assert list((tmp_path / "lake" / "results").glob("day=*/part_0.parquet")) != []
    assert len(answers(tmp_path)) == 3
    assert "monitor" not in said.lower()
    done = {("load", "Completed"), ("export", "Completed"), ("age", "Completed"), ("compact", "Completed")}
    assert states_on(prefect_environment["PREFECT_API_URL"]) == done | {
        ("check", "Completed"),
        ("age evidence", "Completed"),
        ("close incidents of removed targets", "Completed"),
    }


@pytest.mark.whole_only
def test_a_damaged_file_is_rebuilt_alerted_once_and_resolved_the_next_night(night, tmp_path):
    (tmp_path / "data" / "warehouse.duckdb").write_bytes(b"garbage" * 1000)
    kind, name, words, said = night()
    assert (kind, name) == ("COMPLETED", "Restored")
    assert "rebuilt from" in words
    assert "not a DuckDB file" in said
    assert len(answers(tmp_path)) == 3
    assert night().name == "Sound"
    store = open_store_in(tmp_path / "data")
    assert [row[0] for row in store.query("select state from incidents").rows] == ["resolved"]


@pytest.mark.whole_only
def test_a_missing_segment_cannot_be_restored_and_fails_the_flow(night, tmp_path):
    open_store_in(tmp_path / "data").load_pending(30)
    next((tmp_path / "data" / "journal" / "run-1").iterdir()).unlink()
    kind, name, words, said = night()
    assert (kind, name) == ("FAILED", "Damaged")
    assert "a backup" in words
    assert "a backup" in said
    assert len(answers(tmp_path)) == 3, "a rebuild would have lost it here too"


@pytest.mark.whole_only
def test_retention_without_its_key_is_reported_and_other_stages_continue(night, tmp_path):
    kind, name, words, said = night("personal_data_days = 1\n")
    assert (kind, name) == ("FAILED", "Incomplete")
    assert "LOOKOUT_AGE_KEY" in said
    assert "3 segments checked" in words
    assert len(answers(tmp_path)) == 3


@pytest.mark.parametrize("known", [True, False], ids=["after a right night", "in the first night"])
@pytest.mark.whole_only
def test_by_a_clock_that_was_set_ahead_nothing_ages_out_and_people_hear_of_it(night, tmp_path, known):
    """If the clock is ahead by forty days or ten years, no answer or screenshot is deleted. The run says why."""
    settings = "personal_data_days = 30\ncompact_after_days = 0\ncheck = false\n"
    picture = tmp_path / "data" / "runs" / "run-1" / "evidence" / "case-1.r0.jpg"
    picture.parent.mkdir(parents=True)
    picture.touch()
    if known:
        assert night(settings, LOOKOUT_AGE_KEY=KEY).name == "Sound"
    texts = answers(tmp_path) if known else None
    for days in (40, 3650):
        kind, name, words, said = night(settings, ahead_h=24 * days, LOOKOUT_AGE_KEY=KEY)
        assert (kind, name) == ("FAILED", "Incomplete")
        assert "ClockAhead" in words
        assert "ClockAhead" in said or "clock" in said
        assert picture.exists()
        assert "" not in answers(tmp_path)
    assert night(settings, LOOKOUT_AGE_KEY=KEY).name == "Sound"
    assert texts in (None, answers(tmp_path))
    assert picture.exists()


@pytest.mark.whole_only
def test_a_locked_file_is_reported_and_nothing_is_lost(night, tmp_path, prefect_environment):
    """If another process locks the warehouse file, the steps that need it fail and are reported.

    No data is lost.
    """
    store = open_store_in(tmp_path / "data")
    with ThreadPoolExecutor(1) as pool:
        with store.database.hold_lock(5):
            going_on = pool.submit(night, "check = false\n", wait_s=0.2)
            busy = {("load", "Failed"), ("compact", "Failed")}
            server = prefect_environment["PREFECT_API_URL"]
            wait_until(
                lambda: busy <= states_on(server) or going_on.done(), timeout_s=240, what="the busy stages failed"
            )
        kind, name, words, said = going_on.result()
    assert (kind, name) == ("COMPLETED", "Busy")
    assert words.count("another run of Lookout uses") == 1
    assert "safe in the journal" in said
    assert len(answers(tmp_path)) == 0
    assert store.load_pending(5).segments == 3


def test_incidents_of_a_target_that_left_the_configuration_are_closed_with_that_reason(night, tmp_path):
    """Incidents of a target that was removed from the configuration are closed with that reason.

    Incidents of configured targets, recent incidents of other targets, and incidents of Lookout itself stay open.
    """
    store = open_store_in(tmp_path / "data")
    fault, since = {"kind": IncidentKind.MONITOR_FAULT}, utc_now() - timedelta(hours=2)
    incidents = [
        incident(name).model_copy(update={"target": target, "case_id": name, "last_notified_at": NOON} | changes)
        for name, target, changes in (
            ("case", "gone", {}),
            ("fault", "gone", fault | {"owner": Capability.NIGHTLY}),
            ("case-2", "demo", {}),
            ("recent", "other", {"last_seen_at": since}),
            ("watch", "deploy-watch", fault | {"owner": Capability.DEPLOYS}),
        )
    ]
    opened = OutboxDecision(incidents=tuple(incidents))
    decide(store, store.journal, "helpdesk", lambda _: opened, wait_s=5)
    assert night().name == "Sound"
    rows = store.query("select target, state from incidents order by target, title").rows
    assert rows == (
        ("demo", "open"),
        ("deploy-watch", "open"),
        ("gone", "resolved"),
        ("gone", "resolved"),
        ("other", "open"),
    )
    closings = store.query(
        "select distinct target, reason, record->'items'->0->'observation'->>'reason' from alerts"
    )
    assert closings.rows == (("gone", "closed", TARGET_REMOVED),)
