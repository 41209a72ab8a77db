"""A stopped gate is resumed only for the same head, version, suite and configuration.

Therefore no commit gets the results of another commit.
"""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.deployments.cli.gate.jobs import OTHER_HEAD, job_variables, pull_event, start_gate
from tests.flows.chat import RIGHT, Chat, watched
from tests.servers.github import HEAD, GitHub

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
ASKED_BEFORE = 2
"""The number of answers that the gate gets before it is stopped. The third answer is then in progress."""


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


@pytest.fixture
def gates(tmp_path, lookout, prefect_environment, github):
    """Return two functions: one stops a gate, and the other runs a gate to its end.

    The second function takes the options of the gate and the head commit of the pull request.
    """

    def stop(chat):
        return stop_gate(tmp_path, chat, prefect_environment, github)

    def run(*options, head=HEAD):
        command = ("gate", "--target", "demo", "--baseline", "none", "--github", "--json", *options)
        return lookout(*command, cwd=tmp_path, **job_variables(tmp_path, github, pull_event(head)))

    return stop, run


def stop_gate(folder, chat, environment, github):
    """Press Ctrl-C in a gate after two of four answers. Afterwards, the application answers again."""
    chat.held_from = chat.asked + ASKED_BEFORE + 1
    process = start_gate(folder, environment | job_variables(folder, github, pull_event()), "--baseline", "none")
    assert chat.wait_for(chat.held_from), process.communicate()
    os.kill(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=240)
    assert process.returncode == 3, printed
    chat.released.set()
    chat.held_from = None


@pytest.mark.whole_only
@pytest.mark.parametrize(("before", "after"), [(RIGHT, WRONG), (WRONG, RIGHT)])
def test_another_head_is_asked_from_the_beginning(tmp_path, gates, github, before, after):
    """Answers from the application of the first head commit are not reused for the second head commit."""
    stop, run = gates
    code, state = (0, "success") if after == RIGHT else (1, "failure")
    with Chat(before) as chat:
        watched(tmp_path, chat)
        stop(chat)
        chat.answers = (after,)
        asked = chat.asked
        done = run(head=OTHER_HEAD)
        assert chat.asked - asked == 4
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["resumed_cases"] == 0
    assert set(github.current(OTHER_HEAD).values()) == {state}
    assert set(github.current(HEAD).values()) == {"error"}


def change_nothing(folder, chat):
    del folder, chat


def change_version(folder, chat):
    del folder
    chat.version = "2" * 40


def hide_version(folder, chat):
    """Hide the version of the application while the gate starts, and show the version afterwards."""
    del folder
    chat.hidden_polls = 1


def change_graders(folder, chat):
    del chat
    path = folder / "lookout.toml"
    path.write_text(path.read_text("utf-8") + "[targets.demo.graders]\ncitation_required = true\n", "utf-8")


@pytest.mark.parametrize(
    ("change", "options", "resumed"),
    [
        (change_nothing, (), ASKED_BEFORE),
        (change_nothing, ("--fresh",), 0),
        (change_version, (), 0),
        (hide_version, (), 0),
        (change_graders, (), 0),
    ],
    ids=["same", "fresh", "other version", "unknown version", "other configuration"],
)
@pytest.mark.whole_only
def test_the_same_head_is_resumed_where_nothing_else_changed(tmp_path, gates, change, options, resumed):
    stop, run = gates
    with Chat() as chat:
        chat.version = "1" * 40
        readiness = f'[targets.demo.probe.readiness]\nversion_url = "{chat.url}/version"\npoll_s = 0.2\n'
        watched(tmp_path, chat, more=readiness)
        stop(chat)
        change(tmp_path, chat)
        done = run(*options)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["resumed_cases"], report["commit"]) == (resumed, chat.version)
    assert ("--fresh" in done.stderr) is bool(resumed)


@pytest.mark.whole_only
def test_a_gate_that_knows_neither_head_nor_version_asks_everything(tmp_path, lookout, prefect_environment):
    """Without a head commit and a version, a gate asks all questions again.

    Outside CI and without ``--commit``, nothing proves that the application is the same.
    """
    with Chat() as chat:
        watched(tmp_path, chat)
        chat.held_from = 3
        process = start_gate(tmp_path, prefect_environment, github=False)
        assert chat.wait_for(3)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=240)
        chat.released.set()
        done = lookout("gate", "--target", "demo", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["resumed_cases"] == 0
