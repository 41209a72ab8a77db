"""Runs only the newest of several missed runs, and lets only one run at a time ask a target.

After an outage, Prefect's server has a late run for each missed time. The first late run that starts cancels all
other runs that a newer run replaces. If a newer run also replaces the first run, the first run ends in the state
Cancelled with the name Skipped. The digest lists the skipped runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterTags,
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterEndTime,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateName,
)
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.sorting import FlowRunSort
from prefect.concurrency.asyncio import (
    AcquireConcurrencySlotTimeoutError,
    ConcurrencySlotAcquisitionError,
    concurrency,
)
from prefect.exceptions import ObjectAlreadyExists, PrefectException
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled

from flows.server.schedules import is_about
from monitors.config.sections import MissedRuns

SKIPPED: Final = "Skipped"
BUSY: Final = "Busy"
"""The name of a job's state if the job was skipped because another run used the warehouse.

The skip is not a fault.
"""
MISSED_AFTER: Final = timedelta(hours=1)
"""Delay after which a run counts as missed. Short delays are normal on a busy machine."""
MAX_RUNS: Final = 200
"""Maximum number of runs that are read: one page of Prefect's API."""
LEASE_S: Final = 60.0
"""Time in seconds after which a killed run no longer blocks its target. Prefect does not allow a shorter time."""
QUIET_WAIT_S: Final = 5.0


async def cancel_missed_runs_of_deployment(policy: MissedRuns, now: datetime) -> State[None] | None:
    """Cancel the missed runs of this run's deployment. If this run was also missed, return its end state.

    Return ``None`` if this run was not missed, or if no Prefect deployment started this run.
    """
    if not deployment.id:
        return None
    async with get_client() as client:
        return await cancel_missed_runs(client, UUID(str(flow_run.id)), policy, now)


async def cancel_missed_runs(
    client: PrefectClient, run_id: UUID, policy: MissedRuns, now: datetime
) -> State[None] | None:
    """Cancel the missed runs of the same deployment as ``run_id``.

    If the run ``run_id`` was also missed, return the state in which it must end, otherwise ``None``. Runs that a
    person or a deploy started are never skipped.
    """
    own = await client.read_flow_run(run_id)
    if not own.auto_scheduled or own.deployment_id is None or policy is MissedRuns.ALL:
        return None
    due_runs = await _list_due_runs(client, own.deployment_id, now)
    newest = max([own, *due_runs], key=_get_due_time)
    for run in due_runs:
        is_other_waiting_run = run.id != own.id and run.state is not None and run.state.is_scheduled()
        if is_other_waiting_run and _is_missed(run, newest, policy, now):
            await client.set_flow_run_state(run.id, _build_skipped_state(run, newest, policy), force=True)
    return _build_skipped_state(own, newest, policy) if _is_missed(own, newest, policy, now) else None


async def _list_due_runs(client: PrefectClient, deployment_id: UUID, now: datetime) -> list[FlowRun]:
    """List the scheduled runs that are due, newest first. Skipped runs are not included."""
    runs = await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id]),
            expected_start_time=FlowRunFilterExpectedStartTime.model_validate({"before_": now}),
            state=FlowRunFilterState(name=FlowRunFilterStateName(not_any_=[SKIPPED])),
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=MAX_RUNS,
    )
    return [run for run in runs if run.auto_scheduled]


def _get_due_time(run: FlowRun) -> datetime:
    if run.expected_start_time is None:
        raise AssertionError("internal error: a scheduled run has no due time")
    return run.expected_start_time


def _is_missed(run: FlowRun, newest: FlowRun, policy: MissedRuns, now: datetime) -> bool:
    if policy is MissedRuns.SKIP and now - _get_due_time(run) > MISSED_AFTER:
        return True
    return _get_due_time(run) < _get_due_time(newest)


def _build_skipped_state(run: FlowRun, newest: FlowRun, policy: MissedRuns) -> State[None]:
    reason = f'schedules.missed is "{policy.value}"'
    if run.id != newest.id:
        reason = f"the run that was due at {_format_due_time(newest)} replaces this run"
    return Cancelled(
        name=SKIPPED, message=f"This run was due at {_format_due_time(run)} and was skipped, because {reason}."
    )


def _format_due_time(run: FlowRun) -> str:
    return f"{_get_due_time(run).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


async def list_skipped_runs(target: str, since: datetime, *, tag: str) -> Sequence[tuple[str, datetime]]:
    """List the deployment's name and the due time of each run that was skipped after ``since``, oldest first.

    The list includes runs about ``target`` and runs about all targets. Only deployments with ``tag`` are
    considered.
    """
    async with get_client() as client:
        deployments = await client.read_deployments(
            deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[tag])), limit=MAX_RUNS
        )
        names = {
            deployment_row.id: deployment_row.name
            for deployment_row in deployments
            if is_about(deployment_row.tags, target)
        }
        if not names:
            return ()
        runs = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                deployment_id=FlowRunFilterDeploymentId(any_=list(names)),
                state=FlowRunFilterState(name=FlowRunFilterStateName(any_=[SKIPPED])),
                end_time=FlowRunFilterEndTime.model_validate({"after_": since}),
            ),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=MAX_RUNS,
        )
    return [
        (names[run.deployment_id], _get_due_time(run))
        for run in runs
        if run.deployment_id is not None and run.deployment_id in names
    ]


@asynccontextmanager
async def hold_target_exclusively(target: str, tag: str, write_line: Callable[[str], None]) -> AsyncGenerator[None]:
    """Let only this run ask ``target`` in the ``with`` block.

    Wait while another run, on any machine, asks this target.

    ``tag`` separates installations. If the server does not answer, the run continues without waiting, because a
    verification must not depend on the server. A run that a person starts with a command does not wait.
    """
    if not deployment.id:
        yield
        return
    name = f"{tag}: {target}"
    async with AsyncExitStack() as stack:
        try:
            async with get_client() as client:
                with suppress(ObjectAlreadyExists):  # another run created the limit at the same time
                    await client.upsert_global_concurrency_limit_by_name(name, 1)
            await _acquire_slot(
                stack, name, lambda: write_line(f"{target}: waiting until another run of this target ends")
            )
        except (ConcurrencySlotAcquisitionError, PrefectException, httpx.HTTPError) as error:
            write_line(
                f"{target}: Lookout cannot limit this target to one run at a time ({type(error).__name__}), and "
                "continues"
            )
        yield


async def _acquire_slot(stack: AsyncExitStack, name: str, on_wait: Callable[[], None]) -> None:
    """Acquire the slot ``name``. The slot is released when ``stack`` is closed."""

    def build_concurrency_slot(timeout_s: float | None) -> AbstractAsyncContextManager[None]:
        return concurrency(
            name, timeout_seconds=timeout_s, lease_duration=LEASE_S, raise_on_lease_renewal_failure=False
        )

    slot = build_concurrency_slot(QUIET_WAIT_S)
    try:
        await slot.__aenter__()
    except AcquireConcurrencySlotTimeoutError:
        on_wait()
        slot = build_concurrency_slot(None)
        await slot.__aenter__()

    async def release() -> None:
        with suppress(Exception):  # without a server, the lease ends after its time, and the run is complete
            await slot.__aexit__(None, None, None)

    stack.push_async_callback(release)
