"""A log in a folder, the possible changes to it, and a reader that stores its cursor as a run does."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from monitors.records.logs import HallucinationEntry, LogCursor, LogWarning, QuarantinedLine
from monitors.sources.logs.entries import is_whole_entry, parse_line
from monitors.sources.logs.files import LocalLog
from monitors.sources.logs.tail import BatchLimits, LogBatch, read_new_batches

NAME = "hallucinations.jsonl"


def entry(number: int, *, text: str = "What is covered?") -> bytes:
    """Return a log line with the unique number ``number``, as an application writes it."""
    seconds = f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"
    value = {"ts": f"2026-03-01T{seconds}Z", "user_text": text, "reasons": ["citation_missing"], "number": number}
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


class WrittenLog:
    """The writer of a log. Every change sets a later modification time, as real time would."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._tick = 1_700_000_000

    def append(self, content: bytes, *, path: Path | None = None) -> None:
        with (path or self.path).open("ab") as stream:
            stream.write(content)
        self._touch(path or self.path)

    def rename(self, *, keep: int = 3) -> None:
        """Rotate the log as logrotate does without ``copytruncate``. ``.1`` is the newest rotated file."""
        for number in range(keep, 0, -1):
            older = self.path.with_name(f"{NAME}.{number}")
            if older.exists():
                older.rename(self.path.with_name(f"{NAME}.{number + 1}"))
        self.path.with_name(f"{NAME}.{keep + 1}").unlink(missing_ok=True)
        self.path.rename(self.path.with_name(f"{NAME}.1"))

    def copy_truncate(self, *, name: str = f"{NAME}.1") -> None:
        shutil.copyfile(self.path, self.path.with_name(name))
        self._touch(self.path.with_name(name))
        self.rewrite(b"")

    def pack(self, name: str) -> None:
        """Compress a rotated file as logrotate's ``compress`` does: the file keeps its modification time."""
        plain = self.path.with_name(name)
        at = plain.stat().st_mtime_ns
        packed = self.path.with_name(f"{name}.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
        os.utime(packed, ns=(at, at))
        plain.unlink()

    def rewrite(self, content: bytes) -> None:
        """Replace the content of the file and keep its inode."""
        with self.path.open("r+b" if self.path.exists() else "wb") as stream:
            stream.truncate(0)
            stream.write(content)
        self._touch(self.path)

    def _touch(self, path: Path) -> None:
        self._tick += 1
        os.utime(path, (self._tick, self._tick))


class Reader:
    """A reader of a log. `look` reads the new entries. Between two calls, the reader remembers only ``cursor``."""

    def __init__(self, path: Path, *, limits: BatchLimits | None = None, rotated: str | None = None) -> None:
        self.place = LocalLog(path, rotated=rotated)
        self.limits = limits or BatchLimits()
        self.cursor: LogCursor | None = None
        self.entries: list[HallucinationEntry] = []
        self.aside: list[QuarantinedLine] = []
        self.notices: list[LogWarning] = []

    def look(self) -> None:
        for batch in self.batches():
            self.keep(batch)

    def batches(self) -> Iterator[LogBatch]:
        with self.place.poll() as files:
            yield from read_new_batches(files, "bot", self.cursor, is_whole=is_whole_entry, limits=self.limits)

    def keep(self, batch: LogBatch) -> None:
        """Store a batch and its cursor, as a run does in one step."""
        for line in batch.lines:
            read = parse_line("bot", line)
            if isinstance(read, HallucinationEntry):
                self.entries.append(read)
            elif read is not None:
                self.aside.append(read)
        self.notices += batch.issues
        self.cursor = LogCursor.model_validate_json(batch.cursor.model_dump_json())

    @property
    def numbers(self) -> list[int]:
        return [read.reply.extra["number"] for read in self.entries]
