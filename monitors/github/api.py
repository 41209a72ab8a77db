"""Send requests to the REST API of GitHub, and handle rate limits, pages and errors.

If GitHub rejects a request because of a rate limit, Lookout waits as long as GitHub requests and repeats the
request, unless the wait is too long. A write without a clear answer raises `NotifyUnsure`: the caller must check
the result before it writes again. Errors contain no address and no token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final, NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.http_client import MEGABYTE_BYTES, GuardedClient
from monitors.records.targets import HttpUrl
from monitors.request_headers import RequestHeaders
from monitors.retry import TryAgain, parse_retry_after_s, retry_with_pauses


class GitHubRecord(BaseModel):
    """A part of a response from GitHub. Only the fields that Lookout needs are read; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class User(GitHubRecord):
    """The author of a comment. ``type`` is ``User``, ``Bot`` or ``Organization``."""

    login: str = ""
    type: str = ""


class Comment(GitHubRecord):
    """A comment on a pull request. ``user`` is ``None`` if the account no longer exists."""

    id: Annotated[int, Field(ge=1)]
    body: str | None = None
    user: User | None = None
    html_url: str = ""


class GitHubErrorBody(GitHubRecord):
    """The content of an error response from GitHub."""

    message: str = ""


FORK_ADVICE: Final = "the token of a pull request from a fork can only read (for the solution, see docs/ci.md)"


class Forbidden(NotifyRejected):
    """Raised if the token lacks a permission for the request."""


class NotFound(NotifyRejected):
    """Raised if the object does not exist, or if the token may not read it."""


class Purpose(NamedTuple):
    """The purpose of a request (``doing``), and the permission that the request needs.

    The name of the permission is the name in workflow files and on GitHub's page for tokens.
    """

    doing: str
    permission: str


def build_comment_purpose(pull_request: str) -> Purpose:
    """Return the purpose of requests for the comments of ``owner/name#12``."""
    return Purpose(f"comment on {pull_request}", "pull-requests: write")


def build_status_purpose(repository: str, commit: str) -> Purpose:
    """Return the purpose of requests that set the status of a commit."""
    return Purpose(f"set the status of {repository}@{commit[:12]}", "statuses: write")


_ERROR_CLASSES: Final[dict[int, type[NotifyRejected]]] = {
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
}


def build_refusal_error(status: int, purpose: Purpose) -> NotifyError:
    """Build the error for a response whose status is an error other than a rate limit."""
    kind = _ERROR_CLASSES.get(status, NotifyRejected)
    match status:
        case HTTPStatus.UNAUTHORIZED:
            why = "the GitHub token is not valid or has expired; create a new token"
        case HTTPStatus.FORBIDDEN:
            why = f"the token lacks the permission `{purpose.permission}`; {FORK_ADVICE}"
        case HTTPStatus.NOT_FOUND:
            why = (
                f"the object does not exist, or the token has no access. The token needs `{purpose.permission}` on "
                "this repository"
            )
        case HTTPStatus.GONE | HTTPStatus.LOCKED:
            why = "the conversation is locked, or the repository is archived"
        case HTTPStatus.UNPROCESSABLE_ENTITY:
            why = "GitHub rejected the request. Check that the commit and the pull request are in this repository"
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return NotifyTransient(
                f"could not {purpose.doing}: GitHub returned an error (HTTP {status}); try again"
            )
        case _:
            why = "GitHub returned an unexpected status"
    return kind(f"could not {purpose.doing} (HTTP {status}): {why}")


API_VERSION: Final = "2022-11-28"
"""The version of GitHub's API in each request: https://docs.github.com/en/rest/about-the-rest-api/api-versions"""
PUBLIC_API: Final = "https://api.github.com"
DEFAULT_LIMIT_WAIT_S: Final = 60.0
"""The wait in seconds after a rate limit if GitHub does not state a time.

GitHub recommends at least one minute.
"""
PER_PAGE: Final = 100
"""The number of items in a page, which is GitHub's maximum."""
MAX_ANSWER_BYTES: Final = 50 * MEGABYTE_BYTES
MAX_PAGES: Final = 50
"""Maximum number of pages of a list that are read. 50 pages contain 5,000 comments.

GitHub allows 2,500 comments on a pull request.
"""

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class GitHubRetryPolicy:
    """The limits for waits and attempts of requests to GitHub.

    ``now`` returns the seconds since 1970. If GitHub requests a wait of more than ``max_wait_s``, the request
    fails. ``tries`` is the maximum number of attempts. ``deadline_s`` is the time limit of each attempt.
    """

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    max_wait_s: float = 90.0
    tries: int = 4
    first_pause_s: float = 1.0
    deadline_s: float = 20.0


