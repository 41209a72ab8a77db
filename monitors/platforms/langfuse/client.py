"""Send requests to one Langfuse project through the public REST API, with a limited number of retries.

The client first checks that the keys belong to the configured project. This package uses the API of Langfuse 4, the
only version on Langfuse Cloud since November 2026. The facts are from Langfuse's API definition
(``fern/apis/server/definition`` and ``web/src/pages/api/public`` in the repository langfuse/langfuse, at 00cd21b
and 02a86c1) and its documentation (langfuse/langfuse-docs: the page on deprecated endpoints, and the page on
experiments by OpenTelemetry):

- Authentication is Basic auth with a public key and a secret key. Both keys belong to one project. ``GET
  /api/public/projects`` returns this project.
- ``POST /api/public/v2/datasets`` creates or updates a dataset by its name. A name in a path is percent-encoded,
  including slashes.
- ``POST /api/public/dataset-items`` creates or updates an item by its id. A value that is null or missing in the
  request is not changed. An id is unique in the project. Items are listed in pages with ``page`` and ``limit``,
  which is at most 100.
- ``POST /api/public/otel/v1/traces`` (OTLP as JSON) with ``x-langfuse-ingestion-version: 4`` stores traces. A trace
  consists of its spans. Spans with ``langfuse.experiment.*`` attributes belong to an experiment. Version 4 accepts
  the earlier dataset runs (``/dataset-run-items``), but does not store them.
- ``POST /api/public/ingestion`` accepts only scores, at most 4.5 MB. It answers with HTTP status 207 and an error
  for each invalid score.
- ``GET /api/public/v2/observations?traceId=`` reads a trace in pages with a cursor. Input and output are texts.
- Version 3 has the same datasets, but no experiments of this kind and no ``v2/observations``.
- Requests are limited per minute. HTTP status 429 has a header Retry-After. A request or a reply has at most 5 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, ConfigError, MonitorError, SourceUnavailable
from monitors.http_client import MEGABYTE_BYTES, GuardedClient, describe_http_error
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.platform import Json
from monitors.retry import TryAgain, is_retryable, parse_retry_after_s, retry_with_pauses

API: Final = "/api/public"
VERSION: Final = 4
MAX_ANSWER_BYTES: Final = 50 * MEGABYTE_BYTES
MAX_TRIES: Final = 6
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 90.0
"""Maximum pause before a retry in seconds. Langfuse limits requests per minute, so a limit ends within a minute."""
_REFUSED_STATUSES: Final = (401, 403)
_NOT_FOUND: Final = 404
_MAX_ERROR_CHARACTERS: Final = 300

Sleep = Callable[[float], Awaitable[None]]


class LangfuseRecord(BaseModel):
    """A part of a response from Langfuse. Unknown keys are ignored, because new versions of Langfuse add keys."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


Answer = TypeVar("Answer", bound=LangfuseRecord)


class Project(LangfuseRecord):
    """The Langfuse project to which a pair of keys belongs."""

    id: str
    name: str


class _Projects(LangfuseRecord):
    data: tuple[Project, ...]


class _Health(LangfuseRecord):
    version: str = ""


class _ErrorReply(LangfuseRecord):
    message: JsonValue = None
    error: JsonValue = None


class RequestArguments(TypedDict, total=False):
    """The arguments of a request, with the names that httpx uses."""

    params: Mapping[str, str | int]
    json: Json
    headers: Mapping[str, str]


