"""What Prefect's server says of our schedules: when each runs next, when it ran last, and how that ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import TypeAdapter, ValidationError

from flows.server.prefect_server import noted_server
from flows.server.schedules import TAG
from monitors.records.base import Record, UtcTime

DEADLINE_S: Final = 5.0
MOST: Final = 200
"""As many as Prefect gives at once."""
ENDED: Final = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
_TIME: Final[TypeAdapter[UtcTime]] = TypeAdapter(UtcTime)
_ROWS: Final = TypeAdapter(list[dict[str, Any]])


class ScheduleState(Record):
    """One of our deployments at Prefect. ``ended`` is how its last run ended, in Prefect's words, such as Pass."""

    name: str
    paused: bool
    next_at: UtcTime | None = None
    last_at: UtcTime | None = None
    ended: str = ""
    broke: bool = False


def api_in(configured: str | None, home: Path, environment: Mapping[str, str]) -> str | None:
    """The address of the server's API that this installation uses; ``None`` where none is known or noted."""
    local = noted_server(home)
    return configured or environment.get("PREFECT_API_URL") or (local.api_url if local else None)


def schedule_states(api_url: str, auth: str = "") -> tuple[ScheduleState, ...] | None:
    """Our deployments by name; ``None`` where the server does not answer. ``auth`` is ``name:password``, if any."""
    name, _, password = auth.partition(":")
    try:
        with httpx.Client(
            base_url=api_url.rstrip("/"),
            timeout=DEADLINE_S,
            auth=(name, password) if auth else None,
            trust_env=not api_url.startswith("http://127.0.0.1"),
        ) as client:
            return _states(client)
    except (httpx.HTTPError, ValueError, KeyError, ValidationError):
        return None


def _states(client: httpx.Client) -> tuple[ScheduleState, ...]:
    found = _asked(client, "deployments", {"deployments": {"tags": {"any_": [TAG]}}})
    ids = {"deployments": {"id": {"any_": [one["id"] for one in found]}}}
    waiting = _asked(client, "flow_runs", ids | _runs("NEXT_SCHEDULED_START_TIME_ASC", ("SCHEDULED",)))
    ended = _asked(client, "flow_runs", ids | _runs("END_TIME_DESC", ENDED))
    coming, last = _first(waiting), _first(ended)
    return tuple(_state(one, coming.get(one["id"]), last.get(one["id"])) for one in found)


def _runs(sort: str, types: Iterable[str]) -> dict[str, Any]:
    return {"flow_runs": {"state": {"type": {"any_": list(types)}}}, "sort": sort}


def _asked(client: httpx.Client, what: str, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    answer = client.post(f"/{what}/filter", json={**filters, "limit": MOST})
    return _ROWS.validate_python(answer.raise_for_status().json())


def _first(runs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The first run of each deployment."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        found.setdefault(run["deployment_id"], run)
    return found


def _state(
    deployment: Mapping[str, Any], coming: Mapping[str, Any] | None, last: Mapping[str, Any] | None
) -> ScheduleState:
    return ScheduleState(
        name=deployment["name"],
        paused=bool(deployment.get("paused")),
        next_at=_at(coming, "next_scheduled_start_time"),
        last_at=_at(last, "end_time"),
        ended=str(last["state_name"]) if last else "",
        broke=last is not None and last["state_type"] != "COMPLETED",
    )


def _at(run: Mapping[str, Any] | None, what: str) -> UtcTime | None:
    return _TIME.validate_python(run[what]) if run and run.get(what) else None