class GitHubApi:
    """A client that sends requests with one token to one server. Use `open_github_api` to open a client."""

    def __init__(self, client: GuardedClient, policy: GitHubRetryPolicy) -> None:
        self._client = client
        self._policy = policy

    async def read(self, path: str, adapter: TypeAdapter[Parsed], purpose: Purpose) -> Parsed:
        """Return one object of the API. Raises `NotifyError`."""
        return _parse_answer(await self._request("GET", path, purpose), adapter, purpose)

    async def read_all(self, path: str, adapter: TypeAdapter[list[Parsed]], purpose: Purpose) -> list[Parsed]:
        """Return the items of all pages of a list. Raises `NotifyError`."""
        items: list[Parsed] = []
        page: httpx.URL | str = httpx.URL(path, params={"per_page": PER_PAGE})
        for _ in range(MAX_PAGES):
            answer = await self._request("GET", page, purpose)
            items += _parse_answer(answer, adapter, purpose)
            after = answer.links.get("next", {}).get("url")
            if after is None:
                break
            page = self._require_api_server(answer.url.join(after), purpose)
        return items

    async def write(
        self,
        method: str,
        path: str,
        body: object,
        adapter: TypeAdapter[Parsed],
        purpose: Purpose,
        *,
        is_repeatable: bool,
    ) -> Parsed:
        """Send a request that creates or changes an object.

        ``is_repeatable`` is True if sending the request twice does no harm. Raises `NotifyUnsure` if GitHub may
        have made the change and the request must not be repeated. Raises `NotifyError` for any other failure.
        """
        return _parse_answer(
            await self._request(method, path, purpose, body=body, is_repeatable=is_repeatable), adapter, purpose
        )

    async def delete(self, path: str, purpose: Purpose) -> None:
        """Delete an object. A missing object is not an error. Raises `NotifyError`."""
        await self._request("DELETE", path, purpose, accepted_statuses=(HTTPStatus.NOT_FOUND,))

    def _require_api_server(self, address: httpx.URL, purpose: Purpose) -> httpx.URL:
        """Return ``address`` if it is on the API's server. Otherwise raise `NotifyRejected`.

        Without this check, another server could get the token.
        """
        base = self._client.base_url
        if (address.scheme, address.host, address.port) != (base.scheme, base.host, base.port):
            raise NotifyRejected(
                f"could not {purpose.doing}: GitHub's link to the next page leads to another server"
            )
        return address

    async def _request(
        self,
        method: str,
        path: httpx.URL | str,
        purpose: Purpose,
        *,
        body: object = None,
        is_repeatable: bool = True,
        accepted_statuses: tuple[int, ...] = (),
    ) -> httpx.Response:
        async def try_once() -> httpx.Response:
            answer = await self._send(method, path, body, purpose, is_repeatable=is_repeatable)
            if answer is not None and (answer.is_success or answer.status_code in accepted_statuses):
                return answer
            wait_s = self._choose_wait_s_or_raise(answer, purpose, is_repeatable=is_repeatable)
            raise TryAgain(_build_final_error(answer, purpose), wait_s)

        policy = self._policy
        return await retry_with_pauses(
            try_once, tries=policy.tries, first_pause_s=policy.first_pause_s, sleep=policy.sleep
        )

    async def _send(
        self, method: str, path: httpx.URL | str, body: object, purpose: Purpose, *, is_repeatable: bool
    ) -> httpx.Response | None:
        """Send a request once and return the response.

        Returns ``None`` if no response arrives and the request may be repeated.
        """
        try:
            return await self._client.request(method, path, json=body)
        except AccessDenied as error:
            raise NotifyRejected(f"could not {purpose.doing}: {error}") from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return None
        except httpx.HTTPError:
            if is_repeatable:
                return None
            raise NotifyUnsure(
                f"it is unknown whether Lookout could {purpose.doing}: GitHub's answer was lost"
            ) from None

    def _choose_wait_s_or_raise(
        self, answer: httpx.Response | None, purpose: Purpose, *, is_repeatable: bool
    ) -> float | None:
        """Return the number of seconds that GitHub requests to wait, or ``None`` if no wait is needed.

        Raises an error if the wait is too long or another attempt cannot help.
        """
        if answer is None:
            return None
        if is_rate_limited(answer):
            wait_s = compute_wait_s(answer, self._policy.now())
            if wait_s > self._policy.max_wait_s:
                raise _build_limit_error(purpose)
            return wait_s
        if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise build_refusal_error(answer.status_code, purpose)
        if not is_repeatable:
            raise NotifyUnsure(
                f"it is unknown whether Lookout could {purpose.doing}: GitHub returned an error (HTTP "
                f"{answer.status_code})"
            )
        return None


