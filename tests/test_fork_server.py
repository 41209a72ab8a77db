"""Test that a forked command and a new process behave the same: output, exit code and environment."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import fork_server
from tests.conftest import ROOT
from tests.fork_server import ForkServer

SAME = os.environ | fork_server.WARM
PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
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


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[ForkServer]:
    """Yield a new fork server, which is the only one during these tests."""
    others, fork_server._servers[:] = [*fork_server._servers], [ForkServer(SAME)]
    yield fork_server._servers[0]
    fork_server._end_servers()
    fork_server._servers[:] = others


def forked(*arguments: str, cwd: Path, env: Mapping[str, str] = SAME, given: str = "", module: str | None = None):
    process = fork_server.start(*arguments, cwd=cwd, env=env, module=module, **PIPES)
    with process:
        assert process.forked
        out, err = process.communicate(given, timeout=120)
    return process.returncode, out, err


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
@pytest.mark.whole_only
def test_output_and_exit_code_equal_those_of_a_process(tmp_path, arguments, given):
    """A forked command and a new process have the same output and exit code, also for errors and piped input."""
    assert forked(*arguments, cwd=tmp_path, given=given) == started(*arguments, cwd=tmp_path, given=given)


@pytest.mark.whole_only
def test_a_fault_of_the_command_is_a_fault_here_too(tmp_path):
    """With LOOKOUT_DEBUG, a forked command that fails prints the traceback and exits with code 2.

    The command fails because lookout.toml is a folder.
    """
    (tmp_path / "lookout.toml").mkdir()
    code, _, said = forked("verify", "demo", cwd=tmp_path, env=SAME | {"LOOKOUT_DEBUG": "1"})
    assert code == 2
    assert "Traceback" in said


@pytest.mark.whole_only
@pytest.mark.parametrize("different", [{"COLUMNS": "60"}, {"NO_COLOR": "1"}])
def test_variables_read_by_the_command_may_differ(tmp_path, different):
    """The width and the colours of the output depend on the environment of the command, not of the server.

    Therefore no module may create a console when it is imported.
    """
    asked = SAME | different
    done = fork_server.run("--help", cwd=tmp_path, env=asked)
    assert (done.returncode, done.stdout, done.stderr) == started("--help", cwd=tmp_path, env=asked)


@pytest.mark.whole_only
@pytest.mark.parametrize("different", [{"TZ": "Asia/Kolkata"}, {"HOME": "/"}])
def test_variables_read_at_import_must_be_equal(server, tmp_path, different):
    """The server refuses a command whose TZ or HOME differs from the server's, and a new process is started.

    These variables are read at the start of a process.
    """
    asked = SAME | different
    assert server.start(["--help"], [0, 1, 2], module=None, cwd=tmp_path, env=asked) == tuple(different)
    done = fork_server.run("--help", cwd=tmp_path, env=asked)
    assert (done.returncode, done.stdout, done.stderr) == started("--help", cwd=tmp_path, env=asked)


@pytest.mark.whole_only
def test_the_third_command_of_another_environment_is_forked_too(tmp_path):
    """A second server is started for the third command in another environment, and forks this command."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "COLUMNS": "90"}
    truth = started("gate", "--help", cwd=tmp_path, env=bare)
    for _ in range(fork_server.WORTH_A_SERVER - 1):
        done = fork_server.run("gate", "--help", cwd=tmp_path, env=bare)
        assert (done.returncode, done.stdout, done.stderr) == truth
    assert len(fork_server._servers) == 1
    assert forked("gate", "--help", cwd=tmp_path, env=bare) == truth
    assert len(fork_server._servers) == 2


@pytest.mark.whole_only
def test_a_module_is_run_as_python_runs_it(tmp_path):
    """A module in a forked process has the same name, arguments, folder, input and exit code as in a new one."""
    code = "import os, sys; print(__name__, sys.argv[1:], sys.path[0], os.getcwd(), input()); sys.exit(7)"
    (tmp_path / "says.py").write_text(code, encoding="utf-8")
    truth = subprocess.run(
        [sys.executable, "-m", "says", "a"],
        cwd=tmp_path, env=SAME, input="ü\n", capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert truth.returncode == 7, truth.stderr
    assert forked("a", module="says", cwd=tmp_path, given="ü\n") == (7, truth.stdout, truth.stderr)


def test_one_that_runs_on_is_seen_and_ended_like_any_process(tmp_path):
    """A running command can be polled, waited for with a timeout, and terminated.

    Its exit code is then the negative signal number.
    """
    (tmp_path / "stays.py").write_text("print('up', flush=True)\nimport time\ntime.sleep(600)", encoding="utf-8")
    with fork_server.start(module="stays", cwd=tmp_path, env=SAME, stdout=subprocess.PIPE) as process:
        assert process.forked
        assert process.stdout.readline() == "up\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait(60) == process.returncode == process.poll() == -signal.SIGTERM


def test_at_a_terminal_a_command_prompts_at_once(tmp_path):
    """A forked command that writes to a terminal flushes its output after each line."""
    (tmp_path / "asks.py").write_text("import sys\nprint('name?')\nsys.exit(len(input()))", encoding="utf-8")
    ours, theirs = pty.openpty()
    with fork_server.start(module="asks", cwd=tmp_path, env=SAME, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        said = b""
        while not said.endswith(b"\n"):  # a terminal hands over what is there, which may be part of a line
            said += os.read(ours, 100)
        assert said == b"name?\r\n"
        os.write(ours, b"asha\n")
        assert process.wait(60) == 4
    os.close(ours)


@pytest.mark.whole_only
def test_prefect_s_settings_are_those_of_its_first_import_by_the_command(tmp_path):
    """Prefect uses the settings that a command sets before its first import of Prefect.

    The fork server has imported Prefect, but hides it from the command until then.
    """
    folders = {"PREFECT_HOME": str(tmp_path / "early"), "LATE_HOME": str(tmp_path / "late")}
    said = subprocess.run(
        [sys.executable, "-c", READS_LATE], cwd=ROOT, env=SAME | folders, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"http://127.0.0.1:9/api {tmp_path / 'late'} CRITICAL"
