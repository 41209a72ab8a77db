"""Traffic out of an export in pages of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from datetime import datetime
from typing import Any

from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.traffic import Conversation, SourceNotice
from monitors.sources.export_client import ExportClient, bare_url
from monitors.sources.export_pages import first_url, items_in, next_url
from monitors.sources.traffic_items import Placed, Window, conversations_of
from monitors.sources.traffic_settings import HttpTraffic


class HttpTrafficSource:
    """A `TrafficSource` over an export. ``token`` goes to its own host only; ``sleep`` pauses between tries."""

    def __init__(
        self,
        settings: HttpTraffic,
        *,
        token: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if settings.token_env is not None and not token:
            raise ConfigError(f"traffic.token_env: the environment has no {settings.token_env}, or it is empty")
        self._settings = settings
        self._token = token
        self._sleep = sleep
        self.name = bare_url(settings.url)

    async def read(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceNotice]:
        """See `TrafficSource.read`. Pages are asked for one after the other, as those who read them go on."""
        window = Window(since, until)
        async with (
            ExportClient.opened(self._settings, self._token, self._sleep) as client,
            aclosing(self._pages(client, window)) as pages,
        ):
            async for number, items in pages:
                for one in conversations_of(_placed(items, number), self._settings.fields, window):
                    yield one

    async def _pages(self, client: ExportClient, window: Window) -> AsyncGenerator[tuple[int, list[Any]]]:
        url, asked, before = first_url(self._settings, window), set[str](), ""
        for number in range(self._settings.most_pages):
            asked.add(url)
            page = await client.page(url)
            items = items_in(page.document, self._settings, url)
            if self._settings.page_parameter is not None and (not items or page.sha256 == before):
                return  # beyond the last page there is nothing, or the last page again
            yield number + 1, items
            following = next_url(self._settings, url, page, number)
            if following is None or (following in asked and not items):
                return
            if following in asked:
                raise SourceUnavailable(f"{self.name}: page {number + 1} names an earlier page as its next one")
            url, before = following, page.sha256
        raise ConfigError(
            f"traffic.most_pages = {self._settings.most_pages:,}: {self.name} has more pages, which were not read. "
            "Raise it, or let the export bound the time (since_parameter, until_parameter)"
        )


def _placed(items: list[Any], number: int) -> Iterator[Placed]:
    return (Placed(f"page {number}, item {index}", item) for index, item in enumerate(items, start=1))
