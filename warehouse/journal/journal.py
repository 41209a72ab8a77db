"""The journal, to which every run appends without waiting. All tables can be rebuilt from the journal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from monitors.errors import ConfigError, WarehouseDamaged
from monitors.records.base import Identifier
from monitors.records.cases import Suite
from warehouse.journal.rows import CaseRow, JournalRow, OutboxRow, SuiteCase
from warehouse.journal.segments import (
    SUFFIX,
    Clock,
    EncodedRows,
    Entropy,
    LocalSegments,
    Segment,
    SegmentId,
    SegmentNames,
    SegmentStore,
    decode_segment,
    encode_rows,
    encode_segment,
    parse_segment_id,
    parse_time,
)

SHARED = "_shared"
"""Folder for segments that do not belong to a run."""

OUTBOX = "_outbox"
"""Folder for decisions and receipts. This folder loads quickly because results are in other folders."""

SUITES = "_suites"
"""Folder for suites. Each suite is one segment, named by its hash."""

WRITABLE = f"{SHARED}/writable"
"""Path of the empty file that Lookout writes to test whether the journal can be written."""

_RUN_ID: TypeAdapter[str] = TypeAdapter(Identifier)


class Journal:
    """Segments in a folder, with a subfolder for each run. Segments are added, but never changed.

    ``clock`` returns the present time, and ``entropy(n)`` returns n random bytes. Several threads and processes can
    use the same journal.
    """

    def __init__(self, folder: Path | SegmentStore, *, clock: Clock, entropy: Entropy) -> None:
        self.segments: SegmentStore = LocalSegments(folder) if isinstance(folder, Path) else folder
        self._clock = clock
        self._names = SegmentNames(clock, entropy)
        self._naming = threading.Lock()

    def append(self, rows: Sequence[JournalRow], *, run_id: str | None) -> SegmentId:
        """Store ``rows`` (at least one) as one segment, and return the id of the segment.

        When this function returns, the rows are on the disk. ``run_id`` is the run to which the rows belong, or
        ``None``. If the function raises `WarehouseUnwritable`, no row is stored.
        """
        return self.append_encoded_rows(encode_rows(rows), run_id=run_id)

    def append_encoded_rows(self, rows: EncodedRows, *, run_id: str | None) -> SegmentId:
        """Store rows that another process has already encoded. See `append`."""
        return self._append_segment(rows, folder=SHARED if run_id is None else run_id, run_id=run_id)

    def append_suite(self, suite: Suite) -> SegmentId:
        """Store the cases of a suite, unless a suite with the same hash is stored already.

        Return the segment's id.
        """
        segment_id = SegmentId(f"suite-{suite.sha256}")
        name = f"{SUITES}/{segment_id}{SUFFIX}"
        if name not in self.segments.list_segments(SUITES):
            rows = [
                CaseRow(row=SuiteCase(suite_sha256=suite.sha256, suite_name=suite.name, case=case))
                for case in suite.cases
            ]
            self.segments.write(name, encode_segment(encode_rows(rows), segment_id=segment_id, run_id=None))
        return segment_id

    def append_outbox(self, rows: Sequence[OutboxRow]) -> SegmentId:
        """Store decisions on incidents and drafts, or delivery receipts.

        Only ``warehouse.queries`` may call this function, because that package numbers the decisions under a lock.
        """
        return self._append_segment(encode_rows(rows), folder=OUTBOX, run_id=None)

    def read(self, name: str) -> Segment:
        """Read a segment and verify it.

        Raises `WarehouseDamaged`, `SchemaTooNew` for a segment from a newer version of Lookout, and
        `FileNotFoundError`.
        """
        folder = name.partition("/")[0]
        return decode_segment(
            self.segments.read(name),
            where=self.segments.format_location(name),
            segment_id=parse_segment_id(name),
            run_id=None if folder.startswith("_") else folder,
        )

    def read_run(self, run_id: str) -> Iterator[JournalRow | OutboxRow]:
        """Yield all rows that a run has stored so far, oldest first.

        A case that was asked again has two rows, and the later row is valid. A damaged segment is skipped.
        Therefore, a resumed run asks the cases of that segment again. Raises `ConfigError` for an invalid run id.
        """
        for name in self.segments.list_segments(_require_valid_run_id(run_id)):
            try:
                segment = self.read(name)
            except (WarehouseDamaged, FileNotFoundError):
                continue
            yield from segment.rows()

    def find_newest_segment_time(self) -> datetime | None:
        """Return the time of the newest segment that is not archived, or ``None`` if there is no such segment."""
        ids = [
            parse_segment_id(name) for name in self.segments.list_segments() if not name.startswith(f"{SUITES}/")
        ]
        return parse_time(max(ids)) if ids else None

    def require_writable(self) -> None:
        """Test whether the journal can be written. Raises `WarehouseUnwritable` if not."""
        self.segments.write(WRITABLE, b"")

    def remove_stale_files(self) -> int:
        """Remove temporary files of killed processes that are more than an hour old.

        Return the number of removed files.
        """
        return self.segments.remove_stale_files(self._clock())

    def now(self) -> datetime:
        """Return the present time of the journal's clock."""
        return self._clock()

    def _append_segment(self, rows: EncodedRows, *, folder: str, run_id: str | None) -> SegmentId:
        with self._naming:
            segment_id = self._names.build_next_id()
        data = encode_segment(rows, segment_id=segment_id, run_id=run_id)
        self.segments.write(f"{folder}/{segment_id}{SUFFIX}", data)
        return segment_id


def _require_valid_run_id(run_id: str) -> str:
    try:
        return _RUN_ID.validate_python(run_id)
    except ValidationError:
        raise ConfigError(
            f"{run_id!r} is not a valid run id; accepted: letters, digits and _ @ : + - . (no slash)"
        ) from None
