"""Segments in an object store (S3, GCS, Azure and others), for a journal that several machines share."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import fsspec.core  # pyright: ignore[reportMissingTypeStubs] - fsspec has no type stubs

from monitors.errors import WarehouseUnwritable
from warehouse.journal.segments import SET_ASIDE, SUFFIX, parse_segment_id


class ObjectSegments:
    """Segments below a URL such as ``s3://bucket/lookout/journal``.

    An object is either complete or absent. Credentials come from the environment. ``options`` are passed to fsspec.
    If the Python package for the protocol is missing, the error names the package.
    """

    def __init__(self, url: str, options: Mapping[str, object] | None = None) -> None:
        self._safe_url = _remove_credentials(url)
        try:
            # The functions of fsspec have no type annotations.
            core = cast("Any", fsspec.core)
            self._files, root = core.url_to_fs(url, **dict(options or {}))
        except (ImportError, ValueError) as error:
            raise WarehouseUnwritable(f"the journal location {self._safe_url} cannot be used: {error}") from error
        self._root = root.rstrip("/")

    def write(self, name: str, data: bytes) -> None:
        """Store a segment. When this function returns, the segment survives a crash."""
        with self._translate_errors(name):
            try:
                self._files.pipe_file(f"{self._root}/{name}", data)
            except FileNotFoundError as error:  # S3 reports a missing bucket in this way
                raise self._build_error(name, error) from None

    def read(self, name: str) -> bytes:
        """Return the bytes of a segment."""
        with self._translate_errors(name):
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def list_segments(self, folder: str | None = None) -> Sequence[str]:
        """Return the names of all segments, or of the segments in one folder, sorted by id."""
        names = [name for name in self._list_names(folder or "") if name.endswith(SUFFIX)]
        return sorted((name for name in names if not name.startswith(f"{SET_ASIDE}/")), key=parse_segment_id)

    def list_files(self, folder: str, suffix: str) -> Sequence[str]:
        """List the files in a folder whose names end with ``suffix``, sorted."""
        return sorted(name for name in self._list_names(folder) if name.endswith(suffix))

    def delete(self, name: str) -> None:
        """Remove an object. A missing object is not an error."""
        with self._translate_errors(name):
            try:
                self._files.rm_file(f"{self._root}/{name}")
            except FileNotFoundError:
                return

    def move_file_in(self, name: str, file: Path) -> None:
        """Upload a local file, then delete it."""
        with self._translate_errors(name):
            self._files.put_file(str(file), f"{self._root}/{name}")
        file.unlink()

    def fetch_file(self, name: str, scratch: Path) -> Path:
        """Download a file to the path ``scratch``."""
        with self._translate_errors(name):
            self._files.get_file(f"{self._root}/{name}", str(scratch))
        return scratch

    def set_aside(self, name: str) -> str:
        """Move a damaged segment to the folder for damaged segments, and return its new URL."""
        new_name = f"{SET_ASIDE}/{name.replace('/', '__')}"
        self.write(new_name, self.read(name))
        self.delete(name)
        return self.format_location(new_name)

    def list_set_aside(self) -> Sequence[str]:
        """Return the URLs of the damaged segments that a person must inspect."""
        return [self.format_location(name) for name in sorted(self._list_names(SET_ASIDE))]

    def remove_stale_files(self, now: datetime) -> int:  # noqa: ARG002 - nothing half-written can be left
        """Do nothing: an interrupted upload leaves no object."""
        return 0

    def format_location(self, name: str) -> str:
        """Return the URL of a segment, without credentials."""
        return f"{self._safe_url}/{name}"

    def _list_names(self, folder: str) -> list[str]:
        """List the names in a folder without a cache, because other machines also write to the folder."""
        with self._translate_errors(folder):
            self._files.invalidate_cache()
            try:
                paths = cast("Sequence[str]", self._files.find(f"{self._root}/{folder}".rstrip("/")))
            except FileNotFoundError as error:  # the bucket is missing: an empty folder raises no error
                raise self._build_error(folder, error) from None
        return [path.removeprefix("/").removeprefix(self._root.removeprefix("/")).lstrip("/") for path in paths]

    @contextmanager
    def _translate_errors(self, name: str) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, WarehouseUnwritable):
            raise
        except Exception as error:  # noqa: BLE001 - each client has its own errors, and their texts contain keys
            raise self._build_error(name, error) from None

    def _build_error(self, name: str, error: Exception) -> WarehouseUnwritable:
        return WarehouseUnwritable(
            f"{self.format_location(name)} cannot be reached ({type(error).__name__}): "
            "check the bucket, its permissions and the credentials in the environment"
        )


def _remove_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl().rstrip("/")
