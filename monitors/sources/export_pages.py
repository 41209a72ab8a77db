"""How the pages of an export follow each other: by number, by cursor, by link. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

import httpx

from monitors.errors import SourceUnavailable
from monitors.json_path import values_at
from monitors.sources.export_client import Page, bare_url, same_host
from monitors.sources.traffic_items import Window
from monitors.sources.traffic_settings import HttpTraffic, TimeFormat

_LINK: Final = re.compile(r"<([^<>]*)>\s*;[^,<]*?\brel\s*=\s*\"?next\b\"?", re.IGNORECASE)
"""RFC 8288, as far as a next page needs it."""
_MORE: Final = ("has_more", "hasMore", "meta.has_more", "paging.has_more")


def first_url(settings: HttpTraffic, window: Window) -> str:
    """The address of the first page, with the parameters that bound it."""
    wanted: dict[str, str] = {}
    for parameter, time in ((settings.since_parameter, window.since), (settings.until_parameter, window.until)):
        if parameter is not None:
            wanted[parameter] = _written(time, settings.time_format)
    if settings.size_parameter is not None:
        wanted[settings.size_parameter] = str(settings.size)
    if settings.page_parameter is not None:
        wanted[settings.page_parameter] = str(settings.first_page)
    return with_parameters(settings.url, wanted)


def next_url(settings: HttpTraffic, url: str, page: Page, number: int) -> str | None:
    """The address of the page behind page ``number`` (from 0) at ``url``; ``None`` at the end.

    `SourceUnavailable` where it leads to another host.
    """
    if settings.page_parameter is not None:
        return with_parameters(url, {settings.page_parameter: str(settings.first_page + number + 1)})
    link = _LINK.search(page.headers.get("link", ""))
    if link is not None:
        return same_host(url, link[1], "its next page is at")
    if any(more is False for path in _MORE for more in values_at(page.document, path)):
        return None
    return _told_next(settings, url, page.document)


def _told_next(settings: HttpTraffic, url: str, document: Any) -> str | None:
    for path in settings.next_link:
        for told in values_at(document, path):
            if isinstance(told, str) and told.startswith(("http://", "https://", "/", "?")):
                return same_host(url, told, "its next page is at")
    for path in settings.cursor:
        for told in values_at(document, path):
            if (isinstance(told, str) and told) or (isinstance(told, int) and not isinstance(told, bool)):
                return with_parameters(url, {settings.cursor_parameter: str(told)})
    return None


def items_in(document: Any, settings: HttpTraffic, url: str) -> list[Any]:
    """The items of a page; `SourceUnavailable` where there is no list of them."""
    for path in settings.items:
        for value in values_at(document, path):
            if isinstance(value, list):
                return cast("list[Any]", value)
    known = list(cast("dict[str, Any]", document)) if isinstance(document, dict) else []
    has = ", ".join(key for key in known[:20] if re.fullmatch(r"[A-Za-z_]{1,30}", key)) or "no names"
    raise SourceUnavailable(
        f"{bare_url(url)}: no list of items at traffic.items = {', '.join(settings.items)}; the page has {has}"
    )


def with_parameters(url: str, wanted: Mapping[str, str]) -> str:
    """The address with these parameters, replaced where it has them."""
    return str(httpx.URL(url).copy_merge_params(dict(wanted))) if wanted else url


def _written(time: datetime, form: TimeFormat) -> str:
    match form:
        case TimeFormat.ISO:
            return time.isoformat().replace("+00:00", "Z")
        case TimeFormat.EPOCH_S:
            return str(int(time.timestamp()))
        case TimeFormat.EPOCH_MS:
            return str(int(time.timestamp() * 1000))
