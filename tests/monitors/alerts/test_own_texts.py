"""Test that redaction leaves Lookout's own words in messages unchanged, but redacts inserted secrets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitors.alerts.redact import redact

ROOT = Path(__file__).parents[3]
STANDING_IN = ("NAME", "12", "'a1b2'", "2026-08-03", "https://example.com/x/1")
"""Example values that are inserted into messages."""
MAKERS = ("Error", "Fault", "RunNotMade", "Field", "Option", "Argument")
"""Suffixes of the names of functions and classes whose texts people read, such as errors and descriptions."""


def own_texts(source: str) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the line number and the parts of each text in ``source`` that becomes a message.

    A part is ``None`` where the code inserts a value.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(MAKERS)):
            yield from _literals(_without_default(node))


def _without_default(node: ast.Raise | ast.Call) -> ast.AST:
    """Return the expression without its ``default``, which is a value of the program and no text for people."""
    if isinstance(node, ast.Raise):
        return node
    remaining = [keyword for keyword in node.keywords if keyword.arg != "default"]
    return ast.Call(func=node.func, args=node.args, keywords=remaining)


def _literals(node: ast.AST) -> Iterator[tuple[int, list[str | None]]]:
    within = {
        id(inner)
        for text in ast.walk(node)
        if isinstance(text, ast.JoinedStr)
        for inner in ast.walk(text)
        if inner is not text
    }
    for text in ast.walk(node):
        if id(text) in within:
            continue
        if isinstance(text, ast.JoinedStr):
            yield text.lineno, [_said(part) for part in text.values]
        elif isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.lineno, [text.value]


def _said(part: ast.expr) -> str | None:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None


def masked_words(parts: list[str | None]) -> set[str]:
    """Return Lookout's own words in ``parts`` that redaction removes after an example value was inserted."""
    own = {word for part in parts if part for word in re.findall(r"\w{3,}", part)}
    texts = ("".join(value if part is None else part for part in parts) for value in STANDING_IN)
    return {word for text in texts for word in own if word not in redact(text)}


@pytest.mark.parametrize("package", ["deployments", "flows", "monitors", "warehouse"])
def test_every_message_of_ours_survives(package):
    found = [
        f"{file.relative_to(ROOT)}:{line}: {sorted(gone)}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, parts in own_texts(file.read_text(encoding="utf-8"))
        if (gone := masked_words(parts))
    ]
    assert found == []


def test_a_message_that_would_be_masked_is_found():
    (_, parts), *_ = own_texts('raise ConfigError(f"{name}: the password is Mango#4471, change it")')
    assert masked_words(parts) == {"Mango", "4471"}


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        ("LOOKOUT_STANDARD_WEBHOOK_SECRET: the secret is {}", "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"),
        ("targets.bot.token: {} is not accepted", "hf_QwErTyUiOpAsDfGhJkLz"),
        ("a Standard Webhooks secret is base64, and the password is {}", "Mango#4471"),
        ("the host ::1 answered {} to asha", "2405:201:6:11::7"),
        ("alerts go to {}, an address that is not accepted", "asha.rao@example.com"),
        ("postgres://{}@db/x cannot be reached", "admin:s3cr3tpw"),
    ],
)
def test_a_secret_in_a_message_of_ours_does_not(message, secret):
    assert secret not in redact(message.format(secret))
