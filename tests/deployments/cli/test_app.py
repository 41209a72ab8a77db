"""Tests of the whole command: its help, its exit codes, and a one-line message with advice for every mistake."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from deployments.cli import app as cli
from deployments.cli import report
from deployments.cli.app import COMMANDS
from deployments.cli.exit_codes import ExitCode
from tests import fork_server
from tests.conftest import ROOT
from tests.flows.few_cases import configured, demo_lines, few_cases
from tests.in_process import run_in_process
from tests.lookout_commands import every_command


def lookout(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Return a function that runs the command in ``cwd``. No test in this file needs a Prefect server."""
    return run_in_process(*arguments, cwd=cwd, env=fork_server.bare(**variables))


@pytest.mark.parametrize("group", COMMANDS)
def test_the_help_of_a_group_lists_its_commands(tmp_path, group, snapshot):
    arguments = [] if group == "lookout" else group.split()
    done = lookout(*arguments, "--help", cwd=tmp_path, COLUMNS="110")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS[group])
    assert "\n".join(map(str.rstrip, done.stdout.splitlines())) == snapshot


def test_without_arguments_it_prints_the_help(tmp_path):
    """Without arguments, the real command prints its help."""
    done = fork_server.run(cwd=tmp_path, env=fork_server.bare())
    assert all(command in done.stdout for command in COMMANDS["lookout"])


@pytest.mark.whole_only
def test_the_help_of_a_command_shows_brackets_as_they_are_written(tmp_path):
    """Every command has help, and text in square brackets is shown as written, not read as markup."""
    with_brackets = 0
    for path, command in every_command().items():
        done = lookout(*path.split(), "--help", cwd=tmp_path, COLUMNS="400")
        assert done.returncode == 0, path
        shown = " ".join(done.stdout.replace("│", " ").split())
        texts = [getattr(part, "help", None) or "" for part in (command, *command.params)]
        for text in (text.split("\n\n")[0].replace("\\[", "[") for text in texts if "[" in text):
            assert " ".join(text.split()) in shown, path
            with_brackets += 1
    assert with_brackets >= 4


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("All connection attempts failed"), RuntimeError("Failed to reach API at http://x")]
)
def test_a_prefect_server_that_ended_meanwhile_is_named_with_what_to_do(error, snapshot):
    """If the Prefect server has ended, the message says so and gives advice.

    The test uses the errors that Prefect's client raises in this case, at the start of a run or during it.
    """
    assert cli._format_error(error) == snapshot(name="server")
    assert cli._format_error(RuntimeError("anything else")) == snapshot(name="anything else")


def test_the_help_of_a_group_lists_what_each_command_says_of_itself():
    known = every_command()
    for group, commands in COMMANDS.items():
        path = "" if group == "lookout" else f"{group} "
        for name, (_, line) in commands.items():
            own = known[f"{path}{name}"].help.replace("\\[", "[")
            assert " ".join(own.split("\n\n")[0].split()) == line


def test_the_help_of_a_group_imports_no_command():
    """The help lists all commands without importing them, so the help appears quickly."""
    program = (
        "import contextlib, sys; from deployments.cli import app\n"
        f"for group in {list(COMMANDS)!r}:\n"
        "    sys.argv = ['lookout', *group.split(), '--help'] if group != 'lookout' else ['lookout', '--help']\n"
        "    with contextlib.suppress(SystemExit): app.main()\n"
        "print([name for name in sys.modules if name.startswith(('deployments.', 'flows.', 'warehouse.'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [
        "deployments.cli",
        *(f"deployments.cli.{name}" for name in ("app", "exit_codes", "options")),
        "deployments.start",
        "flows.terminal",
        "flows.waiting",
    ]
    assert sorted(ast.literal_eval(done.stdout.splitlines()[-1])) == sorted(ours)


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_crash_and_a_mistake_have_their_exit_codes_with_a_traceback_too(tmp_path, debug, monkeypatch, snapshot):
    """A crash exits with 4 and a user's mistake with 2. LOOKOUT_DEBUG adds a traceback to either error.

    No output contains a token.
    """
    (tmp_path / "lookout.toml").mkdir()  # the user's mistake: a folder in place of the file
    mistake = lookout("verify", "demo", cwd=tmp_path, LOOKOUT_DEBUG=debug)
    assert mistake.returncode == 2, mistake.stderr

    def crash(*_: object) -> None:
        raise KeyError("token hf_QwErTyUiOpAsDfGhJkLz")

    monkeypatch.setattr(report, "_require_run_folder", crash)
    crashed = lookout("report", cwd=tmp_path, LOOKOUT_DEBUG=debug)
    assert crashed.returncode == 4
    assert "hf_QwEr" not in crashed.stderr
    for done in (mistake, crashed):
        assert ("Traceback" in done.stderr) == bool(debug)
        assert "\nlookout: " in f"\n{done.stderr}"
    assert crashed.stderr[crashed.stderr.index("lookout: ") :] == snapshot


