"""Find exceptions to the code rules that have no comment with a reason.

An exception is a broad ``except``, a ``suppress``, a ``sleep``, a ``noqa`` or a type-ignore. The comment must be on
the same line or directly above the statement.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

MARK = re.compile(
    r"#\s*(?:noqa(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?|type:\s*ignore(?:\[[^\]]*\])?|pyright:\s*ignore(?:\[[^\]]*\])?)"
)
"""The pattern of a comment that suppresses a check, such as ``noqa`` or a type-ignore."""

NO_REASON = re.compile(r"#\s*(?:fmt:|ruff:|pragma:).*")
"""The pattern of other comments for tools, which are not a reason."""


@dataclass(frozen=True)
class Unexplained:
    """The location of an exception to a code rule that has no reason."""

    path: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} has no reason on its line or above it"


def find_unexplained(path: str, source: str) -> list[Unexplained]:
    """Return every exception to a code rule in one file that has no reason, in line order."""
    comments = {
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    lines = source.splitlines()

    def has_reason(first: int, last: int) -> bool:
        above = comments.get(first - 1)
        stands_above = above is not None and lines[first - 2].lstrip().startswith("#")
        texts = [above.string] if above is not None and stands_above else []
        texts += [comments[line].string for line in range(first, last + 1) if line in comments]
        return any(_read_reason(text) for text in texts)

    tree = ast.parse(source)
    starts = _statement_starts(tree)
    unexplained = [
        Unexplained(path, line, kind)
        for line, last, kind in _exceptions(tree)
        if not has_reason(starts.get(line, line), last)
    ]
    unexplained += [
        Unexplained(path, line, MARK.search(comment.string)[0].lstrip("# "))
        for line, comment in comments.items()
        if MARK.search(comment.string) and not has_reason(starts.get(line, line), line)
    ]
    return sorted(unexplained, key=lambda row: (row.line, row.kind))


def _read_reason(comment: str) -> str:
    """Return the words of a comment without the parts that only tools read."""
    return NO_REASON.sub("", MARK.sub("", comment)).strip(" #-")


def _statement_starts(tree: ast.Module) -> dict[int, int]:
    """For each line of a statement, return the first line of the innermost statement that contains the line.

    Of a compound statement, such as ``if``, only the header counts.
    """
    starts: dict[int, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        for line in range(node.lineno, max(last, node.lineno) + 1):
            starts[line] = max(starts.get(line, 0), node.lineno)
    return starts


def _exceptions(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            yield node.lineno, node.lineno, "except Exception"
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rsplit(".", maxsplit=1)[-1]
            if name in {"suppress", "sleep"}:
                yield node.lineno, node.end_lineno or node.lineno, f"{name}()"


def _is_broad(caught: ast.expr | None) -> bool:
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(name is None or ast.unparse(name) in {"Exception", "BaseException"} for name in names)
