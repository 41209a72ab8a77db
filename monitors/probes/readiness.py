"""Wait until a target serves the deployed commit.

A Hugging Face Space may sleep, build, fail, or still run the old commit. The Hub or the version endpoint of the app
must report the commit that runs now. `wait_until_target_serves_again` waits for an app that stops during a run.
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
    """The owner of a Hub token, and the role of the token: ``read``, ``write`` or ``fineGrained``."""

    name: str
    role: str


async def fetch_hub_account(token: str, *, hub_url: str | None, deadline_s: float) -> HubAccount:
    """Return the owner of a token, as the Hub reports it. If ``hub_url`` is ``None``, the public Hub is used.

    Raises `AccessDenied` if the Hub rejects the token, and `ReadinessUnknown` if the Hub does not answer. The
    errors do not contain the token.
    """
    from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
    from huggingface_hub import HfApi  # 0.5 s
    from huggingface_hub.errors import HfHubHTTPError

    try:
        async with asyncio.timeout(deadline_s):
            api = cast("Any", HfApi(endpoint=hub_url))  # its answers are untyped
            identity = cast("dict[str, Any]", await asyncio.to_thread(api.whoami, token=token))
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in REFUSED_STATUSES:
            raise AccessDenied(f"the Hub rejected this token (HTTP {status})") from None
        raise ReadinessUnknown(_format_hub_status(status)) from None
    except (TimeoutError, HubHTTPError) as error:
        raise ReadinessUnknown(f"the Hub did not answer: {type(error).__name__}") from None
    auth = cast("dict[str, Any]", identity.get("auth") or {})
    access_token = cast("dict[str, Any]", auth.get("accessToken") or {})
    return HubAccount(
        name=replace_surrogates(str(identity.get("name", "?"))),
        role=replace_surrogates(str(access_token.get("role") or "unknown")),
    )


def _format_hub_status(status: int) -> str:
    return HUB_LIMITED if status == HTTPStatus.TOO_MANY_REQUESTS else f"the Hub answered HTTP {status}"


Seconds = Annotated[float, Field(ge=0)]
Sleep = Callable[[float], Awaitable[None]]


class Ready(Record):
    """The result of a successful wait: the target now serves requests.

    - ``commit`` is the commit that runs.
    - ``stages`` are the stages that the polls reported, in order and without repetitions in a row.
    - ``cold_start_s`` is the duration of the wait in seconds, or 0 if all polls reported the same stage.
    """

    commit: str | None
    cold_start_s: Seconds
    woken: bool
    stages: tuple[str, ...]


class Stage(StrEnum):
    """What the stage of a Space, as reported by the Hub, means for Lookout."""

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
# The old commit still serves requests while the next commit is built or started.
_STILL_SERVING = frozenset({"RUNNING_BUILDING", "RUNNING_APP_STARTING"})


@dataclass(frozen=True)
class ReadinessPoll:
    """The result of one poll of a target."""

    stage: str
    commit: str | None = None
    detail: str = ""

    @property
    def meaning(self) -> Stage:
        """Return what the stage means for Lookout. An unknown stage means that Lookout must wait."""
        return _STAGE_MEANINGS.get(self.stage, Stage.UNDER_WAY)


async def wait_until_ready(
    target: Target,
    probe: ProbeSettings,
    *,
    commit: str | None = None,
    hub_token: str | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Ready:
    """Wait until `target` serves requests and, if `commit` is given, runs this commit. Wakes a sleeping Space.

    Raises:
        DeployFailed: the build or the start failed, or the Space is paused
        NotReady: the target does not serve requests before its deadline
        AccessDenied: the Hub requires a token
        ReadinessUnknown: no source reports the running commit, or the Hub does not answer
    """
    async with open_readiness_checker(target, probe, hub_token) as checker:
        return await _poll_until_ready(checker, probe.readiness, commit, sleep)


def can_read_serving_commit(target: Target, settings: ReadinessSettings) -> bool:
    """Return whether the Hub or a version endpoint reports the commit that serves the requests of the target."""
    return target.space is not None or settings.version_url is not None


async def read_serving_commit(target: Target, probe: ProbeSettings, *, hub_token: str | None = None) -> str | None:
    """Return the commit that serves the requests of the target now. The target is polled only once.

    Return ``None`` if the poll fails or does not show the commit.
    """
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
        # A failed older commit does not matter: the expected commit is still being deployed.
        is_older = commit is not None and poll.commit is not None and not is_same_commit(poll.commit, commit)
        if poll.meaning is Stage.FAILED and not is_older:
            detail = poll.detail and f" ({poll.detail})"
            raise DeployFailed(f"the deploy failed: the Space has the stage {poll.stage}{detail}")
        if poll.meaning is Stage.ASLEEP:
            woken = True
            await checker.wake_page()
        elif _is_serving(poll, commit) and await checker.wake_page():
            waited = monotonic() - started if len(stages) > 1 or woken else 0.0
            return Ready(commit=poll.commit, cold_start_s=waited, woken=woken, stages=tuple(stages))
        if monotonic() - started >= settings.deadline_s:
            raise _build_timeout_error(poll, commit, settings.deadline_s)
        # A started deploy sends no event.
        await sleep(settings.poll_s)


def _is_serving(poll: ReadinessPoll, commit: str | None) -> bool:
    if commit is None:
        return poll.meaning is Stage.SERVING or poll.stage in _STILL_SERVING
    return poll.meaning is Stage.SERVING and poll.commit is not None and is_same_commit(poll.commit, commit)


def _build_timeout_error(poll: ReadinessPoll, commit: str | None, deadline_s: float) -> NotReady:
    time_limit = f"within {deadline_s:g} s"
    if poll.meaning is not Stage.SERVING:
        is_hub_fault = poll.stage == HUB_SILENT
        detail = poll.detail and f" ({poll.detail})"
        text = f"the target was not ready {time_limit}. The last stage was {poll.stage}{detail}"
        return ReadinessUnknown(text) if is_hub_fault else NotReady(text)
    if commit is None:
        return NotReady(f"the page did not answer {time_limit}, although its stage is {poll.stage}")
    if poll.commit is None:
        return ReadinessUnknown(
            f"Lookout expects commit {commit}, but does not know which commit runs. Set probe.readiness.version_url"
        )
    return NotReady(f"commit {commit} was not live {time_limit}. Commit {poll.commit} is still live")


SIGN_IN_STATUSES = (401, 403, 407)
"""The HTTP statuses of a server that runs, but requires a login.

