"""Ask the questions of a suite, several questions at the same time, and build a record of each result.

The most severe questions are asked first, and an alert does not wait for the end of the suite. A question without
an answer becomes a `NoAnswer`. After several such questions in a row, the circuit breaker opens: the remaining
questions are not asked, and one alert is sent instead of one alert for each case.
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
    """A case to ask. ``repeat`` counts from 0: the second time that the case is asked, ``repeat`` is 1."""

    case: GoldCase
    repeat: Annotated[int, Field(ge=0)] = 0


def iterate_questions_by_severity(cases: Iterable[GoldCase], *, repeats_severity_3: int = 1) -> Iterator[Question]:
    """Yield the questions of a run, the most severe cases first.

    The cases of severity 3 are asked in ``repeats_severity_3`` rounds, and each round contains every such case
    once. After these rounds, each other case is asked once.
    """
    ranked = sorted(cases, key=lambda case: -case.severity)  # the sort is stable
    severe = [case for case in ranked if case.severity is Severity.CRITICAL]
    for repeat in range(repeats_severity_3):
        yield from (Question(case=case, repeat=repeat) for case in severe)
    yield from (Question(case=case) for case in ranked if case.severity is not Severity.CRITICAL)


def iterate_unanswered_questions(
    questions: Iterable[Question], answered: frozenset[tuple[str, int]]
) -> Iterator[Question]:
    """Yield the questions that had no answer yet when a run was killed.

    `answered` contains pairs (case id, repeat).
    """
    return (question for question in questions if (question.case.id, question.repeat) not in answered)


class CircuitBreaker:
    """Stop a run after ``failures`` questions in a row without an answer.

    The breaker stays open until the run ends. Its reason and its blame do not change after it has opened.
    """

    def __init__(self, failures: int) -> None:
        if failures < 1:
            raise ValueError(f"a circuit opens after at least one failure, got {failures}")
        self._limit = failures
        self._in_a_row: list[NoAnswer] = []
        self._opened_by: tuple[NoAnswer, ...] = ()

    def record_answer(self) -> None:
        """Reset the count of failures in a row, because a question was answered."""
        self._in_a_row.clear()

    def count_failure_toward_breaker(self, failure: NoAnswer) -> None:
        """Count a question that was not answered in any of its attempts."""
        self._in_a_row.append(failure)
        if len(self._in_a_row) >= self._limit:
            self._open_breaker()

    def open_circuit_breaker(self, failure: NoAnswer) -> None:
        """Open the breaker at once, because the app stays unreachable or limits requests for too long."""
        self._in_a_row.append(failure)
        self._open_breaker()

    def _open_breaker(self) -> None:
        self._opened_by = self._opened_by or tuple(self._in_a_row)

    @property
    def is_open(self) -> bool:
        """Return whether the breaker has opened. After that, the remaining questions are not asked."""
        return bool(self._opened_by)

    @property
    def blame(self) -> Blame:
        """Return who is to blame: the app if it caused one of the failures, otherwise the monitor.

        Raises `ValueError` if the breaker is not open.
        """
        return (
            Blame.APP
            if any(failure.blame is Blame.APP for failure in self._require_opening_failures())
            else Blame.MONITOR
        )

    @property
    def why(self) -> str:
        """Return in one line why questions are not asked: the number of failures in a row, and the last failure.

        Raises `ValueError` if the breaker is not open.
        """
        failures = self._require_opening_failures()
        summary = f"{len(failures)} questions in a row had no answer. The last reason was:"
        if len(failures) == 1:
            summary = "a question had no answer:"
        return f"not asked: {summary} {failures[-1].reason} ({failures[-1].detail})"

    def _require_opening_failures(self) -> tuple[NoAnswer, ...]:
        if not self._opened_by:
            raise ValueError("the circuit is closed")
        return self._opened_by


@dataclass(frozen=True)
class QuestionAttempt:
    """One attempt to ask a question. `failed` contains the records of the earlier attempts.

    `concurrency` is the number of questions that run at the same time.
    """

    run_id: str
    question: Question
    asked_at: datetime
    failed: tuple[Attempt, ...]
    concurrency: int

    @property
    def evidence_name(self) -> str:
        """Return the prefix of the names of evidence files: the case, the repeat and the attempt."""
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
        """Build the record of a failed attempt after which the question is asked again."""
        return Attempt(started_at=self.asked_at, blame=error.blame, reason=error.reason.value, detail=str(error))

    def build_no_answer(self, error: ProbeError) -> NoAnswer:
        """Build the record of a question whose last attempt failed."""
        return self._create_no_answer(
            error.reason, error.blame, str(error), partial_text=error.partial_text, evidence=error.evidence
        )

    def build_not_asked_record(self, breaker: CircuitBreaker) -> NoAnswer:
        """Build the record of a question that is not asked, because the circuit breaker is open."""
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
"""A function that is called with each final result. The call is completed even if the run is cancelled."""
IsWrong = Callable[[GoldCase, Exchange], Awaitable[bool]]
"""A function that returns whether an answer is wrong.

