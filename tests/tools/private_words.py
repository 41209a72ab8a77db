"""Where the product still says a word of its own instead of the field's: in identifiers, and in texts that people read.

The words and what replaces them stand in ``WORDS``. A count may only fall: ``tests/test_plain_words.py`` holds it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "monitors", "warehouse", "deployments", "examples")
PAGES = ("README.md", "docs/**/*.md", "deployments/**/*.md", "monitors/**/*.html", "monitors/**/*.j2")
"""Texts outside Python that people read. The changelog tells of the past, in the words of its time."""

WORDS = {
    "told": "graded; notified",
    "untold": "ungraded",
    "tell": "notify",
    "lost": "failed",
    "drawn": "sampled",
    "draw": "sample",
    "look": "poll",
    "looks": "polls",
    "looked": "polled; poll result",
    "kept": "stored",
    "keep": "save",
    "twin": "mutant",
    "twins": "mutants",
    "bite": "mutation score",
    "bites": "mutation score",
    "seat": "panel member",
    "seats": "panel members",
    "riders": "canaries",
    "rivals": "family policy",
    "sighting": "observation context",
    "sightings": "observations",
    "notice": "message context",
    "desk": "notifier; review session",
    "wired": "run context",
    "wiring": "composition root",
    "begun": "run folder",
    "night": "nightly run",
    "nights": "nightly runs",
    "weigh": "evaluate",
    "weighing": "gate inputs",
    "words": "lexicon (data); format_* (text)",
}
"""Private word -> the field's word, as parts of identifiers.

"Wire" was one for the build context. It is not counted any more: all that is left is what came over the wire, the
field's own word for the payload beside what a page shows.
"""
_ONLY_BEHIND: frozenset[str] = frozenset({"words"})
"""Private as a part of a longer name (``role_words``); a variable of that name alone holds words."""

IN_TEXT = ("told", "untold", "twin", "twins", "bite", "bites", "riders", "rivals", "sighting", "sightings", "desk", "wired",
           "begun", "drawn")  # fmt: skip
"""Those that are wrong in a sentence too. The others are ordinary English there: a night, a look, to keep."""

_ORDINARY = re.compile(r"service desk|\|desk(?=\|)|landline desk\b")
"""A desk that people go to, in the demo's replies and in patterns that look for one: no notifier, no review session."""

_FIRST_LOOK = re.compile(r"first_?look", re.IGNORECASE)
"""A capability's name, in the glossary: what failed cases have in common."""

_PART = re.compile(r"[a-z]+|[A-Z][a-z]*|\d+")
_WORD = re.compile(rf"\b({'|'.join(IN_TEXT)})\b", re.IGNORECASE)


def private_parts(identifier: str) -> Iterator[str]:
    """The private words that an identifier is made of: ``case_told`` and ``CaseTold`` give ``told``."""
    parts = [part.lower() for part in _PART.findall(_FIRST_LOOK.sub("", identifier))]
    return (part for part in parts if part in WORDS and not (part in _ONLY_BEHIND and len(parts) == 1))


def identifier_counts(root: Path = ROOT) -> Counter[str]:
    """How often each private word stands in an identifier of the product, module names included."""
    counts: Counter[str] = Counter()
    for path in _modules(root):
        counts.update(private_parts(path.stem))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            counts.update(part for name in _names(node) for part in private_parts(name))
    return counts


def _names(node: ast.AST) -> Iterator[str]:
    """The identifiers that stand at one place of a module: what is defined, used, imported or passed by name."""
    for field in ("id", "attr", "arg", "name", "asname", "module"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name


def message_counts(root: Path = ROOT) -> Counter[str]:
    """How often each word of ``IN_TEXT`` stands in a text: string literals but docstrings, pages, templates."""
    counts: Counter[str] = Counter()
    for path in _modules(root):
        for text in _literals(path.read_text(encoding="utf-8")):
            counts.update(word.lower() for word in _WORD.findall(_ORDINARY.sub("", text)))
    for pattern in PAGES:
        for path in root.glob(pattern):
            counts.update(word.lower() for word in _WORD.findall(path.read_text(encoding="utf-8")))
    return counts


def _modules(root: Path) -> Iterator[Path]:
    return (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))


def _literals(source: str) -> Iterator[str]:
    """The texts of a module without its docstrings. A name in quotes (a key, a column) is an identifier, not a text."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in documented else None
        if isinstance(text, str) and " " in text:
            yield text