The first question shows whether the login works.
"""
MIN_SUCCESS, MIN_REDIRECT, METHOD_NOT_ALLOWED = 200, 300, 405
"""A server runs if its HTTP status is from 200 to 299, or 405 (the address accepts only POST)."""
HUB_SILENT = "HUB_SILENT"
HUB_LIMITED = "the Hub limits requests (HTTP 429)"
PAGE_SILENT = "PAGE_SILENT"


class ReadinessChecker:
    """Poll the state of one target: on the Hub, at its version endpoint, or by opening its page."""

    def __init__(
        self, target: Target, settings: ReadinessSettings, client: GuardedClient, hub_token: str | None
    ) -> None:
        self._target = target
        self._settings = settings
        self._client = client
        self._token = hub_token

    async def poll_target(self) -> ReadinessPoll:
        """Return the current state of the target.

        For a Space, the Hub reports the state. For any other target, Lookout checks whether its page responds.
        """
        poll = await self._poll_hub() if self._target.space is not None else await self._poll_page()
        if poll.commit is None and poll.meaning is Stage.SERVING and self._settings.version_url is not None:
            return ReadinessPoll(poll.stage, await self._fetch_commit(self._settings.version_url), poll.detail)
        return poll

    async def wake_page(self) -> bool:
        """Open the page, which wakes a sleeping Space. Return whether the page responded."""
        return (await self._poll_page()).meaning is Stage.SERVING

    async def _poll_page(self) -> ReadinessPoll:
        try:
            status = (await _fetch_without_body(self._client, self._target.address)).status_code
        except httpx.HTTPError as error:
            return ReadinessPoll(PAGE_SILENT, detail=describe_http_error(error))
        if MIN_SUCCESS <= status < MIN_REDIRECT or status in (*SIGN_IN_STATUSES, METHOD_NOT_ALLOWED):
            return ReadinessPoll("RUNNING")
        return ReadinessPoll(PAGE_SILENT, detail=f"HTTP {status}")

    async def _fetch_commit(self, url: str) -> str | None:
        """Return the commit that the version endpoint reports, or ``None`` if the endpoint does not respond."""
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
        """Return the state of the Space on the Hub. Raises `AccessDenied` if the Hub does not show the Space."""
        from httpx2 import HTTPError as HubHTTPError  # the Hub's own client library
        from huggingface_hub.errors import HfHubHTTPError  # 0.5 s, and only for Spaces

        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                return await asyncio.to_thread(self._fetch_space_state)
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status in (401, 403, 404):
                raise AccessDenied(
                    f"the Hub answered HTTP {status} for {self._target.space}. Check the name of the Space, and "
                    "that the token in HF_TOKEN may read the Space"
                ) from error
            return ReadinessPoll(HUB_SILENT, detail=_format_hub_status(status))
        except (TimeoutError, HubHTTPError) as error:
            return ReadinessPoll(HUB_SILENT, detail=f"the Hub did not answer: {type(error).__name__}")

    def _fetch_space_state(self) -> ReadinessPoll:
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
"""Maximum number of bytes in the response of a version endpoint."""


@asynccontextmanager
async def open_readiness_checker(
    target: Target, probe: ProbeSettings, hub_token: str | None = None
) -> AsyncGenerator[ReadinessChecker]:
    """Yield a checker for the state of a target."""
    async with _open_client(target.address, probe) as client:
        yield ReadinessChecker(target, probe.readiness, client, hub_token)


def _open_client(address: str, probe: ProbeSettings) -> GuardedClient:
    return GuardedClient(
        build_address_guard(address, probe),
        deadline_s=probe.readiness.request_deadline_s,
        max_bytes=MAX_VERSION_BYTES,
    )


async def fetch_page_without_body(address: str, probe: ProbeSettings) -> httpx.Response:
    """Return the status and headers of the page of a target. Raises `AccessDenied` and `httpx.HTTPError`."""
    async with _open_client(address, probe) as client:
        return await _fetch_without_body(client, address)


async def _fetch_without_body(client: GuardedClient, address: str) -> httpx.Response:
    """Return the response to a GET. The body of the response is not read, because it may have no end."""
    async with client.stream("GET", address) as response:
        return response


POLL_INTERVAL_S: Final = 0.5
FIRST_ANSWER_TIMEOUT_S: Final = 5.0
"""Maximum seconds to wait for an app that has not answered any question in this run.