def is_rate_limited(answer: httpx.Response) -> bool:
    """Return whether the response reports a rate limit: HTTP 429, or HTTP 403 with a message about a limit."""
    if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    if answer.status_code != HTTPStatus.FORBIDDEN:
        return False
    headers = answer.headers
    return "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0" or _has_limit_message(answer)


def compute_wait_s(answer: httpx.Response, now: float) -> float:
    """Return the number of seconds to wait after a rate limit, from ``retry-after`` or ``x-ratelimit-reset``.

    Without these headers, the wait is one minute.
    """
    requested_s = parse_retry_after_s(answer.headers)
    if requested_s is not None:
        return requested_s
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(0.0, float(reset) - now) + 1.0  # GitHub's clock counts whole seconds
    return DEFAULT_LIMIT_WAIT_S


def _has_limit_message(answer: httpx.Response) -> bool:
    try:
        return "rate limit" in GitHubErrorBody.model_validate_json(answer.content).message.lower()
    except ValidationError:
        return False


def _build_final_error(answer: httpx.Response | None, purpose: Purpose) -> NotifyError:
    if answer is None:
        return NotifyTransient(f"could not {purpose.doing}: GitHub does not answer")
    return (
        _build_limit_error(purpose) if is_rate_limited(answer) else build_refusal_error(answer.status_code, purpose)
    )


def _build_limit_error(purpose: Purpose) -> NotifyTransient:
    return NotifyTransient(
        f"could not {purpose.doing}: GitHub received too many requests with this token; try again later"
    )


def _parse_answer(answer: httpx.Response, adapter: TypeAdapter[Parsed], purpose: Purpose) -> Parsed:
    try:
        return adapter.validate_json(answer.content)
    except ValidationError:
        raise NotifyRejected(
            f"could not {purpose.doing}: the server is not GitHub's API; check GITHUB_API_URL"
        ) from None


@asynccontextmanager
async def open_github_api(api_url: str, token: str, policy: GitHubRetryPolicy) -> AsyncGenerator[GitHubApi]:
    """Open a client for ``api_url`` with ``token``. Raises `NotifyRejected` if the address is invalid."""
    headers = {
        "Accept": "application/vnd.github+json",
        "User-Agent": "lookout-monitor",
        "X-GitHub-Api-Version": API_VERSION,
    }
    try:
        client = GuardedClient(
            AddressGuard([api_url], private_network=True),  # a self-hosted GitHub may be on the private network
            deadline_s=policy.deadline_s,
            max_bytes=MAX_ANSWER_BYTES,
            headers=RequestHeaders(key="GITHUB_TOKEN", values={"Authorization": f"Bearer {token}"}),
            addresses=[api_url],
            plain_headers=headers,
            base_url=api_url.rstrip("/"),
        )
    except (AccessDenied, httpx.InvalidURL, UnicodeError):
        raise NotifyRejected("the GitHub token or the address of GitHub's API is not valid") from None
    async with client:
        yield GitHubApi(client, policy)


class GitHubSettings(BaseModel):
    """Settings in the table ``[github]`` of ``lookout.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_url: HttpUrl = Field(
        default=PUBLIC_API,
        description="address of GitHub's REST API. Set it for your own GitHub server. The environment variable "
        "GITHUB_API_URL overrides this setting",
    )
    token_block: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] | None = Field(
        default=None,
        description="name of the Prefect Secret block with the GitHub token. Lookout reads it only if "
        "GITHUB_TOKEN is not set",
    )
    post_results: bool = Field(
        default=True,
        description="whether Lookout posts the results of a staging deploy on the pull request that the deploy's "
        "webhook names",
    )
