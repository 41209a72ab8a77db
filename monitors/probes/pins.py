"""Selectors that a target pins: one that finds nothing is told by its key, and is never the application's fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitors.errors import AnswerTimeout, PageNotUnderstood, ProbeError
from monitors.probes.settings import Selectors

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

CHECK = """(given) => given.find(([, selector]) => {
  try { document.createDocumentFragment().querySelector(selector); return false; } catch { return true; }
})?.[0] ?? null"""
NEW_TEXT = 20
"""Characters beyond the question itself: a name and a time beside it are shorter."""


def key_of(name: str, selector: str) -> str:
    """How an error names a pinned selector."""
    return f"probe.selectors.{name} = {selector!r}"


async def check_selectors(page: Page, selectors: Selectors) -> None:
    """`PageNotUnderstood` when one is no CSS selector; before the page is loaded, so that nobody waits for it."""
    pinned = [[name, value] for name, value in selectors.model_dump(exclude_none=True).items()]
    wrong = await page.evaluate(CHECK, pinned) if pinned else None
    if wrong is not None:
        raise PageNotUnderstood(f"{key_of(wrong, getattr(selectors, wrong))} is no CSS selector")


def nothing_there(name: str, selectors: Selectors) -> str:
    """What a message about something that was not found begins with, when it is pinned: its key."""
    selector = getattr(selectors, name)
    return f"{key_of(name, selector)} matches nothing on the page; " if selector else ""


def raise_if_pinned(name: str, selectors: Selectors) -> None:
    """`PageNotUnderstood` about something that was not found, when it is pinned."""
    if getattr(selectors, name):
        raise PageNotUnderstood(nothing_there(name, selectors).removesuffix("; "))


class PinnedAnswer:
    """Tells an app that did not answer from a pinned ``answer`` that no longer finds the answer."""

    def __init__(self, frame: Frame, selector: str | None) -> None:
        self._frame = frame
        self._selector = selector
        self._before = 0

    async def begin(self) -> None:
        """Notes how much the page says before the question."""
        if self._selector is not None:
            self._before = await self._characters()

    async def blamed_rightly(self, error: AnswerTimeout, turn: str) -> ProbeError:
        """The error, or `PageNotUnderstood` when the page did say something, only not where answers are pinned."""
        if self._selector is None or await self._frame.evaluate(
            "(given) => __lookout.all(given).length", self._selector
        ):
            return error
        new = await self._characters() - self._before - len(turn)
        if new < NEW_TEXT:
            return error
        key = key_of("answer", self._selector)
        return PageNotUnderstood(f"{key} matches nothing, though the page shows {new} new characters")

    async def _characters(self) -> int:
        return int(await self._frame.evaluate("() => __lookout.textOf(document.body).length"))
