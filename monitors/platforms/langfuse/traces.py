"""The traces of a Langfuse project, read until two readings agree."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from monitors.platforms.langfuse.client import API, FromLangfuse, LangfuseClient, Sleep
from monitors.platforms.platform import Json, Trace

PAGE: Final = 100
MOST_OBSERVATIONS: Final = 2_000
"""Of one trace: a job of a few dozen steps has some hundreds."""
POLL_S: Final = 2.0
_FIELDS: Final = "core,basic,time,io,metadata,model,usage,trace_context"


class _Cursor(FromLangfuse):
    cursor: str | None = None


class _ObservationPage(FromLangfuse):
    data: tuple[dict[str, JsonValue], ...]
    meta: _Cursor = _Cursor()


class LangfuseTraces:
    """`Traces` of a Langfuse project, each read again for ``patience_s`` at most. ``runs`` are its observations."""

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
        return Trace(id=trace_id, url=url, runs=observations, complete=complete)

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
