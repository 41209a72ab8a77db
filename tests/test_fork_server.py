"""What the fork server runs is the command as a process runs it: what it says, its code, its environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import fork_server
from tests.conftest import ROOT
from tests.fork_server import ForkServer

SAME = os.environ | fork_server.WARM
ANSWER = json.dumps({"id": "ü", "text": "नमस्ते, call 98237\u202f40418"}) + "\n"
READS_LATE = """
import logging, os, sys
from tests import fork_server
_, hidden = fork_server._imported()
assert not {"prefect", "prefect.settings", "flows.verify.flow"} & {*sys.modules}
assert not logging.root.handlers
sys.meta_path.insert(0, hidden)
home = os.environ["LATE_HOME"]
late = {"HOME": home, "API_URL": "http://127.0.0.1:9/api", "LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL"}
os.environ.update({f"PREFECT_{name}": value for name, value in late.items()})
import flows.verify.flow
import prefect.flows
from prefect.settings import PREFECT_API_URL, PREFECT_HOME
(handler,) = logging.root.handlers
print(PREFECT_API_URL.value(), PREFECT_HOME.value(), logging.getLevelName(handler.level), end="")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A server of these tests' own."""
    server = ForkServer(SAME)
    yield server
    server.close()


def forked(server: ForkServer, *arguments: str, cwd: Path, env: Mapping[str, str] = SAME, given: str = ""):
    done = server.run(arguments, cwd=cwd, env=env, given=given, timeout_s=120)
    assert isinstance(done, subprocess.CompletedProcess), done
    return done.returncode, done.stdout, done.stderr


def started(*arguments: str, cwd: Path, env: Mapping[str, str] = SAME, given: str = ""):
    done = subprocess.run(
        [Path(sys.executable).parent / "lookout", *arguments],
        cwd=cwd, env=env, input=given, capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("--version",), ""),
        (("gate", "--help"), ""),
        (("gate", "--no-such-option"), ""),
        (("verify", "demo"), ""),
        (("sql", "select 1 as n", "--data-folder", "data", "--json"), ""),
        (("redact",), ANSWER),
        (("redact",), "no JSON\n"),
    ],
)
def test_what_it_says_and_its_exit_code_are_those_of_a_process(server, tmp_path, arguments, given):
    """Help, mistakes, answers and pipes: byte for byte."""
    assert forked(server, *arguments, cwd=tmp_path, given=given) == started(*arguments, cwd=tmp_path, given=given)


def test_a_fault_of_the_command_is_a_fault_here_too(server, tmp_path):
    """A folder where the configuration file should be is a mistake with a traceback, when that is asked for."""
    (tmp_path / "lookout.toml").mkdir()
    code, _, said = forked(server, "verify", "demo", cwd=tmp_path, env=SAME | {"LOOKOUT_DEBUG": "1"})
    assert code == 2
    assert "Traceback" in said


@pytest.mark.parametrize("different", [{"COLUMNS": "60"}, {"NO_COLOR": "1"}, {"TZ": "Asia/Kolkata"}, {"HOME": "/"}])
def test_what_imports_have_read_must_be_the_same(server, tmp_path, different):
    """A command that would have read otherwise at its start is refused by the server and started in truth."""
    asked = SAME | different
    refused = server.run(["--help"], cwd=tmp_path, env=asked, given="", timeout_s=120)
    assert refused == tuple(different)
    done = fork_server.run("--help", cwd=tmp_path, env=asked)
    assert (done.returncode, done.stdout, done.stderr) == started("--help", cwd=tmp_path, env=asked)


def test_prefect_s_settings_are_those_of_its_first_import_by_the_command(tmp_path):
    """What was imported beforehand is not there; when it is, it has read what the command has set by then."""
    folders = {"PREFECT_HOME": str(tmp_path / "early"), "LATE_HOME": str(tmp_path / "late")}
    said = subprocess.run(
        [sys.executable, "-c", READS_LATE], cwd=ROOT, env=SAME | folders, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"http://127.0.0.1:9/api {tmp_path / 'late'} CRITICAL"
