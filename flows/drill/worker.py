"""Runs a drill in this installation's Prefect worker, and shows the result of each station.

If Prefect or the worker does not work, the drill fails, and this process notifies people.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from flows.data_folder import get_prefect_home, open_store
from flows.drill.context import DrillContext, StationFailed, build_drill_context
from flows.drill.course import Course, OnStation, Station, read_drill_report_file
from flows.drill.stations import REQUEST_TIMEOUT_S
from flows.drill.wrong_answer import LOAD_WAIT_S
from flows.server import prefect_server
from flows.server.schedules import DRILL
from monitors.alerts.redact import redact
from monitors.config.file import Config
from monitors.errors import MonitorError
from monitors.records.self_checks import DrillReport, DrillStation, StationResult, StationState
from warehouse.queries.drills import find_last_drill

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun

POLL_S: Final = 0.5
SILENCE_TIMEOUT_S: Final = 400.0
"""Maximum time in seconds between two station results from the worker.

If no result arrives in this time, the worker has stopped or hangs. The timeout of a single station is shorter.
"""
STATIONS_BEFORE_WORKER: Final = 2
"""The number of stations that run in this process: one tests Prefect, and one tests the worker."""
REGISTER_HINT: Final = "start `lookout up`, or deploy to your work pool with `lookout prefect-yaml --deploy`"
UP_HINT: Final = "start `lookout up`, and read its log"


async def run_drill_in_worker(
    config: Config, config_path: Path, on_station: OnStation, environment: MutableMapping[str, str]
) -> DrillReport:
    """Run a drill in the worker and return the report of the drill.

    If Prefect or the worker does not work, no further station runs, and people are notified. The function sets
    variables for Prefect's client in ``environment``, because the client reads these variables at import.
    """
    drill = build_drill_context(config, config_path)
    follower = _DrillFollower(drill, on_station)
    try:
        api = await follower.run_station(DrillStation.PREFECT, lambda: _find_prefect_api_url(config, environment))
        # Prefect's client reads these when it is imported.
        for name, value in prefect_server.build_client_settings(api, get_prefect_home(config)).items():
            environment.setdefault(name, value)
        return await follower.run_to_end(api)
    except StationFailed:
        return await Course(drill, on_station, follower.results).run()


async def _find_prefect_api_url(config: Config, environment: Mapping[str, str]) -> str:
    server = None
    api = config.prefect.api_url or environment.get("PREFECT_API_URL")
    if api is None:
        server = prefect_server.find_running_server(get_prefect_home(config))
        api = server.api_url if server else None
    if api is None:
        raise StationFailed("no Prefect server is running for this data folder", UP_HINT)
    try:
        async with httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S) as client:
            (await client.get(f"{api}/health")).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StationFailed(
            f"the Prefect server does not answer ({type(error).__name__})",
            "start this Prefect server, or change prefect.api_url",
        ) from error
    return api


class _DrillFollower:
    """Follows a drill that the worker runs, and calls ``on_station`` once with the result of each station."""

    def __init__(self, drill: DrillContext, on_station: OnStation) -> None:
        self._drill = drill
        self._on_station = on_station
        self.results: list[StationResult] = []
        self._worker_hint = UP_HINT

    async def run_station(self, name: DrillStation, station: Station) -> str:
        """Run a station in this process and add its result. Raises `StationFailed` if the station fails."""
        began_s = self._drill.monotonic()
        try:
            finding = await station()
        except StationFailed as failed:
            self._add_result(name, StationState.FAILED, str(failed), began_s, failed.to_do)
            raise
        self._add_result(name, StationState.PASSED, "it answers", began_s)
        return finding

    async def run_to_end(self, api: str) -> DrillReport:
        """Create the Prefect run of the drill and follow the run until it ends.

        Raises `StationFailed` if no worker executes the run.
        """
        from prefect.client.orchestration import PrefectClient  # Prefect reads its settings at import

        began_s = self._drill.monotonic()
        async with PrefectClient(api) as client:
            try:
                run = await self._create_run_and_wait_for_worker(client)
            except StationFailed as failed:
                self._add_result(DrillStation.WORKER, StationState.FAILED, str(failed), began_s, failed.to_do)
                raise
            self._add_result(DrillStation.WORKER, StationState.PASSED, "a worker started the drill", began_s)
            return await self._wait_for_end(client, run)

    def _add_result(
        self, name: DrillStation, state: StationState, finding: str, began_s: float, to_do: str = ""
    ) -> None:
        took_s = max(0.0, self._drill.monotonic() - began_s)
        result = StationResult(station=name, state=state, took_s=took_s, found=redact(finding), to_do=to_do)
        self.results.append(result)
        self._on_station(result)

    async def _create_run_and_wait_for_worker(self, client: PrefectClient) -> FlowRun:
        from prefect.exceptions import ObjectNotFound
        from prefect.states import Cancelled

        name = f"{DRILL}/{self._drill.config.prefect.add_prefix(DRILL)}"
        try:
            deployment = await client.read_deployment_by_name(name)
        except ObjectNotFound:
            raise StationFailed(
                f"the deployment {name} is not registered at this Prefect server", REGISTER_HINT
            ) from None
        if (pool := deployment.work_pool_name) is not None:
            self._worker_hint = f"start a worker and read its log: prefect worker start --pool {shlex.quote(pool)}"
        parameters = {"config_path": str(self._drill.config_path), "drill_id": self._drill.drill_id}
        run = await client.create_flow_run_from_deployment(
            deployment.id, parameters=parameters, name=self._drill.drill_id
        )
        limit_s = self._drill.config.drill.worker_wait_s
        end_s = self._drill.monotonic() + limit_s
        while (run := await client.read_flow_run(run.id)).state is None or not (
            run.state.is_running() or run.state.is_final()
        ):
            if self._drill.monotonic() > end_s:
                await client.set_flow_run_state(
                    run.id, Cancelled(message="no worker started the drill"), force=True
                )
                raise StationFailed(f"no worker started the drill within {limit_s:g} s", self._worker_hint)
            # Prefect sends no event to a waiting client, so the state of the run is polled.
            await asyncio.sleep(POLL_S)
        return run

    async def _wait_for_end(self, client: PrefectClient, run: FlowRun) -> DrillReport:
        last_news_s, shown = self._drill.monotonic(), 0
        while True:
            state = (await client.read_flow_run(run.id)).state
            report = self._read_report_and_show_new_results()
            if len(self.results) > shown:
                last_news_s, shown = self._drill.monotonic(), len(self.results)
            if report is not None and report.finished:
                return report.prepend_stations(tuple(self.results[:STATIONS_BEFORE_WORKER]))
            if self._drill.monotonic() - last_news_s > SILENCE_TIMEOUT_S:
                raise self._record_and_return_worker_failure(
                    f"the worker sent no update for {SILENCE_TIMEOUT_S:g} s"
                )
            if state is not None and state.is_final():
                if (stored_report := await asyncio.to_thread(self._read_stored_report)) is not None:
                    return stored_report
                raise self._record_and_return_worker_failure(
                    f"the drill ended in the worker with the state {state.name}: {state.message}"
                )
            # Prefect sends no event to a waiting client, so the state of the run is polled.
            await asyncio.sleep(POLL_S)

    def _read_stored_report(self) -> DrillReport | None:
        """Read the report from the warehouse, because the worker may have another data folder.

        Such a worker stores its report file in its own folder. Return ``None`` if the warehouse does not have the
        report.
        """
        store = open_store(self._drill.config)
        try:
            store.load_pending(LOAD_WAIT_S)
            report = find_last_drill(store)
        except (MonitorError, OSError):
            return None
        return report if report is not None and report.drill_id == self._drill.drill_id else None

    def _read_report_and_show_new_results(self) -> DrillReport | None:
        """Read the report file, show new results and return the report. Ignore the file of another drill."""
        report = read_drill_report_file(self._drill.config.data_folder)
        if report is None or report.drill_id != self._drill.drill_id:
            return None
        for result in report.stations[len(self.results) - STATIONS_BEFORE_WORKER :]:
            self.results.append(result)
            self._on_station(result)
        return report

    def _record_and_return_worker_failure(self, reason: str) -> StationFailed:
        failed = StationFailed(reason, self._worker_hint)
        self._add_result(DrillStation.WORKER, StationState.FAILED, reason, self._drill.monotonic(), failed.to_do)
        return failed
