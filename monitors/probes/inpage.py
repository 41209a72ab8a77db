"""What runs inside the page, and the shapes of what it says back."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from monitors.errors import BrowserLost
from monitors.records.base import Milliseconds, Record
from monitors.records.exchanges import SettleSample

if TYPE_CHECKING:
    from playwright.async_api import Frame

SCRIPTS = ("walk.js", "find.js", "compare.js", "question.js", "fresh.js", "answer.js", "watch.js")
CALL = "([name, ...given]) => globalThis.__lookout[name](...given)"


@cache
def script() -> str:
    """The JavaScript that every frame gets before its own scripts run."""
    folder = Path(__file__).with_name("inpage")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)


class Found(Record):
    """What a frame offers: its likeliest message box (``score`` 5 and more is trusted at once), and the others.

    ``rivals`` is how many other boxes look just as likely.
    """

    score: float
    enabled: bool
    box: str | None
    send: str | None
    covered: bool
    rivals: int = 0
    others: tuple[str, ...]
    title: str


class Walls(Record):
    """What a page without a chat says: whether it asks to sign in, speaks of a quota, and how it begins.

    ``loading``: it is blank, says that it loads, or its document is not complete.
    """

    login: bool = False
    passwords: int = 0
    quota: bool = False
    loading: bool = False
    text: str = ""


class WatchState(StrEnum):
    """Why the watch ended."""

    FINISHED = "finished"
    ERROR = "error"
    BROKEN = "broken"
    """The network broke off and the page did not go on."""
    DEADLINE = "deadline"
    NOTHING = "nothing"
    """The page was busy, is idle again, and shows nothing new."""
    UNSENT = "unsent"
    """The question still stands in the box and nothing moves."""


class Watched(Record):
    """How an answer settled.

    ``firm``: a control of the page itself said that it was busy, and then that it was done. ``busy``: it still says
    that it is busy; a watch that ends as finished all the same takes the control for forgotten.
    ``pushed``: a socket or event stream brought something meanwhile. ``calm_ms`` is how long the text has not
    changed. ``unread`` is what else is new on the page, not taken for the answer; ``held``: the
    question still stands in the box; ``echoed``: the page repeats it. Times count from sending.
    """

    state: WatchState
    text: str
    firm: bool
    busy: bool = False
    pushed: bool
    calm_ms: Milliseconds
    elapsed_ms: Milliseconds
    error: str | None
    unread: str = ""
    held: bool = False
    echoed: bool = False
    first_token_ms: Milliseconds | None
    total_ms: Milliseconds
    samples: tuple[SettleSample, ...]


class Navigated(Exception):
    """The page was left for another one while it was watched."""


class Limits(Record):
    """When the in-page watch speaks up. ``unsent_ms`` 0: never about an unsent question."""

    quiet_ms: Milliseconds
    firm_quiet_ms: Milliseconds
    patience_ms: Milliseconds
    deadline_ms: Milliseconds
    unsent_ms: Annotated[float, Field(ge=0)] = 0


async def call(frame: Frame, name: str, *given: Any, deadline_s: float = 15.0) -> Any:
    """Calls one of the page's functions. `BrowserLost` when the page does not answer at all."""
    try:
        return cleaned(await asyncio.wait_for(frame.evaluate(CALL, [name, *given]), deadline_s))
    except TimeoutError as error:
        raise BrowserLost(f"the page hung: it did not answer for {deadline_s:g} s") from error


def cleaned(value: Any) -> Any:
    """The value with lone surrogates replaced: a page may hold half a character, a record may not."""
    match value:
        case str():
            return clean(value)
        case list():
            return [cleaned(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {clean(str(key)): cleaned(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def clean(text: str) -> str:
    """Text that UTF-8 can hold: pairs of surrogates become their character, lone ones U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
