"""Rows of a Parquet file, row group by row group. The only home of pyarrow, an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from monitors.errors import ConfigError
from monitors.records.traffic import SourceNotice, SourceNoticeKind
from monitors.sources.traffic_items import Placed

ROWS_AT_ONCE = 500


def rows_of(stream: Any, name: str) -> Iterator[Placed | SourceNotice]:
    """Every row as an item. ``stream`` is an open binary file that can seek.

    `ConfigError` without the extra; pyarrow's own errors where the file is no Parquet, or damaged.
    """
    number = 0
    for batch in _parquet_file(stream).iter_batches(batch_size=ROWS_AT_ONCE):
        for offset in range(batch.num_rows):
            number += 1
            yield _row(batch, offset, f"{name}:row {number}")


def _row(batch: Any, offset: int, place: str) -> Placed | SourceNotice:
    """One row: a bad value in one (text that is no UTF-8, a time beyond the calendar) leaves the others alone."""
    try:
        return Placed(place, batch.slice(offset, 1).to_pylist()[0])
    except (ValueError, OverflowError) as error:  # no quote: a decoding error holds the bytes
        detail = f"a value cannot be read: {type(error).__name__}"
        return SourceNotice(kind=SourceNoticeKind.ITEM_UNREADABLE, place=place, detail=detail)


def _parquet_file(stream: Any) -> Any:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingTypeStubs] - it has none; an extra of 150 MB
    except ImportError:
        raise ConfigError(
            "traffic in Parquet needs the extra of that name: pip install 'lookout-monitor[parquet]'"
        ) from None
    return cast("Any", parquet).ParquetFile(stream)
