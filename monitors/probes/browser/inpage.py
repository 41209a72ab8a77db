"""Load and call the JavaScript that runs inside the page, and define the types of its results."""

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
def load_page_script(*names: str) -> str:
    """Return Lookout's JavaScript, which runs in each frame before the scripts of the page.

    If ``names`` of files are given, only the code of these files is returned.
    """
    folder = Path(__file__).with_name("inpage")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names or SCRIPTS)


class MessageBoxes(Record):
    """The likeliest message box of a frame, and the other text boxes of the frame.

    - ``score``: how likely the box belongs to a chat. A box with a score of at least 5 is used immediately.
    - ``equals``: the number of other boxes with the same score.
    - ``asks``: the box requests a message or a question, for example in its placeholder.
    - ``pinned``: the configured ``message_box`` selector matches the box.
    - ``covered``: another element is in front of the box.
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
    """What a page without a chat shows: a request to sign in, password fields or a quota limit.

    - ``passwords`` is the number of password fields.
    - ``loading`` is True if the page is empty, shows that it is loading, or has an incomplete document.
    - ``text`` contains the first words of the page.
    """

    login: bool = False
    passwords: int = 0
    quota: bool = False
    loading: bool = False
    text: str = ""


class WatchState(StrEnum):
    """The reason why the script stopped watching the page for an answer."""

    FINISHED = "finished"
    ERROR = "error"
    BROKEN = "broken"
    """The connection broke, and the answer did not continue."""
    DEADLINE = "deadline"
    NOTHING = "nothing"
    """The page was busy and is idle again, but it shows no new text."""
    UNSENT = "unsent"
    """The question is still in the box, and the page does not react."""
    LOST = "lost"
    """The box is empty, but the page does not repeat the question and does not react."""


class CaptureDoubt(StrEnum):
    """The reason why the text that was read may not be the answer."""

    ECHO = "echo"
    """The text repeats the question or the beginning of the question."""
    STOOD = "stood"
    """The text was hidden on the page before the question was sent."""


class WatchResult(Record):
    """What the script in the page observed while it watched for an answer. Times count from sending the question.

    Some pages have a control that shows whether the app is still answering, such as a stop button:

    - ``firm``: the control showed that the app was busy, and later that it was done.
    - ``busy``: the control still shows that the app is busy.
    - ``early``: the control showed the end when the first words of the answer appeared.
    - ``certain``: a profile or the configuration names the control.

    The connections and the question:

    - ``pushed``: a web socket or an event stream received data.
    - ``live``: the web socket or event stream that received data is still open.
    - ``resumed``: the answer to an earlier turn continued.
    - ``calm_ms``: milliseconds since the last change of the text.
    - ``held``: the question is still in the message box.
    - ``echoed``: the page repeats the question.

    The texts:

    - ``unread`` is new text outside of the answer.
    - ``aside`` contains names, times and signs that were removed from the start and the end of the message.
    - ``unsure`` contains the texts of ``aside`` that contain a number. They may belong to the answer.
    - ``parts`` contains sources, tool calls, reasoning, status texts and names in the message.
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

    def with_waiting_time(self, waited_ms: float) -> WatchResult:
        """Return a copy in which ``waited_ms`` is added to the times.

        This is needed if the watch began ``waited_ms`` after the question was sent.
        """
        first_ms = None if self.first_token_ms is None else self.first_token_ms + waited_ms
        return self.model_copy(update={"first_token_ms": first_ms, "total_ms": self.total_ms + waited_ms})


class Navigated(Exception):
    """Raised if the page loads another page while Lookout watches the page."""


class WatchLimits(Record):
    """Time limits for the script that watches the page.

    ``ended_quiet_ms`` is the necessary time without a change after the last request has ended. The watch takes at
    least ``settle_ms``. If ``unsent_ms`` or ``lost_ms`` is 0, an unsent or lost question is not reported.
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
    """Call the function ``name`` of Lookout's JavaScript in ``frame``, and return its result.

    Raises `BrowserLost` if the page does not respond within ``deadline_s``.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return replace_surrogates_in(await frame.evaluate(CALL, [name, *given]))
    except TimeoutError as error:
        raise BrowserLost(f"the page did not respond for {deadline_s:g} s") from error


def replace_surrogates_in(value: Any) -> Any:
    """Return JSON data in which all texts are valid Unicode (see `replace_surrogates`)."""
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
    """Return text that UTF-8 can encode.

    JavaScript may cut a character in two halves (lone surrogates). Each half is replaced with U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
