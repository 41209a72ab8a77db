"""`lookout up` after an outage.

Only one of the missed runs is executed later, paused schedules stay paused, and the schedules of removed targets
are removed.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from flows.server.prefect_server import find_running_server
from tests import fork_server
from tests.deployments.cli.test_up_command import configured
from tests.deployments.up_process import up
from tests.prefect_home import with_tables

VERIFY = "scheduled-verify-bot"
OLD = '[targets.old]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
TRIGGER = '[[deploys.triggers]]\nprovider = "github"\nrepository = "acme/helpdesk"\ntarget = "bot"\n'


class Api:
    """The API of the Prefect server that the installation uses."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def deployments(self):
        return {row["name"]: row for row in self.post("/deployments/filter", {})}

    def runs(self, name):
        """Return the runs of a deployment, the newest first."""
        ids = [row["id"] for row in self.post("/deployments/filter", {}) if row["name"] == name]
        query = {"flow_runs": {"deployment_id": {"any_": ids}}, "sort": "EXPECTED_START_TIME_DESC"}
        return self.post("/flow_runs/filter", query)

    def post(self, path, body):
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def patch(self, path, body):
        assert self.client.patch(path, json=body).is_success


@contextmanager
def server_of(folder) -> Iterator[Api]:
    server = find_running_server(folder / "data" / "prefect")
    assert server is not None
    with httpx.Client(base_url=server.api_url, timeout=60, trust_env=False) as client:
        yield Api(client)


def move_into_the_past(folder, deployment_id: str) -> None:
    """Move the scheduled runs to yesterday and the days before, as if the machine had been off."""
    with closing(sqlite3.connect(folder / "data" / "prefect" / "prefect.db")) as database, database:
        rows = database.execute(
            "select id, state_id from flow_run where replace(deployment_id, '-', '') = ? and state_type = 'SCHEDULED' "
            "order by expected_start_time desc",
            [deployment_id.replace("-", "")],
        ).fetchall()
        assert len(rows) >= 3
        for days, (run_id, state_id) in enumerate(rows, start=1):
            due_at = datetime.now(UTC) - timedelta(days=days)
            stored = due_at.strftime("%Y-%m-%d %H:%M:%S.%f")
            database.execute(
                "update flow_run set expected_start_time = ?, next_scheduled_start_time = ? where id = ?",
                [stored, stored, run_id],
            )
            database.execute(
                "update flow_run_state set state_details = json_set(state_details, '$.scheduled_time', ?) where id = ?",
                [due_at.isoformat(), state_id],
            )


@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.whole_only
def test_after_an_outage_one_missed_run_is_run_and_what_people_paused_stays_paused(tmp_path):
    with_tables(tmp_path / "data" / "prefect")
    with up(configured(tmp_path, TRIGGER + OLD), environment=fork_server.bare()) as running:
        running.until(running.serves, "the runner serves")
        with server_of(tmp_path) as api:
            running.until(lambda: len(api.runs(VERIFY)) >= 3, "Prefect has scheduled the nights")
            running.until(lambda: "fire-drill" in api.deployments(), "all deployments are registered")
            before = api.deployments()
            assert "scheduled-verify-old" in before
            api.post(f"/deployments/{before['digest']['id']}/pause_deployment", None)
            schedule = before["load-warehouse"]["schedules"][0]
            api.patch(
                f"/deployments/{before['load-warehouse']['id']}/schedules/{schedule['id']}", {"active": False}
            )
    move_into_the_past(tmp_path, before[VERIFY]["id"])
    with up(configured(tmp_path), environment=fork_server.bare()) as running:
        running.until(running.serves, "the runner serves")
        with server_of(tmp_path) as api:
            ended = {"COMPLETED", "CANCELLED", "FAILED", "CRASHED"}
            running.until(
                lambda: sum(run["state_type"] in ended for run in api.runs(VERIFY)) >= 3,
                "the missed runs have ended",
            )
            late = [run for run in api.runs(VERIFY) if run["state_type"] in ended]
            assert [run["state_name"] for run in late] == ["Inconclusive", "Skipped", "Skipped"]
            after = api.deployments()
            assert "scheduled-verify-old" not in after
            assert [after[name]["paused"] for name in ("digest", "load-warehouse", VERIFY)] == [True, False, False]
            assert [row["active"] for row in after["load-warehouse"]["schedules"]] == [False]
            assert "scheduled-verify-old is no longer in" in running.said()
            assert running.said().count("paused at Prefect since") == 2
