"""Tests that every mistake in the table has the documented output.

Each command runs as it would for a new user: in an empty home, without Lookout's variables.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web

from deployments.demo.configuration import find_free_port
from flows.terminal import wrap_lines
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.cli.mistakes import DOCUMENT, GROUPS, HUB, NOBODY, PAGE, SLACK, SUITE, Mistake, page
from tests.in_process import run_in_process
from tests.servers.hub import Hub
from tests.servers.slack import SlackServer
from tests.servers.threaded_server import ThreadedServer

ROWS = [row for rows in GROUPS.values() for row in rows]
USAGE_ERRORS = [row for row in ROWS if row.code == 2 and not row.set_up]
"""The mistakes that the command reports before it needs a server, a browser or another process."""
COMMAND_S = 300
PREFIX = str(Path(sys.prefix).resolve())
"""The resolved path of this Python environment. In a worktree, the environment is a symbolic link."""
IN_MOUNT = "tests.deployments.cli.in_read_only"
NO_DUCKDB = 'raise ModuleNotFoundError("No module named \'duckdb\'", name="duckdb")\n'
LEAST = 20


class Pages(ThreadedServer):
    """A server of web pages without a chat. A missing page is answered with HTTP 404."""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/docs", _page("API docs", "<p>Nothing to ask here.</p>"))
        made.router.add_get(
            "/login", _page("Sign in", "<input type=email><input type=password><button>Go</button>")
        )
        made.router.add_get("/late", _page("Late", "", late=timedelta(hours=2)))
        return made


def _page(title: str, body: str, *, late: timedelta = timedelta()):
    text = f"<html><title>{title}</title><body>{body}</body></html>"

    async def answer(_request: web.Request) -> web.Response:
        date = format_datetime(datetime.now(UTC) - late, usegmt=True)
        return web.Response(text=text, content_type="text/html", headers={"Date": date})

    return answer


@dataclass(frozen=True)
class Surroundings:
    """The local servers whose addresses replace the placeholders in the rows."""

    pages: Pages
    slack: SlackServer
    hub: Hub
    nobody: str

    @property
    def addresses(self) -> dict[str, str]:
        servers = (
            (PAGE, self.pages.url),
            (SLACK, self.slack.url),
            (HUB, self.hub.address),
            (NOBODY, self.nobody),
        )
        return {name: url.replace("http://127.0.0.1", "localhost") for name, url in servers}

    def real(self, text: str) -> str:
        """Replace the placeholders in ``text`` with the addresses of the servers.

        Where a row contains only the port 7860, replace it with the page server's port.
        """
        for name, address in self.addresses.items():
            text = text.replace(name, address)
        return re.sub(r"--port 7860|port 7860\b", lambda found: found[0].replace("7860", self.port), text)

    @property
    def port(self) -> str:
        return self.addresses[PAGE].rpartition(":")[2]


@pytest.fixture(scope="module")
def around() -> Iterator[Surroundings]:
    with Pages() as pages, SlackServer() as slack:
        hub = Hub()
        yield Surroundings(pages, slack, hub, f"http://127.0.0.1:{find_free_port('127.0.0.1', 7863)}")
        hub.shutdown()
        hub.server_close()


@pytest.mark.parametrize("row", USAGE_ERRORS, ids=lambda row: row.title)
def test_a_usage_error_is_answered_as_the_page_says(row: Mistake, around, tmp_path):
    """The output and the exit code are as documented, without a traceback."""
    variables = {name: around.real(value) for name, value in row.variables.items()}
    write_init_files(row, around, tmp_path)
    done = run_in_process(*typed_arguments(row, around), cwd=tmp_path, env=fork_server.bare(**variables))
    check_answer(row, around, tmp_path, done)


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.parametrize("row", [row for row in ROWS if row not in USAGE_ERRORS], ids=lambda row: row.title)
@pytest.mark.a_slice(6)
def test_a_mistake_is_answered_as_the_page_says(row: Mistake, around, tmp_path, request):
    """The real command prints the documented output if a page, a server or this machine has a fault."""
    write_init_files(row, around, tmp_path)
    check_answer(row, around, tmp_path, run_in_surroundings(row, around, tmp_path, request))


def write_init_files(row: Mistake, around: Surroundings, folder: Path) -> None:
    for name, text in {"suite.jsonl": SUITE, **row.files}.items():
        (folder / name).write_text(around.real(text), encoding="utf-8")


def typed_arguments(row: Mistake, around: Surroundings) -> list[str]:
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", around.real(row.typed))[1:]]


def check_answer(row: Mistake, around: Surroundings, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    done.stderr = done.stderr.replace(sys.prefix, PREFIX)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert done.returncode == row.code, said
    expected = around.real(row.seen).replace("{folder}", str(folder)).replace("{prefix}", PREFIX)
    if row.part:
        assert _plain(expected) in _plain(said), said
    else:
        assert _plain(expected) == _plain(done.stderr)
        assert done.stdout == ""


def run_in_surroundings(
    row: Mistake, around: Surroundings, folder: Path, request
) -> subprocess.CompletedProcess[str]:
    arguments = typed_arguments(row, around)
    variables = {name: around.real(value) for name, value in row.variables.items()}
    environment = fork_server.bare(HOME=str(fork_server.bare_home()), **variables)
    around.slack.always = None
    module: str | None = None
    match row.set_up:
        case "prefect":
            environment |= {"PREFECT_API_URL": request.getfixturevalue("prefect_environment")["PREFECT_API_URL"]}
        case "SLEEPING" | "RUNNING_BUILDING" | "hidden" as stage:
            around.hub.runtimes[:] = [401 if stage == "hidden" else {"stage": stage, "raw": {}}]
        case "not_allowed_token_type" | "token_revoked" as error:
            around.slack.always = error
        case "no browser":
            (folder / "bin").mkdir()
            environment |= {"PATH": str(folder / "bin")}
            environment.pop("CHROMIUM_PATH", None)
        case "old browser":
            script = folder / "chromium"
            script.write_text("#!/bin/sh\necho 'version `GLIBC_2.99` not found' >&2\nexit 1\n", encoding="utf-8")
            script.chmod(0o755)
            environment |= {"CHROMIUM_PATH": str(script)}
        case "no duckdb":
            (folder / "fake").mkdir()
            (folder / "fake" / "duckdb.py").write_text(NO_DUCKDB, encoding="utf-8")
            environment |= {"PYTHONPATH": f"{folder / 'fake'}{os.pathsep}{ROOT}"}
        case "lock":
            (folder / "data").mkdir()
            with (folder / "data" / "up.lock").open("w", encoding="utf-8") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                return _run(arguments, folder, environment, None)
        case "read-only" | "full" as how:
            (folder / "data").mkdir()
            mounted = f"{'full:' if how == 'full' else ''}{folder / 'data'}"
            if _run([mounted, "--version"], folder, environment, IN_MOUNT).returncode:
                pytest.skip("this machine lets nobody mount a folder for one process")
            arguments, module = [mounted, *arguments], IN_MOUNT
    return _run(arguments, folder, environment, module)


def _run(arguments, folder: Path, environment, module: str | None) -> subprocess.CompletedProcess[str]:
    return fork_server.run(*arguments, module=module, cwd=folder, env=environment, given="", timeout_s=COMMAND_S)


def _plain(text: str) -> str:
    """Join a text into one line, so that the wrapping of terminals and tables does not matter."""
    return " ".join(text.split())


def test_the_page_is_made_from_the_table():
    """The page matches the table. Update it with: python -m tests.deployments.cli.mistakes."""
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == page()


def test_a_message_is_short_and_shown_as_a_terminal_shows_it():
    """A message in the table has at most five lines, with the line breaks of a terminal of 80 columns."""
    assert len(ROWS) >= LEAST
    for row in ROWS:
        lines = row.seen.splitlines()
        assert len(lines) <= 5, row.title
        assert max(map(len, lines)) <= 96, row.title
        whole = re.sub(r"\n +(?!line)", " ", row.seen)
        assert not row.seen.startswith("lookout:") or _plain(wrap_lines(whole, 80)) == _plain(row.seen)
