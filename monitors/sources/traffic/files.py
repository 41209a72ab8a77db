"""Read conversations from files: JSON, JSON lines, tables or Parquet.

The files may be on this machine, at http addresses, or anywhere that fsspec can open. JSON lines and tables need
little memory, even if a file is large. Files are read in a thread, because reading would block the event loop.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from http import HTTPStatus
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import urlsplit

import fsspec.core  # pyright: ignore[reportMissingTypeStubs] - it has none
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, ConfigError, SourceUnavailable
from monitors.http_client import GuardedClient, describe_http_error
from monitors.json_path import collect_values
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind, UnusableReason
from monitors.request_headers import NO_HEADERS, RequestHeaders
from monitors.sources.traffic.items import (
    LocatedItem,
    Visits,
    Window,
    looks_like_html,
    parse_conversations,
    parse_json,
    strip_blanks,
)
from monitors.sources.traffic.names import get_names
from monitors.sources.traffic.settings import FileFormat, FileTraffic

CHUNK_BYTES = 1 << 20


class ByteStream(Protocol):
    """The interface of a stream of bytes that can be read once from start to end."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes. The result is empty at the end of the stream."""
        ...


class UnpackedStream:
    """Reads a compressed stream and returns the decompressed bytes.

    If the stream is incomplete, all its data is returned before ``EOFError`` is raised.
    """

    def __init__(self, packed: IO[bytes]) -> None:
        self._unpacking = gzip.GzipFile(fileobj=packed)

    def read(self, size: int, /) -> bytes:
        """See `ByteStream`. ``read1`` is used, because ``read`` would lose the data of an incomplete stream."""
        return self._unpacking.read1(size)


class StreamLine(NamedTuple):
    """One line without its line ending.

    If the line was too long, ``raw`` contains only its start, and ``length`` is its full length in bytes.
    ``ended`` is false for a last line without a line ending. ``number`` starts at 1.
    """

    number: int
    raw: bytes
    length: int
    ended: bool


