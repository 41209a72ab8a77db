"""Test the tests: make a small fault (a mutant) in product code, and check that a test fails.

``make mutants`` selects mutants with a fixed seed. Each one runs in a copy of the tree. The tests that cover its
line run against it, fastest first, for at most a minute. The program prints which mutants were caught. It needs the
data of ``make coverage``. The list of mutants is written to a file. With ``--mutants FILE`` the same mutants are
found in a later tree by file, function and source text.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from queue import Queue
from statistics import median

import coverage

from tests.tools.branch_coverage import DATA, JUNIT, PRODUCT, ROOT
from tests.tools.coverage_contexts import named_test

DEFAULT_COUNT = 100
DEFAULT_SEED = 39
DEFAULT_SECONDS = 60.0
AT_ONCE = 2
MAX_FILES = 20
"""The maximum number of test files for one mutant. It takes longer than a minute to import more files."""
START_S = 120.0
"""Additional time limit in seconds for the start, the collection and the end of pytest."""
UNKNOWN_S = 1.0
"""The assumed duration in seconds of a test that is not in the JUnit file."""
PLUGIN = Path(__file__).with_name("mutant_plugin.py")

COMPARISONS: Mapping[type[ast.cmpop], tuple[tuple[str, str], ...]] = {
    ast.Eq: (("comparison", "!="),),
    ast.NotEq: (("comparison", "=="),),
    ast.Lt: (("boundary", "<="), ("comparison", ">=")),
    ast.LtE: (("boundary", "<"), ("comparison", ">")),
    ast.Gt: (("boundary", ">="), ("comparison", "<=")),
    ast.GtE: (("boundary", ">"), ("comparison", "<")),
    ast.Is: (("comparison", "is not"),),
    ast.IsNot: (("comparison", "is"),),
    ast.In: (("membership", "not in"),),
    ast.NotIn: (("membership", "in"),),
}
"""The replacements of each comparison operator, each with the name of the mutation operator."""
ARITHMETIC: Mapping[type[ast.operator], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A small fault to insert into a function.

    ``lines`` are the source lines that it changes, without indentation. If these lines occur several times in the
    function, ``nth`` is the index of the occurrence. ``new`` replaces the code from ``start`` to ``end``. Each of
    these two is an index into ``lines`` and a column.
    """

    file: str
    function: str
    operator: str
    lines: tuple[str, ...]
    nth: int
    start: tuple[int, int]
    end: tuple[int, int]
    new: str

    @property
    def description(self) -> str:
        """Return the old code, the new code and the changed line, in shortened form."""
        first, last = self.lines[self.start[0]], self.lines[self.end[0]]
        old = (
            first[self.start[1] : self.end[1]]
            if len(self.lines) == 1
            else f"{first[self.start[1] :]} … {last[: self.end[1]]}"
        )
        return f"{old.strip()[:40]} → {self.new.strip()[:40]} in: {first[:80]}"


@dataclass(frozen=True)
class Place:
    """The position of a mutant in a tree: the file, and its first changed line, counted from 0."""

    file: str
    line: int


@dataclass(frozen=True)
class Outcome:
    """The result of a mutant. ``caught_by`` is the id of the test that caught it, or empty.

    ``status`` is ``caught``, ``timeout`` (a test did not end, which counts as caught), ``survived``, or ``not
    found`` if the tree no longer contains the code that the mutant changes.
    """

    mutant: Mutant
    status: str
    caught_by: str = ""
    tests: int = 0
    is_covered: bool = True
    seconds: float = 0.0

    @property
    def is_caught(self) -> bool:
        """Return whether the tests detected the mutant: a test failed or did not end."""
        return self.status in {"caught", "timeout"}


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """Yield every possible mutant of the functions in a file with the content ``source``."""
    lines = source.splitlines()
    for name, function in _functions(ast.parse(source)):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        for statement in body:
            for node in _own_nodes(statement):
                for change in _changes(node, source, lines):
                    yield _mutant(file, name, function, change, lines)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield all functions of a module, including methods and inner functions, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            inner = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
            yield from _functions(node, inner)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, except inner functions, classes, annotations and f-strings.

    f-strings are skipped because Python 3.11 reports wrong positions for their parts.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _own_nodes(child)


