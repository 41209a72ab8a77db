"""Read the traces of a Langfuse project. Each trace is read until two readings in a row agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from pydantic import JsonValue

from monitors.platforms.langfuse.client import API, LangfuseClient, LangfuseRecord, Sleep
from monitors.platforms.langfuse.items import wrap_as_json_object
from monitors.platforms.platform import Json, Trace

PAGE_SIZE: Final = 100
MAX_OBSERVATIONS: Final = 2_000
"""Maximum number of observations of one trace. A job with a few dozen steps has a few hundred observations."""
POLL_S: Final = 2.0
_RUN_TYPES: Final[Mapping[str, str]] = {"GENERATION": "llm", "TOOL": "tool", "RETRIEVER": "retriever"}
"""Maps types of Langfuse observations to run types. All other types become ``chain``."""
_FIELDS: Final = "core,basic,time,io,metadata,model,usage,trace_context"


class _Cursor(LangfuseRecord):
    cursor: str | None = None


class _ObservationPage(LangfuseRecord):
    data: tuple[dict[str, JsonValue], ...]
    meta: _Cursor = _Cursor()


class LangfuseTraces:
    """The `Traces` of a Langfuse project. An incomplete trace is read again for at most ``patience_s`` seconds."""

    def __init__(self, client: LangfuseClient, patience_s: float, sleep: Sleep) -> None:
        self._client, self._patience_s, self._sleep = client, patience_s, sleep

    async def read(self, trace_id: str) -> Trace | None:
        """Return a trace, or ``None`` if two readings in a row find no trace.

        Langfuse stores the parts of a trace one after the other. A trace is complete if two readings in a row agree
        and its root has ended. Raises `ConfigError` if the server is older than version 4.
        """
        await self._client.require_version_4("reading a trace")
        remaining_s, previous = self._patience_s, await self._read_observations(trace_id)
        while True:
            await self._sleep(min(POLL_S, remaining_s))
            remaining_s -= POLL_S
            current = await self._read_observations(trace_id)
            complete = current == previous and (not current or _has_root_ended(current))
            if complete or remaining_s <= 0:
                return self._build_trace(trace_id, current, complete=complete)
            previous = current

    def _build_trace(self, trace_id: str, observations: tuple[Json, ...], *, complete: bool) -> Trace | None:
        if not observations:
            return None
        url = self._client.build_page_url("traces", trace_id)
        runs = tuple(_convert_to_langsmith_run(trace_id, observation) for observation in observations)
        return Trace(id=trace_id, url=url, runs=runs, complete=complete)

    async def _read_observations(self, trace_id: str) -> tuple[Json, ...]:
        """Return all observations of a trace, the earliest first."""
        observations, cursor = list[Json](), None
        while len(observations) < MAX_OBSERVATIONS:
            params = {"traceId": trace_id, "fields": _FIELDS, "expandMetadata": "true", "limit": PAGE_SIZE}
            page = await self._client.request_or_none_if_404(
                "GET",
                f"{API}/v2/observations",
                _ObservationPage,
                f"reading trace {trace_id!r}",
                params=params if cursor is None else params | {"cursor": cursor},
            )
            observations += page.data if page else ()
            cursor = page.meta.cursor if page else None
            if not cursor:
                break
        return tuple(
            sorted(
                observations,
                key=lambda observation: (str(observation.get("startTime")), str(observation.get("id"))),
            )
        )


def _has_root_ended(observations: tuple[Json, ...]) -> bool:
    """Return whether the root observation exists and has ended."""
    return any(
        not observation.get("parentObservationId") and observation.get("endTime") for observation in observations
    )


def _convert_to_langsmith_run(trace_id: str, observation: Json) -> Json:
    usage = observation.get("usageDetails")
    return {
        "id": observation.get("id"),
        "trace_id": trace_id,
        "parent_run_id": observation.get("parentObservationId") or None,
        "is_root": not observation.get("parentObservationId"),
        "name": observation.get("name"),
        "run_type": _RUN_TYPES.get(str(observation.get("type")), "chain"),
        "start_time": observation.get("startTime"),
        "end_time": observation.get("endTime"),
        "inputs": _parse_input_or_output("input", observation),
        "outputs": _parse_input_or_output("output", observation),
        "error": observation.get("statusMessage") if observation.get("level") == "ERROR" else None,
        "total_tokens": usage.get("total") if isinstance(usage, dict) else None,
        "metadata": wrap_as_json_object(observation.get("metadata"), "metadata"),
    }


def _parse_input_or_output(name: str, observation: Json) -> Json:
    """Return an input or output as an object. Langfuse stores strings: JSON objects and lists in them are parsed.

    A value that is not an object becomes an object with the key ``name``.
    """
    value = observation.get(name)
    if isinstance(value, str):
        try:
            parsed = cast("JsonValue", json.loads(value))
        except (ValueError, RecursionError):
            parsed = value
        value = parsed if isinstance(parsed, dict | list) else value
    return wrap_as_json_object(value, name)
