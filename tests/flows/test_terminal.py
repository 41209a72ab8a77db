"""Test that text from outside cannot control a terminal, and that data for programs is unchanged."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from flows.data_folder import open_store_in
from flows.terminal import escape_controls_in_output, print_text, write_data, write_json, write_note
from flows.terminal_console import TerminalConsole
from monitors.records.base import Severity
from tests import fork_server
from tests.builders import assessment, exchange, gold_case
from tests.conftest import ROOT
from warehouse.journal.rows import AssessmentRow, ResultRow

STEERING = {
    "clears the screen": "\x1b[2J",
    "sets the clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "sets the title": "\x1b]0;title\x1b\\",
    "C1": "\x9b2J\x9d52;c;eA==\x9c",
    "turns the line round": "\u202eevil\u2066",
    "writes over the line": "PASS\rFAIL",
    "goes back": "\x08\x08\x7f",
    "hides": "\x1b[8mhidden",
    "a tag": "\U000e0041",
    "half a pair": "\ud800",
}
HOSTILE = "".join(STEERING[name] for name in STEERING if name != "half a pair")


def obeyed(text: str) -> set[str]:
    """Return the control characters in ``text`` that affect a terminal or the reading direction."""
    return {c for c in text if c in "\x1b\x07\x08\r\x7f\x9b\x9d\x9c\u202e\u2066\U000e0041\ud800"}


def without_colours(text: str) -> str:
    """Return ``text`` without Lookout's own colours and font weights."""
    return re.sub("\x1b\\[[0-79;]+m|\x1b\\[38;[0-9;]+m", "", text)


@pytest.mark.parametrize("text", STEERING.values(), ids=STEERING)
def test_text_for_people_is_written_with_visible_escapes(text, capsys):
    print_text(text)
    write_note(f"{text}\n")
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err)
    assert shown.out == shown.err
    assert "[U+" in shown.out


@pytest.mark.parametrize("text", STEERING.values(), ids=STEERING)
def test_tables_bars_and_marked_up_lines_keep_their_own_colours_only(text):
    file = io.StringIO()
    console = TerminalConsole(file=file, force_terminal=True, width=200, color_system="standard")
    table = Table(title=text)
    table.add_column(text)
    table.add_row(Text(text), style="red")
    console.print(table)
    console.print(f"[bold]{escape(text)} [/]")
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    plain = file.getvalue()
    assert "\x1b[31m" in plain
    assert "\x1b[1m" in plain
    assert not obeyed(without_colours(plain))


def test_a_bar_moves_the_cursor_and_its_description_does_not():
    file = io.StringIO()
    console = TerminalConsole(file=file, force_terminal=True, width=200)
    with Progress(console=console) as bar:
        bar.add_task(HOSTILE, total=1)
    assert "\x1b[?25l" in file.getvalue()  # the bar's own
    assert "\x1b[2J" not in file.getvalue()
    assert not obeyed(file.getvalue()) - {"\x1b", "\r"}


def test_library_warnings_and_logs_are_escaped_and_keep_their_colours(capsys):
    with escape_controls_in_output():
        sys.stderr.write(warnings.formatwarning(HOSTILE, UserWarning, "a.py", 1))
        sys.stderr.writelines([HOSTILE, "\x1b[1;31mred\x1b[0m"])
        print(HOSTILE)
    shown = capsys.readouterr()
    assert "\x1b[1;31mred\x1b[0m" in shown.err
    assert not obeyed(shown.out)
    assert not obeyed(shown.err.replace("\x1b[1;31mred\x1b[0m", ""))


def test_the_log_of_a_process_is_made_visible():
    program = f"import logging\nfrom flows.terminal import configure_logging_to_stderr\nconfigure_logging_to_stderr('%(message)s')\nlogging.warning({HOSTILE!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "[U+001B]" in done.stderr
    assert not obeyed(done.stderr)


def test_json_is_the_same_data_and_holds_nothing_to_obey(capsys):
    for text in STEERING.values():
        write_json(json.dumps({text: [text]}, ensure_ascii=False))
        shown = capsys.readouterr().out
        assert json.loads(shown) == {text: [text]}
        assert not obeyed(shown)


def test_json_keeps_the_letters_of_every_language(capsys):
    given = '{"q": "क्‍ष कितना? é 5 ₹"}'
    write_json(given)
    assert capsys.readouterr().out == given


def test_a_document_is_exact_in_a_pipe(capsys):
    write_data("a,b\r\n\x1b[2J,\u202e\r\n")
    assert capsys.readouterr().out == "a,b\r\n\x1b[2J,\u202e\r\n"


# --- as a person meets it ---------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with one answer from a hostile application."""
    store = open_store_in(tmp_path / "data")
    case = gold_case("case-1", severity=Severity.MAJOR)
    rows = (ResultRow(row=exchange(case, HOSTILE)), AssessmentRow(row=assessment(case)))
    store.journal.append(rows, run_id="run-1")
    store.load_pending(5)
    return tmp_path / "data"


def command(data: Path, *arguments: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    where = {"cwd": data.parent, "env": os.environ | fork_server.WARM}
    return (*arguments, "--data-folder", str(data)), where


def in_a_pipe(data: Path, *arguments: str) -> tuple[str, str]:
    """Run a command in a pipe. Return its standard output and its standard error."""
    words, where = command(data, *arguments)
    done = fork_server.run(*words, **where)
    return done.stdout, done.stderr


def at_a_terminal(data: Path, *arguments: str) -> str:
    """Run a command on a pseudo-terminal. Return its whole output, including colour codes."""
    words, where = command(data, *arguments)
    ours, theirs = pty.openpty()
    with fork_server.start(*words, **where, stdout=theirs, stderr=theirs):
        os.close(theirs)
        sent = b""
        try:
            while piece := os.read(ours, 65536):
                sent += piece
        except OSError:  # the other end was closed: that is how a terminal ends
            pass
    os.close(ours)
    return sent.decode().replace("\r\n", "\n")


TEXTS = "select visible_text, 1 as n from results"
WIDE = "select visible_text, run_id, case_id, repeat('x', 200) as much from results"


@pytest.mark.parametrize("query", [TEXTS, WIDE], ids=["a table", "blocks"])
def test_sql_shows_a_person_what_the_application_said_and_obeys_none_of_it(data, query):
    sent = at_a_terminal(data, "sql", query)
    assert "[U+001B][2J" in sent
    assert not obeyed(without_colours(sent))


def test_sql_gives_programs_the_exact_text(data):
    out, _ = in_a_pipe(data, "sql", TEXTS, "--json")
    assert json.loads(out)["visible_text"] == HOSTILE
    assert not obeyed(out)
    out, _ = in_a_pipe(data, "sql", TEXTS, "--csv")
    assert list(csv.reader(io.StringIO(out, newline="")))[1][0] == HOSTILE


def test_csv_at_a_terminal_is_for_people(data):
    sent = at_a_terminal(data, "sql", TEXTS, "--csv")
    assert "[U+001B][2J" in sent
    assert not obeyed(sent)


def test_a_wrong_query_and_a_wrong_option_are_named_and_not_obeyed(data):
    for words in (
        ["sql", f"select {HOSTILE}"],
        ["sql", TEXTS, f"--{HOSTILE}"],
    ):
        sent = at_a_terminal(data, *words)
        assert "52;c" in sent
        assert not obeyed(without_colours(sent))
