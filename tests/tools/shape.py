"""Print figures about the size and structure of the product: ``make shape``.

It counts files, physical lines of Python, folders with many files, class names that are defined more than once,
small modules, the lengths of functions, unclear names, and the functions on two important code paths.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high

from tests.tools import alert_path, nightly_path
from tests.tools.plain_names import PRODUCT, TESTS, count_names, count_texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "monitors", "warehouse", "deployments")
FILES, LINES, FOLDER, SMALL_MODULES, MEDIAN = 420, 57_000, 20, 60, 8
"""Maximum numbers of files, lines of Python, files in one folder, small modules and lines of the median function.

The length of the longest function has no goal, because some functions describe a long process.
"""
SMALL = 60
"""The number of physical lines below which a module counts as small."""


@dataclass(frozen=True)
class Shape:
    """The counts of the product. Lines are physical lines.

    ``functions`` maps ``path::name:line`` to the number of lines of a function, which begins at ``line``.
    """

    files: int
    lines: int
    folders: dict[str, int]
    classes: dict[str, int]
    small_modules: list[str]
    functions: dict[str, int]

    @property
    def crowded(self) -> dict[str, int]:
        """Return the folders with more files than the goal allows, and their numbers of files, largest first."""
        return dict(Counter({name: count for name, count in self.folders.items() if count > FOLDER}).most_common())

    @property
    def repeated(self) -> dict[str, int]:
        """Return the class names that are defined more than once, with the number of definitions."""
        return {name: count for name, count in sorted(self.classes.items()) if count > 1}


def product_files(root: Path = ROOT) -> list[str]:
    """Return the paths of the product files, relative to ``root``, without files that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return sorted(path for path in set(listed.stdout.splitlines()) if (root / path).is_file())


def measure(root: Path = ROOT) -> Shape:
    """Count the product under ``root``.

    Raises:
        subprocess.CalledProcessError: ``root`` is not a git checkout.
    """
    files = product_files(root)
    modules = {path: (root / path).read_text(encoding="utf-8") for path in files if path.endswith(".py")}
    lengths = {path: len(source.splitlines()) for path, source in modules.items()}
    trees = {path: ast.parse(source) for path, source in modules.items()}
    return Shape(
        files=len(files),
        lines=sum(lengths.values()),
        folders=dict(Counter(str(Path(path).parent) for path in files)),
        classes=dict(Counter(node.name for tree in trees.values() for node in _classes(tree))),
        small_modules=[
            path for path, length in lengths.items() if length < SMALL and Path(path).stem != "__init__"
        ],
        functions={f"{path}::{name}": length for path, tree in trees.items() for name, length in _functions(tree)},
    )


def _classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{node.name}:{node.lineno}", (node.end_lineno or node.lineno) - node.lineno + 1


def rows(shape: Shape) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the rows to print: the figure, its value, its goal, and whether the goal is met."""
    middle = median_high(shape.functions.values())
    yield "product files", f"{shape.files:,}", f"{FILES:,}", shape.files <= FILES
    yield "lines of Python", f"{shape.lines:,}", f"{LINES:,}", shape.lines <= LINES
    yield f"folders with more than {FOLDER} files", f"{len(shape.crowded)}", "0", not shape.crowded
    yield "class names defined more than once", f"{len(shape.repeated)}", "0", not shape.repeated
    small = len(shape.small_modules)
    yield f"modules under {SMALL} lines", f"{small}", f"{SMALL_MODULES}", small <= SMALL_MODULES
    yield "median function, lines", f"{middle}", f"{MEDIAN}", middle <= MEDIAN


def path_rows() -> Iterator[tuple[str, str, str, bool]]:
    """Yield the rows for two code paths, in the form of `rows`.

    The first is from a failed assessment to the request to Slack. The second is from an item of live traffic to its
    stored grade.
    """
    total, counted, rendering = alert_path.count_functions(alert_path.record_alert_path())
    path = "functions from a failed assessment to Slack"
    yield f"{path}, all", f"{total}", "", True
    yield f"{path}, without excluded modules", f"{counted}", *_goal(counted, alert_path.MAX_FUNCTIONS)
    yield f"{path}, of these in rendering", f"{rendering}", *_goal(rendering, alert_path.MAX_RENDERING)
    total, counted = nightly_path.count_functions(nightly_path.record_nightly_path())
    path = "functions from an item of traffic to its stored grade"
    yield f"{path}, all", f"{total}", "", True
    yield f"{path}, without graders, facts and judge", f"{counted}", *_goal(counted, nightly_path.MAX_FUNCTIONS)


def _goal(count: int, goal: int) -> tuple[str, bool]:
    return f"{goal}", count <= goal


def main() -> None:
    """Print the figures with their goals, the unclear names, the full folders and the repeated class names."""
    shape = measure()
    for name, value, goal, met in [*rows(shape), *path_rows()]:
        print(f"{value:>8}  at most {goal:>6}  {'met   ' if met else 'missed'}  {name}")
    for folders in (PRODUCT, TESTS):
        counts = count_names(folders=folders) + count_texts(folders=folders)
        print(f"Names and texts that break a rule, in {', '.join(folders)}: {_listed(counts)}")
    print(f"Full folders: {_listed(shape.crowded)}")
    print(f"Repeated class names: {_listed(shape.repeated)}")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(counts).most_common()) or "none"


if __name__ == "__main__":
    main()
