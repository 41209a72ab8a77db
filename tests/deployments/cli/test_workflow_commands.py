"""In a GitHub Actions job, no text from an application, a suite or a log is executed as a workflow command."""

from __future__ import annotations

import json

import pytest

from tests.deployments.cli.gate.test_gate_command import commands

CASE = {"id": "a\n::error::owned", "question": "How long?\n::error::owned\n##[error]owned", "gold": "30 days"}
OWNED = "x\n::error file=a::owned"


@pytest.mark.parametrize(
    "typed",
    [
        ("gold", "check", "suite.jsonl"),
        ("verify", OWNED),
        ("report", OWNED),
    ],
    ids=" ".join,
)
def test_the_runner_obeys_nothing_that_a_command_prints(tmp_path, lookout, typed):
    (tmp_path / "suite.jsonl").write_text(json.dumps(CASE) + "\n", encoding="utf-8")
    done = lookout(*typed, cwd=tmp_path, GITHUB_ACTIONS="true", CI="true")
    assert commands(done.stderr) == []
    assert done.stderr.startswith("::stop-commands::")


def test_the_runner_obeys_no_error_of_a_gate_that_could_not_start(tmp_path, lookout):
    done = lookout("gate", OWNED, cwd=tmp_path, GITHUB_ACTIONS="true", CI="true")
    assert (done.returncode, commands(done.stderr)) == (2, [])
