"""A drill through the installation's own worker: asked for at Prefect, followed from here until it ends.

Where Prefect or the worker is dead the drill ends here, and this process says so by every way that still works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from flows.data_folder import open_store, prefect_home
from flows.drill.context import DrillContext, StationFailed, drill_of
from flows.drill.course import Course, OnStation, Station, read_report
from flows.drill.stations import REQUEST_S
from flows.drill.wrong_answer import LOAD_WAIT_S
from flows.server import prefect_server
from flows.server.schedules import DRILL
from monitors.alerts.redact import redact
from monitors.config.file import Config
from monitors.errors import MonitorError
from monitors.records.self_checks import DrillReport, DrillStation, StationResult, StationState
from warehouse.queries.drills import last_drill

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun

DEPLOYMENT: Final = f"{DRILL}/{DRILL}"
POLL_S: Final = 0.5
SILENT_S: Final = 400.0
"""Longer than one station may take: after that the worker's process is gone, or hangs."""
AHEAD: Final = 2
"""Prefect and the worker come before the stations that the worker itself goes through."""
START_UP: Final = "start `lookout up` (or the worker of your work pool), and see its log"


async def drill_by_worker(
    config: Config, config_path: Path, on_station: OnStation, environment: MutableMapping[str, str]
) -> DrillReport:
    """Have the worker do a drill; its report, or one that ends with the Prefect server or the worker.

    ``environment`` is what Prefect's client reads when it is imported: it is pointed at the server.
    """
    drill = drill_of(config, config_path)
    followed = _Followed(drill, on_station)
    try:
        api = await followed.passed(DrillStation.PREFECT, lambda: _prefect_api(config, environment))
        _point_at(config, api, environment)
        return await followed.until_it_ends(api)
    except StationFailed:
        return await Course(drill, on_station, followed.seen).run()


async def _prefect_api(config: Config, environment: Mapping[str, str]) -> str:
    server = None
    api = config.prefect.api_url or environment.get("PREFECT_API_URL")
    if api is None:
        server = prefect_server.running_server(prefect_home(config))
        api = server.api_url if server else None
    if api is None:
        raise StationFailed("no Prefect server runs for this data folder", START_UP)
    try:
        async with httpx.AsyncClient(timeout=REQUEST_S) as client:
            (await client.get(f"{api}/health")).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StationFailed(
            f"the Prefect server does not answer ({type(error).__name__})",
            "start it; it is named by prefect.api_url",
        ) from error
    return api


def _point_at(config: Config, api: str, environment: MutableMapping[str, str]) -> None:
    """Set what Prefect's client reads when it is imported."""
    for name, value in prefect_server.settings_for(api, prefect_home(config)).items():
        environment.setdefault(name, value)


class _Followed:
    """What is seen of a drill that somebody else does: each station once."""

    def __init__(self, drill: DrillContext, on_station: OnStation) -> None:
        self._drill = drill
        self._on_station = on_station
        self.seen: list[StationResult] = []

    async def passed(self, name: DrillStation, station: Station) -> str:
        """Do a station here. Raises `StationFailed` when it fails, once that was noted."""
        began_s = self._drill.monotonic()
        try:
            found = await station()
        except StationFailed as failed:
            self._note(name, StationState.FAILED, str(failed), began_s, failed.to_do)
            raise
        self._note(name, StationState.PASSED, "it answers", began_s)
        return found

    async def until_it_ends(self, api: str) -> DrillReport:
        """Make the run, and follow it. Raises `StationFailed` where no worker does it."""
        from prefect.client.orchestration import PrefectClient  # reads its settings at import

        began_s = self._drill.monotonic()
        async with PrefectClient(api) as client:
            try:
                run = await self._taken_up(client)
            except StationFailed as failed:
                self._note(DrillStation.WORKER, StationState.FAILED, str(failed), began_s, failed.to_do)
                raise
            self._note(DrillStation.WORKER, StationState.PASSED, "a worker took the drill up", began_s)
            return await self._ended(client, run)

    def _note(self, name: DrillStation, state: StationState, found: str, began_s: float, to_do: str = "") -> None:
        took_s = max(0.0, self._drill.monotonic() - began_s)
        result = StationResult(station=name, state=state, took_s=took_s, found=redact(found), to_do=to_do)
        self.seen.append(result)
        self._on_station(result)

    async def _taken_up(self, client: PrefectClient) -> FlowRun:
        from prefect.exceptions import ObjectNotFound
        from prefect.states import Cancelled

        try:
            deployment = await client.read_deployment_by_name(DEPLOYMENT)
        except ObjectNotFound:
            raise StationFailed(f"nobody has registered {DEPLOYMENT} at this Prefect server", START_UP) from None
        asked = {"config_path": str(self._drill.config_path), "drill_id": self._drill.drill_id}
        run = await client.create_flow_run_from_deployment(
            deployment.id, parameters=asked, name=self._drill.drill_id
        )
        limit_s = self._drill.config.drill.worker_wait_s
        end_s = self._drill.monotonic() + limit_s
        while (run := await client.read_flow_run(run.id)).state is None or not (
            run.state.is_running() or run.state.is_final()
        ):
            if self._drill.monotonic() > end_s:
                await client.set_flow_run_state(run.id, Cancelled(message="no worker took it up"), force=True)
                raise StationFailed(f"no worker took the drill up in {limit_s:g} s", START_UP)
            # Prefect sends no event to a client that waits.
            await asyncio.sleep(POLL_S)
        return run

    async def _ended(self, client: PrefectClient, run: FlowRun) -> DrillReport:
        heard_s, heard = self._drill.monotonic(), 0
        while True:
            state = (await client.read_flow_run(run.id)).state
            report = self._news()
            if len(self.seen) > heard:
                heard_s, heard = self._drill.monotonic(), len(self.seen)
            if report is not None and report.finished:
                return report.model_copy(update={"stations": (*self.seen[:AHEAD], *report.stations)})
            if self._drill.monotonic() - heard_s > SILENT_S:
                raise self._ended_without(f"the worker said nothing more for {SILENT_S:g} s")
            if state is not None and state.is_final():
                if (stored := await asyncio.to_thread(self._stored)) is not None:
                    return stored
                raise self._ended_without(f"the drill ended in the worker as {state.name}: {state.message}")
            # Prefect sends no event to a client that waits.
            await asyncio.sleep(POLL_S)

    def _stored(self) -> DrillReport | None:
        """The report from the journal, where the worker has a data folder of its own."""
        store = open_store(self._drill.config)
        try:
            store.load_pending(LOAD_WAIT_S)
            report = last_drill(store)
        except (MonitorError, OSError):
            return None
        return report if report is not None and report.drill_id == self._drill.drill_id else None

    def _news(self) -> DrillReport | None:
        """The report as far as it is written; what is new in it is shown."""
        report = read_report(self._drill.config.data_folder)
        if report is None or report.drill_id != self._drill.drill_id:
            return None
        for one in report.stations[len(self.seen) - AHEAD :]:
            self.seen.append(one)
            self._on_station(one)
        return report

    def _ended_without(self, why: str) -> StationFailed:
        failed = StationFailed(why, "see the log of `lookout up`, or of the worker")
        self._note(DrillStation.WORKER, StationState.FAILED, why, self._drill.monotonic(), failed.to_do)
        return failed
