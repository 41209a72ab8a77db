"""The fields of a pipe's line, checked: each error names the field and what is accepted."""

from __future__ import annotations

from typing import Any, cast

from deployments.pipe_lines import Fields, Unreadable
from monitors.records.base import Language, Severity

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""Half of a surrogate pair is no text; one character stands for one, so that places stay right."""


def text_of(fields: Fields, name: str, default: str | None = None) -> str:
    """A text. Without a default it must be there; it may be empty."""
    value = fields.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        missing = "missing" if name not in fields else "not a text"
        raise Unreadable(f"{name}: {missing}; a JSON string is expected")
    return clean(value)


def clean(text: str) -> str:
    """The text with halves of surrogate pairs replaced by U+FFFD, one for one."""
    return text if text.isascii() else text.translate(_SURROGATES)


def texts_of(fields: Fields, name: str) -> tuple[str, ...]:
    """A text or a list of texts, each of which is as good as the others."""
    value = fields.get(name)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, str) for item in items):
            return tuple(clean(item) for item in items)
        raise Unreadable(f"{name}: a JSON string, or a list of strings with at least one")
    return (text_of(fields, name),)


def flag_of(fields: Fields, name: str) -> bool:
    """``true`` or ``false``; absent is false."""
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Unreadable(f"{name}: true or false is expected")
    return value


def severity_of(fields: Fields) -> Severity:
    """1, 2 or 3; absent is 2, a plainly wrong answer."""
    value = fields.get("severity")
    if value is None:
        return Severity.WRONG
    if isinstance(value, bool) or value not in (1, 2, 3):
        raise Unreadable("severity: 1 (annoying), 2 (wrong) or 3 (page someone) is expected")
    return Severity(int(value))


def language_of(fields: Fields) -> Language | None:
    """One of the four languages, or ``None`` where it is not said."""
    value = fields.get("language")
    if value is None:
        return None
    accepted = [language.value for language in Language]
    if value not in accepted:
        raise Unreadable(f"language: one of {', '.join(accepted)} is expected")
    return Language(value)
