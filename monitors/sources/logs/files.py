"""The files of a log as they stand at one moment: the newest, and those that rotation has put aside.

A log that lies elsewhere is read by range requests, so that only what is new travels.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, NamedTuple, Protocol

import httpx

from monitors.errors import ConfigError, SourceUnavailable
from monitors.sources.logs.settings import HUB_PREFIX


class LogFile(Protocol):
    """A file that holds still while it is read: it may only grow."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def size(self) -> int:
        """Bytes when it was opened."""
        ...

    @property
    def archive(self) -> bool:
        """Whether it is packed: nothing is ever added to it."""
        ...

    @property
    def modified_ns(self) -> int:
        """When it was last written to, in nanoseconds by its own file system's clock."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``, fewer only at its end; none from beyond ``size``."""
        ...


class LogFiles(NamedTuple):
    """What there was at one poll: the newest file, if there is one, and the rotated ones, oldest first."""

    newest: LogFile | None
    rotated: Sequence[LogFile]


class LogPlace(Protocol):
    """Where a log lies."""

    def poll(self) -> AbstractContextManager[LogFiles]:
        """The files, open until the context ends. `SourceUnavailable` when nobody answers."""
        ...


class LocalLog:
    """A log on this machine. Every file is opened before its size is asked: a rename changes nothing after that.

    Rotated files are those beside it whose name begins with its own (``x.jsonl.1``, ``x.jsonl-20261122``), or that
    match ``rotated``, a glob pattern. What ends in ``.gz`` is read unpacked.
    """

    def __init__(self, path: Path, *, rotated: str | None = None) -> None:
        self._path = path
        self._pattern = rotated or f"{glob.escape(path.name)}?*"

    @contextmanager
    def poll(self) -> Generator[LogFiles]:
        """The files, open until the context ends. `SourceUnavailable` names the one that cannot be read."""
        with ExitStack() as stack:
            newest = _open_local(self._path, stack)
            paths = sorted(self._path.parent.glob(self._pattern)) if self._path.parent.is_dir() else []
            identities = {newest.identity} if newest else set[tuple[int, int]]()
            rotated: list[LogFile] = []
            for path in paths:
                file = _open_local(path, stack) if path != self._path else None
                if file is not None and file.identity not in identities:  # renamed between two opens
                    identities.add(file.identity)
                    rotated.append(file)
            yield LogFiles(newest, sorted(rotated, key=lambda file: file.modified_ns))


class _PlainFile:
    """An open file of this machine. What is appended after its size was asked is left for the next poll."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.archive, status = False, os.fstat(stream.fileno())
        self.name, self.size, self.modified_ns = name, status.st_size, status.st_mtime_ns
        self.identity = status.st_dev, status.st_ino
        self._stream = stream

    def read(self, start: int, length: int) -> bytes:
        if start >= self.size:
            return b""
        self._stream.seek(start)
        return self._stream.read(min(length, self.size - start))


class _ArchivedFile:
    """A file that rotation packed, read unpacked. Its size costs a whole unpacking, so it is asked for late."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.archive, status = True, os.fstat(stream.fileno())
        self.name, self.modified_ns = name, status.st_mtime_ns
        self.identity = status.st_dev, status.st_ino
        self._unpacked = gzip.GzipFile(fileobj=stream)
        self._size: int | None = None

    @property
    def size(self) -> int:
        if self._size is None:
            self._size = self._measure_unpacked_size()
        return self._size

    def _measure_unpacked_size(self) -> int:
        try:
            return self._unpacked.seek(0, os.SEEK_END)
        except (EOFError, OSError, zlib.error):
            return 0  # still being written, or no archive at all: the next poll finds it whole

    def read(self, start: int, length: int) -> bytes:
        if start >= self.size:
            return b""
        self._unpacked.seek(start)
        return self._unpacked.read(length)


def _open_local(path: Path, stack: ExitStack) -> _PlainFile | _ArchivedFile | None:
    try:
        stream = stack.enter_context(path.open("rb"))
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise SourceUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    return _ArchivedFile(path.name, stream) if path.suffix == ".gz" else _PlainFile(path.name, stream)


HEAD_BYTES: Final = 1 << 16
"""How much of the start an open file keeps in memory: all that marks read there."""
DEFAULT_HUB: Final = "https://huggingface.co"
REQUEST_TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)
_CONTENT_RANGE: Final = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)", re.ASCII)
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
    def poll(self) -> Generator[LogFiles]:
        """The file as it is now. `SourceUnavailable` names the host and what it answered."""
        with httpx.Client(headers=self._headers, timeout=REQUEST_TIMEOUT, follow_redirects=True) as client:
            file = _open_remote(client, self._url)
            yield LogFiles(file, ())


