"""The commands of ``lookout`` with their options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from deployments.cli.app import LazyGroup, app


def every_command() -> dict[str, Any]:
    """Return every command, keyed by the words that follow ``lookout``, such as ``verify`` or ``gold check``."""
    return dict(_within(get_command(app)))


def _within(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name in group.commands:
        command = group.load_command(name)
        if isinstance(command, LazyGroup):
            if command.invoke_without_command:
                yield " ".join((*path, name)), command
            yield from _within(command, *path, name)
        else:
            yield " ".join((*path, name)), command
