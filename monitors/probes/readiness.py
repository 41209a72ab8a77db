"""Wait until the deployed commit is serving (V1). A Space may sleep, build, be broken or still run the old image.

"Ready" is never a guess. RUNNING may be the old image, so the Hub's runtime or the app's own version endpoint
must name the commit. `fetch_hub_account` checks a token by asking the Hub for its owner.

If an app stops during a run, the run waits for the app, so that a restart by its orchestrator costs no verdict
(V10).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Any, Final, cast

import httpx
from pydantic import Field

from monitors.errors import AccessDenied, DeployFailed, NotReady, ProbeError, ReadinessUnknown
from monitors.http_client import MEGABYTE_BYTES, GuardedClient, describe_http_error
from monitors.json_path import collect_items
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.settings import ProbeSettings, ReadinessSettings
from monitors.probes.target_guard import build_address_guard
from monitors.probes.wire import parse_documents
from monitors.records.base import Record
from monitors.records.targets import Target, is_same_commit

REFUSED_STATUSES = (401, 403)


class HubAccount(Record):
    """The owner of a Hub token, and the token's role (``read``, ``write``, ``fineGrained``)."""

    name: str
    role: str


async def fetch_hub_account(token: str, *, hub_url: str | None, deadline_s: float) -> HubAccount:
    """Ask the Hub, by default the public one, for the owner of a token.

    Raises `AccessDenied` if the Hub refuses the token, `ReadinessUnknown` if it does not answer. The Hub's client
    is synchronous, so it runs in a thread. Errors do not contain the token.
    """
    from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
    from huggingface_hub.errors import HfHubHTTPError  # 0.5 s

    try:
        async with asyncio.timeout(deadline_s):
            identity = await asyncio.to_thread(_fetch_identity, token, hub_url)
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in REFUSED_STATUSES:
            raise AccessDenied(f"the Hub answered HTTP {status}: it does not accept this token") from None
        raise ReadinessUnknown(_format_hub_status(status)) from None
    except (TimeoutError, HubHTTPError) as error:
        raise ReadinessUnknown(f"the Hub: {type(error).__name__}") from None
    auth = cast("dict[str, Any]", identity.get("auth") or {})
    access_token = cast("dict[str, Any]", auth.get("accessToken") or {})
    return HubAccount(
        name=replace_surrogates(str(identity.get("name", "?"))),
        role=replace_surrogates(str(access_token.get("role") or "unknown")),
    )


def _format_hub_status(status: int) -> str:
    return HUB_LIMITED if status == HTTPStatus.TOO_MANY_REQUESTS else f"the Hub answered HTTP {status}"


def _fetch_identity(token: str, hub_url: str | None) -> dict[str, Any]:
    from huggingface_hub import HfApi  # 0.5 s

    return cast("dict[str, Any]", HfApi(endpoint=hub_url).whoami(token=token))  # pyright: ignore[reportUnknownMemberType] - typed as a bare dict


Seconds = Annotated[float, Field(ge=0)]
Sleep = Callable[[float], Awaitable[None]]


class Ready(Record):
    """The target serves. ``commit`` is the running commit; ``stages`` are the states before, in order.

    ``cold_start_s`` is the waiting time, 0 if the target served at the first poll.
    """

    commit: str | None
    cold_start_s: Seconds
    woken: bool
    stages: tuple[str, ...]


class Stage(StrEnum):
    """The meaning of a Space's stage for Lookout. The Hub's own list is longer and lacks SLEEPING."""

    SERVING = "serving"
    ASLEEP = "asleep"
    UNDER_WAY = "under way"
    FAILED = "failed"


