"""An app that goes away in mid-run is waited for: one that its orchestrator starts again costs no verdict (V10)."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

import httpx

from monitors.errors import NotReady
from monitors.probes.readiness import wait_until_ready
from monitors.probes.settings import ProbeSettings
from monitors.records.targets import Target

POLL_S: Final = 0.5
FIRST_CONTACT_S: Final = 5.0
"""For an app that has not answered once: a bad moment is waited out, a wrong address is told within seconds."""

SERVER_ERRORS: Final = 500
CLIENT_ERRORS: Final = 400


async def wait_until_back(
    target: Target, settings: ProbeSettings, *, known: bool, commit: str | None = None, hub_token: str | None = None
) -> None:
    """Returns when `target` serves again; raises `NotReady` (or another `ProbeError`) when it does not.

    ``known``: it has answered in this run, and gets `outage_patience_s`; else only a few seconds. A Space gets the
    deadline of its readiness, because the Hub tells that it is on its way, or that it is not. Where something names
    the commit that runs, ``commit`` must be back: a rollback in mid-run is another deploy.
    """
    patience_s = settings.outage_patience_s if known else min(FIRST_CONTACT_S, settings.outage_patience_s)
    ready = settings.readiness
    if target.space is not None:
        await wait_until_ready(target, ready, commit=commit, hub_token=hub_token)
        return
    await _wait_for_page(target.address, settings, patience_s)
    if ready.version_url is not None:
        in_time = ready.model_copy(update={"deadline_s": patience_s, "poll_s": POLL_S})
        await wait_until_ready(target, in_time, commit=commit)


async def _wait_for_page(address: str, settings: ProbeSettings, patience_s: float) -> None:
    started = monotonic()
    serving_below = CLIENT_ERRORS if settings.driver == "browser" else SERVER_ERRORS  # an API may refuse a GET
    async with httpx.AsyncClient(timeout=settings.readiness.request_deadline_s, follow_redirects=True) as client:
        while True:
            seen = await _look(client, address, serving_below)
            if seen is None:
                return
            if monotonic() - started >= patience_s:
                raise NotReady(f"{address} was waited for {patience_s:g} s and is not back: {seen}")
            await asyncio.sleep(POLL_S)


async def _look(client: httpx.AsyncClient, address: str, serving_below: int) -> str | None:
    """What is wrong, or ``None``."""
    try:
        response = await client.get(address)
    except httpx.HTTPError as error:
        return type(error).__name__
    return None if response.status_code < serving_below else f"HTTP {response.status_code}"
