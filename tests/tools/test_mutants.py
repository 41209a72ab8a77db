"""Test that mutants are located in a later version of the code, and that failing tests catch them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tools import branch_coverage
from tests.tools.coverage_contexts import named_test
from tests.tools.mutants import Place, apply, draw, find, main, mutants_of, read, write

SOURCE = '''\
LIMIT = 3


class Gate:
    """A gate."""

    def passes(self, score: float, *, strict: bool) -> bool:
        """Whether the score is enough."""
        if score >= LIMIT and not strict:
            return True
        names = f"{score > 1}"
        self.log(
            names,
            "प" in names,
        )
        return score + 1 == (LIMIT - len(names))
'''
MUTATED = {
    ("boundary", ">=", ">"),
    ("comparison", ">=", "<"),
    ("and/or", "and", "or"),
    ("not removed", "not strict", "strict"),
    ("return", "return True", "return False"),
    ("statement deleted", "self.log( … )", "pass"),
    ("membership", "in", "not in"),
    ("return", "return score + 1 == (LIMIT - len(names))", "return None"),
    ("comparison", "==", "!="),
    ("plus/minus", "+", "-"),
    ("plus/minus", "-", "+"),
    ("constant", "1", "2"),
    ("constant", "1", "0"),
}  # fmt: skip
TESTS = """\
from monitors.gate import passes


def test_enough():
    assert passes(3)


def test_too_little():
    assert not passes(1)
