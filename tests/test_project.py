"""Test that the project's workflow, commit hooks, issue forms, versions and changelog are consistent."""

from __future__ import annotations

import json
import os
import re
import tomllib

import pytest
import yaml

from tests import fork_server
from tests.conftest import ROOT
from tests.lookout_commands import every_command

GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
JOB = WORKFLOW["jobs"]["test"]
FORMS = {
    name: yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text("utf-8"))
    for name in ("bug", "wrong_grade")
}
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
OF_HABITS = (
    *("CONTRIBUTING.md", "docs/install.md", "docs/releasing.md", ".pre-commit-config.yaml"),
    *(".ci/run", *(str(path.relative_to(ROOT)) for path in sorted(GITHUB.rglob("*.*")))),
)


def make_targets() -> set[str]:
    """Return the targets of `make`."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_workflow_runs_what_a_person_runs_and_may_only_read():
    """The workflow runs `.ci/run` for pull requests and pushes, and has only read permission.

    No script contains an expression such as the title of a pull request.
    """
    assert set(WORKFLOW[True]) == {"pull_request", "push"}  # YAML 1.1 reads the key `on` as a boolean
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in JOB
    scripts = [step["run"] for step in JOB["steps"] if "run" in step]
    assert scripts[-1] == ".ci/run"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert not [script for script in scripts if "${{" in script]
    used = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used), used


def test_the_workflow_runs_on_the_oldest_python_and_a_newer_one():
    """The CI workflow runs on the oldest supported Python and on a newer one.

    It tests every Python version in the package metadata.
    """
    tried = [tuple(int(part) for part in python.split(".")) for python in JOB["strategy"]["matrix"]["python"]]
    assert PROJECT["requires-python"] == ">={}.{}".format(*min(tried))
    assert len(tried) == 2
    claimed = [
        re.fullmatch(r"Programming Language :: Python :: (\d+)\.(\d+)", one) for one in PROJECT["classifiers"]
    ]
    assert {tuple(int(part) for part in one.groups()) for one in claimed if one} <= set(tried)


def test_the_hooks_are_those_of_make_and_fetch_nothing():
    """The only commit hook is the local command `make check`. No hook is downloaded."""
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert repository["repo"] == "local"
    assert "://" not in text
    assert [(hook["entry"], hook["language"], hook["pass_filenames"]) for hook in repository["hooks"]] == [
        ("make check", "system", False)
    ]


@pytest.mark.parametrize("page", OF_HABITS)
def test_every_target_of_make_that_is_named_exists(page):
    named = set(
        re.findall(
            r"\bmake ([a-z-]+)\b(?=`|\s*$|\s{2,}#| \()", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert named <= make_targets()
    assert named or page not in {"CONTRIBUTING.md", "docs/releasing.md", ".ci/run", ".pre-commit-config.yaml"}


@pytest.mark.parametrize("name", FORMS)
def test_an_issue_form_is_one_that_github_shows(name):
    """Each field of an issue form has a valid kind, a unique id and a label. Each command in the form exists."""
    form = FORMS[name]
    assert {"name", "description", "body"} <= set(form)
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({one["id"] for one in fields}) == len(fields)
    assert all(one["attributes"]["label"] for one in fields)
    known = every_command()
    for command in re.findall(r"`lookout ([^`]+)`", json.dumps(form)):
        command_name, *options = command.split()
        if command_name == "--version":
            continue
        have = {name for one in known[command_name].params for name in (*one.opts, *one.secondary_opts)}
        assert {one for one in options if one.startswith("--")} <= have, command


def test_the_line_of_a_wrong_grade_is_what_lookout_grade_reads(tmp_path):
    """`lookout grade` accepts the example line of the issue form for wrong grades, with its fields filled in."""
    (line,) = (one["attributes"]["value"] for one in FORMS["wrong_grade"]["body"] if one.get("id") == "line")
    filled = json.loads(line) | {"question": "How long?", "gold": "36 months", "answer": "It is 36 months."}
    done = fork_server.run("grade", cwd=tmp_path, env=fork_server.bare(), given=f"{json.dumps(filled)}\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == "a"


def test_the_version_is_the_same_wherever_it_stands():
    """The changelog, the documents' wheel names, the bill of materials and SECURITY.md state the same version."""
    version = PROJECT["version"]
    assert re.findall(r"^## \[([^]]+)\]", CHANGELOG, re.MULTILINE)[:2] == ["Unreleased", version]
    for page in ("install", "releasing"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"lookout_monitor-([\d.]+)-py3", text)) == {version}
    bill = json.loads((ROOT / "requirements" / "sbom.cdx.json").read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["version"] == version
    assert f" {version} " in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_changelog_owns_up_to_every_target_of_accuracy_that_is_missed():
    """The section "What does not hold yet" of the changelog lists exactly the accuracy targets that are missed."""
    accuracy = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    lines = accuracy.partition("Missed:\n")[2].partition("\n## ")[0].splitlines()
    missed = {line.removeprefix("- ").rpartition(": ")[0] for line in lines if line.startswith("- ")}
    section = CHANGELOG.partition("### What does not hold yet")[2].partition("\n### ")[0]
    named = (
        section.partition("](docs/accuracy.md)")[2].partition("\n- ")[0]
        if missed or "accuracy.md" in section
        else ""
    )
    assert set(re.findall(r"\*([^*]+)\*", named)) == missed
