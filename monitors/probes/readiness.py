"""Is the deployed commit serving? (V1) A Space may be asleep, building, broken, or still run the image before.

Never says "ready" on a guess: RUNNING may be the old image, so the commit must be named, by the Hub's runtime or by
the app's own version endpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Annotated, Any, cast

import httpx
from pydantic import Field

from monitors.errors import AccessDenied, DeployFailed, NotReady, ReadinessUntold
from monitors.json_path import values_at
from monitors.probes.inpage import clean
from monitors.probes.settings import ReadinessSettings
from monitors.probes.wire import documents_in
from monitors.records.base import Record
from monitors.records.targets import Target

Seconds = Annotated[float, Field(ge=0)]
Sleep = Callable[[float], Awaitable[None]]
COMMIT_CHARACTERS = 7  # the shortest abbreviation that git itself writes


class Ready(Record):
    """The target serves. ``commit`` is what it said it runs; ``stages`` are the states passed through, in order.

    ``cold_start_s`` is how long it was waited for, 0 when it served at the first look.
    """

    commit: str | None
    cold_start_s: Seconds
    woken: bool
    stages: tuple[str, ...]


class Stage(StrEnum):
    """What a Space's stage means for us; the Hub's own list is longer and lacks SLEEPING."""

    SERVING = "serving"
    ASLEEP = "asleep"
    UNDER_WAY = "under way"
    FAILED = "failed"


_MEANING = {
    "RUNNING": Stage.SERVING,
    "SLEEPING": Stage.ASLEEP,
    "BUILD_ERROR": Stage.FAILED,
    "RUNTIME_ERROR": Stage.FAILED,
    "CONFIG_ERROR": Stage.FAILED,
    "NO_APP_FILE": Stage.FAILED,
    "PAUSED": Stage.FAILED,
    "STOPPED": Stage.FAILED,
    "DELETING": Stage.FAILED,
}
# An old image goes on serving while the next one is built or started.
_STILL_SERVING = frozenset({"RUNNING_BUILDING", "RUNNING_APP_STARTING"})


@dataclass(frozen=True)
class Seen:
    """One look at a target."""

    stage: str
    commit: str | None = None
    detail: str = ""

    @property
    def meaning(self) -> Stage:
        """A stage that nobody knows yet is waited on."""
        return _MEANING.get(self.stage, Stage.UNDER_WAY)


def same_commit(one: str, other: str) -> bool:
    """Whether two names of commits mean the same; either may be abbreviated to seven characters or more."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return len(short) >= COMMIT_CHARACTERS and long.startswith(short)


