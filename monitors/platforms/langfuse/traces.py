"""The traces of a Langfuse project, read until two readings agree, their observations as the runs of a `Trace`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from pydantic import JsonValue

from monitors.platforms.langfuse.client import API, FromLangfuse, LangfuseClient, Sleep
from monitors.platforms.langfuse.items import json_object
from monitors.platforms.platform import Json, Trace

PAGE: Final = 100
MOST_OBSERVATIONS: Final = 2_000
"""Of one trace: a job of a few dozen steps has some hundreds."""
POLL_S: Final = 2.0
_RUN_TYPES: Final[Mapping[str, str]] = {"GENERATION": "llm", "TOOL": "tool", "RETRIEVER": "retriever"}
"""What an observation is called as a run; all others are a chain."""
_FIELDS: Final = "core,basic,time,io,metadata,model,usage,trace_context"


class _Cursor(FromLangfuse):
    cursor: str | None = None


class _ObservationPage(FromLangfuse):
    data: tuple[dict[str, JsonValue], ...]
    meta: _Cursor = _Cursor()


class LangfuseTraces:
    """`Traces` of a Langfuse project, each read again for ``patience_s`` at most."""

    def __init__(self, client: LangfuseClient, patience_s: float, sleep: Sleep) -> None:
        self._client, self._patience_s, self._sleep = client, patience_s, sleep

    async def read(self, trace_id: str) -> Trace | None:
        """A trace; ``None`` where two readings found none.

        It is complete where two readings agree and its root has ended: Langfuse stores the parts of a trace one
        after the other. `ConfigError` where the server is older than version 4.
        """
        await self._client.needs_version_4("reading a trace")
        left_s, before = self._patience_s, await self._observations(trace_id)
        while True:
            await self._sleep(min(POLL_S, left_s))
            left_s -= POLL_S
            now = await self._observations(trace_id)
            complete = now == before and (not now or _has_ended(now))
            if complete or left_s <= 0:
                return self._trace(trace_id, now, complete=complete)
            before = now

    def _trace(self, trace_id: str, observations: tuple[Json, ...], *, complete: bool) -> Trace | None:
        if not observations:
            return None
        url = self._client.page_url("traces", trace_id)
        runs = tuple(_run(trace_id, observation) for observation in observations)
        return Trace(id=trace_id, url=url, runs=runs, complete=complete)

    async def _observations(self, trace_id: str) -> tuple[Json, ...]:
        """All that is stored of a trace now, the earliest first."""
        found, cursor = list[Json](), None
        while len(found) < MOST_OBSERVATIONS:
            asked = {"traceId": trace_id, "fields": _FIELDS, "expandMetadata": "true", "limit": PAGE}
            page = await self._client.asked(
                "GET",
                f"{API}/v2/observations",
                _ObservationPage,
                f"reading trace {trace_id!r}",
                params=asked if cursor is None else asked | {"cursor": cursor},
            )
            found += page.data if page else ()
            cursor = page.meta.cursor if page else None
            if not cursor:
                break
        return tuple(sorted(found, key=lambda one: (str(one.get("startTime")), str(one.get("id")))))


def _has_ended(observations: tuple[Json, ...]) -> bool:
    """Whether the root is there, and has ended."""
    return any(not one.get("parentObservationId") and one.get("endTime") for one in observations)


def _run(trace_id: str, seen: Json) -> Json:
    usage = seen.get("usageDetails")
    return {
        "id": seen.get("id"),
        "trace_id": trace_id,
        "parent_run_id": seen.get("parentObservationId") or None,
        "is_root": not seen.get("parentObservationId"),
        "name": seen.get("name"),
        "run_type": _RUN_TYPES.get(str(seen.get("type")), "chain"),
        "start_time": seen.get("startTime"),
        "end_time": seen.get("endTime"),
        "inputs": _read("input", seen),
        "outputs": _read("output", seen),
        "error": seen.get("statusMessage") if seen.get("level") == "ERROR" else None,
        "total_tokens": usage.get("total") if isinstance(usage, dict) else None,
        "metadata": json_object(seen.get("metadata"), "metadata"),
    }


def _read(name: str, seen: Json) -> Json:
    """Input or output, which Langfuse gives as text: an object or a list in it is read, other text stays one."""
    value = seen.get(name)
    if isinstance(value, str):
        try:
            parsed = cast("JsonValue", json.loads(value))
        except (ValueError, RecursionError):
            parsed = value
        value = parsed if isinstance(parsed, dict | list) else value
    return json_object(value, name)