Position = tuple[int, int]
"""A line, counted from 0, and a column in characters."""


def _changes(node: ast.AST, source: str, lines: Sequence[str]) -> Iterator[tuple[str, Position, Position, str]]:
    """Yield the possible changes of a node: the mutation operator, the range to replace, and the replacement."""
    match node:
        case ast.Compare(ops=[operator], left=left, comparators=[right]):
            span = _between(left, right, lines)
            for name, new in COMPARISONS[type(operator)]:
                yield name, *span, f" {new} "
        case ast.BoolOp(op=operator, values=[first, second, *_]):
            yield "and/or", *_between(first, second, lines), " or " if isinstance(operator, ast.And) else " and "
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not removed", *_span(node, lines), ast.get_source_segment(source, operand) or ""
        case ast.BinOp(op=ast.Add() | ast.Sub() as operator, left=left, right=right):
            yield "plus/minus", *_between(left, right, lines), f" {ARITHMETIC[type(operator)][1]} "
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield "constant", *_span(node, lines), str(value + 1)
            yield "constant", *_span(node, lines), str(value - 1)
        case ast.Return(value=ast.Constant(value=bool() as value)):
            yield "return", *_span(node, lines), f"return {not value}"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", *_span(node, lines), "return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield "statement deleted", *_span(node, lines), "pass"
        case _:
            return


def _span(node: ast.AST, lines: Sequence[str]) -> tuple[Position, Position]:
    return _position(node.lineno, node.col_offset, lines), _position(node.end_lineno, node.end_col_offset, lines)  # type: ignore[attr-defined]


def _between(left: ast.expr, right: ast.expr, lines: Sequence[str]) -> tuple[Position, Position]:
    """Return the start and end of the operator between two operands, without the parentheses of the operands."""
    start, end = _span(left, lines)[1], _span(right, lines)[0]
    for row in range(start[0], end[0] + 1):
        first = start[1] if row == start[0] else _indent(lines[row])
        text = lines[row][first : end[1] if row == end[0] else None].partition("#")[0]
        operator = text.strip(" ()\\")
        if operator:
            offset = text.index(operator)
            before, behind = text[:offset].rstrip(" "), text[offset + len(operator) :].lstrip(" ")
            return (row, first + len(before)), (row, first + len(text) - len(behind))
    return start, end


def _position(line: int, offset: int, lines: Sequence[str]) -> Position:
    """Convert a line number and a UTF-8 byte offset of ``ast`` to a `Position`."""
    return line - 1, len(lines[line - 1].encode()[:offset].decode())


