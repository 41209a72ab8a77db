"""The long stage: ask, grade while the page is open, keep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from flows.judging import JudgeStage
from flows.live_run import LiveRun
from flows.progress import listener
from flows.publish import ProgressPage
from flows.ready import wait_for_deploy, wait_out
from flows.wiring import chat_driver, pace, utc_now
from monitors.gate.assess import assess
from monitors.graders.panel import grade_exchange
from monitors.judge.cascade import is_open
from monitors.probes.runner import probe_questions
from monitors.probes.schedule import still_open, worst_first
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import CaseOutcome, Grade
from monitors.records.runs import CaseResult


async def ask_all(run: LiveRun, *, on_result: Callable[[CaseResult], None]) -> None:
    """Ask what is still open, worst first, a few at once; each result is kept before ``on_result`` hears of it."""
    wired = run.wired
    settings = wired.configured.probe
    planned = tuple(worst_first(wired.suite.cases, repeats_severity_3=settings.repeats_severity_3))
    listener.get().planned(wired.run_id, len(planned), run.kept)
    known = frozenset(run.answered)
    left = tuple(still_open(planned, known))
    page = ProgressPage(wired.target.name, len(planned), run.kept)

    async def told(result: CaseResult) -> None:
        on_result(result)
        if (result.case.id, result.result.repeat) not in known:  # else it was counted as kept, and is judged now
            listener.get().told(result)
            await page.step()

    async with JudgeStage(run, told) as judges, AsyncExitStack() as stack:
        if not left or not await wait_for_deploy(run):
            return
        listener.get().stage("asking")
        await page.start()
        grader = _Grading(run, judges, told)
        driver = await stack.enter_async_context(chat_driver(wired))
        await probe_questions(
            driver,
            left,
            run_id=wired.run_id,
            settings=settings,
            clock=utc_now,
            concurrency=pace(settings),
            on_result=grader.keep,
            judge_now=grader.is_wrong,
            recover=lambda: wait_out(run),
        )


class _Grading:
    """Grades each answer once, while its page is open, and keeps it with its evidence when it is final."""

    def __init__(self, run: LiveRun, judges: JudgeStage, told: Callable[[CaseResult], Awaitable[None]]) -> None:
        self._run = run
        self._judges = judges
        self._told = told
        self._graded: dict[tuple[str, int], tuple[Grade, ...]] = {}

    async def is_wrong(self, case: GoldCase, exchange: Exchange) -> bool:
        """Whether a picture of the page is worth keeping."""
        grades = grade_exchange(self._run.wired.panel, case, exchange)
        self._graded[case.id, exchange.repeat] = grades
        return assess(case, exchange, grades).outcome is not CaseOutcome.CORRECT

    async def keep(self, case: GoldCase, result: ProbeResult) -> None:
        """The final result: into the journal, then to whoever watches. What is still open goes to the judges."""
        grades = self._graded.pop((case.id, result.repeat), ())
        assessment = assess(case, result, grades if isinstance(result, Exchange) else ())
        if isinstance(result, Exchange) and is_open(assessment):
            await self._judges.settle(case, result, grades)
            return
        await self._told(await asyncio.to_thread(self._run.keep, case, result, assessment))
