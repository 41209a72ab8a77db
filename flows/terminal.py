"""The one writer for the terminal: it shows text from outside with visible escapes, so that no text can steer it.

Texts of applications, pages, logs and files may hold control characters that clear the screen, set the clipboard or
a window's title, or reverse a line. For people each is written as its code point (`[U+001B]`); the colours of
`flows.terminal_console` are Lookout's own. Data for programs is exact: `write_json`, `write_data`.

A terminal would break a long line within a word: on one, text for people is wrapped between words. Elsewhere (a
file, a pipe, CI) a line stays a line.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stdout
from typing import Any, BinaryIO, Final, TextIO, cast

from rich.cells import cell_len

from flows.waiting import make_room
from monitors.reports.invisible import show_invisible

_COLOUR: Final = re.compile("(\x1b\\[(?:[0-79]|[1-9][0-9])?(?:;[0-9]{1,3})*m)")
"""A colour or weight, as libraries' own messages have it; not 8, which hides the text after it."""

_STEERING: Final = re.compile(
    "[\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""What JSON need not escape, and a terminal or a reader may obey: C1, bidirectional controls, what is invisible."""


def write_text(text: str) -> None:
    """Write ``text`` for people on standard output."""
    stream = _unguarded(sys.stdout)
    make_room(text)
    stream.write(_for(stream, text))


def print_text(text: str = "", *, err: bool = False) -> None:
    """Write a line for people on standard output; ``err`` sends it to standard error."""
    (write_note if err else write_text)(f"{text}\n")


def write_note(text: str) -> None:
    """Write ``text`` for people on standard error, at once."""
    stream = _unguarded(sys.stderr)
    make_room(text)
    stream.write(_for(stream, text))
    stream.flush()


def _for(stream: TextIO, text: str) -> str:
    shown = show_invisible(text)
    return fitted(shown, shutil.get_terminal_size().columns) if stream.isatty() else shown


def fitted(text: str, columns: int) -> str:
    """The text with lines that are longer than ``columns`` wrapped between words, two columns further in.

    A word that is too long by itself stays whole: it is an address or a path that somebody copies.
    """
    return "\n".join(line if cell_len(line) <= columns else _wrapped(line, columns) for line in text.split("\n"))


def _wrapped(line: str, columns: int) -> str:
    """Between words alone, and with all other spaces as they were: they may be columns of a table."""
    indent = " " * min(len(line) - len(line.lstrip(" ")) + 2, columns // 2)
    rows = [""]
    for word in re.findall(r" *[^ ]+ *$| *[^ ]+", line):
        if rows[-1].strip() and cell_len(rows[-1]) + cell_len(word.rstrip(" ")) > columns:
            rows.append(indent + word.lstrip(" "))
        else:
            rows[-1] += word
    return "\n".join(rows)


def write_notes(texts: Iterable[str]) -> None:
    """Write every text as `write_note` does."""
    for text in texts:
        write_note(text)


def write_json(document: str) -> None:
    """Write JSON on standard output: the same data, with what a terminal may obey as escapes of JSON's own."""
    stream = _unguarded(sys.stdout)
    make_room()
    stream.write(json_escaped(document))
    stream.flush()


def json_escaped(document: str) -> str:
    """JSON that means the same and holds nothing that a terminal may obey."""
    return _STEERING.sub(lambda found: json.dumps(found.group())[1:-1], document)


def write_data(document: str) -> None:
    """Write a document of another form (CSV, TOML, YAML) on standard output: exact, unless a terminal shows it."""
    stream = _unguarded(sys.stdout)
    make_room()
    stream.write(show_invisible(document.replace("\r\n", "\n")) if stream.isatty() else document)


def byte_output() -> BinaryIO:
    """Standard output for a pipe that writes escaped JSON itself, line by line."""
    return _unguarded(sys.stdout).buffer


def write_jsons(documents: Iterable[str]) -> None:
    """Write every document as `write_json` does."""
    for document in documents:
        write_json(document)


def flush_output() -> None:
    """Flush standard output, so that it stands before what standard error says next."""
    sys.stdout.flush()


def log_to_terminal(form: str) -> None:
    """Have the root logger write to standard error, in ``form``, as `write_note` does."""
    logging.basicConfig(format=form, handlers=[_NoteHandler()])


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        write_note(f"{self.format(record)}\n")


@contextmanager
def guarded_output() -> Generator[None]:
    """While this lasts, what libraries and Python itself write (warnings, tracebacks) is made visible too."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guard(sys.stdout), _guard(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def output_as_notes() -> Generator[None]:
    """While this lasts, what is written for people on standard output goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield


class _Guard:
    """A standard stream for writers that do not know this module: plain colours pass, all else is made visible."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """As a text stream does."""
        make_room(text)
        if "\x1b" not in text and self.unguarded.isatty():
            self.unguarded.write(_for(self.unguarded, text))
            return len(text)
        parts = _COLOUR.split(text)
        self.unguarded.write("".join(part if n % 2 else show_invisible(part) for n, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As a text stream does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def _guard(stream: TextIO) -> TextIO:
    return cast("TextIO", _Guard(_unguarded(stream)))


def _unguarded(stream: TextIO) -> TextIO:
    return stream.unguarded if isinstance(stream, _Guard) else stream
