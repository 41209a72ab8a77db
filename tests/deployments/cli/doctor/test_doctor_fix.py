"""`lookout doctor --fix` end to end: the real command in an empty home, a real download, a real warehouse."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from flows.data_folder import open_store_in
from monitors.probes.browser.chromium import find_browser
from tests import fork_server
from tests.in_process import run_in_process
from tests.servers.threaded_server import ThreadedServer
from tests.warehouse.sample_rows import run_report
from warehouse.journal.rows import RunRow

COMMAND_S = 300
QUIET = ("--no-alert", "--no-judge", "--no-ask")
TOML = 'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9/"\nsuite = "suite.jsonl"\n'


class Downloads(ThreadedServer):
    """A local server that takes the place of Playwright's download server.

    Its archive contains a program that starts the browser of this machine.
    """

    def __init__(self) -> None:
        super().__init__()
        script = f'#!/bin/sh\nexec {find_browser(os.environ.get("CHROMIUM_PATH")).executable} "$@"\n'
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name in ("chrome-headless-shell-linux64/chrome-headless-shell", "ffmpeg-linux"):
                entry = zipfile.ZipInfo(name)
                entry.external_attr = 0o100755 << 16
                archive.writestr(entry, script)
        self._packed = packed.getvalue()

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/{path:.*}", self._send)
        return made

    async def _send(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._packed, content_type="application/zip")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a new installation with its own home. No command has run there yet."""
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "lookout.toml").write_text(TOML, encoding="utf-8")
    case = {"id": "a", "question": "How long?", "gold": "36 months", "severity": 2}
    (tmp_path / "suite.jsonl").write_text(f"{json.dumps(case)}\n", encoding="utf-8")
    return tmp_path


def waiting(folder: Path) -> None:
    """Write a segment into the journal without loading it into the warehouse."""
    open_store_in(folder / "data").journal.append([RunRow(row=run_report("run-1"))], run_id="run-1")


def doctor(folder: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = fork_server.bare(**variables)
    return fork_server.run("doctor", *QUIET, *more, cwd=folder, env=environment, timeout_s=COMMAND_S)


def without_browser(folder: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = fork_server.bare(
        HOME=str(folder / "home"), PATH=str(folder / "bin"), LOOKOUT_NO_APT="1", **variables
    )
    if "CHROMIUM_PATH" not in variables:
        environment.pop("CHROMIUM_PATH", None)
    return fork_server.run("doctor", *QUIET, *more, cwd=folder, env=environment, timeout_s=COMMAND_S)


@pytest.mark.browser
@pytest.mark.whole_only
def test_a_missing_browser_is_downloaded_and_starts_and_a_second_time_nothing_is_done(folder):
    with Downloads() as downloads:
        first = without_browser(folder, "--fix", PLAYWRIGHT_DOWNLOAD_HOST=downloads.url)
    assert "browser: installed Chromium" in first.stdout, first.stdout + first.stderr
    assert "Chromium was not found" not in first.stdout
    again = without_browser(folder, "--fix")
    assert "Done      nothing" in again.stdout
    assert "Playwright's download" in again.stdout


@pytest.mark.whole_only
def test_without_a_browser_it_says_what_to_do(folder):
    done = without_browser(folder, "--fix", PLAYWRIGHT_DOWNLOAD_HOST="http://127.0.0.1:9")
    assert done.returncode == 4
    assert "Not done  browser:" in done.stdout
    assert "CHROMIUM_PATH" in done.stdout


def test_a_browser_that_a_person_chose_is_left(folder):
    """A browser that the user configured is not replaced by a download, even if it does not start."""
    done = without_browser(folder, "--fix", CHROMIUM_PATH="/nowhere/chromium")
    assert "Not done  browser:" in done.stdout
    assert "CHROMIUM_PATH" in done.stdout
    assert not (folder / "home" / ".cache").exists()


@pytest.mark.browser
@pytest.mark.whole_only
def test_waiting_segments_are_loaded_once_and_what_is_left_is_named(folder):
    """`lookout doctor --fix` loads pending segments once and changes no user file.

    It prints the steps that remain for the user, each with its command.
    """
    waiting(folder)
    before = {file: file.read_bytes() for file in folder.glob("*.*")}
    first = doctor(folder, "--fix")
    assert "new results" in first.stdout, first.stdout + first.stderr
    assert "last drill: lookout drill" in first.stdout
    assert "new results" not in doctor(folder, "--fix").stdout
    assert {file: file.read_bytes() for file in folder.glob("*.*")} == before


@pytest.mark.whole_only
def test_without_being_asked_it_changes_nothing(folder):
    """`lookout doctor` without `--fix` neither loads nor installs anything."""
    waiting(folder)
    said = doctor(folder).stdout
    assert "Done" not in said
    assert not (folder / "data" / "warehouse.duckdb").exists()


def test_a_target_and_a_fix_do_not_go_together(folder):
    done = run_in_process("doctor", "bot", "--fix", cwd=folder, env=fork_server.bare())
    assert done.returncode == 2
    assert "--fix" in done.stderr