The time is short, so that a wrong address is reported soon.
"""

MIN_SERVER_ERROR: Final = 500
MIN_CLIENT_ERROR: Final = 400


async def wait_until_target_serves_again(
    target: Target,
    settings: ProbeSettings,
    *,
    has_answered: bool,
    commit: str | None = None,
    hub_token: str | None = None,
) -> None:
    """Wait until `target` serves requests again. Raises `NotReady` or another `ProbeError` if it does not.

    The maximum wait is `outage_patience_s`, but at most `FIRST_ANSWER_TIMEOUT_S` if the app has not answered in
    this run (``has_answered`` is False). For a Space, the maximum wait is the deadline of a deploy. If the Hub or a
    version endpoint reports the running commit, this commit must be ``commit``.
    """
    patience_s = (
        settings.outage_patience_s if has_answered else min(FIRST_ANSWER_TIMEOUT_S, settings.outage_patience_s)
    )
    if target.space is not None:
        await wait_until_ready(target, settings, commit=commit, hub_token=hub_token)
        return
    await _wait_for_page(target.address, settings, patience_s)
    if settings.readiness.version_url is not None:
        bounded_settings = settings.with_readiness_times(deadline_s=patience_s, poll_s=POLL_INTERVAL_S)
        await wait_until_ready(target, bounded_settings, commit=commit)


async def _wait_for_page(address: str, settings: ProbeSettings, patience_s: float) -> None:
    started = monotonic()
    serving_below = (
        MIN_CLIENT_ERROR if settings.driver == "browser" else MIN_SERVER_ERROR
    )  # an API may refuse a GET
    async with _open_client(address, settings) as client:
        while True:
            fault = await _explain_page_fault(client, address, serving_below)
            if fault is None:
                return
            if monotonic() - started >= patience_s:
                raise NotReady(f"{address} was not available again within {patience_s:g} s: {fault}")
            # A restarted application sends no event.
            await asyncio.sleep(POLL_INTERVAL_S)


async def _explain_page_fault(client: GuardedClient, address: str, serving_below: int) -> str | None:
    """Open the page and return the reason why it is not available, or ``None`` if the page is available.

    The page is available if its HTTP status is below ``serving_below``.
    """
    try:
        status = (await _fetch_without_body(client, address)).status_code
    except httpx.HTTPError as error:
        return describe_http_error(error)
    return None if status < serving_below else f"HTTP {status}"
