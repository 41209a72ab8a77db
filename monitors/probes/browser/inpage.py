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

SCRIPTS = (
    "bounds.js", "walk.js", "timers.js", "find.js", "open.js", "compare.js", "question.js", "fresh.js", "answer.js",
    "watch.js",
)  # fmt: skip
CALL = "([name, ...given]) => globalThis.__lookout[name](...given)"


@cache
def load_script(*names: str) -> str:
    """The JavaScript that every frame gets before its own scripts run, or the parts of it that are named."""
    folder = Path(__file__).with_name("inpage")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names or SCRIPTS)


class MessageBoxes(Record):
    """What a frame offers: its likeliest message box (``score`` 5 and more is trusted at once), and the others.

    ``equals`` is how many other boxes are just as likely. ``asks``: the box itself asks for a message or a
    question. ``pinned``: the target names it.
    """

    score: float
    enabled: bool
    box: str | None
    send: str | None
    covered: bool
    equals: int = 0
    asks: bool = False
    pinned: bool = False
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


class CaptureDoubt(StrEnum):
    """Why the text that was read may be no answer."""

    ECHO = "echo"
    """It says the question, or how it begins."""
    STOOD = "stood"
    """It stood on the page before the question, hidden."""


class WatchResult(Record):
    """How an answer settled.

    ``firm``: a control of the page itself said that it was busy, and then that it was done. ``busy``: it still says
    that it is busy; a watch that ends as finished all the same takes the control for forgotten.
    ``pushed``: a socket or event stream brought something meanwhile. ``calm_ms`` is how long the text has not
    changed. ``held``: the question still stands in the box; ``echoed``: the page repeats it.
    Times count from sending.

    ``unread`` is what else is new on the page, not taken for the answer; ``aside`` what was left out as a name, a
    time or a mark at the edges of its message; ``unsure`` what of that holds a figure and may be the answer's own.
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
    aside: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    doubt: CaptureDoubt | None = None
    held: bool = False
    echoed: bool = False
    first_token_ms: Milliseconds | None
    total_ms: Milliseconds
    samples: tuple[SettleSample, ...]


class Navigated(Exception):
    """The page was left for another one while it was watched."""


class WatchLimits(Record):
    """When the in-page watch speaks up. ``unsent_ms`` 0: never about an unsent question."""

    quiet_ms: Milliseconds
    firm_quiet_ms: Milliseconds
    patience_ms: Milliseconds
    deadline_ms: Milliseconds
    unsent_ms: Annotated[float, Field(ge=0)] = 0


async def call_in_page(frame: Frame, name: str, *given: Any, deadline_s: float = 15.0) -> Any:
    """Calls one of the page's functions. `BrowserLost` when the page does not answer at all."""
    try:
        async with asyncio.timeout(deadline_s):
            return replace_surrogates_in(await frame.evaluate(CALL, [name, *given]))
    except TimeoutError as error:
        raise BrowserLost(f"the page hung: it did not answer for {deadline_s:g} s") from error


def replace_surrogates_in(value: Any) -> Any:
    """The value with lone surrogates replaced: a page may hold half a character, a record may not."""
    match value:
        case str():
            return replace_surrogates(value)
        case list():
            return [replace_surrogates_in(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - JSON is untyped
        case dict():
            return {replace_surrogates(str(key)): replace_surrogates_in(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON is untyped
        case _:
            return value


def replace_surrogates(text: str) -> str:
    """Text that UTF-8 can hold: pairs of surrogates become their character, lone ones U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
