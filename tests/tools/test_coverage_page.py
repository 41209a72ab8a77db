"""Test that ``docs/coverage.md`` has a line for each requirement, and that the tests and pages in it exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lookout_commands import every_command

PAGE = ROOT / "docs" / "coverage.md"
REQUIREMENTS = {
    "V": 16, "G": 14, "J": 11, "S": 11, "T": 14, "H": 5, "W": 9, "A": 13, "D": 8, "Q": 11,
    "E": 4, "L": 6, "Y": 6, "Z": 2, "C": 2, "R": 2, "X": 4, "P": 14,
}  # fmt: skip
"""The number of requirements with each letter. For example, 5 for the letter H means H1 to H5."""
IDS = [f"{letter}{number}" for letter, count in REQUIREMENTS.items() for number in range(1, count + 1)]
LINE = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
REFERENCE = re.compile(r"`([^`]+)`|\[[^\]]*\]\(([^)]+)\)")


def lines() -> dict[str, tuple[str, list[str]]]:
    """Return the state and the references of each requirement on the page, keyed by its id."""
    rows = LINE.findall(PAGE.read_text(encoding="utf-8"))
    assert len({row[0] for row in rows}) == len(rows)
    return {
        name: (state, [code or link for code, link in REFERENCE.findall(references)])
        for name, _, state, references in rows
    }


def exists(reference: str) -> bool:
    """Return whether a reference is valid: a test, a command, a target of make, or a heading of a page."""
    if reference.startswith("tests/"):
        path, _, function = reference.partition("::")
        return (ROOT / path).is_file() and (not function or function in functions(ROOT / path))
    if reference.startswith("lookout "):
        command, *options = reference.removeprefix("lookout ").split(" --")
        known = commands().get(command)
        return known is not None and {f"--{option}" for option in options} <= known
    if reference.startswith("make "):
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        return re.search(rf"^{reference.removeprefix('make ')}:", makefile, re.MULTILINE) is not None
    page, _, heading = reference.partition("#")
    return (PAGE.parent / page).is_file() and (not heading or heading in headings(PAGE.parent / page))


@cache
def functions(path: Path) -> set[str]:
    """Return the names of the functions in a file."""
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@cache
def commands() -> dict[str, set[str]]:
    """Return the options of each command, keyed by the words after ``lookout``."""
    return {
        path: {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        for path, command in every_command().items()
    }


@cache
def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub creates for the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_each_requirement_has_its_line_in_order():
    assert list(lines()) == IDS
    links = sum("`" not in reference and ".md" in reference for _, named in lines().values() for reference in named)
    assert links == sum(row[3].count("](") for row in LINE.findall(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", IDS)
def test_names_in_a_line_exist(name):
    state, references = lines()[name]
    assert re.fullmatch(r"holds|open(: .+)?|planned", state)
    assert references or state != "holds"
    assert [reference for reference in references if not exists(reference)] == []


def test_a_name_that_is_gone_is_noticed():
    assert exists("tests/tools/test_coverage_page.py::test_a_name_that_is_gone_is_noticed")
    assert not exists("tests/tools/test_coverage_page.py::test_of_nothing")
    assert not exists("tests/test_of_nothing.py")
    assert exists("lookout gate --github")
    assert not exists("lookout gate --gitlab")
    assert not exists("lookout verity")
    assert not exists("make nothing")
    assert exists("gate.md#balance")
    assert not exists("gate.md#no-such-heading")
    assert not exists("no-page.md")
