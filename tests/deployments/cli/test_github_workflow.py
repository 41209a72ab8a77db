"""Tests of the GitHub workflow that users copy: its permissions, its commands, and the effect of its steps."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT
from tests.flows.chat import Chat, watched
from tests.lookout_commands import every_command
from tests.servers.github import BOT, HEAD, WORKFLOW_TOKEN, GitHub

FILE = ROOT / "deployments" / "github-workflow.yml"
WORKFLOW = yaml.safe_load(FILE.read_text(encoding="utf-8"))
ON = WORKFLOW[True]  # YAML 1.1 reads the key `on` as a boolean; GitHub does not
GATE = WORKFLOW["jobs"]["gate"]
STEPS = GATE["steps"]
RUNS = {step["name"]: step for step in STEPS if "run" in step}


def test_the_workflow_has_minimal_permissions():
    assert WORKFLOW["permissions"] == {}
    assert GATE["permissions"] == {"contents": "read", "pull-requests": "write", "statuses": "write"}


def test_code_of_a_fork_never_runs_with_our_secrets():
    """The workflow does not use ``pull_request_target`` or ``workflow_run``, so a fork's code gets no secrets."""
    assert set(ON) == {"pull_request", "merge_group", "push", "schedule"}
    assert ON["push"]["branches"] == ["main"]


def test_the_commit_and_its_target_branch_are_named_for_each_event():
    """For each event, the workflow passes the commit and its target branch to the gate.

    The events are a pull request, a merge group and a push. A baseline belongs to one branch.
    """
    for name in ("pull_request.head.sha", "merge_group.head_sha", "github.sha"):
        assert name in GATE["env"]["COMMIT"]
    assert "merge_group.base_ref" in GATE["env"]["BRANCH"]
    assert '--commit "$COMMIT"' in RUNS["Ask the gold questions"]["run"]
    keys = [step["with"]["key"] for step in STEPS if "cache" in step.get("uses", "")]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert "steps.baseline.outputs.branch" in keys[0]


def test_no_expression_is_pasted_into_a_script():
    """Titles and branch names may contain anything, so scripts read values only from their environment."""
    assert not [name for name, step in RUNS.items() if "${{" in step["run"]]


@pytest.mark.parametrize("file", [FILE, ROOT / ".github" / "workflows" / "ci.yml"], ids=lambda file: file.name)
def test_every_action_is_pinned_by_its_hash_with_its_version_beside_it(file):
    used = re.findall(r"^\s*(?:- )?uses: *(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert used
    pinned = re.compile(r"actions/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in used if not pinned.fullmatch(action)] == []


def test_a_newer_commit_ends_the_run_of_an_older_one_of_the_same_pull_request():
    concurrency = WORKFLOW["concurrency"]
    assert "github.event.pull_request.number" in concurrency["group"]
    assert "pull_request" in concurrency["cancel-in-progress"]
    assert GATE["timeout-minutes"] <= 60


def test_every_command_of_lookout_exists_with_its_options():
    commands = every_command()
    lines = "\n".join(step["run"].replace("\\\n", " ") for step in RUNS.values()).splitlines()
    called = [shlex.split(line) for line in lines if line.strip().startswith("lookout ")]
    assert called
    for words in called:
        known = {name for one in commands[words[1]].params for name in one.opts}
        assert {word for word in words if word.startswith("--")} <= known
    in_comments = set(re.findall(r"--[a-z][a-z-]+", "\n".join(re.findall(r"#.*--.*", FILE.read_text("utf-8")))))
    gate = {name for one in commands["gate"].params for name in one.opts}
    assert in_comments <= gate


def test_the_reports_are_always_uploaded_and_nothing_raw_is_among_them():
    upload = next(step for step in STEPS if step.get("uses", "").startswith("actions/upload-artifact"))
    assert upload["if"] == "always()"
    assert RUNS["Collect the reports"]["if"] == "always()"
    assert "results.json" not in RUNS["Collect the reports"]["run"]
    assert "screenshot" not in RUNS["Collect the reports"]["run"]


def test_only_the_base_branch_s_passes_become_baselines():
    """Only a PASS on the base branch becomes a baseline.

    A failed gate ends the job, so a later step without ``always()`` runs only after a PASS.
    """
    names = [step.get("name") for step in STEPS]
    assert names.index("Ask the gold questions") < names.index("Accept it as the baseline")
    for name in ("Accept it as the baseline", "Keep the baseline"):
        assert next(step for step in STEPS if step.get("name") == name)["if"] == "github.event_name == 'push'"
    paths = {step["with"]["path"] for step in STEPS if "cache" in step.get("uses", "")}
    assert paths == {"baseline"}


@pytest.fixture
def job(tmp_path, prefect_environment):
    """Return the repository folder, and a function that runs the script of a workflow step as GitHub's runner does.

    The function uses ``bash -e`` in the repository, with the environment of the job and the given variables.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    lookout = programs / "lookout"
    lookout.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deployments.cli.app "$@"\n', encoding="utf-8")
    lookout.chmod(0o755)
    repository = tmp_path / "repository"
    repository.mkdir()

    def run(name, **variables):
        environment = prefect_environment | {"PYTHONPATH": str(ROOT)} | GATE["env"] | variables
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", RUNS[name]["run"]]
        return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)

    return repository, run


@pytest.mark.whole_only
@pytest.mark.prefect
def test_its_steps_ask_report_and_keep_the_baseline(job):
    repository, run = job
    with Chat() as chat, GitHub() as github:
        path = watched(repository, chat, cases=2)
        text = path.read_text(encoding="utf-8").replace("targets.demo", "targets.staging")
        path.write_text(text.replace('data_folder = "data"\n', ""), encoding="utf-8")
        variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": github.url,
            "GITHUB_REF": "refs/pull/12/merge",
            "GITHUB_REPOSITORY": "acme/helpdesk",
            "GITHUB_TOKEN": WORKFLOW_TOKEN,
            "COMMIT": HEAD,
            "ANTHROPIC_API_KEY": "",
        }
        asked = run("Ask the gold questions", **variables)
        assert asked.returncode == 0, asked.stderr
        assert len(github.by(BOT)) == 1
        assert run("Collect the reports").returncode == 0
        assert {one.name for one in (repository / "reports").iterdir()} == {
            "junit.xml",
            "report.html",
            "results.md",
        }
        assert run("Accept it as the baseline").returncode == 0
        assert (repository / "baseline" / "results.json").is_file()
        again = run("Ask the gold questions", **variables)
        assert again.returncode == 0, again.stderr
        assert "No baseline" not in github.by(BOT)[0].body


def test_with_nothing_to_collect_it_goes_on(job):
    repository, run = job
    assert run("Collect the reports").returncode == 0
    assert list((repository / "reports").iterdir()) == []
