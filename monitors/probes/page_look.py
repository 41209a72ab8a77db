"""What there is to see on a chat page, as values: what `lookout doctor` tells."""

from __future__ import annotations

from enum import StrEnum

from monitors.probes.settings import Selectors
from monitors.probes.wire_candidates import WireCandidate
from monitors.records.base import Blame, Record
from monitors.records.exchanges import NoAnswerReason

HARMLESS = "Hello! What can you help me with?"
"""The one question that may be asked: any bot can answer it, and nothing is done or looked up for it."""


class Asking(StrEnum):
    """Whether the page may be asked a question."""

    NEVER = "never"
    IF_NEEDED = "if-needed"
    """Only where the page itself does not tell where answers stand."""
    ALWAYS = "always"


class Part(Record):
    """Something that was found. ``role`` and ``name`` are as the browser tells them to a screen reader.

    ``selector`` finds it again, where one does; ``how_sure`` is in words.
    """

    role: str
    name: str
    selector: str | None
    how_sure: str
    in_shadow: bool = False


class Overview(Record):
    """What a person would mention who was asked what is on the page."""

    title: str = ""
    headings: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    text: str = ""


class Trouble(Record):
    """Why the page could not be asked, and what to do."""

    reason: NoAnswerReason
    blame: Blame
    detail: str
    to_do: str


class PageLook(Record):
    """One look at one page. Times in seconds from opening it. ``picture`` is a path, or none could be taken.

    ``frame`` is the address of the frame that the chat is in, when it is not the page itself. ``why_asked`` says
    why a question was asked, or why none was.
    """

    address: str
    http_status: int | None = None
    loaded_s: float | None = None
    usable_s: float | None = None
    profile: str | None = None
    frame: str | None = None
    box: Part | None = None
    send: Part | None = None
    answer: Part | None = None
    asked: str | None = None
    why_asked: str = ""
    answer_text: str = ""
    answered_s: float | None = None
    wire: tuple[WireCandidate, ...] = ()
    selectors: Selectors = Selectors()
    console_errors: tuple[str, ...] = ()
    overview: Overview = Overview()
    picture: str | None = None
    trouble: Trouble | None = None
