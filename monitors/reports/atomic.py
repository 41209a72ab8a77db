"""Files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from monitors.errors import WarehouseUnwritable


def write_atomically(path: Path, pieces: Iterable[str]) -> None:
    """Writes UTF-8 text beside ``path``, brings it to disk, and puts it in place in one step.

    A reader sees the old file or the new one. The folder is made when it is missing. Raises
    ``WarehouseUnwritable`` naming the path when it cannot be written; no half file stays behind.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_beside_and_replace(path, pieces)
    except OSError as error:
        message = (
            f"{path}: cannot be written ({error.strerror or error}); give a folder that this user may write to"
        )
        raise WarehouseUnwritable(message) from error


def _write_beside_and_replace(path: Path, pieces: Iterable[str]) -> None:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(0o644)  # mkstemp gives 0600; a report is read by others
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
