"""Read conversations from LangSmith.

Each root run of a project is a conversation. Scores are stored as feedback.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from monitors.errors import ConfigError, SourceUnavailable
from monitors.platforms.langsmith.client import LangSmithAccess, LangSmithClient, RootRuns
from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning
from monitors.sources.traffic.items import LocatedItem, Window, parse_conversations
from monitors.sources.traffic.settings import LangSmithTraffic
from monitors.sources.traffic.source import RECENT


def select_last_score_per_key(scores: Sequence[Score]) -> tuple[Score, ...]:
    """Return the last score of each key."""
    return tuple({score.key: score for score in scores}.values())


class LangSmithTrafficSource:
    """A `TrafficSource` and `ScoreKeeper` that uses a LangSmith project. ``key`` is the API key."""

    def __init__(
        self,
        settings: LangSmithTraffic,
        *,
        key: str | None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not key:
            raise ConfigError(f"traffic.key_env: the environment variable {settings.key_env} is missing or empty")
        self._settings = settings
        self._access = _build_access(settings)
        self._key = key
        self._sleep = sleep
        self.name = f"LangSmith project {settings.project!r}"

    async def read_conversations(
        self, since: datetime, until: datetime
    ) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read_conversations`. The time of a conversation is the end of its run."""
        window, cursor, cursors = Window(since, until), None, set[str]()
        earliest = since - timedelta(seconds=self._settings.longest_run_s)
        query = RootRuns(earliest, until, self._settings.page_size, self._settings.filter)
        async with LangSmithClient.connect(self._access, self._key, self._sleep) as client:
            while True:
                runs, cursor = await client.query_root_runs(query, cursor)
                for record in parse_conversations(self._select_ended_runs(runs), self._settings.fields, window):
                    yield record if isinstance(record, SourceWarning) else _reduce_to_last_turn(record)
                if cursor is None:
                    return
                if cursor in cursors:
                    raise SourceUnavailable(f"{self.name}: LangSmith returned the same page cursor twice")
                cursors.add(cursor)

    async def check_readable(self, now: datetime) -> None:
        """See `TrafficSource.check_readable`."""
        query = RootRuns(now - RECENT, now, page_size=1, filter=self._settings.filter)
        async with LangSmithClient.connect(self._access, self._key, self._sleep) as client:
            await client.query_root_runs(query, None)

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """See `ScoreKeeper.write_back`."""
        async with LangSmithClient.connect(self._access, self._key, self._sleep) as client:
            for score in select_last_score_per_key(scores):
                await client.store_score(conversation.origin_id, score)

    def _select_ended_runs(self, runs: Sequence[Any]) -> Iterator[LocatedItem]:
        """Yield the runs that have ended, with the feedback of users.

        Runs that have not ended yet are read on a later night.
        """
        for run in runs:
            if run.get("end_time"):
                thumb = self._parse_thumb_and_comment(run.get("feedback_stats"))
                yield LocatedItem(f"run {run.get('id')}", run | ({"feedback": thumb} if thumb else {}))

    def _parse_thumb_and_comment(self, stats: Any) -> dict[str, Any]:
        feedback = cast("dict[str, Any]", stats) if isinstance(stats, dict) else {}
        for key in self._settings.feedback_keys:
            thumbs = cast("dict[str, Any]", feedback.get(key) or {})
            average = thumbs.get("avg")
            if isinstance(average, int | float) and thumbs.get("n"):
                comments = cast("list[Any]", thumbs.get("comments") or [])
                return {"thumb": average > 0, "comment": comments[0] if comments else ""}
        return {}


def _build_access(settings: LangSmithTraffic) -> LangSmithAccess:
    return LangSmithAccess(
        project=settings.project,
        api_url=settings.api_url,
        key_env=settings.key_env,
        workspace_id=settings.workspace_id,
        request_deadline_s=settings.request_deadline_s,
        attempts=settings.attempts,
    )


def _reduce_to_last_turn(conversation: Conversation) -> Conversation:
    return conversation.model_copy(update={"turns": conversation.turns[-1:]})
