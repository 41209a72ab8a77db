"""Open all files of a log for one poll: the newest file and the rotated files.

A remote log is read with range requests, so that only new bytes are transferred.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import stat
import zlib
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, NamedTuple, Protocol, cast

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, ConfigError, SourceUnavailable
from monitors.http_client import GuardedClient, describe_http_error
from monitors.request_headers import RequestHeaders
from monitors.sources.logs.settings import HUB_PREFIX


class LogFile(Protocol):
    """A log file. The file may grow while it is read, but does not change otherwise."""

    @property
    def name(self) -> str:
        """Return the name of the file in messages."""
        ...

    @property
    def size(self) -> int:
        """Return the size in bytes that the file had when it was opened."""
        ...

    @property
    def archive(self) -> bool:
        """Return whether the file is compressed. A compressed file never grows."""
        ...

    @property
    def modified_ns(self) -> int:
        """Return the time of the last write in nanoseconds, from the clock of the system that stores the file."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``start``.

        The result never extends beyond ``size``, the end of the file.
        """
        ...


class LogFiles(NamedTuple):
    """The files of a log that one poll opened: the newest file, if it exists, and the rotated files.

    The rotated files are sorted, oldest first.
    """

    newest: LogFile | None
    rotated: Sequence[LogFile]


class LogPlace(Protocol):
    """The location of a log, on this machine or at an address."""

    def poll(self) -> AbstractContextManager[LogFiles]:
        """Open the files for the ``with`` block. Raises `SourceUnavailable` if the log cannot be reached."""
        ...


class LocalLog:
    """A log on this machine. Each file is opened before its size is read, so a rename during a poll does no harm.

    Rotated files are files in the same folder whose names begin with the name of the log (``x.jsonl.1``,
    ``x.jsonl-20261122``), or that match ``rotated``, a glob pattern. Files that end in ``.gz`` are decompressed.
    """

    def __init__(self, path: Path, *, rotated: str | None = None) -> None:
        self._path = path
        self._pattern = rotated or f"{glob.escape(path.name)}?*"

    @contextmanager
    def poll(self) -> Generator[LogFiles]:
        """Open the files for the ``with`` block.

        Raises `SourceUnavailable` with the name of the file if a file cannot be read.
        """
        with ExitStack() as stack:
            newest = _open_local(self._path, stack)
            paths = sorted(self._path.parent.glob(self._pattern)) if self._path.parent.is_dir() else []
            identities = {newest.identity} if newest else set[tuple[int, int]]()
            rotated: list[LogFile] = []
            for path in paths:
                file = _open_local(path, stack) if path != self._path and path.is_file() else None
                if file is not None and file.identity not in identities:  # a file may be renamed between two opens
                    identities.add(file.identity)
                    rotated.append(file)
            yield LogFiles(newest, sorted(rotated, key=lambda file: file.modified_ns))


class _PlainFile:
    """An open local file that is not compressed.

    Bytes that are appended later, after the size of the file was read, are left for the next poll.
    """

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
    """A compressed rotated file.

    Its size is computed only if needed, because this requires decompression of the whole file.
    """

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
            return 0  # the file is still being written, or is not an archive. The next poll tries again.

    def read(self, start: int, length: int) -> bytes:
        if start >= self.size:
            return b""
        self._unpacked.seek(start)
        return self._unpacked.read(length)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting.

    An ordinary ``open`` of a named pipe would wait until another program opens the pipe for writing.
    """
    return os.open(path, flags | os.O_NONBLOCK)


def _open_local(path: Path, stack: ExitStack) -> _PlainFile | _ArchivedFile | None:
    try:
        # The stack closes the file. `Path.open` has no parameter ``opener``.
        stream = stack.enter_context(open(path, "rb", opener=_open_without_waiting))  # noqa: SIM115 - see above
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise SourceUnavailable(f"{path} is not a regular file, so Lookout cannot read it again at each poll")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise SourceUnavailable(f"{path} cannot be read: {error.strerror or error}") from error
    return _ArchivedFile(path.name, stream) if path.suffix == ".gz" else _PlainFile(path.name, stream)


