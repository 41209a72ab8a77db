"""An exception's text goes into Prefect's logs and states: what is secret or personal in it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from monitors.alerts.redact import redact
from monitors.errors import MonitorError

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Broke(MonitorError):
    """Takes the place of an error that is none of ours and whose text held something that must not be shown."""


def masked(step: Callable[Given, Awaitable[Result]]) -> Callable[Given, Awaitable[Result]]:
    """Let every exception of ``step`` through whose text is harmless; another takes the place of the rest.

    The one that is replaced is cut off, its causes too: a traceback prints them all.
    """

    @wraps(step)
    async def safely(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return await step(*args, **kwargs)
        except Exception as error:
            if all(redact(text) == text for text in _texts(error)):
                raise
            safe = _replaced(error)
        raise safe

    return safely


def _replaced(error: Exception) -> MonitorError:
    if isinstance(error, MonitorError):
        return type(error)(redact(str(error)))
    return Broke(f"{type(error).__name__}: {redact(str(error))}")


def _texts(error: BaseException) -> list[str]:
    """What a traceback would print of ``error`` and of all that led to it."""
    texts: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts.append(str(one))
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += cast("tuple[BaseException, ...]", one.exceptions)
    return texts
