"""Answers wait here for the judge while the run goes on asking: in groups, and a severity-3 case without delay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from monitors.judge.cascade import judge_case
from monitors.judge.judge import Judge, JudgedGroup
from monitors.judge.ruling import Ruling
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Grade


class Waiting(NamedTuple):
    """An answer that the plain graders left open, with what they said of it."""

    case: GoldCase
    exchange: Exchange
    grades: tuple[Grade, ...]


OnRuling = Callable[[Waiting, Ruling], Awaitable[None]]


class JudgeQueue:
    """Judges in a task of its own, so that asking never waits for a provider.

    A group goes when it is full, when something in it is severe, or when nothing more comes. ``known`` are the
    cases that canaries are made of. Leaving the ``async with`` block waits until all is judged; leaving it by an
    exception does not: what was not judged stays open, and a resumed run takes it up.
    """

    def __init__(
        self,
        judge: Judge,
        known: Sequence[GoldCase],
        *,
        seed: str,
        size: int,
        on_ruling: OnRuling,
        on_group: Callable[[JudgedGroup], None],
    ) -> None:
        self._judge = judge
        self._known = known
        self._seed = seed
        self._size = size
        self._on_ruling = on_ruling
        self._on_group = on_group
        self._waiting: list[Waiting] = []
        self._news = asyncio.Event()
        self._closing = False
        self._groups = 0
        self._worker: asyncio.Task[None] | None = None

    def put(self, waiting: Waiting) -> None:
        """One more."""
        self._waiting.append(waiting)
        self._news.set()

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._judge_as_they_come())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del error, trace
        if self._worker is None:
            return
        if kind is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            return
        self._closing = True
        self._news.set()
        await self._worker

    async def _judge_as_they_come(self) -> None:
        while not (self._closing and not self._waiting):
            await self._news.wait()
            self._news.clear()
            while self._is_time():
                group, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
                await self._judge_group(group)

    def _is_time(self) -> bool:
        severe = any(one.case.severity is Severity.PAGE for one in self._waiting)
        return bool(self._waiting) and (self._closing or severe or len(self._waiting) >= self._size)

    async def _judge_group(self, group: Sequence[Waiting]) -> None:
        self._groups += 1
        cases = [judge_case(one.case, one.exchange) for one in group]
        riders = self._judge.riders(cases, self._known, seed=f"{self._seed}:{self._groups}")
        judged = await self._judge.group(cases, riders)
        self._on_group(judged)
        for one, ruling in zip(group, judged.rulings, strict=True):
            await self._on_ruling(one, ruling)
