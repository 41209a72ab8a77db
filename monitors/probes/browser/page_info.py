"""Identify the build of a page from its HTML: title, framework, scripts, styles and a hash.

The hash ignores parts that differ each time the page loads, such as numbers and tokens.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.build_info import select_version_headers
from monitors.records.exchanges import PageInfo

if TYPE_CHECKING:
    from playwright.async_api import Response

MAX_HTML_CHARACTERS: Final = 2_000_000
MAX_BUNDLES: Final = 16
MAX_TEXT_CHARACTERS: Final = 120
READ_TIMEOUT_S: Final = 10.0
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_TAG: Final = re.compile(r"<(script|link|meta)\b([^>]{0,2000})>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_LOADED: Final = ("stylesheet", "modulepreload")
_FRAMEWORKS: Final = (
    ("Gradio", re.compile(r"window\.gradio_config\s*=\s*\{.{0,200}?\"version\"\s*:\s*\"([\w.]+)\"", re.DOTALL)),
    ("Gradio", re.compile(r"gradio_config|<gradio-app|window\.__gradio")),
    ("Streamlit", re.compile(r"<title>Streamlit</title>|streamlit", re.IGNORECASE)),
    ("Chainlit", re.compile(r"chainlit", re.IGNORECASE)),
    ("Next.js", re.compile(r"/_next/static/|__NEXT_DATA__")),
    ("Nuxt", re.compile(r"/_nuxt/|__NUXT__")),
    ("SvelteKit", re.compile(r"/_app/immutable/|__sveltekit")),
    ("NiceGUI", re.compile(r"/_nicegui/([\d.]+)?")),
    ("Panel", re.compile(r"/static/extensions/panel/")),
)
"""Patterns that identify the framework of a page, the most reliable patterns first.

A group in a pattern matches the version of the framework.
"""
_CHANGING: Final = re.compile(r"\bnonce=(?:\"[^\"]*\"|'[^']*')|0x[0-9a-f]+|(?=[\w-]*\d)[\w-]{16,}|\d+|\s+")
"""A pattern for parts of the HTML that change with each load: nonces, memory addresses, tokens, numbers."""
_TIME: Final = re.compile(r"\d{9,}")


async def read_page_info(response: Response | None) -> PageInfo | None:
    """Return the build of the page in ``response``, or ``None`` if the HTML is not available in time."""
    from playwright.async_api import Error  # Playwright is already imported

    if response is None:
        return None
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            body = await response.body()
    except (Error, TimeoutError):
        return None
    info = parse_page_info(replace_surrogates(body[:MAX_HTML_CHARACTERS].decode("utf-8", "replace")))
    return info.with_versions(select_version_headers(response.headers))


@lru_cache(maxsize=8)
def parse_page_info(html: str) -> PageInfo:
    """Return the build of a page from its HTML."""
    bundles = [_format_bundle_name(address) for address in _find_bundle_addresses(html)]
    shell = hashlib.sha256(_CHANGING.sub(" ", html).encode()).hexdigest()[:16]
    return PageInfo(
        title=_find_title(html),
        framework=_detect_framework(html),
        bundles=tuple(dict.fromkeys(bundles))[:MAX_BUNDLES],
        shell=shell,
    )


def _find_title(html: str) -> str:
    """Return the title of the page, or its Open Graph title (``og:title``) if the page has no title."""
    match = _TITLE.search(html)
    if match and (title := _normalize_text(match[1])):
        return title
    metas = [_parse_attributes(rest) for tag, rest in _TAG.findall(html) if tag.lower() == "meta"]
    shared = [_normalize_text(meta.get("content", "")) for meta in metas if meta.get("property") == "og:title"]
    return shared[-1] if shared else ""


def _find_bundle_addresses(html: str) -> list[str]:
    """Return the addresses of the scripts and style sheets that the page loads, in the order of the HTML."""
    addresses: list[str] = []
    for tag, rest in _TAG.findall(html):
        attributes = _parse_attributes(rest)
        if tag.lower() == "script" and attributes.get("src"):
            addresses.append(attributes["src"])
        elif tag.lower() == "link" and attributes.get("rel", "").lower() in _LOADED and attributes.get("href"):
            addresses.append(attributes["href"])
    return addresses


def _parse_attributes(rest: str) -> dict[str, str]:
    return {name.lower(): unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(rest)}


def _format_bundle_name(address: str) -> str:
    """Return the file name of a script or style sheet.

    The query of the address is included, unless it contains a time.
    """
    parts = urlsplit(address)
    name = parts.path.rstrip("/").rsplit("/", 1)[-1] or parts.netloc
    query = f"?{parts.query}" if parts.query and not _TIME.search(parts.query) else ""
    return _normalize_text(f"{name}{query}")


def _detect_framework(html: str) -> str | None:
    generators = [
        attributes["content"]
        for tag, rest in _TAG.findall(html)
        if tag.lower() == "meta" and (attributes := _parse_attributes(rest)).get("name", "").lower() == "generator"
        if attributes.get("content")
    ]
    if generators:
        return _normalize_text(generators[0])
    for name, pattern in _FRAMEWORKS:
        if match := pattern.search(html):
            version = match[1] if pattern.groups else None
            return f"{name} {version}" if version else name
    return None


def _normalize_text(text: str) -> str:
    return " ".join(unescape(text).split())[:MAX_TEXT_CHARACTERS]
