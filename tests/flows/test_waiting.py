"""Test that a slow command shows a progress line on a terminal, and erases it later. A pipe gets no such line."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.cli.test_bare_commands import Bot, written

COMMAND_S = 300
ERASE = "\r\x1b[K"
WAITS = """
import sys
from flows.terminal import print_text, write_json, write_note
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting, update_waiting
with show_waiting("Looking at {place}"):
    sys.stdin.readline()
    update_waiting("Asking " + "three questions " * 20)
    sys.stdin.readline()
    {writes}
    with show_waiting("Within"):
        sys.stdin.readline()
print_text("over")
"""
"""A program with three waits. Each wait ends when the program reads a line of input from the test."""
WRITES = {
    "text": "print_text('written')",
    "a note": "write_note('written\\n')",
    "JSON": "write_json('\"written\"\\n')",
    "a console": "make_terminal_console(stderr=True).print('written')",
}


class Terminal:
    """A pseudo-terminal and its output. ``start`` starts a program on it."""

    def __init__(self, start: Callable[..., subprocess.Popen[Any]]) -> None:
        self.said = ""
        self._ours, theirs = pty.openpty()
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO  # what is sent would stand among what is written
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        self.process = start(stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)

    def see(self, text: str) -> None:
        """Read the output until ``text`` appears or the program has ended."""
        while text not in self.said and self._read():
            pass

    def send_line(self) -> None:
        os.write(self._ours, b"\n")

    def end(self) -> str:
        """Wait until the program has ended, and return its complete output."""
        while self._read():
            pass
        assert self.process.wait(COMMAND_S) == 0, self.said
        os.close(self._ours)
        return self.said

    def _read(self) -> bool:
        try:
            self.said += os.read(self._ours, 1 << 16).decode().replace("\r\n", "\n")
        except OSError:  # as a terminal ends on Linux
            return False
        return True


def program(text: str, term: str = "xterm-256color") -> Terminal:
    variables = os.environ | {"TERM": term, "COLUMNS": "80"}
    return Terminal(partial(subprocess.Popen, [sys.executable, "-c", text], cwd=ROOT, env=variables))


@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES)
def test_the_line_shows_what_is_done_and_goes_before_anything_else_is_written(writes):
    terminal = program(WAITS.format(place="x\\x1b[2J", writes=writes))
    terminal.see("Looking at x[U+001B][2J … 0:0")
    terminal.send_line()
    terminal.see("… … 0:0")
    terminal.send_line()
    terminal.see("Within … 0:0")
    assert "written" in terminal.said
    terminal.send_line()
    said = terminal.end()
    shown = [row.rpartition(ERASE)[2] for row in said.split("\n")]
    assert [row.strip('"') for row in shown if row] == ["written", "over"]
    assert all(len(piece) < 80 for piece in said.replace("\n", ERASE).split(ERASE))


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_erase_has_no_line(term):
    terminal = program(WAITS.format(place="it", writes="print_text('written')"), term)
    for _ in range(3):
        terminal.send_line()
    assert terminal.end().split() == ["written", "over"]


def test_a_pipe_has_no_line():
    program = WAITS.format(place="it", writes="write_json('{}\\n')")
    command = [
        sys.executable,
        "-c",
        f"import flows.waiting as w\nw.SILENCE_BEFORE_LINE_S = 0\nw.REFRESH_INTERVAL_S = 0.001\n{program}",
    ]
    done = subprocess.run(command, cwd=ROOT, input="\n\n\n", capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{}\nover\n", "")


class HeldBot(Bot):
    """A bot whose answers wait until the test releases them."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    async def _answer(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self.go_on.wait)
        return await super()._answer(request)


COMMANDS = {
    "doctor": (("doctor", "bot"), "Asking the API one question … "),
    "shrink": (("shrink", "room"), "room: question 1, "),
    "repeatability": (("repeatability", "bot", "--cases", "1"), "bot: asking each case 2 times, "),
}


@pytest.mark.prefect
@pytest.mark.parametrize(("command", "seen"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.whole_only
def test_a_command_that_waits_for_an_answer_says_so_on_a_terminal_alone(
    command, seen, tmp_path, prefect_environment
):
    """While a command waits for an answer, a terminal shows a progress line, and then erases it.

    A pipe gets no line.
    """
    with HeldBot() as bot:
        written(tmp_path, bot.url, "http://127.0.0.1:9")
        variables = {"PREFECT_API_URL": prefect_environment["PREFECT_API_URL"]}
        where = {"cwd": tmp_path, "env": fork_server.bare(TERM="xterm-256color", COLUMNS="80", **variables)}
        terminal = Terminal(partial(fork_server.start, *command, **where))
        terminal.see(seen)
        bot.go_on.set()
        rows = [row.rpartition(ERASE)[2] for row in terminal.end().split("\n")]
        assert not [row for row in rows if seen in row]
        done = fork_server.run(*command, **where)
    assert seen not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