It is called while the page is still open, so that a screenshot of a wrong answer can be stored.
"""
Recover = Callable[[], Awaitable[None]]
"""A function that waits until the app serves requests again.

The function raises a `ProbeError`, such as `NotReady`, if the app still does not serve requests.
"""


async def never_wrong(_case: GoldCase, _exchange: Exchange) -> bool:
    """Return False for every answer, so that no screenshot of wrong answers is stored."""
    return False


MAX_OUTAGES = 3
"""One question waits at most this many times until a stopped app serves requests again.

After that, the app counts as down.
"""


class ProbeTally(Record):
    """The number of questions with and without an answer.

    ``circuit_opened`` is the reason why the circuit breaker opened, or ``None`` if it did not open.
    """

    answered: int = 0
    unanswered: int = 0
    circuit_opened: str | None = None


class JudgingFailed(Exception):
    """Wraps an error that `IsWrong` raised, so that a driver does not treat it as an error of the app."""

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
    is_wrong: IsWrong = never_wrong,
    recover: Recover | None = None,
    limit: RequestLimit | None = None,
) -> ProbeTally:
    """Ask the questions in the given order, and return the counts. Call `on_result` with each final result.

    - `concurrency` is the number of parallel questions.
    - If the app is unreachable, `recover` waits until the app serves requests again. Such a wait is not a failed
      attempt.
    - If the app limits requests, ``limit`` waits, by default up to one hour.
    - If the app does not serve again, or limits requests for too long, the circuit breaker opens.
    - Errors of `on_result` and `is_wrong`, and a `ConfigError` of the driver, end the run.
    """
    runner = Runner(
        driver=driver,
        run_id=run_id,
        settings=settings,
        clock=clock,
        on_result=on_result,
        is_wrong=is_wrong,
        recover=recover,
        limit=limit or RequestLimit(settings.requests_per_minute),
    )
    return await runner.run(questions, concurrency=concurrency)


@dataclass(kw_only=True)
class Runner:
    """Ask the questions of one run with one driver. `probe_questions` explains the fields."""

    driver: ChatDriver
    run_id: str
    settings: ProbeSettings
    clock: Clock
    on_result: OnResult
    is_wrong: IsWrong = never_wrong
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
        await _wait_or_cancel_workers(
            [asyncio.ensure_future(self._ask_until_none_left(remaining, pace)) for _ in range(pace.maximum)]
        )
        return ProbeTally(
            answered=self._answered,
            unanswered=self._unanswered,
            circuit_opened=self._breaker.why if self._breaker.is_open else None,
        )

    async def _ask_until_none_left(self, remaining: Iterator[Question], pace: Pace) -> None:
        """Ask one question after the other until no question is left.

        A question is taken from ``remaining`` only when it may be asked. Therefore, the most severe questions are
        asked first.
        """
        while True:
            async with pace:
                question = next(remaining, None)
                if question is None:
                    return
                await self._ask_and_report_question(question)

    async def _ask_and_report_question(self, question: Question) -> None:
        self._under_way += 1
        try:
            result = await self._ask_until_final(question)
        finally:
            self._under_way -= 1
        if isinstance(result, Exchange):
            self._answered += 1
        else:
            self._unanswered += 1
        await _finish_despite_cancellation(self.on_result(question.case, result))

    async def _ask_until_final(self, question: Question) -> ProbeResult:
        failed: tuple[Attempt, ...] = ()
        outages, requests = 0, len(question.case.turns)
        while True:
            asked_at = await self.limit.wait_until_question_allowed(requests)
            attempt = QuestionAttempt(self.run_id, question, self.clock(), failed, self._under_way)
            if self._breaker.is_open:
                return attempt.build_not_asked_record(self._breaker)
            try:
                exchange = await self._ask(attempt)
            except RateLimited as error:
                if not self.limit.pause_questions_after_refusal(error.retry_after_s, asked_at):
                    failure = attempt.build_no_answer(
                        RateLimited(self.limit.explain_too_long_limit(error.retry_after_s))
                    )
                    self._breaker.open_circuit_breaker(failure)
                    return failure
            except ProbeError as error:
                # The attempt does not count if the run can wait for the app.
                can_wait = self.recover is not None and error.reason is NoAnswerReason.UNREACHABLE
                is_outage = can_wait and outages < MAX_OUTAGES
                if is_outage and not await self._wait_for_recovery():
                    failure = attempt.build_no_answer(error)
                    self._breaker.open_circuit_breaker(failure)
                    return failure
                outages += is_outage
                if not is_outage and (not error.retryable or len(failed) - outages + 1 >= self.settings.attempts):
                    failure = attempt.build_no_answer(error)
                    self._breaker.count_failure_toward_breaker(failure)
                    return failure
                if not is_outage:
                    # The application may recover; an outage has its own wait.
                    await asyncio.sleep(self.settings.retry_pause_s)
                failed = (*failed, attempt.build_failed_attempt(error))
            else:
                self.limit.count_accepted_question(requests, asked_at)
                self._breaker.record_answer()
                return exchange

    async def _wait_for_recovery(self) -> bool:
        """Wait until the app serves requests again. Return whether it does. Parallel questions share one wait."""
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

        async def select_evidence(answer: Answer) -> EvidenceFilter:
            try:
                wrong = await self.is_wrong(case, attempt.build_exchange(answer))
            except Exception as error:  # otherwise the driver would treat a grader's error as the app's
                raise JudgingFailed(error) from error
            return choose_evidence_to_store(self.settings, case.severity, wrong=wrong)

        try:
            answer = await self.driver.ask(case.turns, name=attempt.evidence_name, select_evidence=select_evidence)
        except (ProbeError, ConfigError):  # do not continue with a wrong configuration
            raise
        except JudgingFailed as error:
            raise error.cause from None
        except Exception as error:  # a bug of Lookout in one case must not affect the others
            raise BrowserLost(f"unexpected internal error: {type(error).__name__}: {error}") from error
        return attempt.build_exchange(answer)


def choose_evidence_to_store(settings: ProbeSettings, severity: Severity, *, wrong: bool) -> EvidenceFilter:
    """Return which kinds of evidence are stored for a complete answer, according to the settings.

    ``severity`` is the severity of the case, and ``wrong`` is True if the answer was graded as wrong.
    """

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


async def _wait_or_cancel_workers(workers: list[asyncio.Task[None]]) -> None:
    """Wait for all workers. If a worker fails or the run is cancelled, cancel all other workers."""
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _finish_despite_cancellation(work: Awaitable[None]) -> None:
    """Wait until ``work`` has ended, even if the run is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
