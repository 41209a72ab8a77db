"""Reads the state of Lookout's schedules from Prefect's server: the next run, the last run, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import TypeAdapter, ValidationError

from flows.server.prefect_server import find_server_process
from flows.server.schedules import PAUSED_TAG
from monitors.records.base import Record, UtcTime

TIMEOUT_S: Final = 5.0
MAX_ROWS: Final = 200
"""Maximum number of rows that are read: one page of Prefect's API."""
ENDED_STATES: Final = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
_TIME: Final[TypeAdapter[UtcTime]] = TypeAdapter(UtcTime)
_ROWS: Final = TypeAdapter(list[dict[str, Any]])


class ScheduleState(Record):
    """A deployment of Lookout in Prefect.

    ``ended`` is the name of the state in which its last run ended, for example Pass. ``broke`` is true if the type
    of this state is not Completed.

    If a person paused the deployment, ``paused_since`` is the time of the pause, and ``resume`` is the command that
    ends the pause.
    """

    name: str
    paused: bool
    paused_since: UtcTime | None = None
    resume: str = ""
    next_at: UtcTime | None = None
    last_at: UtcTime | None = None
    ended: str = ""
    broke: bool = False


def find_api_url(configured: str | None, home: Path, environment: Mapping[str, str]) -> str | None:
    """Find the URL of the Prefect API that this installation uses.

    Return ``None`` if no API is configured and no local server runs.
    """
    local = find_server_process(home)
    return configured or environment.get("PREFECT_API_URL") or (local.api_url if local else None)


def load_schedule_states(api_url: str, tag: str, auth: str = "") -> tuple[ScheduleState, ...] | None:
    """Load the states of the deployments with ``tag``, or ``None`` if the server does not answer.

    ``auth`` has the form ``name:password``.
    """
    name, _, password = auth.partition(":")
    try:
        with httpx.Client(
            base_url=api_url.rstrip("/"),
            timeout=TIMEOUT_S,
            auth=(name, password) if auth else None,
            trust_env=not api_url.startswith("http://127.0.0.1"),
        ) as client:
            return _read_states(client, api_url, tag)
    except (httpx.HTTPError, ValueError, KeyError, ValidationError):
        return None


def _read_states(client: httpx.Client, api_url: str, tag: str) -> tuple[ScheduleState, ...]:
    deployments = _query(client, "deployments", {"deployments": {"tags": {"any_": [tag]}}})
    ids = {"deployments": {"id": {"any_": [deployment["id"] for deployment in deployments]}}}
    waiting = _query(client, "flow_runs", ids | _build_run_filter("NEXT_SCHEDULED_START_TIME_ASC", ("SCHEDULED",)))
    ended = _query(client, "flow_runs", ids | _build_run_filter("END_TIME_DESC", ENDED_STATES))
    coming, last = _index_first_runs(waiting), _index_first_runs(ended)
    return tuple(
        _build_state(deployment, coming.get(deployment["id"]), last.get(deployment["id"]), api_url)
        for deployment in deployments
    )


def _build_run_filter(sort: str, types: Iterable[str]) -> dict[str, Any]:
    return {"flow_runs": {"state": {"type": {"any_": list(types)}}}, "sort": sort}


def _query(client: httpx.Client, resource: str, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    response = client.post(f"/{resource}/filter", json={**filters, "limit": MAX_ROWS})
    return _ROWS.validate_python(response.raise_for_status().json())


def _index_first_runs(runs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Map the id of each deployment to its first run in ``runs``."""
    first_runs: dict[str, dict[str, Any]] = {}
    for run in runs:
        first_runs.setdefault(run["deployment_id"], run)
    return first_runs


def _build_state(
    deployment: Mapping[str, Any], coming: Mapping[str, Any] | None, last: Mapping[str, Any] | None, api_url: str
) -> ScheduleState:
    inactive = [schedule for schedule in deployment.get("schedules", ()) if not schedule["active"]]
    is_paused = bool(deployment.get("paused"))
    return ScheduleState(
        name=deployment["name"],
        paused=is_paused or bool(inactive),
        paused_since=_find_pause_time(deployment, inactive) if is_paused or inactive else None,
        resume=" && ".join(_list_resume_commands(deployment, inactive, api_url)),
        next_at=_parse_time(coming, "next_scheduled_start_time"),
        last_at=_parse_time(last, "end_time"),
        ended=str(last["state_name"]) if last else "",
        broke=last is not None and last["state_type"] != "COMPLETED",
    )


def _find_pause_time(deployment: Mapping[str, Any], inactive: Sequence[Mapping[str, Any]]) -> UtcTime:
    """Find when a person paused the deployment.

    The result is the time in the deployment's tag or, without this tag, the time of the deployment's last change.
    """
    noted = [tag.removeprefix(PAUSED_TAG) for tag in deployment["tags"] if tag.startswith(PAUSED_TAG)]
    return _TIME.validate_python(noted[0] if noted else max(row["updated"] for row in (deployment, *inactive)))


def _list_resume_commands(
    deployment: Mapping[str, Any], inactive: Sequence[Mapping[str, Any]], api_url: str
) -> Iterator[str]:
    """Yield the Prefect commands that resume the deployment and its schedules."""
    call, place = f"PREFECT_API_URL={api_url} prefect api", f"/deployments/{deployment['id']}"
    if deployment.get("paused"):
        yield f"{call} POST {place}/resume_deployment"
    for schedule in inactive:
        yield f"{call} PATCH {place}/schedules/{schedule['id']} --data '{{\"active\": true}}'"


def _parse_time(run: Mapping[str, Any] | None, field: str) -> UtcTime | None:
    return _TIME.validate_python(run[field]) if run and run.get(field) else None
