"""Ask a suite's questions: bounded concurrency, recorded retries, a circuit breaker, and failures as values.

An exception becomes a value (`NoAnswer`) here, in the graders' panel and in the judge only. The severest
questions go first (V8), so that the time to the first alert does not grow with the suite. If the app is down, the
circuit breaker (V10) stops the run early, with one alert instead of one per case. The result or error of a driver
becomes the record that the later stages read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import Field

from monitors.errors import BrowserLost, ConfigError, ProbeError, RateLimited
from monitors.probes.driver import Answer, ChatDriver, EvidenceFilter
from monitors.probes.pace import Pace
from monitors.probes.request_limit import RequestLimit
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.base import Blame, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Attempt, Evidence, Exchange, NoAnswer, NoAnswerReason, ProbeResult


class Question(Record):
    """A case to ask. ``repeat`` counts from 0."""

    case: GoldCase
    repeat: Annotated[int, Field(ge=0)] = 0


def order_questions(cases: Iterable[GoldCase], *, repeats_severity_3: int = 1) -> Iterator[Question]:
    """Yield every case once, the severest first and otherwise in the given order; then the repeats, in rounds.

    Repeats follow at the end of their severity: a first answer to each case is worth more than a second answer to
    one.
    """
    ranked = sorted(cases, key=lambda case: -case.severity)  # the sort is stable
    severe = [case for case in ranked if case.severity is Severity.CRITICAL]
    for repeat in range(repeats_severity_3):
        yield from (Question(case=case, repeat=repeat) for case in severe)
    yield from (Question(case=case) for case in ranked if case.severity is not Severity.CRITICAL)


def select_questions_to_ask(
    questions: Iterable[Question], answered: frozenset[tuple[str, int]]
) -> Iterator[Question]:
    """Yield the questions not in `answered`, a set of (case id, repeat), to resume a killed run (V11)."""
    return (question for question in questions if (question.case.id, question.repeat) not in answered)


class CircuitBreaker:
    """Opens after a number of questions in a row without an answer, and then stays open for the run.

    The reason and the blame are fixed at opening: questions that are still running do not change them.
    """

    def __init__(self, failures: int) -> None:
        if failures < 1:
            raise ValueError(f"a circuit opens after at least one failure, got {failures}")
        self._limit = failures
        self._in_a_row: list[NoAnswer] = []
        self._opened_by: tuple[NoAnswer, ...] = ()

    def record_answer(self) -> None:
        """Record an answer, which proves that the app is up."""
        self._in_a_row.clear()

    def record_failure(self, failure: NoAnswer) -> None:
        """Record a question that got no answer in all its tries."""
        self._in_a_row.append(failure)
        if len(self._in_a_row) >= self._limit:
            self._open()

    def trip(self, failure: NoAnswer) -> None:
        """Open the circuit after the wait for the app has failed."""
        self._in_a_row.append(failure)
        self._open()

    def _open(self) -> None:
        self._opened_by = self._opened_by or tuple(self._in_a_row)

    @property
    def is_open(self) -> bool:
        """Whether the remaining questions are skipped."""
        return bool(self._opened_by)

    @property
    def blame(self) -> Blame:
        """Return the app if it caused any of the failures, otherwise the monitor.

        Raises `ValueError` while the circuit is closed, like `why`.
        """
        return (
            Blame.APP
            if any(failure.blame is Blame.APP for failure in self._select_failures_that_open())
            else Blame.MONITOR
        )

    @property
    def why(self) -> str:
        """One line: the number of failures in a row at opening, and the last failure."""
        failures = self._select_failures_that_open()
        summary = f"{len(failures)} questions in a row had no answer, the last:"
        if len(failures) == 1:
            summary = "a question had no answer:"
        return f"not asked: {summary} {failures[-1].reason} ({failures[-1].detail})"

    def _select_failures_that_open(self) -> tuple[NoAnswer, ...]:
        if not self._opened_by:
            raise ValueError("the circuit is closed")
        return self._opened_by


@dataclass(frozen=True)
class QuestionAttempt:
    """One try of one question: `failed` are the earlier tries, `concurrency` the number of concurrent questions."""

    run_id: str
    question: Question
    asked_at: datetime
    failed: tuple[Attempt, ...]
    concurrency: int

    @property
    def evidence_name(self) -> str:
        """The prefix of the names of evidence files: case, repeat, try. A later try overwrites nothing."""
        return f"{self.question.case.id}.r{self.question.repeat}.t{len(self.failed)}"

    def build_exchange(self, answer: Answer) -> Exchange:
        """Build the record of a complete answer."""
        return Exchange(
            run_id=self.run_id,
            case_id=self.question.case.id,
            repeat=self.question.repeat,
            turns=self.question.case.turns,
            earlier_answers=answer.earlier,
            visible_text=answer.visible_text,
            wire=answer.wire,
            graded_channel=answer.graded_channel,
            asked_at=self.asked_at,
            timings=answer.timings,
            app_path=answer.app_path,
            app_version=answer.app_version,
            evidence=answer.evidence,
            failed_attempts=self.failed,
            concurrency=self.concurrency,
        )

    def build_failed_attempt(self, error: ProbeError) -> Attempt:
        """Build the record of a failed try that is followed by another."""
        return Attempt(started_at=self.asked_at, blame=error.blame, reason=error.reason.value, detail=str(error))

    def build_no_answer(self, error: ProbeError) -> NoAnswer:
        """Build the record of a question after its last failed try."""
        return self._create_no_answer(
            error.reason, error.blame, str(error), partial_text=error.partial_text, evidence=error.evidence
        )

    def build_skip_record(self, breaker: CircuitBreaker) -> NoAnswer:
        """Build the record of a question that was skipped because the circuit is open."""
        return self._create_no_answer(NoAnswerReason.CIRCUIT_OPEN, breaker.blame, breaker.why)

    def _create_no_answer(
        self,
        reason: NoAnswerReason,
        blame: Blame,
        detail: str,
        *,
        partial_text: str = "",
        evidence: Evidence | None = None,
    ) -> NoAnswer:
        return NoAnswer(
            run_id=self.run_id,
            case_id=self.question.case.id,
            repeat=self.question.repeat,
            turns=self.question.case.turns,
            reason=reason,
            blame=blame,
            detail=detail,
            partial_text=partial_text,
            asked_at=self.asked_at,
            evidence=evidence or Evidence(),
            failed_attempts=self.failed,
            concurrency=self.concurrency,
        )


Clock = Callable[[], datetime]
OnResult = Callable[[GoldCase, ProbeResult], Awaitable[None]]
"""Handle a final result. Once started, it runs to its end, even if the run is cancelled meanwhile."""
JudgeNow = Callable[[GoldCase, Exchange], Awaitable[bool]]
"""Grade a complete answer while its page is still open; return true if it is wrong, to store a screenshot."""
Recover = Callable[[], Awaitable[None]]
"""Wait until the app serves again. Raise a `ProbeError` (`NotReady`) if it does not."""


async def skip_judging(_case: GoldCase, _exchange: Exchange) -> bool:
    """Skip grading for now."""
    return False


MAX_OUTAGES = 3
"""Limit of waits of one question for an app that went away. After that many, the app counts as down."""


class ProbeTally(Record):
    """The counts of a run's questions. ``circuit_opened`` is the reason why the remaining ones were not asked."""

    answered: int = 0
    unanswered: int = 0
    circuit_opened: str | None = None


