"""Publishes reports in Prefect's UI. If the Prefect server does not answer, the flow continues."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from prefect.artifacts import acreate_link_artifact, acreate_markdown_artifact

from flows.server.prefect_server import is_server_gone
from monitors.config.file import Config
from monitors.config.sections import DEFAULT_SITE_PORT
from monitors.reports.write import ReportPaths

PAGE_TIMEOUT_S: Final = 10.0
"""Timeout of one request in seconds. Without this limit, Prefect's own client would retry for a minute."""
_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not listened on


@asynccontextmanager
async def continue_without_prefect_server() -> AsyncGenerator[None]:
    """End the ``with`` block silently after ``PAGE_TIMEOUT_S``, or if no Prefect server answers."""
    try:
        async with asyncio.timeout(PAGE_TIMEOUT_S):
            yield
    except Exception as error:  # Prefect raises its own errors, httpx's and sqlite's; all others are raised again
        if not is_server_gone(error):
            raise


def build_artifact_key(name: str) -> str:
    """Build an artifact's key from a name. The key has only lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


async def publish_report_artifact(name: str, paths: ReportPaths, *, link: str | None, description: str) -> None:
    """Publish a report's Markdown with a link to the report's page on the site.

    Call this function in a flow run.
    """
    key = build_artifact_key(name)
    async with continue_without_prefect_server():
        await acreate_markdown_artifact(
            key=key, markdown=paths.markdown.read_text(encoding="utf-8"), description=description
        )
        if link is not None:
            await acreate_link_artifact(
                key=f"{key}-report", link=link, link_text="Report", description="the full report on the site"
            )


def find_site_page_address(config: Config, page: str) -> str | None:
    """Return the URL of a page of Lookout's site, or ``None`` if the site is disabled.

    The URL starts with the site's public URL if one is configured, otherwise with the site's local URL. ``page`` is
    a path that can contain a query string.
    """
    if config.alerts.site_url is not None:
        return f"{str(config.alerts.site_url).rstrip('/')}{page}"
    if not config.site.enabled:
        return None
    host = "127.0.0.1" if config.site.host in _ANY_ADDRESS else config.site.host
    port = config.site.port or DEFAULT_SITE_PORT
    return f"http://{host}:{port}{config.site.path_prefix}{page}"


def build_report_page_path(run_id: str) -> str:
    """Build the path of the report page of a run, or of a nightly run, on the site."""
    return f"/runs/{quote(run_id, safe='')}/report"
