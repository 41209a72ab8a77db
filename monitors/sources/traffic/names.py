"""Load the names of fields that loggers use for conversations, from ``names.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|\s+|(?<=\w)-(?=\w)")


def load_names(module: str) -> dict[str, Any]:
    """Return the content of ``names.toml`` in the folder of a module."""
    return tomllib.loads(Path(module).with_name("names.toml").read_text(encoding="utf-8"))


_TABLES: Final = load_names(__file__)


def get_names(table: str, key: str) -> tuple[str, ...]:
    """Return the names under ``key`` in one table of ``names.toml``."""
    return tuple(_TABLES[table][key])


def get_codes(table: str, key: str) -> dict[str, dict[str, str]]:
    """Return the codes under ``key`` in one table of ``names.toml``.

    The result maps each path to its codes and their meanings, such as ``{"from.role": {"1": "user"}}``.
    """
    return dict(_TABLES[table][key])


def get_numbers(table: str) -> dict[str, int]:
    """Return one table of ``names.toml`` that maps names to numbers, such as the names of months."""
    return dict(_TABLES[table])


@lru_cache(maxsize=8192)
def to_snake_case(key: str) -> str:
    """Return a key in lower snake case: ``createdAt`` becomes ``created_at``. Dots are not changed."""
    return _HUMP.sub("_", key.strip()).lower()


@lru_cache(maxsize=1024)
def to_snake_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths in lower snake case, as in a unified item: ``createdAt`` becomes ``created_at``."""
    return tuple(map(to_snake_case, paths))
