"""Write experiments to LangSmith. In LangSmith, an experiment is a project that refers to a dataset.

Each row of the experiment is a root run, and its scores are feedback. All ids are computed from the content.
Therefore, a second write updates the existing entries and creates no duplicates. Each request is awaited. The SDK's
background queue is not used.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import JsonValue

from monitors.errors import SourceUnavailable
from monitors.platforms.langsmith.client import LangSmithClient, find_http_status
from monitors.platforms.platform import Dataset, Experiment, ExperimentRow

ID_NAMESPACE: Final = uuid.UUID("0f6f7a52-6f53-4d0a-9a41-0c1d9f4c7b1e")
"""Namespace of the UUIDs that Lookout computes for experiments and runs."""
RUN_NAME: Final = "lookout"
MAX_CONCURRENT: Final = 8
"""Maximum number of rows that are written at the same time."""
_CONFLICT: Final = 409


def make_run_id(experiment_id: str, case_id: str, repeat: int) -> str:
    """Return the run id for one repeat of a case in an experiment."""
    return str(uuid.uuid5(ID_NAMESPACE, f"{experiment_id}/{case_id}/{repeat}"))


class LangSmithExperiments:
    """The `Experiments` of one workspace of LangSmith."""

    def __init__(self, client: LangSmithClient) -> None:
        self._client = client
        self._metadata: dict[str, dict[str, JsonValue]] = {}
        self._ended_at: dict[str, datetime] = {}

    async def start(self, dataset: Dataset, name: str, metadata: Mapping[str, JsonValue]) -> Experiment:
        """See `Experiments.start`.

        Raises `SourceUnavailable` if a project of that name belongs to another dataset.
        """
        experiment_id = str(uuid.uuid5(ID_NAMESPACE, f"{dataset.id}/{name}"))

        async def create() -> Any:
            return await self._client.sdk.create_project(
                name, id=experiment_id, reference_dataset_id=dataset.id, extra={"metadata": dict(metadata)}
            )

        async def create_or_find() -> Any:
            try:
                return await create()
            except Exception as error:  # the SDK's errors have no common type, only the status tells them apart
                if find_http_status(error) != _CONFLICT:
                    raise
                return await self._client.sdk.read_project(project_name=name)

        project = await self._client.call_with_retries(create_or_find, "starting an experiment")
        if str(project.reference_dataset_id) != dataset.id:
            raise SourceUnavailable(
                f"{self._client.name}: a project {name!r} already exists, but it is not an experiment on "
                f"{dataset.name!r}"
            )
        self._metadata[str(project.id)] = dict(metadata)
        place = f"{self._client.web_url}/o/{project.tenant_id}/datasets/{dataset.id}"
        return Experiment(id=str(project.id), name=name, url=f"{place}/compare?selectedSessions={project.id}")

    async def write(self, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
        """See `Experiments.write`. At most `MAX_CONCURRENT` rows are written at the same time.

        The run of a row is written before its scores.
        """
        for start in range(0, len(rows), MAX_CONCURRENT):
            writing = (self._write_row(experiment, row) for row in rows[start : start + MAX_CONCURRENT])
            outcomes = await asyncio.gather(*writing, return_exceptions=True)
            failed = next((outcome for outcome in outcomes if outcome is not None), None)
            if failed is not None:
                raise failed

    async def _write_row(self, experiment: Experiment, row: ExperimentRow) -> None:
        run_id = make_run_id(experiment.id, row.case_id, row.repeat)
        await self._create_or_update_run(run_id, experiment, row)
        for score in row.scores:
            await self._client.store_score(run_id, score, experiment.id)
        self._ended_at[experiment.id] = max(row.ended_at, self._ended_at.get(experiment.id, row.ended_at))

    async def _create_or_update_run(self, run_id: str, experiment: Experiment, row: ExperimentRow) -> None:
        """Create the run of a row, or update the run that an earlier attempt created."""
        result = {
            "outputs": row.outputs,
            "error": row.error,
            "end_time": row.ended_at,
            "extra": {"metadata": row.metadata | {"case": row.case_id, "repeat": row.repeat}},
        }
        place = {
            "session_id": experiment.id,
            "trace_id": run_id,
            "dotted_order": f"{row.started_at.astimezone(UTC):%Y%m%dT%H%M%S%fZ}{run_id}",
            "reference_example_id": row.example_id,
        }
        sdk = self._client.sdk

        async def create_or_update() -> None:
            try:
                await sdk.create_run(
                    RUN_NAME, row.inputs, "chain", id=run_id, start_time=row.started_at, **place, **result
                )
            except Exception as error:  # as in create_or_find
                if find_http_status(error) != _CONFLICT:
                    raise
                await sdk.update_run(run_id, **place, **result)

        await self._client.call_with_retries(create_or_update, f"writing case {row.case_id}")

    async def finish(self, experiment: Experiment) -> None:
        """See `Experiments.finish`. The experiment ends at the time when its last row ended."""
        ended_at, metadata = self._ended_at.get(experiment.id), self._metadata.get(experiment.id, {})

        async def end_project() -> None:
            await self._client.call_sync_client_in_thread(
                lambda sdk: sdk.update_project(experiment.id, end_time=ended_at, metadata=metadata)
            )

        if ended_at is not None:
            await self._client.call_with_retries(end_project, "ending an experiment")