_STAGE_MEANINGS = {
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
# The old image still serves while the next image is built or started.
_STILL_SERVING = frozenset({"RUNNING_BUILDING", "RUNNING_APP_STARTING"})


@dataclass(frozen=True)
class ReadinessPoll:
    """One poll of a target."""

    stage: str
    commit: str | None = None
    detail: str = ""

    @property
    def meaning(self) -> Stage:
        """The meaning of the stage. Lookout waits for an unknown stage to change."""
        return _STAGE_MEANINGS.get(self.stage, Stage.UNDER_WAY)


async def wait_until_ready(
    target: Target,
    probe: ProbeSettings,
    *,
    commit: str | None = None,
    hub_token: str | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Ready:
    """Wait until `target` serves, and serves `commit` if given.

    Wakes a sleeping Space. Raises `DeployFailed` (build or runtime error, paused), `NotReady` (deadline),
    `AccessDenied` (the Hub needs a token) or `ReadinessUnknown` (no source for the running commit, Hub down).
    """
    async with open_readiness_checker(target, probe, hub_token) as checker:
        return await _poll_until_ready(checker, probe.readiness, commit, sleep)


def has_source_of_commit(target: Target, settings: ReadinessSettings) -> bool:
    """Whether the target, or the Hub for it, reports the commit that it serves."""
    return target.space is not None or settings.version_url is not None


async def read_serving_commit(target: Target, probe: ProbeSettings, *, hub_token: str | None = None) -> str | None:
    """Read the commit that the target serves now, in one poll; ``None`` if the commit cannot be read."""
    async with open_readiness_checker(target, probe, hub_token) as checker:
        try:
            return (await checker.poll_target()).commit
        except ProbeError:
            return None


async def _poll_until_ready(
    checker: ReadinessChecker, settings: ReadinessSettings, commit: str | None, sleep: Sleep
) -> Ready:
    started = monotonic()
    stages: list[str] = []
    woken = False
    while True:
        poll = await checker.poll_target()
        if not stages or stages[-1] != poll.stage:
            stages.append(poll.stage)
        if poll.meaning is Stage.FAILED and not _is_older_commit(poll, commit):
            raise DeployFailed(f"the deploy failed: stage {poll.stage}{poll.detail and f' ({poll.detail})'}")
        if poll.meaning is Stage.ASLEEP:
            woken = True
            await checker.open_page()
        elif _is_serving(poll, commit) and await checker.open_page():
            waited = monotonic() - started if len(stages) > 1 or woken else 0.0
            return Ready(commit=poll.commit, cold_start_s=waited, woken=woken, stages=tuple(stages))
        if monotonic() - started >= settings.deadline_s:
            raise _build_timeout_error(poll, commit, settings.deadline_s)
        # A started deploy sends no event.
        await sleep(settings.poll_s)


def _is_older_commit(poll: ReadinessPoll, commit: str | None) -> bool:
    """Whether the failed image is an older image and the expected commit is still being deployed."""
    return commit is not None and poll.commit is not None and not is_same_commit(poll.commit, commit)


def _is_serving(poll: ReadinessPoll, commit: str | None) -> bool:
    if commit is None:
        return poll.meaning is Stage.SERVING or poll.stage in _STILL_SERVING
    return poll.meaning is Stage.SERVING and poll.commit is not None and is_same_commit(poll.commit, commit)


def _build_timeout_error(poll: ReadinessPoll, commit: str | None, deadline_s: float) -> NotReady:
    time_limit = f"within {deadline_s:g} s"
    if poll.meaning is not Stage.SERVING:
        is_hub_fault = poll.stage == HUB_SILENT
        text = f"not ready {time_limit}: last stage {poll.stage}{poll.detail and f' ({poll.detail})'}"
        return ReadinessUnknown(text) if is_hub_fault else NotReady(text)
    if commit is None:
        return NotReady(f"the page did not answer {time_limit}, but the stage is {poll.stage}")
    if poll.commit is None:
        return ReadinessUnknown(
            f"the running commit is unknown, and {commit} is expected: set probe.readiness.version_url"
        )
    return NotReady(f"commit {commit} did not serve {time_limit}; {poll.commit} still serves")


SIGN_IN_STATUSES = (401, 403, 407)
"""A server with this status runs. The first question shows whether the login works."""
MIN_SUCCESS, MIN_REDIRECT, METHOD_NOT_ALLOWED = 200, 300, 405
"""A server with this status runs. An address for POST requests refuses a GET."""
HUB_SILENT = "HUB_SILENT"
HUB_LIMITED = "the Hub limits requests (HTTP 429)"
PAGE_SILENT = "PAGE_SILENT"


class ReadinessChecker:
    """Poll one target: its runtime on the Hub, its version endpoint, its page."""

    def __init__(
        self, target: Target, settings: ReadinessSettings, client: GuardedClient, hub_token: str | None
    ) -> None:
        self._target = target
        self._settings = settings
        self._client = client
        self._token = hub_token

    async def poll_target(self) -> ReadinessPoll:
        """Return its state now. A Space's state comes from the Hub. Any other page serves if it responds."""
        poll = await self._poll_hub() if self._target.space is not None else await self._poll_page()
        if poll.commit is None and poll.meaning is Stage.SERVING and self._settings.version_url is not None:
            return ReadinessPoll(poll.stage, await self._fetch_commit(self._settings.version_url), poll.detail)
        return poll

    async def open_page(self) -> bool:
        """Open the page, which wakes a sleeping Space; return whether it responded."""
        return (await self._poll_page()).meaning is Stage.SERVING

    async def _poll_page(self) -> ReadinessPoll:
        try:
            status = (await _fetch_head(self._client, self._target.address)).status_code
        except httpx.HTTPError as error:
            return ReadinessPoll(PAGE_SILENT, detail=describe_http_error(error))
        if MIN_SUCCESS <= status < MIN_REDIRECT or status in (*SIGN_IN_STATUSES, METHOD_NOT_ALLOWED):
            return ReadinessPoll("RUNNING")
        return ReadinessPoll(PAGE_SILENT, detail=f"HTTP {status}")

    async def _fetch_commit(self, url: str) -> str | None:
        """Return the commit from the version endpoint; ``None`` while the endpoint does not respond."""
        try:
            response = await self._client.get(url)
        except httpx.HTTPError:
            return None
        if not response.is_success:
            return None
        path = self._settings.version_path
        values = [value for document in parse_documents(response.text) for value in collect_items(document, path)]
        texts = (
            [replace_surrogates(value) for value in values if isinstance(value, str)]
            if path
            else [replace_surrogates(response.text.strip())]
        )
        return texts[0] if texts else None

    async def _poll_hub(self) -> ReadinessPoll:
        """Return the Space's runtime. The Hub's client is synchronous, so it runs in a thread."""
        from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
        from huggingface_hub.errors import HfHubHTTPError  # 0.5 s, and only for Spaces

        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                return await asyncio.to_thread(self._fetch_runtime)
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status in (401, 403, 404):
                raise AccessDenied(
                    f"the Hub answered HTTP {status} for {self._target.space}: check the name, and that the token "
                    "(HF_TOKEN) may read the Space"
                ) from error
            return ReadinessPoll(HUB_SILENT, detail=_format_hub_status(status))
        except (TimeoutError, HubHTTPError) as error:
            return ReadinessPoll(HUB_SILENT, detail=f"the Hub: {type(error).__name__}")

    def _fetch_runtime(self) -> ReadinessPoll:
        from huggingface_hub import HfApi  # 0.5 s, and only for Spaces

        api = HfApi(endpoint=self._settings.hub_url, token=self._token or False)
        raw = cast("dict[str, Any]", api.get_space_runtime(str(self._target.space)).raw)  # pyright: ignore[reportUnknownMemberType] - typed as a bare dict
        commit = raw.get("sha")
        return ReadinessPoll(
            stage=replace_surrogates(str(raw.get("stage", "UNKNOWN"))),
            commit=commit if isinstance(commit, str) and commit else None,
            detail=replace_surrogates(str(raw.get("errorMessage") or ""))[:300],
        )


MAX_VERSION_BYTES: Final = MEGABYTE_BYTES
"""Limit of the bytes in a version endpoint's answer."""


@asynccontextmanager
async def open_readiness_checker(
    target: Target, probe: ProbeSettings, hub_token: str | None = None
) -> AsyncGenerator[ReadinessChecker]:
    """Open the checker of a target for the ``with`` block."""
    async with _open_client(target.address, probe) as client:
        yield ReadinessChecker(target, probe.readiness, client, hub_token)


def _open_client(address: str, probe: ProbeSettings) -> GuardedClient:
    return GuardedClient(
        build_address_guard(address, probe),
        deadline_s=probe.readiness.request_deadline_s,
        max_bytes=MAX_VERSION_BYTES,
    )


def limit_readiness(probe: ProbeSettings, *, deadline_s: float, poll_s: float) -> ProbeSettings:
    """Return the settings with other limits for the readiness check."""
    readiness = probe.readiness.model_copy(update={"deadline_s": deadline_s, "poll_s": poll_s})
    return probe.model_copy(update={"readiness": readiness})


async def fetch_head(address: str, probe: ProbeSettings) -> httpx.Response:
    """Return status and headers of a target's page. Raises `AccessDenied` and `httpx.HTTPError`."""
    async with _open_client(address, probe) as client:
        return await _fetch_head(client, address)


async def _fetch_head(client: GuardedClient, address: str) -> httpx.Response:
    """Return the response without its body, because a body may have no end."""
    async with client.stream("GET", address) as response:
        return response


POLL_INTERVAL_S: Final = 0.5
FIRST_ANSWER_TIMEOUT_S: Final = 5.0
"""The wait for an app that has never answered: enough for a short outage, yet a wrong address is reported soon."""

MIN_SERVER_ERROR: Final = 500
MIN_CLIENT_ERROR: Final = 400


async def wait_until_back(
    target: Target,
    settings: ProbeSettings,
    *,
    has_answered: bool,
    commit: str | None = None,
    hub_token: str | None = None,
) -> None:
    """Wait until `target` serves again. Raise `NotReady` (or another `ProbeError`) if it does not.

    ``has_answered``: the app has answered in this run and gets `outage_patience_s`; otherwise a few seconds. A
    Space gets its readiness deadline, because the Hub shows whether it is starting. If the running commit is
    known, it must be ``commit``: a rollback during a run is another deploy.
    """
    patience_s = (
        settings.outage_patience_s if has_answered else min(FIRST_ANSWER_TIMEOUT_S, settings.outage_patience_s)
    )
    if target.space is not None:
        await wait_until_ready(target, settings, commit=commit, hub_token=hub_token)
        return
    await _wait_for_page(target.address, settings, patience_s)
    if settings.readiness.version_url is not None:
        bounded_settings = limit_readiness(settings, deadline_s=patience_s, poll_s=POLL_INTERVAL_S)
        await wait_until_ready(target, bounded_settings, commit=commit)


async def _wait_for_page(address: str, settings: ProbeSettings, patience_s: float) -> None:
    started = monotonic()
    serving_below = (
        MIN_CLIENT_ERROR if settings.driver == "browser" else MIN_SERVER_ERROR
    )  # an API may refuse a GET
    async with _open_client(address, settings) as client:
        while True:
            fault = await _find_page_fault(client, address, serving_below)
            if fault is None:
                return
            if monotonic() - started >= patience_s:
                raise NotReady(f"{address} did not come back within {patience_s:g} s: {fault}")
            # A restarted app sends no event.
            await asyncio.sleep(POLL_INTERVAL_S)


async def _find_page_fault(client: GuardedClient, address: str, serving_below: int) -> str | None:
    """Open the page and return its fault, or ``None``."""
    try:
        status = (await _fetch_head(client, address)).status_code
    except httpx.HTTPError as error:
        return describe_http_error(error)
    return None if status < serving_below else f"HTTP {status}"