def _mutant(
    file: str, name: str, function: Function, change: tuple[str, Position, Position, str], lines: Sequence[str]
) -> Mutant:
    operator, start, end, new = change
    lines_around = tuple(line.strip() for line in lines[start[0] : end[0] + 1])
    return Mutant(
        file=file,
        function=name,
        operator=operator,
        lines=lines_around,
        nth=_occurrences(lines_around, lines, function).index(start[0]),
        start=(0, start[1] - _indent(lines[start[0]])),
        end=(end[0] - start[0], end[1] - _indent(lines[end[0]])),
        new=new,
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _occurrences(text: Sequence[str], lines: Sequence[str], function: Function) -> list[int]:
    """Return the line numbers, counted from 0, at which the lines ``text`` occur in the function."""
    last = (function.end_lineno or function.lineno) - len(text)
    return [
        at
        for at in range(function.lineno - 1, last + 1)
        if all(lines[at + row].strip() == line for row, line in enumerate(text))
    ]


def draw(tree: Path, count: int, seed: int, only: str = "*", exclude: Sequence[str] = ()) -> list[Mutant]:
    """Select up to ``count`` mutants of the product's code at random. The same seed selects the same mutants.

    There is at most one mutant in a function, and at most a fifth of the mutants have the same mutation operator.
    Only files that match the pattern ``only`` and no pattern in ``exclude`` are mutated.
    """
    every = [
        mutant
        for name in PRODUCT
        for path in sorted((tree / name).rglob("*.py"))
        if fnmatch(path.relative_to(tree).as_posix(), only)
        if not any(fnmatch(path.relative_to(tree).as_posix(), pattern) for pattern in exclude)
        for mutant in mutants_of(path.relative_to(tree).as_posix(), path.read_text(encoding="utf-8"))
    ]
    random.Random(seed).shuffle(every)
    selected: list[Mutant] = []
    functions = set[tuple[str, str]]()
    operators = Counter[str]()
    for mutant in every:
        if len(selected) == count:
            break
        if (mutant.file, mutant.function) not in functions and operators[mutant.operator] < max(1, count // 5):
            functions.add((mutant.file, mutant.function))
            operators[mutant.operator] += 1
            selected.append(mutant)
    return selected


def find(mutant: Mutant, tree: Path) -> Place | None:
    """Return the position of a mutant's lines in a tree, or ``None`` if they are not found.

    The mutant's own file and function are searched first. Then functions with the same name in any file, the
    mutant's own file, and the whole product are searched. In each of these three places, the lines are accepted
    only if they occur once.
    """
    path = tree / mutant.file
    product = [each for name in PRODUCT for each in sorted((tree / name).rglob("*.py"))]
    own = _places(mutant, path) if path.is_file() else []
    in_function = [line for function, line in own if function == mutant.function]
    if in_function:
        return Place(mutant.file, in_function[min(mutant.nth, len(in_function) - 1)])
    elsewhere = [
        (function.rpartition(".")[2], Place(each.relative_to(tree).as_posix(), line))
        for each in product
        for function, line in _places(mutant, each)
    ]
    name = mutant.function.rpartition(".")[2]
    for places in (
        [place for function, place in elsewhere if function == name],
        [place for _, place in elsewhere if place.file == mutant.file],
        [place for _, place in elsewhere],
    ):
        if len(set(places)) == 1:
            return places[0]
    return None


def _places(mutant: Mutant, path: Path) -> list[tuple[str, int]]:
    """Return each occurrence of the mutant's lines in a file: the function, and the line number from 0."""
    source = path.read_text(encoding="utf-8")
    if any(line not in source for line in mutant.lines):
        return []
    lines = source.splitlines()
    return [
        (name, at)
        for name, function in _functions(ast.parse(source))
        for at in _occurrences(mutant.lines, lines, function)
    ]


def apply(mutant: Mutant, place: Place, source: str) -> str:
    """Return the source code of a file after the mutant has been inserted at ``place``."""
    lines = source.splitlines(keepends=True)
    first, last = place.line + mutant.start[0], place.line + mutant.end[0]
    before = lines[first][: _indent(lines[first]) + mutant.start[1]]
    behind = lines[last][_indent(lines[last]) + mutant.end[1] :]
    return "".join([*lines[:first], before + mutant.new + behind, *lines[last + 1 :]])


@dataclass
class CoveringTests:
    """Finds the tests that run a line of the product, and the durations of these tests."""

    tree: Path
    data: coverage.CoverageData
    durations: Mapping[str, float]
    _families: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, tree: Path, data: Path, junit: Path) -> CoveringTests:
        """Read the coverage data, which has a context for each test, and the durations in pytest's JUnit file."""
        measured = coverage.CoverageData(str(data))
        measured.read()
        durations = {_key(case): float(case.get("time", 0)) for case in ET.parse(junit).iter("testcase")}
        return cls(tree, measured, durations)

    def covering(self, place: Place, lines: int) -> list[str]:
        """Return the tests that ran at least one of the ``lines`` lines that begin at ``place``, fastest first.

        If no test is found, return the tests that ran the enclosing statement.
        """
        paths = [path for path in self.data.measured_files() if Path(path).as_posix().endswith(f"/{place.file}")]
        tests = set[str]()
        for path in paths:
            contexts = self.data.contexts_by_lineno(path)
            wanted = range(place.line + 1, place.line + 1 + lines)
            named_tests = {named_test(context) for line in wanted for context in contexts.get(line, ())}
            if not named_tests - {""}:  # coverage counts a statement by its first line
                statement = _statement_line(self.tree / place.file, place.line + 1)
                named_tests = {named_test(context) for context in contexts.get(statement, ())}
            tests |= named_tests - {""}
        return self.fastest([test for test in tests if (self.tree / test.partition("::")[0]).is_file()])

    def beside(self, file: str) -> list[str]:
        """Return the tests in the folder under ``tests`` that mirrors the file's folder, fastest first.

        If that folder does not exist, use its nearest existing parent folder.
        """
        folder = Path(file).parent
        while not (self.tree / "tests" / folder).is_dir():
            folder = folder.parent
        own = f"tests.{'.'.join(folder.parts)}."
        return self.fastest([test for key, test in self._ids().items() if key.startswith(own)])

    def fastest(self, tests: Iterable[str]) -> list[str]:
        """Return the tests in the order of their durations, shortest first."""
        return sorted(tests, key=lambda test: (self.duration(test), test))

    def duration(self, test: str) -> float:
        """Return the duration of a test in seconds.

        For an unknown row of a parametrised test, return the median of the test's other rows. If there are none,
        return `UNKNOWN_S`.
        """
        duration = self.durations.get(_key_of_id(test))
        if duration is not None:
            return duration
        if not self._families:
            rows = defaultdict[str, list[float]](list)
            for key, seconds in self.durations.items():
                rows[key.partition("[")[0]].append(seconds)
            self._families.update({name: median(times) for name, times in rows.items()})
        return self._families.get(_key_of_id(test).partition("[")[0], UNKNOWN_S)

    def _ids(self) -> dict[str, str]:
        """Return the pytest node ids of the tests, keyed by the names of the tests in the JUnit file."""
        return {key: identifier for key in self.durations if (identifier := self._id_of(key)) is not None}

    def _id_of(self, key: str) -> str | None:
        head, bracket, row = key.partition("[")
        parts = head.split(".")
        for length in range(len(parts) - 1, 0, -1):
            path = Path(*parts[:length]).with_suffix(".py")
            if (self.tree / path).is_file():
                return "::".join([path.as_posix(), *parts[length:]]) + bracket + row
        return None


def _statement_line(path: Path, line: int) -> int:
    """Return the first line of the smallest statement that contains a line."""
    statements = (
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.stmt)
    )
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in statements]
    return max((first for first, last in spans if first <= line <= last), default=line)


