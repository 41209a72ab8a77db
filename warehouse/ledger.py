"""How much the warehouse file held, written beside it: DuckDB drops a torn log without a word."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from monitors.records.base import Record, UtcTime
from warehouse.segment_store import unwritable, write_atomically


class Ledger(Record):
    """How many segments were committed. Written after the commit, so that it never says too much."""

    segments: int
    as_of: UtcTime


def ledger_path(file: Path) -> Path:
    """Where the ledger of a warehouse file lies."""
    return file.with_name(f"{file.name}.ledger")


def read_ledger(file: Path) -> Ledger | None:
    """The ledger, or ``None`` when there is none or it cannot be read: then nothing can be said."""
    try:
        return Ledger.model_validate_json(ledger_path(file).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_ledger(file: Path, ledger: Ledger) -> None:
    """Replace the ledger whole. Raises `WarehouseUnwritable`."""
    path = ledger_path(file)
    try:
        write_atomically(path, ledger.model_dump_json().encode())
    except OSError as error:
        raise unwritable(path, error) from error