async def wait_until_ready(
    target: Target,
    settings: ReadinessSettings,
    *,
    commit: str | None = None,
    hub_token: str | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Ready:
    """Waits until `target` serves, and serves `commit` where one is given.

    Wakes a sleeping Space. Raises `DeployFailed` (build or runtime error, paused), `NotReady` (deadline),
    `AccessDenied` (the Hub wants a token) or `ReadinessUntold` (nothing names the running commit, Hub down).
    """
    async with httpx.AsyncClient(timeout=settings.request_deadline_s, follow_redirects=True) as client:
        look = Lookout(target, settings, client, hub_token)
        return await _wait(look, settings, commit, sleep)


async def _wait(look: Lookout, settings: ReadinessSettings, commit: str | None, sleep: Sleep) -> Ready:
    started = monotonic()
    stages: list[str] = []
    woken = False
    while True:
        seen = await look.at_target()
        if not stages or stages[-1] != seen.stage:
            stages.append(seen.stage)
        if seen.meaning is Stage.FAILED and not _is_of_another(seen, commit):
            raise DeployFailed(f"the deploy failed: stage {seen.stage}{seen.detail and f' ({seen.detail})'}")
        if seen.meaning is Stage.ASLEEP:
            woken = True
            await look.knock()
        elif _serves(seen, commit) and await look.knock():
            waited = monotonic() - started if len(stages) > 1 or woken else 0.0
            return Ready(commit=seen.commit, cold_start_s=waited, woken=woken, stages=tuple(stages))
        if monotonic() - started >= settings.deadline_s:
            raise _too_late(seen, commit, settings.deadline_s)
        await sleep(settings.poll_s)


def _is_of_another(seen: Seen, commit: str | None) -> bool:
    """Whether what failed is an older image, whose successor is on its way."""
    return commit is not None and seen.commit is not None and not same_commit(seen.commit, commit)


def _serves(seen: Seen, commit: str | None) -> bool:
    if commit is None:
        return seen.meaning is Stage.SERVING or seen.stage in _STILL_SERVING
    return seen.meaning is Stage.SERVING and seen.commit is not None and same_commit(seen.commit, commit)


def _too_late(seen: Seen, commit: str | None, deadline_s: float) -> NotReady:
    within = f"within {deadline_s:g} s"
    if seen.meaning is not Stage.SERVING:
        hub_fault = seen.stage == HUB_SILENT
        text = f"not ready {within}: last stage {seen.stage}{seen.detail and f' ({seen.detail})'}"
        return ReadinessUntold(text) if hub_fault else NotReady(text)
    if commit is None:
        return NotReady(f"the page did not answer {within}, though the stage is {seen.stage}")
    if seen.commit is None:
        return ReadinessUntold(
            f"nothing says which commit runs, {commit} was expected: set probe.readiness.version_url"
        )
    return NotReady(f"commit {commit} did not serve {within}: {seen.commit} still does")


HUB_SILENT = "HUB_SILENT"
PAGE_SILENT = "PAGE_SILENT"


class Lookout:
    """Looks at one target: at its runtime on the Hub, its version endpoint, its page."""

    def __init__(
        self, target: Target, settings: ReadinessSettings, client: httpx.AsyncClient, hub_token: str | None
    ) -> None:
        self._target = target
        self._settings = settings
        self._client = client
        self._token = hub_token

    async def at_target(self) -> Seen:
        """Its state now. A Space is asked at the Hub; any other page is serving when it answers."""
        seen = await self._at_hub() if self._target.space is not None else await self._at_page()
        if seen.commit is None and seen.meaning is Stage.SERVING and self._settings.version_url is not None:
            return Seen(seen.stage, await self._version(self._settings.version_url), seen.detail)
        return seen

    async def knock(self) -> bool:
        """Opens the page, which wakes a sleeping Space; whether it answered."""
        return (await self._at_page()).meaning is Stage.SERVING

    async def _at_page(self) -> Seen:
        try:
            response = await self._client.get(self._target.address)
        except httpx.HTTPError as error:
            return Seen(PAGE_SILENT, detail=type(error).__name__)
        if response.is_success:
            return Seen("RUNNING")
        return Seen(PAGE_SILENT, detail=f"HTTP {response.status_code}")

    async def _version(self, url: str) -> str | None:
        """What the version endpoint names; ``None`` while it does not answer."""
        try:
            response = await self._client.get(url)
        except httpx.HTTPError:
            return None
        if not response.is_success:
            return None
        path = self._settings.version_path
        named = [one for document in documents_in(response.text) for one in values_at(document, path)]
        texts = [clean(one) for one in named if isinstance(one, str)] if path else [clean(response.text.strip())]
        return texts[0] if texts else None

    async def _at_hub(self) -> Seen:
        """The runtime, asked in a thread: the Hub's client is synchronous."""
        from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
        from huggingface_hub.errors import HfHubHTTPError  # 0.5 s, and only for Spaces

        try:
            return await asyncio.wait_for(asyncio.to_thread(self._runtime), self._settings.request_deadline_s)
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status in (401, 403, 404):
                raise AccessDenied(
                    f"the Hub answered HTTP {status} for {self._target.space}: is its name right, and does the "
                    f"token (HF_TOKEN) see it?"
                ) from error
            return Seen(HUB_SILENT, detail=f"the Hub answered HTTP {status}")
        except (TimeoutError, HubHTTPError) as error:
            return Seen(HUB_SILENT, detail=f"the Hub: {type(error).__name__}")

    def _runtime(self) -> Seen:
        from huggingface_hub import HfApi  # 0.5 s, and only for Spaces

        api = HfApi(endpoint=self._settings.hub_url, token=self._token or False)
        raw = cast("dict[str, Any]", api.get_space_runtime(str(self._target.space)).raw)  # pyright: ignore[reportUnknownMemberType] - typed as a bare dict
        commit = raw.get("sha")
        return Seen(
            stage=clean(str(raw.get("stage", "UNKNOWN"))),
            commit=commit if isinstance(commit, str) and commit else None,
            detail=clean(str(raw.get("errorMessage") or ""))[:300],
        )