"""


def tree_with(folder: Path, **sources: str) -> Path:
    """Write modules with the given sources to ``folder/monitors``, and return ``folder``."""
    for name, source in sources.items():
        path = folder / "monitors" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return folder


def test_each_operator_changes_its_own_stretch():
    changes = set()
    for mutant in mutants_of("monitors/gate.py", SOURCE):
        changes.add((mutant.operator, *mutant.description.split(" in: ")[0].split(" → ")))
        mutated = apply(mutant, Place("monitors/gate.py", line_of(mutant)), SOURCE)
        ast.parse(mutated)
        assert mutated != SOURCE
    assert changes == MUTATED


def line_of(mutant) -> int:
    return [line.strip() for line in SOURCE.splitlines()].index(mutant.lines[0])


def test_an_operator_between_two_lines_is_changed_without_the_brackets_around_it():
    source = (
        "def f(a, b):\n    return g(\n        (a if b else a)\n        - b,\n        (a) and\n        (b),\n    )\n"
    )
    changed = {
        mutant.operator: apply(mutant, find_place(mutant, source), source)
        for mutant in mutants_of("monitors/f.py", source)
    }
    for operator, wanted in (("plus/minus", source.replace("- b", "+ b")), ("and/or", source.replace("and", "or"))):
        assert ast.unparse(ast.parse(changed[operator])) == ast.unparse(ast.parse(wanted))


def find_place(mutant, source) -> Place:
    lines = [line.strip() for line in source.splitlines()]
    return Place(mutant.file, lines.index(mutant.lines[0]))


def test_code_outside_functions_is_not_mutated():
    """Module constants, annotations, docstrings and f-strings are not mutated."""
    source = 'N = 1 + 2\n\n\ndef f(x: "A | B" = None) -> int:\n    """1 + 2."""\n    y: "list[1]" = f"{1 + 2}"\n'
    assert list(mutants_of("monitors/f.py", source)) == []


def test_a_mutant_is_found_again_where_its_lines_moved(tmp_path):
    mutants = list(mutants_of("monitors/gate.py", SOURCE))
    moved = SOURCE.replace("LIMIT = 3\n", "LIMIT = 3\nMORE = 4\n").replace("class Gate:", "class Gate(Base):")
    for number, mutant in enumerate(mutants):
        tree = tree_with(tmp_path / str(number), gate=moved)
        assert find(mutant, tree) == Place("monitors/gate.py", line_of(mutant) + 1)


def test_a_mutant_is_found_again_in_another_file_or_function(tmp_path):
    mutant = next(mutants_of("monitors/gate.py", SOURCE))
    elsewhere = tree_with(tmp_path / "a", verdict=SOURCE)
    assert find(mutant, elsewhere) == Place("monitors/verdict.py", line_of(mutant))
    renamed = tree_with(tmp_path / "b", gate=SOURCE.replace("def passes", "def is_passed"))
    assert find(mutant, renamed) == Place("monitors/gate.py", line_of(mutant))
    assert (
        find(mutant, tree_with(tmp_path / "c", gate=SOURCE.replace("score >= LIMIT", "self.reaches(score)")))
        is None
    )


def test_repeated_lines_are_distinguished(tmp_path):
    source = "def f(x):\n    if x:\n        return x + 1\n    return x + 1\n"
    mutants = [mutant for mutant in mutants_of("monitors/f.py", source) if mutant.operator == "plus/minus"]
    tree = tree_with(tmp_path, f=source)
    assert [find(mutant, tree) for mutant in mutants] == [Place("monitors/f.py", 2), Place("monitors/f.py", 3)]


def test_a_draw_is_the_same_for_a_seed_and_comes_back_from_its_file(tmp_path):
    functions = "\n\n".join(f"def f{n}(x):\n    return x + {n} if x > {n} and x else None" for n in range(30))
    tree = tree_with(tmp_path, gate=functions, other=functions)
    mutants = draw(tree, 10, seed=1)
    assert mutants == draw(tree, 10, seed=1)
    assert mutants != draw(tree, 10, seed=2)
    assert len({(mutant.file, mutant.function) for mutant in mutants}) == 10
    assert {mutant.file for mutant in draw(tree, 10, seed=1, exclude=["monitors/other.py"])} == {"monitors/gate.py"}
    write(mutants, tmp_path / "mutants.jsonl")
    assert read(tmp_path / "mutants.jsonl") == mutants


@pytest.mark.parametrize(
    ("context", "test"),
    [
        ("tests/a/test_b.py::test_c[x|y]", "tests/a/test_b.py::test_c[x|y]"),
        ("tests/a/test_b.py::test_c|run", "tests/a/test_b.py::test_c"),
        ("tests/a/test_b.py::test_c (setup)", "tests/a/test_b.py::test_c"),
        ("tests/a/test_b.py::test_c (call)|tests/d/test_e.py::test_f", "tests/d/test_e.py::test_f"),
        ("tests/a/test_b.py::test_c|", "tests/a/test_b.py::test_c"),
        ("", ""),
    ],
)
def test_a_context_names_its_test(context, test):
    assert named_test(context) == test


def test_a_folder_that_loses_more_than_a_point_is_named():
    before = {"monitors/gate": (100, 90), "monitors/old": (10, 10), "total": (200, 150)}
    now = {"monitors/gate": (100, 88), "monitors/new": (10, 0), "total": (200, 149)}
    assert branch_coverage.losses(now, before) == ["monitors/gate"]
    table = branch_coverage.format_table(now, before)
    assert [line.split() for line in table.splitlines()[1:]] == [
        ["monitors/gate", "100", "88", "88.0", "90.0", "-2.0"],
        ["monitors/new", "10", "0", "0.0"],
        ["total", "200", "149", "74.5", "75.0", "-0.5"],
        ["monitors/old", "gone", "100.0"],
    ]


@pytest.mark.whole_only
def test_tests_of_a_small_tree_catch_a_mutant_and_miss_another(tmp_path, monkeypatch):
    """In a small tree, a tested mutant is caught, and mutants of untested code and values survive.

    The coverage of the tree is measured first, and its files are unchanged at the end.
    """
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    passes = "def passes(score):\n    return score >= 2\n"
    tree = tree_with(tmp_path / "tree", gate=passes, unused="def unused(x):\n    return x + 1\n", __init__="")
    for name, source in {
        "tests/test_gate.py": TESTS,
        "tests/tools/__init__.py": "",
        "tests/tools/coverage_contexts.py": (ROOT / "tests/tools/coverage_contexts.py").read_text(encoding="utf-8"),
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "--import-mode=importlib"\n',
        ".gitignore": ".cache\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(source, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "add", "-A"], check=True)
    folder = tree / ".cache" / "coverage"
    assert branch_coverage.measure(["-p", "no:randomly", "tests"], tree, folder) == 0
    written = tmp_path / "mutants.jsonl"
    options = ["--coverage", str(folder / "data"), "--junit", str(folder / "junit.xml"), "--write", str(written)]
    assert main(["--tree", str(tree), "--python", sys.executable, "--at-once", "1", "--count", "5", *options]) == 0
    outcomes = {
        (one["mutant"]["file"], one["mutant"]["new"].strip()): one
        for one in map(json.loads, written.read_text(encoding="utf-8").splitlines())
    }
    gate = next(one for (file, _), one in outcomes.items() if file == "monitors/gate.py")
    boundary = gate["mutant"]["operator"] == "boundary"  # 2 itself is asked by no test
    assert gate["status"] == ("survived" if boundary else "caught")
    assert gate["is_covered"]
    (unused,) = (one for (file, _), one in outcomes.items() if file == "monitors/unused.py")
    assert (unused["status"], unused["is_covered"]) == ("survived", False)
    assert (tree / "monitors/gate.py").read_text(encoding="utf-8") == passes
