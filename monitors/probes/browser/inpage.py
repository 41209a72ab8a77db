"""The JavaScript that runs inside the page, and the types of its results."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from monitors.errors import BrowserLost
from monitors.records.base import Milliseconds, Record
from monitors.records.exchanges import AnswerPart, SettleSample

if TYPE_CHECKING:
    from playwright.async_api import Frame

SCRIPTS = (
    "bounds.js", "walk.js", "timers.js", "find.js", "open.js", "compare.js", "question.js", "fresh.js", "parts.js",
    "answer.js", "watch.js",
)  # fmt: skip
CALL = "([name, ...given]) => globalThis.__lookout[name](...given)"


@cache
def load_script(*names: str) -> str:
    """Return the JavaScript that runs in each frame before the page's own scripts, or the named parts of it."""
    folder = Path(__file__).with_name("inpage")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names or SCRIPTS)


class MessageBoxes(Record):
    """The likeliest message box of a frame (``score`` 5 and more is trusted at once), and the other boxes.

    ``equals`` is the number of other boxes that are as likely. ``asks``: the box itself asks for a message or a
    question. ``pinned``: the box is configured.
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
    """Signs on a page without a chat: whether it asks to sign in or mentions a quota, and its first words.

    ``loading``: the page is blank, shows that it is loading, or its document is not complete.
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
    """The network connection broke and the page did not continue."""
    DEADLINE = "deadline"
    NOTHING = "nothing"
    """The page was busy, is idle again and shows no new text."""
    UNSENT = "unsent"
    """The question is still in the box and nothing happens."""
    LOST = "lost"
    """The box is empty, the page does not repeat the question and nothing happens."""


class CaptureDoubt(StrEnum):
    """Why the text that was read may not be the answer."""

    ECHO = "echo"
    """It repeats the question, or its beginning."""
    STOOD = "stood"
    """It was on the page before the question, hidden."""


class WatchResult(Record):
    """The result of watching for an answer.

    ``firm``: a control of the page showed busy, then done. ``busy``: the control still shows busy; if the watch
    ends as finished nevertheless, the page has forgotten to reset the control. ``early``: the control was done at
    the first words, so it may only show that the answer began. ``certain``: the control is the profile's or
    configured, so it shows the end.
    ``pushed``: a socket or event stream received data meanwhile. ``live``: a socket or stream with data is still
    open. ``resumed``: an answer to an earlier turn went on. ``calm_ms``: milliseconds since the last change of
    the text. ``held``: the question is still in the box. ``echoed``: the page repeats the question.
    Times count from sending.

    ``unread`` is other new text outside the answer. ``aside`` are names, times and marks that were removed from
    the edges of the message; ``unsure`` are those with a number, which may belong to the answer. ``parts`` are
    its sources, tool cards, reasoning, status and names.
    """

    state: WatchState
    text: str
    firm: bool
    early: bool = False
    certain: bool = False
    busy: bool = False
    pushed: bool
    live: bool = False
    resumed: bool = False
    calm_ms: Milliseconds
    elapsed_ms: Milliseconds
    error: str | None
    unread: str = ""
    aside: tuple[str, ...] = ()
    parts: tuple[AnswerPart, ...] = ()
    unsure: tuple[str, ...] = ()
    doubt: CaptureDoubt | None = None
    held: bool = False
    echoed: bool = False
    first_token_ms: Milliseconds | None
    total_ms: Milliseconds
    samples: tuple[SettleSample, ...]


class Navigated(Exception):
    """The page was left for another one during the watch."""


class WatchLimits(Record):
    """The limits of the in-page watch. ``unsent_ms`` and ``lost_ms`` 0: do not report an unsent or lost question.

    ``ended_quiet_ms`` counts from the end of the last open request. The watch takes at least ``settle_ms``.
    """

    quiet_ms: Milliseconds
    firm_quiet_ms: Milliseconds
    ended_quiet_ms: Milliseconds
    settle_ms: Milliseconds = 0
    patience_ms: Milliseconds
    deadline_ms: Milliseconds
    unsent_ms: Annotated[float, Field(ge=0)] = 0
    lost_ms: Annotated[float, Field(ge=0)] = 0


async def call_in_page(frame: Frame, name: str, *given: Any, deadline_s: float = 15.0) -> Any:
    """Call one of the in-page functions. Raise `BrowserLost` if the page does not respond."""
    try:
        async with asyncio.timeout(deadline_s):
            return replace_surrogates_in(await frame.evaluate(CALL, [name, *given]))
    except TimeoutError as error:
        raise BrowserLost(f"the page hung: it did not answer for {deadline_s:g} s") from error


def replace_surrogates_in(value: Any) -> Any:
    """Replace lone surrogates in plain data: a page may hold half a character, a record may not."""
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
    """Return text that UTF-8 can encode: surrogate pairs become their character, lone surrogates U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