class _RemoteFile:
    """A file of which ``size`` bytes were there when it was opened. What was read last stays cached for a while."""

    archive = False

    def __init__(self, client: httpx.Client, url: str, *, size: int, modified_ns: int) -> None:
        self.name, self.size, self.modified_ns = _host_of(url), size, modified_ns
        self._client, self._url = client, url
        self._head = b""
        self._last: tuple[int, bytes] = (0, b"")

    def read(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""
        if end <= HEAD_BYTES:
            self._head = self._head or self._fetch_range(0, min(HEAD_BYTES, self.size))
            return self._head[start:end]
        at, buffered = self._last
        if not (at <= start and end <= at + len(buffered)):
            at, buffered = self._last = start, self._fetch_range(start, end)
        return buffered[start - at : end - at]

    def _fetch_range(self, start: int, end: int) -> bytes:
        """Bytes from ``start`` to before ``end``; of an answer that holds more, no more than that is read."""
        with _stream_range(self._client, self._url, start, end) as response:
            if response.status_code != HTTPStatus.PARTIAL_CONTENT or _parse_total_size(response) < self.size:
                raise SourceUnavailable(
                    f"{self.name}: the log was changed while it was read; the next poll begins anew"
                )
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk[: end - start - len(content)]
        if len(content) < end - start:
            raise SourceUnavailable(
                f"{self.name}: the answer ended after {len(content):,} of {end - start:,} bytes"
            )
        return bytes(content)


def build_remote_log(address: str, environment: Mapping[str, str]) -> LogPlace:
    """The log at an address or in a Hub repository. `ConfigError` for an address that names no file."""
    if address.startswith(HUB_PREFIX):
        return RemoteLog(
            build_hub_url(address, environment.get("HF_ENDPOINT")),
            headers=_build_bearer_headers(environment.get("HF_TOKEN")),
        )
    return RemoteLog(address, headers=_build_bearer_headers(environment.get("LOOKOUT_LOG_TOKEN")))


def build_hub_url(address: str, endpoint: str | None = None) -> str:
    """Where a Hub file is downloaded: ``hf://datasets/owner/name/path``, with ``@revision`` after the name."""
    match = _HUB_FILE.fullmatch(address)
    if match is None:
        raise ConfigError(
            f"{address}: expected hf://datasets/owner/name/path/to/file.jsonl, with @revision after the name"
        )
    repository = f"{match['kind'] or ''}{match['owner']}/{match['name']}"
    hub = (endpoint or DEFAULT_HUB).rstrip("/")
    return f"{hub}/{repository}/resolve/{match['revision'] or 'main'}/{match['path']}"


def _build_bearer_headers(token: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _open_remote(client: httpx.Client, url: str) -> _RemoteFile | None:
    with _stream_range(client, url, 0, 1) as response:
        status, modified = response.status_code, _parse_modified_ns(response)
        if status == HTTPStatus.PARTIAL_CONTENT:
            return _RemoteFile(client, url, size=_parse_total_size(response), modified_ns=modified)
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or _is_empty(response):
            return _RemoteFile(client, url, size=0, modified_ns=modified)
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        raise SourceUnavailable(f"{_host_of(url)}: {_describe_refusal(status)}")


def _is_empty(response: httpx.Response) -> bool:
    """An empty file has no first byte to ask for, so some servers send it whole."""
    return response.status_code == HTTPStatus.OK and response.headers.get("content-length") == "0"


def _describe_refusal(status: int) -> str:
    if status == HTTPStatus.OK:
        return "does not answer range requests, so a log cannot be followed there"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"refuses the log ({status}); a token comes from LOOKOUT_LOG_TOKEN, for the Hub from HF_TOKEN"
    return f"answers {status} instead of the log"


@contextmanager
def _stream_range(client: httpx.Client, url: str, start: int, end: int) -> Generator[httpx.Response]:
    try:
        with client.stream("GET", url, headers={"Range": f"bytes={start}-{end - 1}"}) as response:
            yield response
    except httpx.HTTPError as error:
        raise SourceUnavailable(f"{_host_of(url)}: the log cannot be read: {type(error).__name__}") from None


def _parse_total_size(response: httpx.Response) -> int:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    if match is None:
        raise SourceUnavailable(f"{response.url.host}: does not say how long the log is, so it cannot be followed")
    return int(match[1])


def _parse_modified_ns(response: httpx.Response) -> int:
    """The modification time by the server's clock, in whole seconds; 0 where it says nothing."""
    try:
        return int(parsedate_to_datetime(response.headers.get("last-modified", "")).timestamp()) * 10**9
    except (TypeError, ValueError):
        return 0


def _host_of(url: str) -> str:
    return httpx.URL(url).host
