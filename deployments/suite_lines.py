"""Which line of a suite's file a case stands on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def lines_of(suite: Path) -> Mapping[str, int]:
    """Line (from 1) by case id. Nothing for a file that cannot be read: a note can do without a line."""
    try:
        text = suite.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        case_id = _id_in(line)
        if case_id is not None:
            found.setdefault(case_id, number)
    return found


def path_in(workspace: Path | None, file: Path) -> str:
    """The file's path as GitHub knows it: relative to the repository, where it lies in it."""
    whole = file.absolute()
    if workspace is not None and whole.is_relative_to(workspace.absolute()):
        return whole.relative_to(workspace.absolute()).as_posix()
    return whole.as_posix()


def _id_in(line: str) -> str | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