HEAD_BYTES: Final = 1 << 16
"""Number of bytes at the start of a file that are cached.

The hashes that identify the file at later polls are computed from these bytes.
"""
DEFAULT_HUB: Final = "https://huggingface.co"
REQUEST_DEADLINE_S: Final = 60.0
CONNECT_TIMEOUT_S: Final = 10.0
MAX_RANGE_BYTES: Final = 100_000_000
"""Maximum number of bytes in a range request. This is enough for every read, because a line has at most 64 MiB."""
_CONTENT_RANGE: Final = re.compile(r"bytes (?:\d{1,18}-\d{1,18}|\*)/(\d{1,18})", re.ASCII)
_HUB_FILE: Final = re.compile(
    r"hf://(?P<kind>datasets/|spaces/)?(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:@(?P<revision>[\w./-]+?))?/(?P<path>.+)"
)


class RemoteLog:
    """A log at an address that supports range requests.

    A remote log has no rotated files. If the file is rotated, lines that were written after the last poll are
    missing.

    ``headers`` are sent only to the host of the address, and not to another host after a redirect. ``guard`` checks
    the redirects.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str], guard: AddressGuard) -> None:
        self._url, self._headers, self._guard = url, headers, guard

    @contextmanager
    def poll(self) -> Generator[LogFiles]:
        """Open the file in its present state.

        Raises `SourceUnavailable` with the name of the host and its response.
        """
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(self._open_client()) as client:
            ranges = _RangeReader(client, portal, self._url)
            yield LogFiles(_open_remote(ranges), ())

    def _open_client(self) -> GuardedClient:
        return GuardedClient(
            self._guard,
            deadline_s=REQUEST_DEADLINE_S,
            max_bytes=MAX_RANGE_BYTES,
            headers=RequestHeaders(key="hallucination_log", values=self._headers),
            addresses=[self._url],
            plain_headers={"Accept-Encoding": "identity"},
            timeout=httpx.Timeout(REQUEST_DEADLINE_S, connect=CONNECT_TIMEOUT_S),
        )


class _RangeReader:
    """Requests byte ranges from one address. Call its methods only in threads without an event loop."""

    def __init__(self, client: GuardedClient, portal: BlockingPortal, url: str) -> None:
        self._client, self._portal, self._url = client, portal, url
        self.host = httpx.URL(url).host

    def fetch(self, start: int, end: int) -> tuple[httpx.Response, bytes]:
        """Fetch the bytes from ``start`` (inclusive) to ``end`` (exclusive). Any further bytes are not read.

        Returns empty bytes if the response is not the requested range. Raises `SourceUnavailable` if the host does
        not respond.
        """
        return self._portal.call(self._fetch, start, end)

    async def _fetch(self, start: int, end: int) -> tuple[httpx.Response, bytes]:
        content, headers = bytearray(), {"Range": f"bytes={start}-{end - 1}"}
        try:
            async with self._client.stream("GET", self._url, headers=headers) as response:
                if response.status_code == HTTPStatus.PARTIAL_CONTENT:
                    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as chunks:
                        async for chunk in chunks:
                            content += chunk[: end - start - len(content)]
                            if len(content) == end - start:
                                break
                return response, bytes(content)
        except AccessDenied as error:
            raise SourceUnavailable(f"{self.host}: {error}") from None
        except httpx.HTTPError as error:
            raise SourceUnavailable(f"{self.host}: the log cannot be read: {describe_http_error(error)}") from None


class _RemoteFile:
    """A remote file whose length was ``size`` bytes when it was opened.

    The last bytes that were read are cached.
    """

    archive = False

    def __init__(self, ranges: _RangeReader, *, size: int, modified_ns: int) -> None:
        self.name, self.size, self.modified_ns = ranges.host, size, modified_ns
        self._ranges = ranges
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
        response, content = self._ranges.fetch(start, end)
        if response.status_code != HTTPStatus.PARTIAL_CONTENT or _parse_total_size(response) < self.size:
            raise SourceUnavailable(
                f"{self.name}: the log changed while Lookout read it. The next poll reads it again"
            )
        if len(content) < end - start:
            raise SourceUnavailable(
                f"{self.name}: the response ended after {len(content):,} of {end - start:,} bytes"
            )
        return content


def build_remote_log(
    address: str,
    environment: Mapping[str, str],
    *,
    allowed_origins: Sequence[str] = (),
    private_network: bool = False,
) -> LogPlace:
    """Return the log at an address or in a repository of the Hugging Face Hub.

    ``allowed_origins`` and ``private_network`` are settings of the target's probe that allow internal addresses.
    Raises `ConfigError` for a Hub address without a file name.
    """
    is_at_hub = address.startswith(HUB_PREFIX)
    url = build_hub_url(address, environment.get("HF_ENDPOINT")) if is_at_hub else address
    token = environment.get("HF_TOKEN" if is_at_hub else "LOOKOUT_LOG_TOKEN")
    guard = AddressGuard([url, *allowed_origins], private_network=private_network)
    return RemoteLog(url, headers=_build_bearer_headers(token), guard=guard)


def build_hub_url(address: str, endpoint: str | None = None) -> str:
    """Return the web address of the Hugging Face file ``hf://datasets/owner/name[@revision]/path``."""
    match = _HUB_FILE.fullmatch(address)
    if match is None:
        raise ConfigError(
            f"{address}: expected hf://datasets/owner/name/path/to/file.jsonl or hf://datasets/owner/name@revision/…"
        )
    repository = f"{match['kind'] or ''}{match['owner']}/{match['name']}"
    hub = (endpoint or DEFAULT_HUB).rstrip("/")
    return f"{hub}/{repository}/resolve/{match['revision'] or 'main'}/{match['path']}"


