"""Register a deployment on a real Prefect server, and read its runs, for tests of deploys."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from flows.deploys.queue import QueuedDeploy
from monitors.records.targets import DeployEvent, ReportedDeploy
from tests.deployments.triggers.senders import COMMIT, NOW


def reported(commit: str = COMMIT, *, target: str = "bot", by: str = "github", **values: Any) -> ReportedDeploy:
    event = DeployEvent(target=target, commit=commit, occurred_at=NOW, reported_by=by)
    return ReportedDeploy(event=event, **values)


def queued(commit: str = COMMIT, **values: Any) -> QueuedDeploy:
    return QueuedDeploy(deploy=reported(commit, **values), stored_at=NOW)


def commits(count: int) -> list[str]:
    """Return ``count`` commits, which are the same at every call."""
    return [f"{number:040x}" for number in range(1, count + 1)]


@dataclass
class Registered:
    """A registered deployment. Only these tests use its flow, so that the runs of other tests are not counted."""

    client: Any
    name: str
    flow_id: uuid.UUID
    id: uuid.UUID

    async def polled(self) -> None:
        """Poll for due runs as Prefect's worker does, and wait until the server has recorded the poll."""
        while (await self.client.read_deployment(self.id)).last_polled is None:
            await self.client.get_scheduled_flow_runs_for_deployments(deployment_ids=[self.id])

    async def runs(self) -> list[Any]:
        """Return all runs of the deployment."""
        from prefect.client.schemas.filters import FlowFilter, FlowFilterId  # seconds to import

        return await self.client.read_flow_runs(flow_filter=FlowFilter(id=FlowFilterId(any_=[self.flow_id])))

    async def commits(self) -> list[str]:
        """Return the commit of each run, sorted. If a commit occurs twice, it wrongly got two runs."""
        return sorted(run.parameters["request"]["commit"] for run in await self.runs())


@asynccontextmanager
async def registered(api: str) -> AsyncGenerator[Registered]:
    """Register a deployment with the parameters of the real flow. No worker executes its runs."""
    from prefect.client.orchestration import PrefectClient  # seconds to import
    from prefect.utilities.callables import parameter_schema

    from flows.verify.flow import verify_deploy

    name = f"verify-{uuid.uuid4().hex[:8]}"
    async with PrefectClient(api) as client:
        flow_id = await client.create_flow_from_name(name)
        schema = parameter_schema(verify_deploy.fn).model_dump()
        deployment = await client.create_deployment(
            flow_id, "after-deploy", parameter_openapi_schema=schema, enforce_parameter_schema=True
        )
        yield Registered(client, f"{name}/after-deploy", flow_id, deployment)
