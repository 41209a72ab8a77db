"""The output of commands on a real terminal (a pty) of 60 columns, and without a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.cli.gate.verdict import print_verdict
from flows.terminal import wrap_lines
from flows.terminal_console import TerminalConsole
from monitors.records.base import Severity
from tests import fork_server
from tests.deployments.cli.test_bare_commands import UNTIL, Bot, Installation, written
from tests.in_process import run_in_process
from tests.monitors.gate.runs import baseline, batch, report

COMMAND_S = 300
COLUMNS = 60
"""The number of columns of a narrow terminal. Output that fits here also fits the usual 80 columns."""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
COPIED = re.compile(r"\S*[/\\]\S*|https?://\S+|[0-9]{8}T[0-9]{6}Z\S*")
"""Paths, addresses and run ids. Users copy these texts, so a line break never splits them."""
COMMANDS = {
    "verify": ("verify", "bot", "--fresh"),
    "verify, all of it": ("report", "-v"),
    "report": ("report",),
    "gate": ("gate", "data/results.json"),
    "gate, all of it": ("gate", "data/results.json", "-v"),
    "doctor": ("doctor", "--no-alert", "--no-judge", "--no-ask"),
    "nightly": ("nightly", *UNTIL),
    "gold check": ("gold", "check", "suite.jsonl"),
    "alerts list": ("alerts", "list"),
    "repeatability": ("repeatability", "bot"),
    "drill": ("drill",),
    "review": ("review", "--figures"),
    "an error": ("verify", "bot", "--config", "nowhere/lookout.toml"),
}


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, prefect_environment: dict[str, str]
) -> Iterator[Installation]:
    """Return an installation with a stored run, a night and an incident. Its bot answers questions."""
    folder = tmp_path_factory.mktemp("terminal")
    with Bot() as bot:
        written(folder, bot.url, "http://127.0.0.1:9")
        made = Installation(folder)
        server = {"PREFECT_API_URL": prefect_environment["PREFECT_API_URL"]}
        assert made.run("verify", "bot", **server).returncode == 1
        results = next((folder / "data" / "runs").glob("*/results.json"))
        (folder / "data" / "results.json").write_bytes(results.read_bytes())
        yield made


def on_terminal(folder: Path, columns: int, *command: str, **variables: str) -> str:
    """Return the complete output of the command on a terminal of ``columns`` columns, with escape sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = fork_server.bare(TERM="xterm-256color", COLUMNS=str(columns), **variables)
    said: list[bytes] = []

    def read() -> None:
        while True:
            try:
                block = os.read(ours, 1 << 16)
            except OSError:  # this is how Linux reports the end of a terminal
                return
            said.append(block)

    reader = threading.Thread(target=read)
    with fork_server.start(
        *command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        reader.start()
        process.wait(COMMAND_S)
    reader.join(COMMAND_S)
    os.close(ours)
    return b"".join(said).decode().replace("\r\n", "\n")


def rows(said: str) -> list[str]:
    """Return the rows that the terminal shows at the end, without overwritten progress bars."""
    plain = ESCAPE.sub("", said)
    return [row.rpartition("\r")[2].rstrip() for row in plain.split("\n")]


@pytest.mark.prefect
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.a_slice(6)
@pytest.mark.whole_only
def test_a_command_fits_its_terminal(installation, command, prefect_environment):
    """No row is wider than the terminal, except for a row with a long path or address."""
    server = {"PREFECT_API_URL": prefect_environment["PREFECT_API_URL"]}
    said = on_terminal(installation.folder, COLUMNS, *COMMANDS[command], **server)
    wide = [row for row in rows(said) if len(row) > COLUMNS and not _is_copied(row, COLUMNS)]
    assert wide == [], said
    assert "Traceback" not in said


def _is_copied(row: str, columns: int) -> bool:
    """Return whether the row has a path, an address or a run id that is longer than half of the terminal."""
    return any(len(word) > columns // 2 for word in COPIED.findall(row))


@pytest.mark.whole_only
@pytest.mark.prefect
def test_colour_stands_on_a_terminal_alone_and_not_where_it_is_unwanted(installation):
    """Output has colours only on a terminal, and not if NO_COLOR is set."""
    assert COLOUR.search(on_terminal(installation.folder, COLUMNS, "report"))
    unwanted = on_terminal(installation.folder, COLUMNS, "report", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", unwanted)
    assert "\x1b" not in installation.run("report").stdout


def in_process(installation: Installation, *arguments: str) -> str:
    return run_in_process(*arguments, cwd=installation.folder, env=fork_server.bare()).stdout


@pytest.mark.whole_only
@pytest.mark.prefect
def test_a_verdict_is_short_and_names_the_command_that_shows_the_rest(installation):
    """The output is the verdict, its reason, the next step and where to read more.

    The calculation and metrics are printed only on request.
    """
    brief = in_process(installation, "report")
    assert [line.split()[0] for line in brief.splitlines() if line[:1].strip()] == [
        *("Why", "Changed", "Next", "Report", "Details")
    ]
    assert brief.split()[0] == "FAIL"
    details = re.search(r"Details   lookout (.+)", brief)
    whole = in_process(installation, *details[1].split())
    for title in ("Arithmetic", "Metrics", "Smallest drop", "Results"):
        assert title in whole
        assert title not in brief


def test_a_word_is_never_broken_and_nothing_is_lost():
    """Lines break only between words. A word that is too long stays complete, and a short line stays unchanged."""
    text = json.dumps({"a": "b"}) + " and a path /srv/" + "x" * 70 + " then more words that go on and on"
    for columns in (20, 60, 80):
        shown = wrap_lines(text, columns)
        assert shown.split() == text.split()
        assert all(len(row) <= columns or len(row.split()) == 1 for row in shown.split("\n"))
    assert wrap_lines("short  as  it is\n", 80) == "short  as  it is\n"


def test_a_verdict_with_all_that_it_may_say_fits(capsys):
    """A verdict with all its possible parts fits the terminal at both widths, in its short and its full form.

    The example is a regression with a baseline.
    """
    broken = report(
        [*batch(Severity.MINOR, 30, 8), *batch(Severity.CRITICAL, 40, 1)],
        baseline=baseline([*batch(Severity.MINOR, 30, 0), *batch(Severity.CRITICAL, 40, 0)]),
    )
    for columns in (60, 80):
        for verbose in (False, True):
            print_verdict(TerminalConsole(width=columns), broken, verbose=verbose)
            said = capsys.readouterr().out
            assert all(len(row) <= columns for row in said.splitlines()), said
