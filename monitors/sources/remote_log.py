"""A log that lies elsewhere: read by range requests, so that only what is new travels."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import httpx

from monitors.errors import ConfigError, SourceUnavailable
from monitors.sources.log_files import LogFiles, LogPlace
from monitors.sources.log_settings import HUB_PREFIX

HEAD_BYTES: Final = 1 << 16
"""Kept of the start while a file is open: all that marks look at there."""
DEFAULT_HUB: Final = "https://huggingface.co"
TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)
_TOTAL: Final = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)", re.ASCII)
_HUB_FILE: Final = re.compile(
    r"hf://(?P<kind>datasets/|spaces/)?(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:@(?P<revision>[\w./-]+?))?/(?P<path>.+)"
)


class RemoteLog:
    """A log at an address that answers range requests. It has no rotated files: what was rotated away is a gap.

    ``headers`` open it; they go to the address's own host alone, wherever it redirects to.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {"Accept-Encoding": "identity", **headers}

    @contextmanager
    def look(self) -> Generator[LogFiles]:
        """The file as it is now. `SourceUnavailable` names the host and what it answered."""
        with httpx.Client(headers=self._headers, timeout=TIMEOUT, follow_redirects=True) as client:
            file = _opened(client, self._url)
            yield LogFiles(file, ())


class _RemoteFile:
    """A file of which ``size`` bytes were there when it was opened. What was read last is kept for a while."""

    archive = False

    def __init__(self, client: httpx.Client, url: str, *, size: int, modified_ns: int) -> None:
        self.name, self.size, self.modified_ns = _host(url), size, modified_ns
        self._client, self._url = client, url
        self._head = b""
        self._last: tuple[int, bytes] = (0, b"")

    def read(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""
        if end <= HEAD_BYTES:
            self._head = self._head or self._fetched(0, min(HEAD_BYTES, self.size))
            return self._head[start:end]
        at, kept = self._last
        if not (at <= start and end <= at + len(kept)):
            at, kept = self._last = start, self._fetched(start, end)
        return kept[start - at : end - at]

    def _fetched(self, start: int, end: int) -> bytes:
        """Bytes from ``start`` to before ``end``; of an answer that holds more, no more than that is kept."""
        with _streamed(self._client, self._url, start, end) as answer:
            if answer.status_code != HTTPStatus.PARTIAL_CONTENT or _total(answer) < self.size:
                raise SourceUnavailable(
                    f"{self.name}: the log was changed while it was read; the next look begins anew"
                )
            content = bytearray()
            for chunk in answer.iter_bytes():
                content += chunk[: end - start - len(content)]
        if len(content) < end - start:
            raise SourceUnavailable(
                f"{self.name}: the answer ended after {len(content):,} of {end - start:,} bytes"
            )
        return bytes(content)


def remote_log(at: str, environment: Mapping[str, str]) -> LogPlace:
    """The log at an address or in a Hub repository. `ConfigError` for an address that names no file."""
    if at.startswith(HUB_PREFIX):
        return RemoteLog(hub_url(at, environment.get("HF_ENDPOINT")), headers=_bearer(environment.get("HF_TOKEN")))
    return RemoteLog(at, headers=_bearer(environment.get("LOOKOUT_LOG_TOKEN")))


def hub_url(at: str, endpoint: str | None = None) -> str:
    """Where a Hub file is downloaded: ``hf://datasets/owner/name/path``, with ``@revision`` after the name."""
    found = _HUB_FILE.fullmatch(at)
    if found is None:
        raise ConfigError(
            f"{at}: expected hf://datasets/owner/name/path/to/file.jsonl, with @revision after the name"
        )
    repository = f"{found['kind'] or ''}{found['owner']}/{found['name']}"
    hub = (endpoint or DEFAULT_HUB).rstrip("/")
    return f"{hub}/{repository}/resolve/{found['revision'] or 'main'}/{found['path']}"


def _bearer(token: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _opened(client: httpx.Client, url: str) -> _RemoteFile | None:
    with _streamed(client, url, 0, 1) as answer:
        status, modified = answer.status_code, _modified_ns(answer)
        if status == HTTPStatus.PARTIAL_CONTENT:
            return _RemoteFile(client, url, size=_total(answer), modified_ns=modified)
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or _is_empty(answer):
            return _RemoteFile(client, url, size=0, modified_ns=modified)
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        raise SourceUnavailable(f"{_host(url)}: {_why_not(status)}")


def _is_empty(answer: httpx.Response) -> bool:
    """An empty file has no first byte to ask for, so some servers send it whole."""
    return answer.status_code == HTTPStatus.OK and answer.headers.get("content-length") == "0"


def _why_not(status: int) -> str:
    if status == HTTPStatus.OK:
        return "does not answer range requests, so a log cannot be followed there"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"refuses the log ({status}); a token comes from LOOKOUT_LOG_TOKEN, for the Hub from HF_TOKEN"
    return f"answers {status} instead of the log"


@contextmanager
def _streamed(client: httpx.Client, url: str, start: int, end: int) -> Generator[httpx.Response]:
    try:
        with client.stream("GET", url, headers={"Range": f"bytes={start}-{end - 1}"}) as answer:
            yield answer
    except httpx.HTTPError as error:
        raise SourceUnavailable(f"{_host(url)}: the log cannot be read: {type(error).__name__}") from None


def _total(answer: httpx.Response) -> int:
    found = _TOTAL.fullmatch(answer.headers.get("content-range", ""))
    if found is None:
        raise SourceUnavailable(f"{answer.url.host}: does not say how long the log is, so it cannot be followed")
    return int(found[1])


def _modified_ns(answer: httpx.Response) -> int:
    """By the server's clock, in whole seconds; 0 where it says nothing."""
    try:
        return int(parsedate_to_datetime(answer.headers.get("last-modified", "")).timestamp()) * 10**9
    except (TypeError, ValueError):
        return 0


def _host(url: str) -> str:
    return httpx.URL(url).host
