"""Count unclear names, and texts with unusual words, in the product and in the tests.

Functions are named with a verb phrase, variables with a noun, and constants with a standard prefix such as MAX.
Texts use common words, and say "is not a valid name", not "is no name". CONTRIBUTING.md has the rules.
`tests/test_shape.py` has the limits, which may only be lowered.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("flows", "monitors", "warehouse", "deployments", "examples")
TESTS = ("tests",)
PAGES = ("README.md", "docs/**/*.md")

_VERBS_IN_ED = frozenset({"embed", "feed", "need", "proceed", "seed", "speed", "succeed", "exceed", "shed"})
_PARTICIPLES = frozenset(
    [
        "begun",
        "bound",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "driven",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "known",
        "left",
        "lost",
        "made",
        "meant",
        "overseen",
        "paid",
        "put",
        "read_by",
        "said",
        "seen",
        "sent",
        "shown",
        "spent",
        "spoken",
        "stuck",
        "sworn",
        "taken",
        "told",
        "understood",
        "won",
        "written",
    ]
)
_ADVERBS = frozenset({"alone", "apart", "around", "over", "within"})
VAGUE = frozenset({"one", "said", "what", "which", "whose", "around", "these", "those"})
LOOSE = frozenset({"found", "known", "seen"})
REPLACEMENTS = frozenset({"item", "result", "part", "each", "given", "other", "entry"})
"""Vague names that could replace the names in `VAGUE` and `LOOSE`. They are counted so that they stay rare."""
_SUPERLATIVE = re.compile(
    r"_*(?:MOST|FEWEST|FEW|MANY|LEAST|(?:LONG|SHORT|LARG|SMALL|OLD|NEW)(?:EST|E?ST)?|ENOUGH|KEPT)_"
)
_QUAINT = re.compile(
    r"(?<![a-z])(?:told|untold|kept|drawn|sightings?|desk|twins?|anew|whoever|somebody|troubles?|mend(?:s|ed|ing)?)(?![a-z])"
)
_IS_NO = re.compile(r"(?<![Tt]here )\bis no [a-z]+[.\"']")
"""The pattern of phrases such as "is no name". It does not match "there is no name", which is idiomatic."""


def count_names(root: Path = ROOT, folders: tuple[str, ...] = PRODUCT) -> Counter[str]:
    """For each rule about names, count the functions, variables and constants whose names break the rule."""
    counts: Counter[str] = Counter()
    for path in _modules(root, folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            counts.update(_broken_rules(node))
    return counts


def count_texts(root: Path = ROOT, folders: tuple[str, ...] = PRODUCT) -> Counter[str]:
    """Count the lines with an unusual word or a phrase like "is no name" in ``folders`` and the document pages."""
    pages = [path for pattern in PAGES for path in root.glob(pattern)] if folders == PRODUCT else []
    counts: Counter[str] = Counter()
    for path in (*_modules(root, folders), *pages):
        for line in path.read_text(encoding="utf-8").lower().splitlines():
            counts["quaint words"] += bool(_QUAINT.search(line))
            counts["is no"] += bool(_IS_NO.search(line))
    return counts


def _modules(root: Path, folders: tuple[str, ...]) -> Iterator[Path]:
    return (path for folder in folders for path in sorted((root / folder).rglob("*.py")))


def _broken_rules(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if not _is_property(node):
            word = node.name.strip("_").partition("_")[0]
            if word in _PARTICIPLES | _ADVERBS or (
                word.endswith("ed") and word not in _VERBS_IN_ED and len(word) > 3
            ):
                yield "participles"
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            for rule, names in (("vague", VAGUE), ("loose", LOOSE), ("replacements", REPLACEMENTS)):
                if name in names:
                    yield rule
            if isinstance(node, ast.Name) and _SUPERLATIVE.match(name):
                yield "superlatives"
        case _:
            pass


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        "property" in ast.unparse(decorator) or "setter" in ast.unparse(decorator)
        for decorator in function.decorator_list
    )