class LangfuseKeys(NamedTuple):
    """The public and the secret key of a project. Neither a message nor the ``repr`` shows these keys."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return "LangfuseKeys(…)"

    def redact(self, text: str) -> str:
        """Return ``text`` with both keys replaced by "…"."""
        return text.replace(self.secret, "…").replace(self.public, "…")


def load_langfuse_keys(settings: LangfuseSettings, environment: Mapping[str, str]) -> LangfuseKeys:
    """Load both keys from the environment. Raises `ConfigError`, which names a missing variable."""
    named = {"public_key_env": settings.public_key_env, "secret_key_env": settings.secret_key_env}
    for key, variable in named.items():
        if not environment.get(variable):
            raise ConfigError(f"langfuse.{key}: the environment variable {variable} is missing or empty")
    return LangfuseKeys(environment[settings.public_key_env], environment[settings.secret_key_env])


class LangfuseClient:
    """Requests to one project. Errors are raised as `SourceUnavailable` or `ConfigError`, and contain no key."""

    def __init__(self, http: GuardedClient, settings: LangfuseSettings, keys: LangfuseKeys, sleep: Sleep) -> None:
        self._http, self._settings, self._keys, self._sleep = http, settings, keys, sleep
        self._project: Project | None = None
        self._version: str | None = None

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, settings: LangfuseSettings, keys: LangfuseKeys, sleep: Sleep = asyncio.sleep
    ) -> AsyncGenerator[Self]:
        """Open a client for a ``with`` block, after checking to which project the keys belong.

        Raises `ConfigError` if the keys belong to production or to another project than the configured one.
        """
        auth, deadline_s = (keys.public, keys.secret), settings.request_deadline_s
        async with GuardedClient(
            AddressGuard(
                [settings.host], private_network=True
            ),  # a self-hosted Langfuse may be in your own network
            deadline_s=deadline_s,
            max_bytes=MAX_ANSWER_BYTES,
            max_redirects=0,
            auth=auth,
            base_url=settings.host,
        ) as http:
            client = cls(http, settings, keys, sleep)
            await client._fetch_and_check_project()
            yield client

    @property
    def project(self) -> Project:
        """Return the project that the keys belong to."""
        assert self._project is not None, "the project is unknown before connect()"
        return self._project

    @property
    def place(self) -> str:
        """Return the project's name for messages."""
        return f"Langfuse project {self._settings.project!r}"

    def build_page_url(self, *parts: str) -> str:
        """Return the web address of a page of this project."""
        path = "/".join(quote(part, safe="") for part in ("project", self.project.id, *parts))
        return f"{self._settings.host.rstrip('/')}/{path}"

    async def require_version_4(self, feature: str) -> None:
        """Raise `ConfigError` if the server is older than version 4.

        A server that reports no version is accepted.
        """
        if self._version is None:
            health = await self.request_or_none_if_404(
                "GET", f"{API}/health", _Health, "asking for the server's version"
            )
            self._version = health.version if health else ""
        major = self._version.partition(".")[0]
        if major.isdecimal() and int(major) < VERSION:
            raise ConfigError(
                f"langfuse.host: this Langfuse is version {self._version}; {feature} needs version {VERSION}. "
                "Datasets work with both versions"
            )

    async def request_or_none_if_404(
        self, method: str, path: str, answer: type[Answer], doing: str, **arguments: Unpack[RequestArguments]
    ) -> Answer | None:
        """Send a request with retries and return the parsed response. Return ``None`` for HTTP status 404.

        ``doing`` describes the request in error messages.
        """
        response = await self._send_with_retries(method, path, doing, arguments)
        return None if response.status_code == _NOT_FOUND else self._parse_reply(response, answer, doing)

    async def request(
        self, method: str, path: str, answer: type[Answer], doing: str, **arguments: Unpack[RequestArguments]
    ) -> Answer:
        """Send a request with retries and return the parsed response.

        ``doing`` describes the request in error messages. Raises `SourceUnavailable` for HTTP status 404.
        """
        response = await self._send_with_retries(method, path, doing, arguments)
        if response.status_code == _NOT_FOUND:
            raise self.build_unavailable_error(
                doing, f"HTTP 404{_format_error_suffix(response)}; the resource may have been deleted"
            )
        return self._parse_reply(response, answer, doing)

    async def _send_with_retries(
        self, method: str, path: str, doing: str, arguments: RequestArguments
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            return await self._send(method, path, doing, arguments)

        return await retry_with_pauses(
            send, tries=MAX_TRIES, first_pause_s=FIRST_PAUSE_S, max_pause_s=MAX_PAUSE_S, sleep=self._sleep
        )

    def build_unavailable_error(self, doing: str, reason: str) -> SourceUnavailable:
        """Build the error for a failed request.

        ``doing`` describes the request. The error text contains no keys.
        """
        return SourceUnavailable(self._keys.redact(f"{self.place}: {doing}: {reason}"))

    async def _send(self, method: str, path: str, doing: str, arguments: RequestArguments) -> httpx.Response:
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                response = await self._http.request(method, path, **arguments)
        except TimeoutError:
            message = f"no answer within {self._settings.request_deadline_s:g} s"
            raise TryAgain(self.build_unavailable_error(doing, message)) from None
        except AccessDenied as error:
            raise self.build_unavailable_error(doing, str(error)) from None
        except httpx.HTTPError as error:
            raise TryAgain(
                self.build_unavailable_error(doing, f"{describe_http_error(error)} at {self._settings.host}")
            ) from None
        if response.is_success or response.status_code == _NOT_FOUND:
            return response
        raise self._build_response_error(response, doing)

    def _build_response_error(self, response: httpx.Response, doing: str) -> Exception:
        status = response.status_code
        if status in _REFUSED_STATUSES:
            return ConfigError(self._describe_refusal(response, doing))
        if response.is_redirect:
            host = httpx.URL(response.headers.get("location", "")).host or "another address"
            return ConfigError(
                f"langfuse.host: {self._settings.host} redirects to {host}. Lookout does not send keys to a "
                "redirect address. Set langfuse.host to the new address"
            )
        problem = self.build_unavailable_error(doing, f"HTTP {status}{_format_error_suffix(response)}")
        if not is_retryable(status):
            return problem
        after_s = parse_retry_after_s({name.lower(): value for name, value in response.headers.items()})
        if after_s is not None and after_s > MAX_PAUSE_S:
            return self.build_unavailable_error(
                doing, f"HTTP {status}: the server requests a wait of {after_s:.0f} s. Try again later"
            )
        return TryAgain(problem, after_s)

    def _describe_refusal(self, response: httpx.Response, doing: str) -> str:
        named = f"{self._settings.public_key_env} and {self._settings.secret_key_env}"
        return self._keys.redact(
            f"langfuse: {doing}: HTTP {response.status_code}{_format_error_suffix(response)}. Check that the keys "
            f"in {named} (langfuse.public_key_env, langfuse.secret_key_env) belong to one project of "
            f"{self._settings.host}"
        )

    def _parse_reply(self, response: httpx.Response, answer: type[Answer], doing: str) -> Answer:
        try:
            return answer.model_validate_json(response.content or b"{}")
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in first["loc"])
            detail = f"at {path}: {first['msg']}" if path else "the body is not JSON"
            raise self.build_unavailable_error(doing, f"Lookout cannot read Langfuse's answer: {detail}") from None

    async def _fetch_and_check_project(self) -> None:
        """Raise `ConfigError` if the keys belong to production or to another project than the configured one."""
        doing, settings = "asking which project the keys belong to", self._settings
        reply = await self.request_or_none_if_404("GET", f"{API}/projects", _Projects, doing)
        if reply is None or not reply.data:
            raise ConfigError(
                f"langfuse.host: the server at {settings.host} is not Langfuse ({API}/projects gave "
                "no valid answer)"
            )
        project = reply.data[0]
        if settings.production_project in (project.id, project.name):
            raise ConfigError(
                f"langfuse.production_project: the keys in {settings.public_key_env} and "
                f"{settings.secret_key_env} belong to the production project {project.name!r}. Lookout wrote "
                f"nothing. Use the keys of {settings.project!r}"
            )
        if settings.project not in (project.id, project.name):
            raise ConfigError(
                f"langfuse.project: the keys in {settings.public_key_env} and {settings.secret_key_env} belong to "
                f"{project.name!r} ({project.id}), not to {settings.project!r}. Lookout wrote nothing. Use the "
                f"keys of {settings.project!r}"
            )
        self._project = project


def _format_error_suffix(response: httpx.Response) -> str:
    """Return a colon and the shortened error message of a response.

    The result is empty if there is no message.
    """
    try:
        reply = _ErrorReply.model_validate_json(response.content)
    except ValidationError:
        return ""
    message = reply.message or reply.error
    return f": {str(message)[:_MAX_ERROR_CHARACTERS]}" if message else ""


def classify_failure(problem: MonitorError, status: int) -> Exception:
    """Return `TryAgain` if a retry may succeed after this HTTP status. Otherwise, return ``problem`` itself."""
    return TryAgain(problem) if is_retryable(status) else problem
