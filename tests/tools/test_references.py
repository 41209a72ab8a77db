"""Test that the pages of commands, exit codes and failure kinds agree with the code and are complete.

To update them, run ``python -m tests.tools.command_reference`` and ``python -m tests.tools.outcome_reference``.
"""

from __future__ import annotations

import ast
import os
import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path

import pytest

from deployments.cli.app import COMMANDS, EXAMPLES, GROUPS, USERS
from deployments.cli.exit_codes import MEANINGS, SPECIAL_CODES, ExitCode
from monitors.records.base import Blame, Severity
from monitors.records.exchanges import NoAnswerReason
from monitors.records.grades import FAILURE_MEANINGS, CaseOutcome, FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason
from monitors.records.runs import ReasonKind
from tests import fork_server
from tests.conftest import ROOT
from tests.lookout_commands import every_command
from tests.tools import command_reference, outcome_reference

COLUMNS = 80
IN_WHOLE = ("verify_and_print_verdict", "exit_code_from_verdict")
"""Functions with which a command exits with the code for a verdict: PASS, FAIL or INCONCLUSIVE."""


@pytest.fixture(scope="module")
def commands():
    """Return every command, keyed by the words after ``lookout``.

    The commands are collected once for all tests, because this takes a second.
    """
    return every_command()


@pytest.mark.parametrize("page", [command_reference, outcome_reference], ids=["commands", "reference"])
def test_a_page_is_current(page):
    assert page.DOCUMENT.read_text("utf-8") == page.reference()


def test_every_command_stands_under_those_who_use_it_once():
    listed = Counter(name for names in USERS.values() for name in names)
    assert set(listed) == {*COMMANDS["lookout"], *GROUPS, "site", "browser"}
    assert set(listed.values()) == {1}


def test_the_page_has_every_command_with_every_option(commands):
    page = command_reference.DOCUMENT.read_text("utf-8")
    for path, command in commands.items():
        section = page.split(f"### `lookout {path}`\n")[1].split("\n##")[0]
        for parameter in command.params:
            named = parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[0]
            assert f"`{named}`" in section, f"{path}: {named}"


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_is_taken_by_its_command(commands, path):
    """The command of each example exists and accepts the example's arguments; no argument is missing.

    The command is not run.
    """
    words, _, _given = EXAMPLES[path].partition("<")
    command = commands[path]
    with command.make_context(path, shlex.split(words)) as context:
        assert not context.args


def test_every_command_has_an_example(commands):
    assert set(EXAMPLES) == set(commands)
    assert set(SPECIAL_CODES) <= set(EXAMPLES)


def codes_in(path: str) -> set[ExitCode]:
    """Return the exit codes, except 0, that the module ``path`` of a command uses."""
    tree = ast.parse((ROOT / "deployments" / f"{path.replace('.', '/')}.py").read_text("utf-8"))
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    named = {ExitCode[one.attr] for one in parts if ast.unparse(one.value) == "ExitCode"}
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    verdict = {ExitCode.FAIL, ExitCode.INCONCLUSIVE} if calls & set(IN_WHOLE) else set[ExitCode]()
    return (named | verdict) - {ExitCode.PASS}


def test_every_code_that_a_command_gives_a_meaning_is_documented():
    """The documented exit codes of the commands in a module are exactly the codes that the module uses."""
    documented: dict[str, set[ExitCode]] = {}
    for group, rows in COMMANDS.items():
        for name, (module, _) in rows.items():
            path = name if group == "lookout" else f"{group} {name}"
            documented.setdefault(module, set()).update(SPECIAL_CODES.get(path, ()))
    assert {module: codes_in(module) for module in documented} == documented


@pytest.mark.parametrize(
    ("described", "kinds"),
    [
        (MEANINGS, ExitCode),
        (FAILURE_MEANINGS, FailureKind),
        (outcome_reference.OUTCOMES, CaseOutcome),
        (outcome_reference.SEVERITIES, Severity),
        (outcome_reference.NO_ANSWERS, NoAnswerReason),
        (outcome_reference.VERDICT_REASONS, ReasonKind),
        (outcome_reference.INCIDENTS, IncidentKind),
        (outcome_reference.REASONS, NotifyReason),
        (outcome_reference.BLAMED, Blame),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_kind_is_described(described: Mapping[Enum, object], kinds: Collection[Enum]):
    assert set(described) == set(kinds)


@pytest.mark.whole_only
@pytest.mark.parametrize("group", COMMANDS)
def test_help_fits_a_narrow_terminal_with_every_word_whole(group: str, tmp_path: Path):
    path = [] if group == "lookout" else group.split()
    said = fork_server.run(
        *path, "--help", cwd=tmp_path, env=os.environ | fork_server.WARM | {"COLUMNS": str(COLUMNS)}
    ).stdout
    assert max(map(len, said.splitlines())) <= COLUMNS
    words = said.replace("│", " ").split()
    for name, (_, line) in COMMANDS[group].items():
        assert set(line.split()) <= set(words), name


@pytest.mark.parametrize("path", ["verify", "gold push", "site token add", "facts"])
def test_help_ends_with_an_example_and_the_codes_of_its_own(path: str, tmp_path: Path):
    said = fork_server.run(*path.split(), "--help", cwd=tmp_path, env=os.environ | fork_server.WARM).stdout
    end = " ".join(said[said.index("Example:") :].split())
    codes = "; ".join(f"{int(code)} {meaning}" for code, meaning in SPECIAL_CODES.get(path, {}).items())
    assert end == f"Example: lookout {path} {EXAMPLES[path]}" + (f" Exit codes: {codes}." if codes else "")


def test_help_lists_commands_by_who_uses_them(tmp_path: Path):
    said = fork_server.run("--help", cwd=tmp_path, env=os.environ | fork_server.WARM).stdout
    places = [said.index(f"─ {user} ─") for user in USERS]
    assert places == sorted(places)
    for (_, names), start, end in zip(USERS.items(), places, [*places[1:], len(said)], strict=True):
        assert [line.split()[1] for line in said[start:end].splitlines() if line.startswith("│ ")] == list(names)