def _build_bearer_headers(token: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _open_remote(ranges: _RangeReader) -> _RemoteFile | None:
    response, _ = ranges.fetch(0, 1)
    status, modified = response.status_code, _parse_modified_ns(response)
    if status == HTTPStatus.PARTIAL_CONTENT:
        return _RemoteFile(ranges, size=_parse_total_size(response), modified_ns=modified)
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or _is_empty(response):
        return _RemoteFile(ranges, size=0, modified_ns=modified)
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return None
    raise SourceUnavailable(f"{ranges.host}: {_describe_refusal(status)}")


def _is_empty(response: httpx.Response) -> bool:
    """Return whether the response shows that the file is empty.

    For an empty file, some servers send the whole file instead of a range.
    """
    return response.status_code == HTTPStatus.OK and response.headers.get("content-length") == "0"


def _describe_refusal(status: int) -> str:
    if status == HTTPStatus.OK:
        return "the server does not support range requests, so Lookout cannot follow the log"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return (
            f"the server refuses the log (HTTP {status}). Set a token in LOOKOUT_LOG_TOKEN (for the Hub: HF_TOKEN)"
        )
    return f"the server answers HTTP {status} instead of the log"


def _parse_total_size(response: httpx.Response) -> int:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    if match is None:
        raise SourceUnavailable(
            f"{response.url.host} does not report the length of the log, so Lookout cannot follow it"
        )
    return int(match[1])


def _parse_modified_ns(response: httpx.Response) -> int:
    """Return the modification time in nanoseconds, from the server's clock.

    Return 0 if the response has no time.
    """
    try:
        return int(parsedate_to_datetime(response.headers.get("last-modified", "")).timestamp()) * 10**9
    except (TypeError, ValueError):
        return 0
