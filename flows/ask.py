"""The long stage: ask, grade while the page is open, keep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from flows.live_run import LiveRun
from flows.progress import listener
from flows.publish import ProgressPage
from flows.ready import wait_for_deploy
from flows.wiring import chat_driver, cores, utc_now
from monitors.gate.assess import assess
from monitors.graders.panel import grade_exchange
from monitors.probes.runner import probe_questions
from monitors.probes.schedule import still_open, worst_first
from monitors.probes.settings import pages_at_once
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
    left = tuple(still_open(planned, frozenset(run.answered)))
    if not left or not await wait_for_deploy(run):
        return
    listener.get().stage("asking")
    page = ProgressPage(wired.target.name, len(planned), run.kept)
    await page.start()
    grader = _Grading(run, page, on_result)
    async with AsyncExitStack() as stack:
        driver = await stack.enter_async_context(chat_driver(wired))
        await probe_questions(
            driver,
            left,
            run_id=wired.run_id,
            settings=settings,
            clock=utc_now,
            concurrency=pages_at_once(settings, cores()),
            on_result=grader.keep,
            judge_now=grader.is_wrong,
        )


class _Grading:
    """Grades each answer once, while its page is open, and keeps it with its evidence when it is final."""

    def __init__(self, run: LiveRun, page: ProgressPage, on_result: Callable[[CaseResult], None]) -> None:
        self._run = run
        self._page = page
        self._on_result = on_result
        self._graded: dict[tuple[str, int], tuple[Grade, ...]] = {}

    async def is_wrong(self, case: GoldCase, exchange: Exchange) -> bool:
        """Whether a picture of the page is worth keeping."""
        grades = grade_exchange(self._run.wired.panel, case, exchange)
        self._graded[case.id, exchange.repeat] = grades
        return assess(case, exchange, grades).outcome is not CaseOutcome.CORRECT

    async def keep(self, case: GoldCase, result: ProbeResult) -> None:
        """The final result: into the journal, then to whoever watches."""
        grades = self._graded.pop((case.id, result.repeat), ())
        assessment = assess(case, result, grades if isinstance(result, Exchange) else ())
        told = await asyncio.to_thread(self._run.keep, case, result, assessment)
        listener.get().told(told)
        self._on_result(told)
        await self._page.step()
