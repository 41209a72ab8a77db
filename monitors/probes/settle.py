"""When is an answer whole? (V5) The page's own controls, the network and the text decide together.

The watch itself runs inside the page, in one promise: it resolves when the page looks done. What the page cannot
know, whether a request is still open, is asked here. A cut-off answer is an error, never a wrong answer.
"""

from __future__ import annotations

import asyncio
import re
from time import monotonic
from typing import TYPE_CHECKING, assert_never

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    PageNotUnderstood,
    ProbeError,
)
from monitors.probes.inpage import Limits, Navigated, Watched, WatchState, call
from monitors.probes.network import Stillness, Traffic
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import Frame

# After a page's own control said that it is done, only the drawing of the last words is waited for.
FIRM_QUIET_S = 0.15
# A page that does nothing for so long after Enter wants its button pressed.
UNSENT_S = 1.5
# An answer that may go on is waited for so many times longer: one that stops in mid-sentence, or that the page
# types by itself, letter by letter, since long after the network brought the last of it. Typing stalls at times.
SLOW_QUIETS = 4
TYPED_S = 0.6
_ENDS = re.compile(r"[^\w\s,–—-]$")
# A request that is open after so many times the patience belongs to no answer: some apps keep one for ever.
OPEN_PATIENCE = 2
# In-page timers are late when the cores are busy; only a page that hangs misses its deadline by this much.
HANG_SLACK_S = 10.0
_WALL = re.compile(
    r"quota|rate.?limit|too many requests|(log|sign) ?in|unauthori[sz]ed|out of credits", re.IGNORECASE
)


def limits_of(
    settings: ProbeSettings, *, patience: int = 0, unsent_s: float = 0, quiet_s: float | None = None
) -> Limits:
    """The settings as the page reads them. ``patience``: only so many times the patience counts as an end.

    ``unsent_s``: speak up when the question still stands in its box after so long; 0: never. ``quiet_s``: instead
    of the settings' own.
    """
    patience_ms = settings.patience_s * 1000
    return Limits(
        quiet_ms=patience * patience_ms if patience else (quiet_s or settings.quiet_s) * 1000,
        firm_quiet_ms=min(FIRM_QUIET_S, settings.quiet_s) * 1000 if quiet_s is None else quiet_s * 1000,
        patience_ms=patience_ms,
        deadline_ms=settings.answer_deadline_s * 1000,
        unsent_ms=unsent_s * 1000,
    )


async def watch_once(frame: Frame, settings: ProbeSettings, limits: Limits) -> Watched:
    """One promise in the page. Raises `Navigated` when the page has gone meanwhile."""
    deadline_s = settings.answer_deadline_s + HANG_SLACK_S
    seen = await call(frame, "settled", limits.model_dump(), deadline_s=deadline_s)
    if seen is None:
        raise Navigated
    return Watched.model_validate(seen)


async def whole_answer(frame: Frame, traffic: Traffic, settings: ProbeSettings, first: Watched) -> Watched:
    """Goes on watching from `first` until the answer is whole.

    Raises `AnswerIncomplete`, `AnswerTimeout`, `AppErrorShown`, `AccessDenied` (a quota or login wall), or
    `PageNotUnderstood` where something new stands on the page that nobody can take for the answer.
    """
    seen = first
    doubted = False
    while True:
        raise_for(seen, settings)
        if traffic.cut and not doubted:  # the page may have looked done before it could be told
            doubted = True
            await call(frame, "broke", True)
            seen = await watch_once(frame, settings, limits_of(settings))
            continue
        if seen.busy and traffic.is_open:
            raise incomplete(seen, settings)
        limits = await _to_go_on(seen, traffic, settings)
        if limits is None:
            return seen
        seen = await watch_once(frame, settings, limits)


async def _to_go_on(seen: Watched, traffic: Traffic, settings: ProbeSettings) -> Limits | None:
    """With which limits to watch on; ``None`` where the answer is whole."""
    slow_s = SLOW_QUIETS * settings.quiet_s
    if seen.calm_ms >= OPEN_PATIENCE * settings.patience_s * 1000:
        return None
    if _may_go_on(seen, traffic) and seen.calm_ms < slow_s * 1000:
        return limits_of(settings, quiet_s=slow_s)
    if seen.firm:
        return None
    traffic.changed.clear()
    match await traffic.stillness(characters=len(seen.text), pushed=seen.pushed):
        case Stillness.ENDED:
            return None
        case Stillness.OPEN:
            patience = 0 if await _changes(traffic, _time_left_s(seen, settings)) else OPEN_PATIENCE
        case Stillness.UNTOLD if seen.calm_ms >= settings.patience_s * 1000:
            return None
        case Stillness.UNTOLD:
            patience = 1
    return limits_of(settings, patience=patience)


def _may_go_on(seen: Watched, traffic: Traffic) -> bool:
    """Whether it stops in mid-sentence, or grew on its own after the last request had ended."""
    typed_s = 0.0 if traffic.ended_at is None else monotonic() - seen.calm_ms / 1000 - traffic.ended_at
    return typed_s > TYPED_S or _ENDS.search(seen.text) is None


def _time_left_s(seen: Watched, settings: ProbeSettings) -> float:
    calm_s = OPEN_PATIENCE * settings.patience_s - seen.calm_ms / 1000
    return max(0.05, min(calm_s, settings.answer_deadline_s - seen.elapsed_ms / 1000))


async def _changes(traffic: Traffic, timeout_s: float) -> bool:
    """Whether a request ends within the time."""
    try:
        await asyncio.wait_for(traffic.changed.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


def raise_for(seen: Watched, settings: ProbeSettings) -> None:
    """Turns every end but a whole answer into its error."""
    match seen.state:
        case WatchState.FINISHED if seen.text:
            return
        case WatchState.ERROR:
            shown = (seen.error or "")[:300]
            if _WALL.search(shown):
                raise AccessDenied(f"the page says: {shown}", partial_text=seen.text)
            raise AppErrorShown(f"the page says: {shown}", partial_text=seen.text)
        case WatchState.BROKEN if seen.text:
            raise AnswerIncomplete("the stream broke off in mid-answer", partial_text=seen.text)
        case WatchState.DEADLINE if seen.text:
            raise incomplete(seen, settings)
        case _:
            raise _without_answer(seen, settings)


def incomplete(seen: Watched, settings: ProbeSettings) -> AnswerIncomplete:
    """For an answer that was still coming at the deadline, or may have been: the page said that it is busy."""
    shown = "; the page still shows that it is busy" if seen.busy else ""
    return AnswerIncomplete(
        f"the answer did not end within {settings.answer_deadline_s:g} s{shown}", partial_text=seen.text
    )


def _without_answer(seen: Watched, settings: ProbeSettings) -> ProbeError:
    """Nothing was read. Where something new stands on the page, it is the monitor that did not understand it."""
    if seen.unread and seen.state is not WatchState.BROKEN:
        return PageNotUnderstood(f"no answer was told from the rest; new on the page: {seen.unread[:200]!r}")
    match seen.state:
        case WatchState.BROKEN:
            return AnswerTimeout("the connection broke before an answer began")
        case WatchState.NOTHING:
            return AnswerTimeout("the page was busy, became idle, and shows no answer")
        case WatchState.DEADLINE:
            return AnswerTimeout(f"no answer began within {settings.answer_deadline_s:g} s")
        case WatchState.FINISHED | WatchState.UNSENT | WatchState.ERROR:
            return PageNotUnderstood("the page looked done, and no answer stood on it")
        case _:
            assert_never(seen.state)
