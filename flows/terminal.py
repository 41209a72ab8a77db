"""Writes to standard output and standard error, and makes control characters visible.

Output of applications, pages, logs and files can contain control characters that clear the screen, set the
clipboard or reverse a line. In text for people, each control character is shown as its code point (`[U+001B]`).
`write_json` and `write_data` write exact data for programs. Only `flows.terminal_console` writes colours.

On a terminal, long lines of text for people are wrapped between words. In a file or a pipe, lines stay whole.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

from rich.cells import cell_len

from flows.waiting import clear_waiting_line
from monitors.reports.invisible import replace_invisible_by_code_points

_COLOUR: Final = re.compile("(\x1b\\[(?:[0-79]|[1-9][0-9])?(?:;[0-9]{1,3})*m)")
"""Matches the escape sequence of a colour or a font weight in messages of libraries.

Code 8 does not match, because it hides the text that follows.
"""

_STEERING: Final = re.compile(
    "[\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that JSON does not escape, but that control a terminal or are invisible."""


def make_standard_streams_safe() -> None:
    """Prepare the standard streams.

    Closed streams then discard text, and characters that cannot be encoded are escaped.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def flush_stdout_or_report_failure() -> bool:
    """Flush standard output. If this fails, write a note to standard error and return false."""
    stream = _unwrap_stream(sys.stdout)
    _write(stream, "", flush=True)
    return stream not in _unwritable


_unwritable: set[TextIO] = set()
"""The streams that could not be written to, because the disk is full or a device has failed."""


def _write(stream: TextIO, text: str, *, flush: bool = False) -> None:
    """Write to a stream.

    If the reader of the stream has ended, as with `| head`, the text is discarded without an error.
    """
    try:
        if text:  # on a full disk, writing an empty text fails too
            stream.write(text)
        if flush:
            stream.flush()
    except BrokenPipeError:
        _discard_output(stream)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _discard_output(stream)
        if stream not in _unwritable:
            _unwritable.add(stream)
            # Standard error may be on the same full disk.
            with suppress(OSError):
                sys.stderr.write(f"lookout: the output cannot be written: {error.strerror}\n")


_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


def _discard_output(stream: TextIO) -> None:
    """Make a stream discard all text, including text in its buffer, so that closing it raises no error."""
    # A stream without a file, as in tests, cannot be redirected.
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def write_text(text: str) -> None:
    """Write ``text`` for people to standard output."""
    stream = _unwrap_stream(sys.stdout)
    clear_waiting_line(text)
    _write(stream, _format_for_stream(stream, text))


def print_text(text: str = "", *, err: bool = False) -> None:
    """Write a line for people to standard output, or with ``err`` to standard error."""
    (write_note if err else write_text)(f"{text}\n")


def write_note(text: str) -> None:
    """Write ``text`` for people to standard error, without buffering."""
    stream = _unwrap_stream(sys.stderr)
    clear_waiting_line(text)
    _write(stream, _format_for_stream(stream, text), flush=True)


def _format_for_stream(stream: TextIO, text: str) -> str:
    shown = replace_invisible_by_code_points(text)
    return wrap_lines(shown, shutil.get_terminal_size().columns) if stream.isatty() else shown


def wrap_lines(text: str, columns: int) -> str:
    """Wrap lines that are longer than ``columns`` between words, and indent the new rows by two spaces.

    A word that is longer than a line is not broken, so that people can copy an address or a path.
    """
    return "\n".join(line if cell_len(line) <= columns else _wrap_line(line, columns) for line in text.split("\n"))


def _wrap_line(line: str, columns: int) -> str:
    """Wrap one line between words. Spaces within a row stay, because they can align the columns of a table."""
    indent = " " * min(len(line) - len(line.lstrip(" ")) + 2, columns // 2)
    rows = [""]
    for word in re.findall(r" *[^ ]+ *$| *[^ ]+", line):
        if rows[-1].strip() and cell_len(rows[-1]) + cell_len(word.rstrip(" ")) > columns:
            rows.append(indent + word.lstrip(" "))
        else:
            rows[-1] += word
    return "\n".join(rows)


def write_notes_to_stderr(texts: Iterable[str]) -> None:
    """Write each text as `write_note` does."""
    for text in texts:
        write_note(text)


def write_json(document: str) -> None:
    """Write JSON to standard output. Characters that control a terminal are written as JSON escapes."""
    stream = _unwrap_stream(sys.stdout)
    clear_waiting_line()
    _write(stream, escape_control_characters_in_json(document), flush=True)


def escape_control_characters_in_json(document: str) -> str:
    """Return equivalent JSON in which characters that control a terminal are JSON escapes."""
    return _STEERING.sub(lambda match: json.dumps(match.group())[1:-1], document)


def write_data(document: str) -> None:
    """Write CSV, TOML or YAML to standard output. On a terminal, control characters are made visible."""
    stream = _unwrap_stream(sys.stdout)
    clear_waiting_line()
    _write(
        stream, replace_invisible_by_code_points(document.replace("\r\n", "\n")) if stream.isatty() else document
    )


def get_binary_stdout() -> BinaryIO:
    """Return standard output as a binary stream. The caller must escape control characters itself."""
    return _unwrap_stream(sys.stdout).buffer


def write_jsons(documents: Iterable[str]) -> None:
    """Write each document as `write_json` does."""
    for document in documents:
        write_json(document)


def flush_output() -> None:
    """Flush standard output, so that its text appears before the next text on standard error."""
    _write(_unwrap_stream(sys.stdout), "", flush=True)


def configure_logging_to_stderr(form: str) -> None:
    """Configure the root logger to write to standard error with the format ``form``."""
    logging.basicConfig(format=form, handlers=[_NoteHandler()])


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        write_note(f"{self.format(record)}\n")


@contextmanager
def escape_controls_in_output() -> Generator[None]:
    """Make control characters visible in warnings and tracebacks that are written during the ``with`` block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _wrap_stream_to_escape(sys.stdout), _wrap_stream_to_escape(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def redirect_stdout_to_stderr() -> Generator[None]:
    """Redirect standard output to standard error during the ``with`` block."""
    with redirect_stdout(sys.stderr):
        yield


class FailSafeStream:
    """A text stream that raises no error if its reader has ended or the disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write like a text stream."""
        _write(self._stream, text)
        return len(text)

    def flush(self) -> None:
        """Flush like a text stream."""
        _write(self._stream, "", flush=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Guard:
    """Wraps a standard stream for code that does not use this module.

    Makes all control characters except colours visible.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Write like a text stream, with control characters made visible."""
        clear_waiting_line(text)
        if "\x1b" not in text and self.unguarded.isatty():
            _write(self.unguarded, _format_for_stream(self.unguarded, text))
            return len(text)
        parts = _COLOUR.split(text)
        _write(
            self.unguarded,
            "".join(part if n % 2 else replace_invisible_by_code_points(part) for n, part in enumerate(parts)),
        )
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines like a text stream, with control characters made visible."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush like a text stream."""
        _write(self.unguarded, "", flush=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def _wrap_stream_to_escape(stream: TextIO) -> TextIO:
    return cast("TextIO", _Guard(_unwrap_stream(stream)))


def _unwrap_stream(stream: TextIO) -> TextIO:
    return stream.unguarded if isinstance(stream, _Guard) else stream