def read_lines(stream: ByteStream, *, max_bytes: int) -> Iterator[StreamLine]:
    """Yield all lines. If a line has more than ``max_bytes``, only its start is stored."""
    number, buffered, length = 1, bytearray(), 0
    while chunk := stream.read(CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        buffered += first[: max(0, max_bytes - len(buffered))]
        length += len(first)
        for piece in others:
            yield StreamLine(number, bytes(buffered), length, ended=True)
            number, buffered, length = number + 1, bytearray(piece[:max_bytes]), len(piece)
    if length:
        yield StreamLine(number, bytes(buffered), length, ended=False)


Value = TypeVar("Value")

HEAD_BYTES: Final = 1 << 16
"""Number of bytes that `FileTrafficSource.check_readable` reads from a file."""
BATCH_SIZE = 256
"""Number of values that are read at a time, because each switch between threads costs time."""


async def iterate_in_thread(values: Generator[Value]) -> AsyncGenerator[Value]:
    """Yield the values of the blocking iterator ``values``, which is read in a thread.

    If an error occurs, the values that were read before the error are yielded first. If this generator is closed or
    cancelled, the generator waits until the thread has read its current batch, and then closes ``values``.
    """
    batches = _collect_batches(values)
    fetching: asyncio.Future[list[Value] | None] | None = None
    try:
        while True:
            fetching = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
            batch = await asyncio.shield(fetching)
            if batch is None:
                return
            for value in batch:
                yield value
    finally:
        if fetching is not None and not fetching.done():
            await asyncio.wait({fetching})
            fetching.exception()  # marks the error as seen: it was raised already, or is not needed
        values.close()


def _collect_batches(values: Iterator[Value]) -> Iterator[list[Value]]:
    batch: list[Value] = []
    failure: Exception | None = None
    try:
        for value in values:
            batch.append(value)
            if len(batch) == BATCH_SIZE:
                yield batch
                batch = []
    except Exception as error:  # noqa: BLE001 - it is raised again, after the values that were read before it
        failure = error
    if batch:
        yield batch
    if failure is not None:
        raise failure


_FORMATS: Final = {
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
    ".log": FileFormat.JSONL,
    ".json": FileFormat.JSON,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
}
_MEGABYTE: Final = 1_000_000
_REFUSED_STATUSES: Final = (401, 403)
_ENDPOINT_OPTIONS: Final = {"s3": "endpoint_url", "s3a": "endpoint_url", "hf": "endpoint"}
"""The name of the fsspec option that contains the address of the service, for each protocol."""

MAX_DOCUMENT_BYTES: Final = 256 * _MEGABYTE
"""Maximum size of a JSON document, because the whole document is held in memory."""
_ITEM_LISTS: Final = get_names("inside", "lists")
_DELIMITERS: Final = ",;\t|"

ParquetReader = Callable[[Path], Iterator[list[dict[str, Any]]]]
"""A function that yields the rows of a local file in batches. Raises ``ValueError`` if the file is not Parquet."""


_WEB: Final = ("http://", "https://")
DOWNLOAD_DEADLINE_S: Final = 3600.0
READ_TIMEOUT_S: Final = 60.0
"""Maximum time in seconds to wait for the next data of a file."""
MAX_DOWNLOAD_BYTES: Final = 20_000_000_000


class _File(NamedTuple):
    """A file to read: its fsspec file system, its path, and the name that messages show.

    ``system`` is ``None`` for a file at an http address.
    """

    system: Any
    path: str
    name: str


class _WebStream:
    """The body of a response as a stream that a thread can read."""

    def __init__(self, portal: BlockingPortal, pieces: AsyncIterator[bytes]) -> None:
        self._portal, self._pieces, self._buffered = portal, pieces, b""

    def read(self, size: int, /) -> bytes:
        """See `ByteStream`."""
        piece = self._buffered or self._portal.call(self._fetch_piece)
        self._buffered = piece[size:]
        return piece[:size]

    async def _fetch_piece(self) -> bytes:
        return await anext(self._pieces, b"")


class FileTrafficSource:
    """A `TrafficSource` that reads files.

    ``headers`` are sent to http addresses. Credentials for buckets and for the Hugging Face Hub come from the
    environment. If a file cannot be read, all other files are read before the error is raised. ``guard`` checks
    redirects. By default, the guard allows the host of the address and all public addresses.
    """

    def __init__(
        self,
        settings: FileTraffic,
        parquet: ParquetReader,
        *,
        headers: RequestHeaders = NO_HEADERS,
        guard: AddressGuard | None = None,
    ) -> None:
        self._settings = settings
        self._parquet = parquet
        self._headers = headers
        self._guard = guard or AddressGuard(place for place in settings.at if place.startswith(_WEB))
        first, *others = settings.at
        self.name = f"{strip_secrets(first)} and {len(others)} more" if others else strip_secrets(first)

    def read_conversations(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read_conversations`."""
        return iterate_in_thread(self._read_all(Window(since, until)))

    async def check_readable(self, now: datetime) -> None:
        """See `TrafficSource.check_readable`. The newest file is the last one by name."""
        del now
        await asyncio.to_thread(self._check_head_of_last_files)

    def _check_head_of_last_files(self) -> None:
        failures: list[str] = []
        for pattern in self._settings.at:
            try:
                list(self._read_items(self._find_files(pattern)[-1], is_check=True))
            except SourceUnavailable as error:
                failures.append(str(error))
        if failures:
            raise SourceUnavailable("; ".join(failures))

    def _read_all(self, window: Window) -> Generator[Conversation | SourceWarning]:
        failures: list[str] = []
        visits = Visits(self._settings.fields, window)
        for pattern in self._settings.at:
            try:
                files = self._find_files(pattern)
            except SourceUnavailable as error:
                failures.append(str(error))
                continue
            for file in files:
                try:
                    placed = self._read_items(file)
                    yield from parse_conversations(placed, self._settings.fields, window, visits)
                except SourceUnavailable as error:
                    failures.append(str(error))
        yield from (located.record for located in visits.build())
        if failures:
            raise SourceUnavailable("; ".join(failures))

    def _find_files(self, pattern: str) -> list[_File]:
        if pattern.startswith(_WEB):
            if _is_glob(pattern):
                raise SourceUnavailable(
                    f"{strip_secrets(pattern)}: a web server cannot list files. List each file in traffic.at"
                )
            return [_File(None, pattern, strip_secrets(pattern))]
        try:
            system, path = cast("Any", fsspec.core).url_to_fs(pattern, **self._build_storage_options(pattern))
            system.invalidate_cache()  # files added since the last nightly run
            paths = cast("list[str]", sorted(system.glob(path))) if _is_glob(pattern) else [path]
        except Exception as error:  # noqa: BLE001 - each client has its own errors, and their texts contain keys
            raise self._build_file_error(strip_secrets(pattern), error) from None
        if not paths:
            raise SourceUnavailable(f"{strip_secrets(pattern)}: no file matches")
        return [
            _File(system, file_path, strip_secrets(pattern) if file_path == path else PurePosixPath(file_path).name)
            for file_path in paths
        ]

    def _build_storage_options(self, pattern: str) -> dict[str, object]:
        protocol = urlsplit(pattern).scheme
        endpoint = self._settings.endpoint_url
        return (
            {_ENDPOINT_OPTIONS[protocol]: endpoint}
            if endpoint is not None and protocol in _ENDPOINT_OPTIONS
            else {}
        )

    def _read_items(self, file: _File, *, is_check: bool = False) -> Iterator[LocatedItem | SourceWarning]:
        """Yield the items of a file.

        If ``is_check`` is true, only read the start of the file, as a test. Nothing is then yielded.
        """
        kind, packed = detect_format_and_compression(file.path, self._settings.format)
        try:
            if is_check:
                with self._open_file(file, block_size=HEAD_BYTES) as stream:
                    _refuse_web_page((UnpackedStream(stream) if packed else stream).read(HEAD_BYTES), file.name)
            elif kind is FileFormat.PARQUET:
                yield from self._read_parquet_rows(file, packed=packed)
            else:
                with self._open_file(file) as stream:
                    yield from self._read_stream(UnpackedStream(stream) if packed else stream, file.name, kind)
        except (SourceUnavailable, ConfigError):
            raise
        except AccessDenied as error:
            raise SourceUnavailable(f"{file.name}: {error}") from None
        except httpx.HTTPError as error:
            raise SourceUnavailable(f"{file.name} cannot be read: {describe_http_error(error)}") from None
        except Exception as error:  # noqa: BLE001 - each client has its own errors, and their texts contain keys
            raise self._build_file_error(file.name, error) from None

    @contextmanager
    def _open_file(self, file: _File, *, block_size: int | None = None) -> Generator[Any]:
        """Open a local or remote file as a stream of bytes for the ``with`` block.

        Data from a bucket is requested in pieces of at least ``block_size`` bytes. Without ``block_size``, a piece
        has several megabytes.
        """
        if file.system is not None:
            if "file" in file.system.protocol and not Path(file.path).is_file() and Path(file.path).exists():
                raise SourceUnavailable(
                    f"{file.name} is not a regular file. Lookout cannot read a pipe again each night"
                )
            with closing(file.system.open(file.path, "rb", block_size=block_size)) as stream:
                yield stream
            return
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(self._open_client(file.path)) as client,
            portal.wrap_async_context_manager(client.stream("GET", file.path)) as response,
        ):
            if response.status_code in _REFUSED_STATUSES:
                refusal = self._headers.explain_refusal(response.status_code)
                raise SourceUnavailable(f"{file.name}: answered {refusal}")
            if response.status_code == HTTPStatus.NOT_FOUND:
                raise FileNotFoundError(file.name)
            if not response.is_success:
                raise SourceUnavailable(f"{file.name}: answered HTTP {response.status_code}")
            yield _WebStream(portal, response.aiter_bytes(CHUNK_BYTES))

    def _open_client(self, url: str) -> GuardedClient:
        return GuardedClient(
            self._guard,
            deadline_s=DOWNLOAD_DEADLINE_S,
            max_bytes=MAX_DOWNLOAD_BYTES,
            headers=self._headers,
            addresses=[url],
            plain_headers={"Accept-Encoding": "identity"},  # the name of a file shows whether it is compressed
            timeout=httpx.Timeout(READ_TIMEOUT_S),
        )

    def _build_file_error(self, name: str, error: Exception) -> SourceUnavailable:
        for cause in (error, error.__cause__, error.__context__):  # fsspec reports a refusal as a missing file
            status = getattr(cause, "status", None)
            if status in _REFUSED_STATUSES:
                return SourceUnavailable(f"{name}: answered {self._headers.explain_refusal(status)}")
        return _build_unreadable_error(name, error)

    def _read_parquet_rows(self, file: _File, *, packed: bool) -> Iterator[LocatedItem]:
        number = 0
        with self._open_as_local_file(file, packed=packed) as local:
            for rows in self._parquet(local):
                for row in rows:
                    number += 1
                    yield LocatedItem(f"{file.name}:row {number}", row)

    @contextmanager
    def _open_as_local_file(self, file: _File, *, packed: bool) -> Generator[Path]:
        """During the ``with`` block, provide ``file`` as a local, uncompressed file. Yield the path of this file.

        If ``file`` is remote or compressed, its content is copied to a temporary file. ``packed`` is true for a
        compressed file.
        """
        is_local = file.system is not None and "file" in file.system.protocol
        if is_local and not packed and not _is_glob(file.path):
            with self._open_file(file):  # otherwise a missing permission would be reported as a damaged file
                yield Path(file.path)
            return
        with (
            tempfile.NamedTemporaryFile(prefix="lookout-", suffix=".parquet") as copy,
            self._open_file(file) as stream,
        ):
            self._copy_stream(UnpackedStream(stream) if packed else stream, copy, file.name)
            yield Path(copy.name)

    def _copy_stream(self, stream: ByteStream, copy: Any, name: str) -> None:
        max_mb = self._settings.largest_copy_mb
        remaining_bytes = int(max_mb * _MEGABYTE)
        while chunk := stream.read(CHUNK_BYTES):
            remaining_bytes -= len(chunk)
            if remaining_bytes < 0:
                raise SourceUnavailable(
                    f"{name} is larger than {max_mb:g} MB, the limit in traffic.largest_copy_mb"
                )
            copy.write(chunk)
        copy.flush()

    def _read_stream(
        self, stream: ByteStream, name: str, kind: FileFormat
    ) -> Iterator[LocatedItem | SourceWarning]:
        if kind is FileFormat.JSON:
            yield from _read_document(stream, name)
            return
        lines = read_lines(stream, max_bytes=int(self._settings.longest_line_mb * _MEGABYTE))
        first = next((line for line in lines if strip_blanks(line.raw)), None)
        if first is None:
            return
        _refuse_web_page(first.raw, name)
        lines = chain([first], lines)
        yield from _read_table(lines, name) if kind is FileFormat.CSV else parse_lines(lines, f"{name}:")


def _refuse_web_page(raw: bytes, name: str) -> None:
    if looks_like_html(raw):
        raise SourceUnavailable(
            f"{name} is a web page instead of a file with conversations. It may be a login page"
        )


def parse_lines(lines: Iterable[StreamLine], before: str) -> Iterator[LocatedItem | SourceWarning]:
    """Yield the item of each line. If a line is a list, yield each element as an item.

    The location of an item is the text ``before`` followed by the line number.
    """
    for line in lines:
        if not strip_blanks(line.raw):
            continue
        parsed = _parse_line(line, f"{before}{line.number}")
        items = parsed.item if isinstance(parsed, LocatedItem) else None
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in cast("list[Any]", items)):
            yield from (LocatedItem(f"{before}{line.number}", item) for item in cast("list[Any]", items))
        else:
            yield parsed


def _read_document(stream: ByteStream, name: str) -> Iterator[LocatedItem | SourceWarning]:
    """Yield the items of a JSON document. If the file contains JSON lines, yield the items of its lines."""
    raw = bytearray()
    while chunk := stream.read(CHUNK_BYTES):
        raw += chunk
        if len(raw) > MAX_DOCUMENT_BYTES:
            raise SourceUnavailable(
                f"{name}: a JSON document of more than {MAX_DOCUMENT_BYTES // _MEGABYTE:,} MB is too large. Write "
                "JSON lines (.jsonl) instead"
            )
    _refuse_web_page(bytes(raw), name)
    try:
        document = parse_json(bytes(raw))
    except ValueError as error:
        lines = list(read_lines(BytesIO(raw), max_bytes=len(raw)))
        if len(lines) == 1 or isinstance(_parse_line(lines[0], name), SourceWarning):
            yield _build_unreadable_warning(name, str(error))
            return
        yield from parse_lines(lines, f"{name}:")
        return
    values: list[Any] = [value for path in _ITEM_LISTS for value in collect_values(document, path)]
    items = next((cast("list[Any]", value) for value in values if isinstance(value, list)), [document])
    yield from (LocatedItem(f"{name}:item {number}", item) for number, item in enumerate(items, start=1))


def _read_table(lines: Iterator[StreamLine], name: str) -> Iterator[LocatedItem]:
    """Yield the rows of a table as objects. The first row contains the field names."""
    header = strip_blanks(next(lines).raw).decode("utf-8", "replace")
    delimiter = max(_DELIMITERS, key=header.count)
    csv.field_size_limit(sys.maxsize)
    texts = (line.raw.decode("utf-8", "replace") + "\n" for line in lines)
    rows = csv.DictReader(texts, fieldnames=next(csv.reader([header], delimiter=delimiter)), delimiter=delimiter)
    for number, row in enumerate(rows, start=1):
        yield LocatedItem(f"{name}:row {number}", {key: value for key, value in row.items() if key})


def detect_format_and_compression(path: str, configured: FileFormat) -> tuple[FileFormat, bool]:
    """Return the format of a file, and whether the file is compressed.

    Raises `ConfigError` if no format is configured and the file name does not show the format.
    """
    name = PurePosixPath(urlsplit(path).path or path)
    packed = name.suffix.lower() == ".gz"
    if configured is not FileFormat.BY_SUFFIX:
        return configured, packed
    file_format = _FORMATS.get((name.with_suffix("") if packed else name).suffix.lower())
    if file_format is None:
        raise ConfigError(
            f"traffic.format: the file name in {strip_secrets(path)} does not show the format. Set jsonl, json, "
            "csv or parquet"
        )
    return file_format, packed


def _parse_line(line: StreamLine, place: str) -> LocatedItem | SourceWarning:
    if line.length > len(line.raw):
        return _build_unreadable_warning(
            place, f"the line has {line.length:,} bytes, more than traffic.longest_line_mb"
        )
    try:
        return LocatedItem(place, parse_json(line.raw))
    except ValueError as error:
        note = "" if line.ended else ". The line has no line ending, so the application may still be writing it"
        return _build_unreadable_warning(place, f"{error}{note}")


def _build_unreadable_warning(place: str, detail: str) -> SourceWarning:
    return SourceWarning(
        kind=SourceWarningKind.LINE_UNREADABLE, place=place, detail=detail, reason=UnusableReason.BROKEN
    )


def _is_glob(pattern: str) -> bool:
    """Return whether a path is a pattern for several files. In an address, ``?`` is not part of a pattern."""
    return any(mark in pattern for mark in ("*?[" if "://" not in pattern else "*["))


def strip_secrets(place: str) -> str:
    """Return a path or address without the parts that may be secret: parameters, user and password."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _build_unreadable_error(name: str, error: Exception) -> SourceUnavailable:
    if isinstance(error, FileNotFoundError):
        return SourceUnavailable(f"{name} does not exist")
    if isinstance(error, ImportError) or type(error) is ValueError:  # no package for it, an unknown protocol
        return SourceUnavailable(f"{name} cannot be read: {type(error).__name__}: {str(error)[:200]}")
    return SourceUnavailable(
        f"{name} cannot be read ({type(error).__name__}). Check that the file exists, is complete and is readable"
    )
