"""Asks a suite: bounded concurrency, retries on record, circuit breaker, and every failure turned into a value.

One of the two places where an exception becomes a value (`NoAnswer`); the other is the graders' panel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from monitors.errors import BrowserLost, ProbeError
from monitors.probes.breaker import CircuitBreaker
from monitors.probes.driver import Answer, ChatDriver, Wanted
from monitors.probes.pace import Pace
from monitors.probes.results import Asking
from monitors.probes.schedule import Question, worst_first
from monitors.probes.settings import Keep, ProbeSettings
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Attempt, Exchange, NoAnswerReason, ProbeResult

Clock = Callable[[], datetime]
OnResult = Callable[[GoldCase, ProbeResult], Awaitable[None]]
"""Takes a final result. Once begun it is let run to its end, even when the run is cancelled meanwhile."""
JudgeNow = Callable[[GoldCase, Exchange], Awaitable[bool]]
"""Judges a whole answer while its page is still open; true when it is wrong, so that a picture is kept."""
Recover = Callable[[], Awaitable[None]]
"""Waits until the app serves again; raises a `ProbeError` (`NotReady`) when it does not."""


async def never_wrong(_case: GoldCase, _exchange: Exchange) -> bool:
    """Judges nothing now."""
    return False


MOST_OUTAGES = 3
"""So often one question waits for an app that went away; one that comes and goes without end counts as down."""


class ProbeTally(Record):
    """What a run of questions came to. ``circuit_opened`` says why the rest was not asked."""

    answered: int = 0
    unanswered: int = 0
    circuit_opened: str | None = None


class JudgingFailed(Exception):
    """Carries an error of `JudgeNow` past the driver, which would take it for one of its own."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def probe_cases(
    driver: ChatDriver,
    cases: Iterable[GoldCase],
    *,
    run_id: str,
    settings: ProbeSettings,
    clock: Clock,
    concurrency: int | Pace,
    on_result: OnResult,
    judge_now: JudgeNow = never_wrong,
    recover: Recover | None = None,
) -> ProbeTally:
    """Asks every case, worst first, severity-3 ones as often as the settings say; see `probe_questions`."""
    return await probe_questions(
        driver,
        worst_first(cases, repeats_severity_3=settings.repeats_severity_3),
        run_id=run_id,
        settings=settings,
        clock=clock,
        concurrency=concurrency,
        on_result=on_result,
        judge_now=judge_now,
        recover=recover,
    )


async def probe_questions(
    driver: ChatDriver,
    questions: Iterable[Question],
    *,
    run_id: str,
    settings: ProbeSettings,
    clock: Clock,
    concurrency: int | Pace,
    on_result: OnResult,
    judge_now: JudgeNow = never_wrong,
    recover: Recover | None = None,
) -> ProbeTally:
    """Asks in the given order and hands on each result as soon as it is final.

    `concurrency` is how many are under way at once; a `Pace` follows the machine.
    `recover` is awaited, by one question for all, before an unreachable app is asked again, which is then no try of
    the question; when it fails, the circuit opens. Without it the retry follows after a pause. Memory does not grow
    with the questions: results are handed on, not kept. What `on_result` or `judge_now` raise ends the run.
    """
    runner = Runner(
        driver=driver,
        run_id=run_id,
        settings=settings,
        clock=clock,
        on_result=on_result,
        judge_now=judge_now,
        recover=recover,
    )
    return await runner.run(questions, concurrency=concurrency)