class JudgingFailed(Exception):
    """Carries an error of `JudgeNow` past the driver, which would treat it as a driver error."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def probe_questions(
    driver: ChatDriver,
    questions: Iterable[Question],
    *,
    run_id: str,
    settings: ProbeSettings,
    clock: Clock,
    concurrency: int | Pace,
    on_result: OnResult,
    judge_now: JudgeNow = skip_judging,
    recover: Recover | None = None,
    limit: RequestLimit | None = None,
) -> ProbeTally:
    """Ask in the given order and pass on each result as soon as it is final.

    `concurrency` is the number of concurrent questions; a `Pace` follows the machine. One question awaits
    `recover` for all questions before an unreachable app is asked again; this wait does not count as a try. If
    `recover` fails, the circuit opens. Without `recover` the retry follows after a pause. Memory does not grow
    with the number of questions: results are passed on, not stored. ``limit`` waits for an app that limits
    requests, by default for an hour; if the app limits them for longer, the circuit opens. Errors of `on_result`
    or `judge_now` end the run, like a driver's `ConfigError`.
    """
    runner = Runner(
        driver=driver,
        run_id=run_id,
        settings=settings,
        clock=clock,
        on_result=on_result,
        judge_now=judge_now,
        recover=recover,
        limit=limit or RequestLimit(settings.requests_per_minute),
    )
    return await runner.run(questions, concurrency=concurrency)


@dataclass(kw_only=True)
class Runner:
    """One run against one driver, with its counts and circuit breaker; see `probe_questions`."""

    driver: ChatDriver
    run_id: str
    settings: ProbeSettings
    clock: Clock
    on_result: OnResult
    judge_now: JudgeNow = skip_judging
    recover: Recover | None = None
    limit: RequestLimit
    _under_way: int = field(default=0, init=False)
    _answered: int = field(default=0, init=False)
    _unanswered: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._breaker = CircuitBreaker(self.settings.circuit_breaker_failures)
        self._recovering = asyncio.Lock()

    async def run(self, questions: Iterable[Question], *, concurrency: int | Pace) -> ProbeTally:
        """Ask all questions and return the counts."""
        remaining = iter(questions)
        pace = concurrency if isinstance(concurrency, Pace) else Pace.with_fixed_size(max(1, concurrency))
        await _run_workers([asyncio.ensure_future(self._run_worker(remaining, pace)) for _ in range(pace.maximum)])
        return ProbeTally(
            answered=self._answered,
            unanswered=self._unanswered,
            circuit_opened=self._breaker.why if self._breaker.is_open else None,
        )

    async def _run_worker(self, remaining: Iterator[Question], pace: Pace) -> None:
        """Ask until no question is left. Acquire the turn before the question, so that the severest goes first."""
        while True:
            async with pace:
                question = next(remaining, None)
                if question is None:
                    return
                await self._process_question(question)

    async def _process_question(self, question: Question) -> None:
        self._under_way += 1
        try:
            result = await self._ask_with_retries(question)
        finally:
            self._under_way -= 1
        if isinstance(result, Exchange):
            self._answered += 1
        else:
            self._unanswered += 1
        await _finish_despite_cancellation(self.on_result(question.case, result))

    async def _ask_with_retries(self, question: Question) -> ProbeResult:
        failed: tuple[Attempt, ...] = ()
        outages, requests = 0, len(question.case.turns)
        while True:
            asked_at = await self.limit.wait_for_turn(requests)
            attempt = QuestionAttempt(self.run_id, question, self.clock(), failed, self._under_way)
            if self._breaker.is_open:
                return attempt.build_skip_record(self._breaker)
            try:
                exchange = await self._ask(attempt)
            except RateLimited as error:
                if not self.limit.pause(error.retry_after_s, asked_at):
                    failure = attempt.build_no_answer(RateLimited(self.limit.explain_end(error.retry_after_s)))
                    self._breaker.trip(failure)
                    return failure
            except ProbeError as error:
                is_outage = self._is_outage(error) and outages < MAX_OUTAGES
                if is_outage and not await self._wait_for_recovery():
                    failure = attempt.build_no_answer(error)
                    self._breaker.trip(failure)
                    return failure
                outages += is_outage
                if not is_outage and (not error.retryable or len(failed) - outages + 1 >= self.settings.attempts):
                    failure = attempt.build_no_answer(error)
                    self._breaker.record_failure(failure)
                    return failure
                if not is_outage:
                    # The app may recover. (An outage waits in `_wait_for_recovery` instead.)
                    await asyncio.sleep(self.settings.retry_pause_s)
                failed = (*failed, attempt.build_failed_attempt(error))
            else:
                self.limit.count_answer(requests, asked_at)
                self._breaker.record_answer()
                return exchange

    def _is_outage(self, error: ProbeError) -> bool:
        """Whether the app was down. If the run can wait for the app, the question's try does not count."""
        return self.recover is not None and error.reason is NoAnswerReason.UNREACHABLE

    async def _wait_for_recovery(self) -> bool:
        """Wait for the app, one question for all; return false if it is not back in time."""
        async with self._recovering:
            if self._breaker.is_open or self.recover is None:
                return False
            try:
                await self.recover()
            except ProbeError:
                return False
        return True

    async def _ask(self, attempt: QuestionAttempt) -> Exchange:
        case = attempt.question.case

        async def worth_storing(answer: Answer) -> EvidenceFilter:
            try:
                wrong = await self.judge_now(case, attempt.build_exchange(answer))
            except Exception as error:  # otherwise the driver would treat a grader's error as the app's
                raise JudgingFailed(error) from error
            return apply_capture_policies(self.settings, case.severity, wrong=wrong)

        try:
            answer = await self.driver.ask(case.turns, name=attempt.evidence_name, worth_storing=worth_storing)
        except (ProbeError, ConfigError):  # do not continue with a wrong configuration
            raise
        except JudgingFailed as error:
            raise error.cause from None
        except Exception as error:  # a bug of Lookout in one case must not affect the others
            raise BrowserLost(f"unexpected error during the question: {type(error).__name__}: {error}") from error
        return attempt.build_exchange(answer)


def apply_capture_policies(settings: ProbeSettings, severity: Severity, *, wrong: bool) -> EvidenceFilter:
    """Return which evidence of a complete answer the settings store."""

    def should_store(policy: CapturePolicy) -> bool:
        match policy:
            case CapturePolicy.NEVER:
                return False
            case CapturePolicy.FAILURES:
                return wrong
            case CapturePolicy.FAILURES_AND_SEVERE:
                return wrong or severity is Severity.CRITICAL
            case CapturePolicy.ALWAYS:
                return True

    return EvidenceFilter(screenshot=should_store(settings.screenshots), trace=should_store(settings.traces))


async def _run_workers(workers: list[asyncio.Task[None]]) -> None:
    """Wait for all workers. If one fails or the run is cancelled, cancel the others."""
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _finish_despite_cancellation(work: Awaitable[None]) -> None:
    """Finish storing a result even if the run is being cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
