"""Test log reading with any sequence of appends, torn lines, rotations, deletions and kills.

Everything that the files still contain is read once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from monitors.sources.logs.tail import BatchLimits
from tests.monitors.sources.logs_on_disk import NAME, Reader, WrittenLog, entry
from tests.tiers import scale_examples

FEW = strategies.integers(1, 6)
NEVER_SEEN = -1


class LogStory(RuleBasedStateMachine):
    """A state machine that changes a log and reads it.

    Each log entry has a number. The model is the set of these numbers. The log files themselves show which lines
    still exist.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.log = WrittenLog(self.folder)
        self.reader = Reader(self.log.path, limits=BatchLimits(max_batch_bytes=400))
        self.written = 0
        self.torn: tuple[Path, bytes] | None = None
        self.life = 0  # of the newest file: a rotation, rewriting or deletion begins a new one
        self.seen_life = 0
        self.added_to_seen_life: set[int] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(count=strategies.integers(0, 4))
    def begin(self, count: int) -> None:
        self.log.append(self._lines(count))
        self.look()

    def _lines(self, count: int) -> bytes:
        numbers = range(self.written, self.written + count)
        self.written += count
        if self.life == self.seen_life:
            self.added_to_seen_life |= set(numbers)
        return b"".join(entry(number) for number in numbers)

    # --- the writer ---------------------------------------------------------------------------------------

    @rule(count=FEW)
    @precondition(lambda self: self.torn is None)
    def append(self, count: int) -> None:
        self.log.append(self._lines(count))

    @rule(share=strategies.floats(0.05, 0.95))
    @precondition(lambda self: self.torn is None)
    def write_part_of_a_line(self, share: float) -> None:
        line = self._lines(1)
        cut = max(1, int(len(line) * share))
        self.log.append(line[:cut])
        self.torn = self.log.path, line[cut:]

    @rule()
    @precondition(lambda self: self.torn is not None)
    def write_the_rest(self) -> None:
        assert self.torn is not None
        path, rest = self.torn
        self.log.append(rest, path=path if path.exists() else None)
        self.torn = None

    # --- changes to the file ------------------------------------------------------------------------------

    @rule(successor=strategies.booleans())
    @precondition(lambda self: self.log.path.exists())
    def rotate_by_rename(self, successor: bool) -> None:
        moved = self.torn is not None and self.torn[0] == self.log.path
        older = self.torn is not None and not moved
        if older:
            self.write_the_rest()
        self.life += 1
        self.log.rename()
        if moved and self.torn is not None:
            self.torn = self.log.path.with_name(f"{NAME}.1"), self.torn[1]
        if successor:
            self.log.append(b"")

    @rule()
    @precondition(lambda self: self.log.path.exists() and self.torn is None)
    def copy_and_truncate(self) -> None:
        self.life += 1
        self.log.copy_truncate(name=f"{NAME}-{self.written:06}-{len(list(self.folder.iterdir()))}")

    @rule(count=strategies.integers(8, 20))
    @precondition(lambda self: self.torn is None)
    def truncate_and_rewrite_longer(self, count: int) -> None:
        self.life += 1
        self.log.rewrite(self._lines(count))

    @rule()
    @precondition(lambda self: self.log.path.exists() and self.torn is None)
    def delete(self) -> None:
        self.life += 1
        self.log.path.unlink()

    @rule()
    @precondition(lambda self: self.torn is None and self.log.path.with_name(f"{NAME}.1").exists())
    def pack_the_newest_of_the_old(self) -> None:
        self.look()
        self.log.pack(f"{NAME}.1")
        shutil.move(self.folder / f"{NAME}.1.gz", self.folder / f"{NAME}-packed-{self.written}.gz")

    # --- the reader ---------------------------------------------------------------------------------------

    @rule(batches=strategies.integers(1, 3))
    def killed_while_reading(self, batches: int) -> None:
        """Kill the reader after it stored ``batches`` batches. It reads no later batch."""
        for _, batch in zip(range(batches), self.reader.batches(), strict=False):
            self.reader.keep(batch)
            self.seen_life, self.added_to_seen_life = NEVER_SEEN, set()  # it has seen only a part of the files

    @rule()
    def look(self) -> None:
        before = len(self.reader.notices)
        known = (
            self.reader.cursor is not None and self.reader.cursor.current.offset > 0
        )  # otherwise the reader cannot recognise the file
        self.reader.look()
        read = set(self.reader.numbers)
        assert self._held() <= read, "a file still holds what was not read"
        lost = self.added_to_seen_life - read - self._torn_numbers()
        assert not (lost and known) or len(self.reader.notices) > before, "lost without a word"
        self.seen_life = self.life if self.log.path.exists() else NEVER_SEEN
        self.added_to_seen_life = self._torn_numbers()

    @invariant()
    def nothing_twice(self) -> None:
        assert len(self.reader.numbers) == len(set(self.reader.numbers))
        assert len({read.id for read in self.reader.entries}) == len(self.reader.entries)

    # --- content of the files -----------------------------------------------------------------------------

    def _held(self) -> set[int]:
        """Return the entry numbers in the complete lines of the uncompressed log files.

        Compressed files are skipped, because each file is read before it is compressed.
        """
        lines = (
            line
            for path in self.folder.iterdir()
            if path.suffix != ".gz"
            for line in path.read_bytes().split(b"\n")[:-1]
        )
        return {int(value["number"]) for line in lines if (value := _object(line)) is not None}

    def _torn_numbers(self) -> set[int]:
        return {self.written - 1} if self.torn is not None else set()


def _object(line: bytes) -> dict[str, str] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "number" in value else None


TestLogStory = LogStory.TestCase
TestLogStory.settings = settings(max_examples=scale_examples(40), stateful_step_count=25, deadline=None)