@dataclass(kw_only=True)
class Runner:
    """One run against one driver, with its counts and its circuit; see `probe_questions`."""

    driver: ChatDriver
    run_id: str
    settings: ProbeSettings
    clock: Clock
    on_result: OnResult
    judge_now: JudgeNow = never_wrong
    recover: Recover | None = None
    _under_way: int = field(default=0, init=False)
    _answered: int = field(default=0, init=False)
    _unanswered: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._breaker = CircuitBreaker(self.settings.circuit_breaker_failures)
        self._recovering = asyncio.Lock()

    async def run(self, questions: Iterable[Question], *, concurrency: int | Pace) -> ProbeTally:
        """Asks all, and says what it came to."""
        waiting = iter(questions)
        pace = concurrency if isinstance(concurrency, Pace) else Pace.fixed(max(1, concurrency))
        await _all_or_none([asyncio.ensure_future(self._work(waiting, pace)) for _ in range(pace.most)])
        return ProbeTally(
            answered=self._answered,
            unanswered=self._unanswered,
            circuit_opened=self._breaker.why if self._breaker.is_open else None,
        )

    async def _work(self, waiting: Iterator[Question], pace: Pace) -> None:
        """A question at each turn, until there is none left. The turn comes first, so that the worst does too."""
        while True:
            async with pace:
                question = next(waiting, None)
                if question is None:
                    return
                await self._answer(question)

    async def _answer(self, question: Question) -> None:
        self._under_way += 1
        try:
            result = await self._result(question)
        finally:
            self._under_way -= 1
        if isinstance(result, Exchange):
            self._answered += 1
        else:
            self._unanswered += 1
        await _to_its_end(self.on_result(question.case, result))

    async def _result(self, question: Question) -> ProbeResult:
        failed: tuple[Attempt, ...] = ()
        outages = 0
        while True:
            asking = Asking(self.run_id, question, self.clock(), failed, self._under_way)
            if self._breaker.is_open:
                return asking.not_asked(self._breaker)
            try:
                exchange = await self._ask(asking)
            except ProbeError as error:
                away = self._is_outage(error) and outages < MOST_OUTAGES
                if away and not await self._is_back():
                    failure = asking.no_answer(error)
                    self._breaker.trip(failure)
                    return failure
                outages += away
                if not away and (not error.retryable or len(failed) - outages + 1 >= self.settings.attempts):
                    failure = asking.no_answer(error)
                    self._breaker.saw_failure(failure)
                    return failure
                if not away:
                    await asyncio.sleep(self.settings.retry_pause_s)
                failed = (*failed, asking.attempt(error))
            else:
                self._breaker.saw_answer()
                return exchange

    def _is_outage(self, error: ProbeError) -> bool:
        """Whether nobody was there to ask: that is no try of this question, if the app can be waited for."""
        return self.recover is not None and error.reason is NoAnswerReason.UNREACHABLE

    async def _is_back(self) -> bool:
        """Waits for the app, one question for all; false when it was waited for in vain."""
        async with self._recovering:
            if self._breaker.is_open or self.recover is None:
                return False
            try:
                await self.recover()
            except ProbeError:
                return False
        return True

    async def _ask(self, asking: Asking) -> Exchange:
        case = asking.question.case

        async def worth_keeping(answer: Answer) -> Wanted:
            try:
                wrong = await self.judge_now(case, asking.exchange(answer))
            except Exception as error:
                raise JudgingFailed(error) from error
            return wanted(self.settings, case.severity, wrong=wrong)

        try:
            answer = await self.driver.ask(case.turns, name=asking.evidence_name, worth_keeping=worth_keeping)
        except ProbeError:
            raise
        except JudgingFailed as error:
            raise error.cause from None
        except Exception as error:  # a fault of ours in one case must not cost the others
            raise BrowserLost(f"asking failed unexpectedly: {type(error).__name__}: {error}") from error
        return asking.exchange(answer)


def wanted(settings: ProbeSettings, severity: Severity, *, wrong: bool) -> Wanted:
    """What the settings keep of a whole answer."""

    def keeps(policy: Keep) -> bool:
        match policy:
            case Keep.NEVER:
                return False
            case Keep.FAILURES:
                return wrong
            case Keep.FAILURES_AND_SEVERE:
                return wrong or severity is Severity.PAGE
            case Keep.ALWAYS:
                return True

    return Wanted(screenshot=keeps(settings.screenshots), trace=keeps(settings.traces))


async def _all_or_none(workers: list[asyncio.Task[None]]) -> None:
    """Waits for all; when one fails or the run is cancelled, none goes on."""
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _to_its_end(keeping: Awaitable[None]) -> None:
    """Lets a result be kept even when the run is being cancelled."""
    task = asyncio.ensure_future(keeping)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