def test_an_unknown_target_names_the_known_ones(tmp_path):
    configured(tmp_path, "http://127.0.0.1:9", few_cases(tmp_path))
    done = lookout("verify", "dmeo", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'demo'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_configuration_is_an_error(tmp_path):
    done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 2
    assert "lookout.toml" in done.stderr


def test_an_address_needs_its_questions(tmp_path):
    done = lookout("verify", "http://127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 2
    assert "--suite" in done.stderr


def broken(line: dict[str, object], **changes: object) -> str:
    return json.dumps({key: value for key, value in (line | changes).items() if value is not None})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda a, b: [broken(a), broken(b, severity=None)], ["suite.jsonl", "line 2", "severity"]),
        (lambda a, b: [broken(a), broken(b, id=a["id"])], ["line 2", "line 1", "suraksha"]),
        (lambda a, _: [broken(a), "{not json"], ["line 2", "JSON"]),
        (lambda a, _: [broken(a, severity=4)], ["line 1", "severity", "4"]),
        (lambda _, __: [], ["suite.jsonl"]),
    ],
    ids=["no severity", "duplicate id", "broken JSON", "severity 4", "empty"],
)
def test_a_broken_suite_is_an_error_with_file_and_line(tmp_path, make, said):
    suite = tmp_path / "suite.jsonl"
    suite.write_text("\n".join(make(*demo_lines()[:2])), encoding="utf-8")
    configured(tmp_path, "http://127.0.0.1:9", suite)
    done = lookout("verify", "demo", cwd=tmp_path)
    assert done.returncode == 2
    for words in said:
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "runs").exists()


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "data").write_text("a file stands where the folder should be", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as there:
        configured(tmp_path, f"http://127.0.0.1:{there.getsockname()[1]}", few_cases(tmp_path))
        done = fork_server.run("verify", "demo", cwd=tmp_path, env=fork_server.bare())
    assert done.returncode == 4, done.stderr
    assert str(tmp_path / "data") in done.stderr


def test_a_taken_port_is_an_error_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lookout("demo", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    assert f"--port {port}" in done.stderr


def test_no_warehouse_and_no_run_are_usage_errors(tmp_path):
    for command in (["sql", "select 1"], ["report"]):
        done = lookout(*command, cwd=tmp_path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "{}", "[1"])
def test_results_of_another_form_are_an_error(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")
    done = lookout("gate", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "results.json" in done.stderr


@pytest.mark.prefect
def test_a_missing_browser_is_reported_once_with_what_to_do(tmp_path, prefect_environment):
    """A missing browser is reported once to each reader, with advice.

    The owners get one message, which is printed if Slack is not configured. The user who started the command gets
    one line.
    """
    configured(tmp_path, "http://127.0.0.1:9", few_cases(tmp_path))
    environment = prefect_environment | fork_server.WARM | {"CHROMIUM_PATH": "/nowhere/chromium"}
    done = fork_server.run("verify", "demo", cwd=tmp_path, env=environment)
    assert done.returncode == 4, done.stderr
    messages, _, line = done.stderr.partition("\nlookout: ")
    assert messages.count("Lookout itself") == 1
    assert line.count("/nowhere/chromium") == 1
    assert "CHROMIUM_PATH" in done.stderr


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_run_that_gets_sigterm_says_what_is_stored(prefect_environment, tmp_path):
    """A verification that gets SIGTERM prints what is stored, and no traceback.

    A person, a CI job or a shutdown can send this signal.
    """
    few_cases(tmp_path, severe=1, others=1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        (tmp_path / "lookout.toml").write_text(
            f'data_folder = "data"\n[targets.bot]\nurl = "{address}"\nsuite = "few.jsonl"\n', encoding="utf-8"
        )
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "deployments.cli.app", "verify", "bot"],
                cwd=tmp_path,
                env=prefect_environment | {"PYTHONPATH": str(ROOT)},
                stdout=said,
                stderr=said,
            )
        page, _ = silent.accept()  # the page is being opened, so the run is in progress
        with page:
            assert _terminated(process) == ExitCode.INCONCLUSIVE
    text = (tmp_path / "said").read_text(encoding="utf-8")
    early, late = (
        "Stopped. Lookout stored 0 of 2 results",
        "SIGTERM stopped the command. All answers and grades so far are stored",
    )
    assert early in text or late in text, "before and after the Prefect server has come"
    assert "Traceback" not in text


def _terminated(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM repeatedly until the process ends, and return its exit code.

    Prefect raises an error at SIGTERM. This error is lost if it is raised inside an asyncio callback.
    """
    while True:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=15)
