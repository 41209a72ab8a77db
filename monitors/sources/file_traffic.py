"""Traffic that is kept in files: JSON lines or Parquet, wherever fsspec can open them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import fsspec.core  # pyright: ignore[reportMissingTypeStubs] - it has none

from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.traffic import Conversation, SourceNotice, SourceNoticeKind
from monitors.sources.in_thread import in_thread
from monitors.sources.json_bytes import bare, looks_like_html, parsed
from monitors.sources.parquet_rows import rows_of
from monitors.sources.stream_lines import ByteStream, StreamLine, Unpacked, lines_of
from monitors.sources.traffic_items import Placed, Window, conversations_of
from monitors.sources.traffic_settings import FileFormat, FileTraffic

_FORMATS: Final = {
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
    ".log": FileFormat.JSONL,
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
}
_MEGABYTE: Final = 1_000_000
_ENDPOINT: Final = {"s3": "endpoint_url", "s3a": "endpoint_url", "hf": "endpoint"}
"""What each protocol's package calls the address of its service."""


class _File(NamedTuple):
    """A file to be read: its file system, its path there, and its name for messages."""

    system: Any
    path: str
    name: str


class FileTrafficSource:
    """A `TrafficSource` over files. ``token`` opens http addresses; buckets and the Hub read the environment.

    A file that cannot be read does not keep the others from being read; it is told when they have been.
    """

    def __init__(self, settings: FileTraffic, *, token: str | None = None) -> None:
        self._settings = settings
        self._token = token
        first, *others = settings.at
        self.name = f"{shown(first)} and {len(others)} more" if others else shown(first)

    def read(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceNotice]:
        """See `TrafficSource.read`."""
        return in_thread(self._all(Window(since, until)))

    def _all(self, window: Window) -> Generator[Conversation | SourceNotice]:
        failures: list[str] = []
        for pattern in self._settings.at:
            try:
                files = self._found(pattern)
            except SourceUnavailable as error:
                failures.append(str(error))
                continue
            for file in files:
                try:
                    yield from conversations_of(self._items(file), self._settings.fields, window)
                except SourceUnavailable as error:
                    failures.append(str(error))
        if failures:
            raise SourceUnavailable("; ".join(failures))

    def _found(self, pattern: str) -> list[_File]:
        try:
            system, path = cast("Any", fsspec.core).url_to_fs(pattern, **self._options(pattern))
            system.invalidate_cache()  # what was put there since the last night
            paths = cast("list[str]", sorted(system.glob(path))) if _is_glob(pattern) else [path]
        except Exception as error:  # noqa: BLE001 - each store's client has errors of its own, and they quote keys
            raise _unreachable(shown(pattern), error) from None
        if not paths:
            raise SourceUnavailable(f"{shown(pattern)}: no file matches")
        return [_File(system, one, shown(pattern) if one == path else PurePosixPath(one).name) for one in paths]

    def _options(self, pattern: str) -> dict[str, object]:
        protocol = urlsplit(pattern).scheme
        if protocol in {"http", "https"} and self._token is not None:
            return {"client_kwargs": {"headers": {"Authorization": f"Bearer {self._token}"}}}
        endpoint = self._settings.endpoint_url
        return {_ENDPOINT[protocol]: endpoint} if endpoint is not None and protocol in _ENDPOINT else {}

    def _items(self, file: _File) -> Iterator[Placed | SourceNotice]:
        kind, packed = format_of(file.path, self._settings.format)
        try:
            with closing(file.system.open(file.path, "rb")) as stream:
                if kind is FileFormat.PARQUET:
                    yield from rows_of(stream, file.name)
                else:
                    yield from self._lines(Unpacked(stream) if packed else stream, file.name)
        except (SourceUnavailable, ConfigError):
            raise
        except Exception as error:  # noqa: BLE001 - each store's client has errors of its own, and they quote keys
            raise _unreachable(file.name, error) from None

    def _lines(self, stream: ByteStream, name: str) -> Iterator[Placed | SourceNotice]:
        begun = False
        for line in lines_of(stream, longest_bytes=int(self._settings.longest_line_mb * _MEGABYTE)):
            if not bare(line.raw):
                continue
            if not begun and looks_like_html(line.raw):
                raise SourceUnavailable(f"{name} is a web page, expected JSON lines: is it a login page?")
            begun = True
            yield _line(line, f"{name}:{line.number}")


def format_of(path: str, wanted: FileFormat) -> tuple[FileFormat, bool]:
    """How a file is written, and whether it is packed; `ConfigError` where its name does not say."""
    name = PurePosixPath(urlsplit(path).path or path)
    packed = name.suffix.lower() == ".gz"
    if wanted is not FileFormat.BY_SUFFIX:
        return wanted, packed
    known = _FORMATS.get((name.with_suffix("") if packed else name).suffix.lower())
    if known is None:
        raise ConfigError(
            f"traffic.format: the name of {shown(path)} does not say how it is written; set jsonl or parquet"
        )
    return known, packed


def _line(line: StreamLine, place: str) -> Placed | SourceNotice:
    if line.length > len(line.raw):
        return _told(place, f"a line of {line.length:,} bytes (traffic.longest_line_mb)")
    try:
        return Placed(place, parsed(line.raw))
    except ValueError as error:
        cut = "" if line.ended else "; it has no line's end, so it may still be being written"
        return _told(place, f"{error}{cut}")


def _told(place: str, detail: str) -> SourceNotice:
    return SourceNotice(kind=SourceNoticeKind.LINE_UNREADABLE, place=place, detail=detail)


def _is_glob(pattern: str) -> bool:
    """Whether it stands for several files. In an address a question mark begins the parameters."""
    return any(mark in pattern for mark in ("*?[" if "://" not in pattern else "*["))


def shown(place: str) -> str:
    """The place without what may be secret: parameters, user and password."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _unreachable(name: str, error: Exception) -> SourceUnavailable:
    if isinstance(error, FileNotFoundError):
        return SourceUnavailable(f"{name}: there is no such file")
    if isinstance(error, ImportError) or type(error) is ValueError:  # no package for it, an unknown protocol
        return SourceUnavailable(f"{name} cannot be read: {type(error).__name__}: {str(error)[:200]}")
    return SourceUnavailable(f"{name} cannot be read ({type(error).__name__}): is it there, whole, and permitted?")
