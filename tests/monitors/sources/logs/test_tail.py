"""Test that a log is followed through rotation, truncation, crashes and bad lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitors.errors import SourceUnavailable
from monitors.records.logs import LogWarningKind, QuarantineReason
from monitors.sources.logs.tail import BatchLimits
from tests.monitors.sources.logs_on_disk import NAME, Reader, WrittenLog, entry


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path)


@pytest.fixture
def reader(log: WrittenLog) -> Reader:
    return Reader(log.path)


def test_existing_lines_are_read_and_then_only_new_ones(log, reader):
    log.append(entry(1) + entry(2))
    reader.look()
    reader.look()
    log.append(entry(3))
    reader.look()
    assert reader.numbers == [1, 2, 3]
    assert len({read.id for read in reader.entries}) == 3


def test_nothing_new_gives_no_batch(log, reader):
    log.append(entry(1))
    reader.look()
    assert list(reader.batches()) == []


def test_f66_a_partial_last_line_waits(log, reader):
    whole = entry(1)
    log.append(whole[:30])
    reader.look()
    assert reader.entries == reader.aside == []
    log.append(whole[30:])
    reader.look()
    assert reader.numbers == [1]


def test_an_entry_whose_line_has_not_ended_is_taken_once(log, reader):
    """An entry without a line end is read at once, and only once.

    Some writers put the line end before each entry, so the newest entry has none until the next one is written.
    """
    log.append(entry(1).rstrip(b"\n"))
    reader.look()
    assert reader.numbers == [1]
    log.append(b"\n" + entry(2).rstrip(b"\n"))
    reader.look()
    assert reader.numbers == [1, 2]
    assert reader.aside == []


def test_f67_rotated_by_rename_while_stopped(log, reader):
    log.append(entry(1))
    reader.look()
    log.append(entry(2))
    log.rename()
    log.append(entry(3))
    log.rename()
    log.append(entry(4))
    reader.look()
    assert reader.numbers == [1, 2, 3, 4]
    assert reader.notices == []


def test_f67_a_packed_file_is_read_too(log, reader):
    log.append(entry(1))
    reader.look()
    log.append(entry(2))
    log.rename()
    log.pack(f"{NAME}.1")
    log.append(entry(3))
    reader.look()
    reader.look()
    assert reader.numbers == [1, 2, 3]


def test_a_writer_that_still_holds_the_renamed_file_is_read(log, reader):
    log.append(entry(1))
    reader.look()
    log.rename()
    log.append(entry(3))
    reader.look()
    log.append(entry(2), path=log.path.with_name(f"{NAME}.1"))
    reader.look()
    assert reader.numbers == [1, 3, 2]


@pytest.mark.parametrize("later", [b"", entry(4), entry(4) * 50], ids=["empty", "short", "long"])
def test_f68_copy_truncate(log, reader, later):
    log.append(entry(1) + entry(2))
    reader.look()
    log.append(entry(3))
    log.copy_truncate()
    log.append(later)
    reader.look()
    assert reader.numbers == [1, 2, 3, *([4] * (len(later) // len(entry(4))))]
    assert reader.notices == []


def test_f68_a_copy_from_before_the_last_line_is_not_read_again(log, reader):
    """An older copy of the log is not read again, although its last line is missing.

    The log was copied, a line was added and read, and then the log was truncated. So the copy is shorter than the
    content that was read.
    """
    log.append(entry(1))
    copied = log.path.read_bytes()
    log.append(entry(2))
    reader.look()
    log.append(copied, path=log.path.with_name(f"{NAME}.1"))
    log.rewrite(entry(3))
    reader.look()
    assert reader.numbers == [1, 2, 3]


def test_f69_truncated_and_rewritten_longer(log, reader):
    log.append(entry(1) + entry(2))
    reader.look()
    log.rewrite(b"".join(entry(number) for number in range(10, 20)))
    reader.look()
    assert reader.numbers == [1, 2, *range(10, 20)]
    (notice,) = reader.notices
    assert notice.kind is LogWarningKind.REPLACED
    assert "byte" in notice.detail


def test_cut_back_to_its_beginning_nothing_is_read_twice(log, reader):
    log.append(b"".join(entry(number) for number in range(40)))
    reader.look()
    start = b"".join(entry(number) for number in range(20))
    log.rewrite(start)
    reader.look()
    log.append(entry(50))
    reader.look()
    assert reader.numbers == [*range(40), 50]


def test_f70_inode_reused(log, reader):
    """A different file that has the inode of an earlier file is read.

    A file that was read is not read again if its inode changes.
    """
    log.append(entry(1))
    reader.look()
    log.rewrite(entry(2) + entry(3))
    reader.look()
    content = log.path.read_bytes()
    log.path.unlink()
    log.append(content + entry(4))
    reader.look()
    assert reader.numbers == [1, 2, 3, 4]


def test_the_same_file_under_two_names_is_read_once(log, reader):
    """A file that has two names is read once.

    This happens if the file is renamed while the reader lists the folder.
    """
    log.append(entry(1))
    os.link(log.path, log.path.with_name(f"{NAME}.1"))
    reader.look()
    log.append(entry(2))
    reader.look()
    assert reader.numbers == [1, 2]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"user_text": "\xff\xfe"}', QuarantineReason.NOT_UTF8),
        (b'{"user_text": "cut', QuarantineReason.NOT_JSON),
        (b"[" * 100_000, QuarantineReason.NOT_JSON),
        (b'["no", "object"]', QuarantineReason.NOT_AN_OBJECT),
        (b"Traceback (most recent call last):", QuarantineReason.NOT_JSON),
    ],
)
def test_f71_one_bad_line_goes_aside_and_the_rest_goes_on(log, reader, bad, reason):
    log.append(entry(1) + bad + b"\n" + entry(2))
    reader.look()
    assert reader.numbers == [1, 2]
    (aside,) = reader.aside
    assert aside.reason is reason
    assert (aside.offset, aside.length) == (len(entry(1)), len(bad))


def test_f72_a_line_of_50_mb_goes_aside(log, reader):
    log.append(entry(1) + b'{"user_text": "' + b"x" * 50_000_000 + b'"}\n' + entry(2))
    held = max(sum(len(line.raw) for line in batch.lines) for batch in reader.batches())
    reader.look()
    assert reader.numbers == [1, 2]
    (aside,) = reader.aside
    assert aside.reason is QuarantineReason.TOO_LONG
    assert aside.length > 50_000_000
    assert held < 3_000_000


@pytest.mark.parametrize(
    "content",
    [
        entry(1).replace(b"\n", b"\r\n") + entry(2).replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + entry(1) + entry(2),
        entry(1) + b"\0" * 512 + entry(2),
        b"\n\n" + entry(1) + b"  \n" + entry(2),
    ],
    ids=["CRLF", "BOM", "NUL", "blank lines"],
)
def test_f73_crlf_bom_nul(log, reader, content):
    log.append(content)
    reader.look()
    assert reader.numbers == [1, 2]
    assert reader.aside == []


def test_f74_the_same_line_twice_is_two_entries(log, reader):
    log.append(entry(1) + entry(1))
    reader.look()
    assert reader.numbers == [1, 1]
    assert len({read.id for read in reader.entries}) == 2


def test_f75_log_deleted(log, reader):
    log.append(entry(1))
    reader.look()
    log.path.unlink()
    reader.look()
    assert [notice.kind for notice in reader.notices] == [LogWarningKind.MISSING]
    log.append(entry(2))
    reader.look()
    assert reader.numbers == [1, 2]


def test_f96_a_named_pipe_is_refused_as_a_log_and_skipped_beside_one(log, reader):
    log.append(entry(1))
    os.mkfifo(log.path.with_name(f"{NAME}.1"))
    reader.look()
    assert reader.numbers == [1]
    log.path.unlink()
    os.mkfifo(log.path)
    with pytest.raises(SourceUnavailable, match="not a regular file"):
        reader.look()


def test_a_missing_log_is_reported_at_every_poll(log, reader):
    reader.look()
    reader.look()
    assert [notice.kind for notice in reader.notices] == [LogWarningKind.MISSING] * 2
    log.append(entry(1))
    reader.look()
    assert len(reader.notices) == 2
    assert [reader.cursor.is_written_before_watching(read.generation, read.offset) for read in reader.entries] == [
        False
    ]


def test_lines_from_before_the_first_poll_are_history_also_after_a_kill(log):
    log.append(b"".join(entry(number) for number in range(100)))
    reader = Reader(log.path, limits=BatchLimits(max_batch_bytes=3_000))
    reader.keep(next(reader.batches()))  # killed after the first batch
    log.append(entry(100))
    reader.look()
    old = [
        read for read in reader.entries if reader.cursor.is_written_before_watching(read.generation, read.offset)
    ]
    assert len(reader.entries) == 101
    assert [read.reply.extra["number"] for read in old] == list(range(100))


def test_batches_are_bounded_and_each_can_be_resumed(log):
    log.append(b"".join(entry(number) for number in range(1_000)))
    reader = Reader(log.path, limits=BatchLimits(max_batch_bytes=3_000))
    for _ in range(1_000):
        first = next(reader.batches(), None)  # killed after each batch
        if first is None:
            break
        assert len(first.lines) < 40
        reader.keep(first)
    assert reader.numbers == list(range(1_000))


def test_other_files_of_the_folder_are_not_read(log, reader):
    log.append(entry(1))
    reader.look()
    log.append(entry(2), path=log.path.with_name("turns.jsonl"))
    log.append(entry(3))
    log.rename()
    reader.look()
    assert reader.numbers == [1, 3]
