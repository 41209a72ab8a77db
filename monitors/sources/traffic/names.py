"""The names of a logger's fields for conversations: ``names.toml``, and keys in one spelling."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|\s+|(?<=\w)-(?=\w)")


def load_names(module: str) -> dict[str, Any]:
    """Load the ``names.toml`` beside a module."""
    return tomllib.loads(Path(module).with_name("names.toml").read_text(encoding="utf-8"))


_TABLES: Final = load_names(__file__)


def get_names(table: str, key: str) -> tuple[str, ...]:
    """Return the names of one row of ``names.toml``."""
    return tuple(_TABLES[table][key])


def get_codes(table: str, key: str) -> dict[str, dict[str, str]]:
    """Return a table of codes by path: ``{"from.role": {"1": "user"}}``."""
    return dict(_TABLES[table][key])


def get_numbers(table: str) -> dict[str, int]:
    """Return a table of numbers by name: zones, months."""
    return dict(_TABLES[table])


@lru_cache(maxsize=8192)
def to_snake_case(key: str) -> str:
    """Return a key in lower snake case, with its dots: ``createdAt`` is ``created_at``."""
    return _HUMP.sub("_", key.strip()).lower()


@lru_cache(maxsize=1024)
def to_snake_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths in the form that is compared with the keys of a unified item."""
    return tuple(map(to_snake_case, paths))
