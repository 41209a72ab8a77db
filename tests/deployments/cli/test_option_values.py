"""A user's mistake is not an internal error: any option value leads to a documented exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.in_process import run_in_process
from tests.lookout_commands import every_command
from tests.warehouse.sample_rows import exchange
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import ResultRow

SERVERS = {
    *("up", "down", "site", "demo", "watch", "receive", "slack-actions", "drill", "doctor", "login", "init"),
    *("automations", "browser", "browser install"),
}
"""Commands that run a server, connect to other servers, or change the machine if the tested value is valid."""
VALUES = ("", "x" * 301, "-1", "../../nowhere/x", "\u202e\U0001f600ñ", "a\0b", "a b")
CONFIGURATION = 'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9/"\nsuite = "suite.jsonl"\n'
CASE = '{"id": "a", "question": "How long?", "gold": "30 days", "severity": 2}\n'
NOT_A_FAULT = "internal error of Lookout"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lookout.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "suite.jsonl").write_text(CASE, encoding="utf-8")
    return tmp_path


def run(folder: Path, *typed: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, with a Prefect address at which no run can be created."""
    return run_in_process(*typed, cwd=folder, env={**os.environ, "PREFECT_API_URL": "http://127.0.0.1:9/api"})


def build_calls(path: str, command):
    """Yield the command with each test value for each argument and option, one at a time.

    Other required arguments get a valid value, and other options are omitted.
    """
    arguments = [argument for argument in command.params if argument.param_type_name == "argument"]
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        if not is_argument and getattr(parameter, "is_flag", False):
            continue
        for value in VALUES:
            values = [
                value if argument is parameter else "demo" if argument.name == "target" else "x"
                for argument in arguments
                if argument.required or argument is parameter
            ]
            yield [*path.split(), *values, *([] if is_argument else [parameter.opts[0], value])]


@pytest.mark.whole_only
@pytest.mark.parametrize("path", sorted(set(every_command()) - SERVERS))
def test_f104_every_option_takes_any_value_or_says_what_it_takes(folder, path):
    for typed in build_calls(path, every_command()[path]):
        done = run(folder, *typed)
        is_without_prefect = "--allow-production" in typed and done.returncode == 4
        assert NOT_A_FAULT not in done.stderr, typed
        assert done.returncode in {0, 1, 2, 3} or is_without_prefect, (typed, done.stderr)


@pytest.mark.parametrize(
    "typed",
    [
        *(("verify", "demo", "--commit", commit) for commit in ("", "a b", "x" * 201, "../x", "-1")),
        ("gate", "--target", "demo", "--commit", ""),
        ("gate", "--target", ""),
        ("verify", "http://user:pw@127.0.0.1:9/", "--suite", "suite.jsonl"),
        ("verify", "http://[::1", "--suite", "suite.jsonl"),
        ("alerts", "list", "--data-folder", "x" * 300),
        ("report", "x" * 300),
        ("report", "a\0b"),
        ("gold", "vary", ""),
        ("sql", "--config", "x" * 300),
    ],
    ids=lambda typed: " ".join(typed)[:60].replace("\0", "NUL"),
)
def test_f104_a_value_that_cannot_be_used_is_a_usage_error(folder, typed):
    done = run(folder, *typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert NOT_A_FAULT not in done.stderr
    assert "pydantic" not in done.stderr


COMMAND = [sys.executable, "-m", "deployments.cli.app"]
VARIABLES = {**os.environ, "PYTHONPATH": str(ROOT)}
QUERY = ("sql", "select repeat('ñ', 100) as t from range(2000)")


@pytest.fixture
def store(folder):
    """Create a data folder with a warehouse."""
    (folder / "data").mkdir()
    store = store_in(folder / "data")
    store.journal.append([ResultRow(row=exchange())], run_id="run-1")
    store.load_pending(5)
    return folder


@pytest.mark.whole_only
@pytest.mark.parametrize("arguments", [QUERY, ("sql", "--json", QUERY[1]), ("sql", "--csv", QUERY[1])], ids=str)
def test_f104_a_closed_output_is_quiet_and_the_code_is_the_commands_own(store, arguments):
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *arguments], cwd=store, env=VARIABLES, stdout=pipe, stderr=pipe) as child:
        child.stdout.close()
        stderr = child.stderr.read().decode()
    assert (child.returncode, NOT_A_FAULT in stderr, "Broken pipe" in stderr) == (0, False, False)


def test_f104_an_output_that_is_not_there_is_quiet(store):
    shell = f"exec {sys.executable} -m deployments.cli.app sql 'select 1' >&-"
    done = subprocess.run(["sh", "-c", shell], cwd=store, env=VARIABLES, capture_output=True, check=False)
    assert (done.returncode, NOT_A_FAULT in done.stderr.decode()) == (0, False)


@pytest.mark.whole_only
@pytest.mark.parametrize("arguments", [QUERY, ("sql", "select 1"), ("--version",)], ids=str)
def test_f104_a_full_output_is_a_failure_of_the_monitor_and_is_said(store, arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=store, env=VARIABLES, stdout=full, stderr=subprocess.PIPE, check=False
        )
    stderr = done.stderr.decode()
    assert (done.returncode, stderr.count("cannot be written"), NOT_A_FAULT in stderr) == (4, 1, False)


@pytest.mark.whole_only
def test_f104_an_output_that_cannot_encode_escapes_and_keeps_the_code(store):
    variables = {**VARIABLES, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run([*COMMAND, *QUERY], cwd=store, env=variables, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\xf1" in done.stdout