def _key(case: ET.Element) -> str:
    return f"{case.get('classname', '')}.{case.get('name', '')}"


def _key_of_id(test: str) -> str:
    """Convert a pytest node id to the name of the test in the JUnit file.

    For example, tests/a/test_b.py::test_c[1] becomes tests.a.test_b.test_c[1].
    """
    path, _, rest = test.partition("::")
    head, bracket, row = rest.partition("[")
    return f"{path.removesuffix('.py').replace('/', '.')}.{head.replace('::', '.')}{bracket}{row}"


class Copies:
    """Copies of the tree in which mutants are applied, one for each parallel run."""

    def __init__(self, tree: Path, folder: Path, count: int) -> None:
        self._free: Queue[Path] = Queue()
        files = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, check=True).stdout.decode()
        for number in range(count):
            copy = folder / f"copy-{number}"
            for name in filter(None, files.split("\0")):
                if (tree / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(tree / name, copy / name)
            shutil.copy(PLUGIN, copy / PLUGIN.name)
            for name in (".venv", ".cache"):
                if (tree / name).exists():
                    (copy / name).symlink_to(tree / name)
            subprocess.run(["git", "init", "-q", str(copy)], check=True)
            subprocess.run(["git", "-C", str(copy), "add", "-A"], check=True)
            self._free.put(copy)

    def take(self) -> Path:
        """Wait for a free copy and return it."""
        return self._free.get()

    def give(self, copy: Path) -> None:
        """Mark a copy as free again. The caller must first restore the files of the copy."""
        self._free.put(copy)


@dataclass
class Runner:
    """Runs mutants in copies of a tree."""

    tree: Path
    tests: CoveringTests
    copies: Copies
    python: str
    seconds: float = DEFAULT_SECONDS
    failing: set[str] = field(default_factory=set)
    """Tests that fail in a copy on this machine even without a mutant. They cannot catch a mutant."""

    def outcome(self, mutant: Mutant) -> Outcome:
        """Run the tests that cover a mutant, with the mutant inserted in a copy, and return the outcome.

        If no test covers it, run the tests in the mirrored folder.
        """
        place = find(mutant, self.tree)
        if place is None:
            return Outcome(mutant, "not found", is_covered=False)
        covering = self.tests.covering(place, len(mutant.lines))
        tests = covering or self.tests.beside(place.file)
        copy = self.copies.take()
        try:
            return self._outcome(mutant, place, tests, copy, is_covered=bool(covering))
        finally:
            self.copies.give(copy)

    def _outcome(
        self, mutant: Mutant, place: Place, tests: Sequence[str], copy: Path, *, is_covered: bool
    ) -> Outcome:
        path = copy / place.file
        source = path.read_text(encoding="utf-8")
        begun = time.monotonic()
        mutated = apply(mutant, place, source)
        ast.parse(mutated)  # a mutant that is no Python would be caught by everything
        while True:
            chosen = self._chosen([test for test in tests if test not in self.failing])
            path.write_text(mutated, encoding="utf-8")
            try:
                status, caught_by, count = self._run(copy, chosen)
            finally:
                path.write_text(source, encoding="utf-8")
            if status in {"caught", "timeout"} and self._fails_anyway(copy, caught_by or chosen[0]):
                self.failing.add(caught_by or chosen[0])
                continue
            took = round(time.monotonic() - begun, 1)
            return Outcome(mutant, status, caught_by, count, is_covered=is_covered, seconds=took)

    def _chosen(self, tests: Sequence[str]) -> list[str]:
        """Return the first tests that fit into the time limit and into `MAX_FILES` files.

        The first test is always included.
        """
        chosen: list[str] = []
        files = set[str]()
        spent = 0.0
        for test in tests:
            file = test.partition("::")[0]
            if chosen and (spent + self.tests.duration(test) > self.seconds):
                break
            if file in files or len(files) < MAX_FILES:
                files.add(file)
                spent += self.tests.duration(test)
                chosen.append(test)
        return chosen

    def _fails_anyway(self, copy: Path, test: str) -> bool:
        return self._run(copy, [test])[0] in {"caught", "timeout"}

    def _run(self, copy: Path, tests: Sequence[str]) -> tuple[str, str, int]:
        """Run the tests in a copy. Return the status, the deciding test, and the number of finished tests.

        The status is ``caught``, ``timeout`` or ``survived``. The deciding test failed or did not end. It is empty
        if the tests survived, or if pytest ended before a test failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            wanted, report = Path(folder) / "tests.json", Path(folder) / "report.jsonl"
            wanted.write_text(json.dumps(list(tests)), encoding="utf-8")
            report.touch()
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            if not files:
                return "survived", "", 0
            environment = os.environ | {
                "PYTHONPATH": str(copy),
                "PYTHONDONTWRITEBYTECODE": "1",
                "MUTANT_TESTS": str(wanted),
                "MUTANT_REPORT": str(report),
                "MUTANT_SECONDS": str(self.seconds),
            }
            arguments = ["-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "mutant_plugin", *files]
            process = subprocess.Popen(
                [self.python, "-m", "pytest", *arguments],
                cwd=copy,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                code = process.wait(self.seconds + START_S)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_session(process)
            events = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
            count = sum(event["event"] == "end" for event in events)
            failed = [event["test"] for event in events if event["event"] == "failed"]
            if failed:
                return "caught", failed[0], count
            if code is None:
                begun = [event["test"] for event in events if event["event"] == "begin"]
                return "timeout", begun[-1] if begun else "", count
            # 0 passed, 5 no test of these names: all else, and an end before the first test, is of the mutant.
            is_broken = code not in {0, 2, 5} or (code == 2 and count == 0)
            return ("caught", "", count) if is_broken else ("survived", "", count)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes in the session of a pytest process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def table(outcomes: Sequence[Outcome]) -> str:
    """Format the result: each mutant that was not caught, the counts by folder and by operator, and the score."""
    lines = ["Not caught:"]
    lines += [
        f"  {each.mutant.file} {each.mutant.function}: {each.mutant.description}"
        f" ({each.status}{'' if each.is_covered or each.status == 'not found' else ', reached by no test in process'})"
        for each in outcomes
        if not each.is_caught
    ]
    for title, key in (
        ("folder", lambda each: "/".join(each.mutant.file.split("/")[:-1][:2])),
        ("operator", lambda each: each.mutant.operator),
    ):
        lines += ["", f"{title:<28} {'mutants':>8} {'caught':>7} {'not found':>10}"]
        for name in sorted({key(each) for each in outcomes}):
            rows = [each for each in outcomes if key(each) == name]
            gone = sum(each.status == "not found" for each in rows)
            lines.append(f"{name:<28} {len(rows):>8} {sum(each.is_caught for each in rows):>7} {gone:>10}")
    run = [each for each in outcomes if each.status != "not found"]
    caught = sum(each.is_caught for each in run)
    uncovered = sum(not each.is_covered for each in run)
    lines += [
        "",
        f"{caught} of {len(run)} mutants caught; {uncovered} of them on lines that no test reaches in process",
    ]
    return "\n".join(lines) + "\n"


def write(outcomes: Sequence[Outcome | Mutant], path: Path) -> None:
    """Write mutants, or their outcomes, to ``path`` as one JSON object per line."""
    text = "".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in outcomes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> list[Mutant]:
    """Return the mutants from a file that `write` created."""
    mutants = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        fields = fields.get("mutant", fields)
        pairs = {name: tuple(fields[name]) for name in ("lines", "start", "end")}
        mutants.append(Mutant(**{**fields, **pairs}))
    return mutants


def main(arguments: Sequence[str] | None = None) -> int:
    """Select or read mutants, run them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose code is mutated")
    parser.add_argument("--coverage", type=Path, default=DATA, help="coverage's data of that checkout")
    parser.add_argument("--junit", type=Path, default=JUNIT, help="pytest's junit file of the same run")
    parser.add_argument("--python", help="the interpreter for the tests; that of the tree's .venv when left out")
    parser.add_argument("--mutants", type=Path, help="run these again instead of drawing some")
    parser.add_argument("--write", type=Path, default=DATA.with_name("mutants.jsonl"))
    parser.add_argument("--draw-only", action="store_true", help="write the mutants, run none")
    parser.add_argument("--count", type=int, default=DEFAULT_COUNT)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument(
        "--only", default="*", help="mutants of these files alone; a pattern such as monitors/gate/*"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], help="no mutants of these files; a pattern such as monitors/*"
    )
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="of tests for each mutant")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    mutants = (
        read(options.mutants)
        if options.mutants
        else draw(tree, options.count, options.seed, options.only, options.exclude)
    )
    if options.draw_only:
        write(mutants, options.write)
        return 0
    for needed in (options.coverage, options.junit):
        if not needed.exists():
            print(f"{needed}: no such file; `make coverage` writes it")
            return 2
    python = options.python or str(tree / ".venv" / "bin" / "python")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.at_once) as pool:
        tests = CoveringTests.read(tree, options.coverage, options.junit)
        runner = Runner(tree, tests, Copies(tree, Path(folder), options.at_once), python, options.seconds)
        outcomes: list[Outcome] = []
        for outcome in pool.map(runner.outcome, mutants):
            outcomes.append(outcome)
            by = f" by {outcome.caught_by}" if outcome.caught_by else ""
            print(
                f"{len(outcomes):>3} {outcome.status}{by}: {outcome.mutant.file} {outcome.mutant.description}",
                flush=True,
            )
            write(outcomes, options.write)
    print(table(outcomes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
