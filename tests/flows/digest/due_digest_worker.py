"""A process that runs the digest like a worker, including later runs that the digest itself schedules.

Its argument is the path of a lookout.toml. Each input line is a time in ISO format: the process sets its clock to
that time and executes the due runs. Each output line is a JSON list with the state's name and message of each run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import time_machine
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId, FlowRunFilter
from prefect.flow_engine import run_flow_async
from prefect.states import Pending, Scheduled

from flows.digest.flow import digest
from flows.server.registration import build_runner_deployment
from flows.server.schedules import plan_deployments
from monitors.config.file import load_config


async def main() -> None:
    path = Path(sys.argv[1])
    config = load_config(path)
    planned = plan_deployments(config, path, config.schedules)
    (plan,) = (plan for plan in planned if plan.function == "digest")
    async with get_client() as client:
        deployment_id = await (await build_runner_deployment(plan)).aapply()
        only_this = DeploymentFilter(id=DeploymentFilterId(any_=[deployment_id]))
        first_at = datetime.fromisoformat(sys.stdin.readline().strip())
        await client.create_flow_run_from_deployment(deployment_id, state=Scheduled(scheduled_time=first_at))
        await execute_due_runs(client, only_this, first_at)
        for line in sys.stdin:
            await execute_due_runs(client, only_this, datetime.fromisoformat(line.strip()))


async def execute_due_runs(client: PrefectClient, only_this: DeploymentFilter, at: datetime) -> None:
    states = []
    with time_machine.travel(at, tick=True):
        for run in await client.read_flow_runs(flow_run_filter=FlowRunFilter(), deployment_filter=only_this):
            is_waiting = run.state is not None and run.state.is_scheduled() and not run.auto_scheduled
            if not is_waiting or (run.expected_start_time or at) > datetime.now(UTC):
                continue
            await client.set_flow_run_state(run.id, Pending(), force=True)
            pending = await client.read_flow_run(run.id)
            await run_flow_async(
                digest, pending, digest.validate_parameters(pending.parameters), return_type="state"
            )
            state = (await client.read_flow_run(run.id)).state
            assert state is not None
            states.append([state.name, state.message])
    print(json.dumps(states), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
