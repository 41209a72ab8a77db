"""A process that simulates an outage of the worker with Prefect's own scheduler and a simulated clock.

The arguments are a folder with Prefect's database, the policy for missed runs, and the number of days without a
worker. A deployment is registered as `lookout up` does, and Prefect schedules its runs. After the outage, the late
runs begin, oldest first. The output is a JSON list with the due time and the name of the state of each due run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta

import time_machine

SERVICES = (
    *("CANCELLATION_CLEANUP", "EVENT_PERSISTER", "EVENT_LOGGER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS"),
    *("REPOSSESSOR", "SCHEDULER", "TASK_RUN_RECORDER", "TRIGGERS"),
)
"""Background services of Prefect that are disabled, so that they do not change the database between the steps."""
BEGIN = datetime(2027, 3, 1, 0, 30, tzinfo=UTC)


async def live_through(policy: str, days: int) -> list[tuple[str, str]]:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.sorting import FlowRunSort
    from prefect.server.api.server import create_app
    from prefect.server.database import provide_database_interface
    from prefect.server.services.late_runs import mark_flow_run_late
    from prefect.server.services.scheduler import schedule_deployments
    from prefect.states import Completed, Pending, Running

    from flows.server.missed_runs import cancel_missed_runs
    from flows.server.registration import build_runner_deployment
    from flows.server.schedules import Cron, PlannedDeployment
    from monitors.config.file import PREFECT_TAG
    from monitors.config.sections import MissedRuns

    planned = PlannedDeployment(
        tag=PREFECT_TAG,
        name="scheduled-verify-bot",
        flow="verify-deploy",
        when=Cron(line="0 1 * * *", time_zone="UTC"),
        parameters={"request": {"target": "bot", "config_path": "/etc/lookout/lookout.toml"}},
        tags=("target:bot",),
    )
    async with PrefectClient(create_app(ephemeral=True)) as client:
        built = await build_runner_deployment(planned)
        flow_id = await client.create_flow_from_name(planned.flow)
        await client.create_deployment(
            flow_id=flow_id,
            name=planned.name,
            schedules=[schedule.model_dump() for schedule in built.schedules],
            tags=built.tags,
            entrypoint=built.entrypoint,
        )
        for day in range(days):
            with time_machine.travel(BEGIN + timedelta(days=day), tick=True):
                await schedule_deployments()
        back = BEGIN + timedelta(days=days)
        with time_machine.travel(back, tick=True):
            await schedule_deployments()
            runs = await client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_ASC)
            late = [run for run in runs if run.expected_start_time <= back]
            for run in late:
                await mark_flow_run_late(run.id, db=provide_database_interface())
            names = {(await client.read_flow_run(run.id)).state_name for run in late}
            assert names == {"Late"}, names
            for run in late:
                if (await client.read_flow_run(run.id)).state_name != "Late":
                    continue  # cancelled meanwhile
                await client.set_flow_run_state(run.id, Pending(), force=True)
                await client.set_flow_run_state(run.id, Running(), force=True)
                skipped = await cancel_missed_runs(client, run.id, MissedRuns(policy), back)
                await client.set_flow_run_state(run.id, skipped or Completed(name="Pass"), force=True)
            ended = [await client.read_flow_run(run.id) for run in late]
    return [(f"{run.expected_start_time:%d %H:%M}", run.state_name) for run in ended]


if __name__ == "__main__":
    os.environ |= {
        "PREFECT_HOME": sys.argv[1],
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in SERVICES},
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{sys.argv[1]}/prefect.db",
    }
    print(json.dumps(asyncio.run(live_through(sys.argv[2], int(sys.argv[3])))))
