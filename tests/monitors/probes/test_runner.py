"""Tests of the probe runner with a scripted driver: retries, blame, circuit breaker and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    BrowserLost,
    ConfigError,
    NotReady,
    PageNotUnderstood,
    ProbeError,
    Unreachable,
)
from monitors.probes.runner import MAX_OUTAGES, ProbeTally
from monitors.probes.settings import CapturePolicy, ProbeSettings, compute_concurrency
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, ProbeResult
from tests.monitors.probes.scripted import Script, ScriptedDriver, Ticking, case
from tests.tools.probe_cases import probe_cases

SETTINGS = ProbeSettings(retry_pause_s=0, attempts=2, circuit_breaker_failures=3)


class Run:
    """A probe run with its scripted driver, its settings and the results so far."""

    def __init__(self, script: Script, **changes: object) -> None:
        self.driver = ScriptedDriver(script)
        self.settings = ProbeSettings.model_validate({**SETTINGS.model_dump(), **changes})
        self.results: list[ProbeResult] = []

    async def keep(self, _case: GoldCase, result: ProbeResult) -> None:
        self.results.append(result)

    async def ask(
        self,
        cases: list[GoldCase],
        *,
        concurrency: int = 1,
        is_wrong: Callable[[GoldCase, Exchange], Awaitable[bool]] | None = None,
        recover: Callable[[], Awaitable[None]] | None = None,
    ) -> ProbeTally:
        async def fine(_case: GoldCase, _exchange: Exchange) -> bool:
            return False

        return await probe_cases(
            self.driver,
            cases,
            run_id="run-1",
            settings=self.settings,
            clock=Ticking(),
            concurrency=concurrency,
            on_result=self.keep,
            is_wrong=is_wrong or fine,
            recover=recover,
        )


async def test_a_retry_never_hides_the_try_before_it() -> None:
    run = Run(lambda _question, nth: BrowserLost("it died") if nth == 1 else "24 months")
    tally = await run.ask([case("a")])
    [result] = run.results
    assert isinstance(result, Exchange)
    assert [(one.reason, one.blame, one.detail) for one in result.failed_attempts] == [
        ("browser_lost", Blame.MONITOR, "it died")
    ]
    assert (tally.answered, tally.unanswered) == (1, 0)


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("x"),
        AnswerTimeout("x"),
        AnswerIncomplete("x", partial_text="The wai"),
        AccessDenied("x"),
        PageNotUnderstood("x"),
        BrowserLost("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_failure_becomes_its_reason_and_blame(error: ProbeError) -> None:
    """Every failure has a reason and a blame, and a question is retried only if a retry can fix the failure."""
    run = Run(lambda _question, _nth: error)
    await run.ask([case("a")])
    [result] = run.results
    assert isinstance(result, NoAnswer)
    assert (result.reason, result.blame, result.partial_text) == (error.reason, error.blame, error.partial_text)
    assert len(run.driver.asked) == 1 + len(result.failed_attempts) == (2 if error.retryable else 1)


async def test_a_fault_of_our_own_costs_one_case_and_blames_the_monitor() -> None:
    run = Run(lambda question, _nth: KeyError("oops") if question == "a" else "fine")
    await run.ask([case("a"), case("b")])
    first, second = run.results
    assert isinstance(first, NoAnswer)
    assert first.blame is Blame.MONITOR
    assert "KeyError" in first.detail
    assert isinstance(second, Exchange)


async def test_the_circuit_opens_once_and_the_rest_is_not_asked() -> None:
    run = Run(lambda _question, _nth: Unreachable("HTTP 503"), attempts=1)
    tally = await run.ask([case(f"c{number}") for number in range(10)])
    assert len(run.driver.asked) == 3
    rest = run.results[3:]
    assert {result.reason for result in rest if isinstance(result, NoAnswer)} == {NoAnswerReason.CIRCUIT_OPEN}
    assert {result.blame for result in rest if isinstance(result, NoAnswer)} == {Blame.APP}
    assert len(rest) == 7
    assert tally.circuit_opened is not None
    assert "HTTP 503" in tally.circuit_opened


async def test_a_circuit_opened_by_the_monitor_does_not_blame_the_app() -> None:
    run = Run(lambda _question, _nth: PageNotUnderstood("no box"))
    await run.ask([case(f"c{number}") for number in range(5)])
    assert {result.blame for result in run.results if isinstance(result, NoAnswer)} == {Blame.MONITOR}


async def test_an_answer_between_failures_keeps_the_circuit_closed() -> None:
    run = Run(lambda question, _nth: AnswerTimeout("x") if question.startswith("bad") else "fine", attempts=1)
    names = ["bad1", "bad2", "ok1", "bad3", "bad4", "ok2"]
    tally = await run.ask([case(name) for name in names])
    assert run.driver.asked == names
    assert tally.circuit_opened is None


async def test_f65_a_reboot_in_mid_suite_is_waited_for_and_nothing_is_lost() -> None:
    down = {"b", "c"}
    waits: list[str] = []

    async def recover() -> None:
        waits.append("waited")
        down.clear()

    run = Run(lambda question, _nth: Unreachable("HTTP 503") if question in down else "fine")
    tally = await run.ask([case(name) for name in "abcd"], recover=recover)
    assert [result.case_id for result in run.results if isinstance(result, Exchange)] == list("abcd")
    assert (waits, tally.circuit_opened) == (["waited"], None)


async def test_an_app_that_does_not_come_back_opens_the_circuit_at_once() -> None:
    async def recover() -> None:
        raise NotReady("still PAUSED after 600 s")

    run = Run(lambda _question, _nth: Unreachable("HTTP 503"))
    await run.ask([case(f"c{number}") for number in range(4)], recover=recover)
    assert run.driver.asked == ["c0"]
    assert [result.reason for result in run.results if isinstance(result, NoAnswer)] == [
        NoAnswerReason.UNREACHABLE,
        *[NoAnswerReason.CIRCUIT_OPEN] * 3,
    ]


async def test_an_outage_is_no_try_of_the_question_it_hits() -> None:
    """If the app is unreachable when a question is retried, the question gets another retry.

    In this test, the app goes down during the first answer and recovers after the first retry.
    """
    replies: list[str | Exception] = [AnswerIncomplete("broke off"), Unreachable("refused"), "fine"]

    async def recover() -> None:
        return

    run = Run(lambda _question, nth: replies[nth - 1])
    await run.ask([case("a")], recover=recover)
    [result] = run.results
    assert isinstance(result, Exchange)
    assert [one.reason for one in result.failed_attempts] == ["incomplete", "unreachable"]


async def test_an_app_that_comes_and_goes_without_end_is_down() -> None:
    async def recover() -> None:
        return

    run = Run(lambda _question, _nth: Unreachable("HTTP 503"))
    tally = await run.ask([case(f"c{number}") for number in range(9)], recover=recover)
    assert tally.circuit_opened is not None
    assert run.driver.asked.count("c0") == MAX_OUTAGES + 2
    assert "c8" not in run.driver.asked


async def test_no_more_are_asked_at_once_than_allowed_and_each_says_how_many() -> None:
    run = Run(lambda _question, _nth: "fine")
    await run.ask([case(f"c{number}") for number in range(20)], concurrency=4)
    assert run.driver.most_at_once == 4
    assert max(result.concurrency for result in run.results) == 4


async def test_a_wrong_answer_gets_its_picture_and_so_does_every_severe_one() -> None:
    async def wrong(one: GoldCase, _exchange: Exchange) -> bool:
        return one.id == "bad"

    run = Run(lambda _question, _nth: "fine")
    await run.ask([case("good"), case("bad"), case("severe", 3)], is_wrong=wrong)
    pictures = {result.case_id: result.evidence.screenshot for result in run.results}
    assert pictures == {
        "severe": "evidence/severe.r0.t0.jpg",
        "good": None,
        "bad": "evidence/bad.r0.t0.jpg",
    }


@pytest.mark.parametrize(
    ("policy", "pictures"), [(CapturePolicy.NEVER, 0), (CapturePolicy.FAILURES, 1), (CapturePolicy.ALWAYS, 3)]
)
async def test_the_policy_decides_which_evidence_is_stored(policy: CapturePolicy, pictures: int) -> None:
    async def wrong(one: GoldCase, _exchange: Exchange) -> bool:
        return one.id == "bad"

    run = Run(lambda _question, _nth: "fine", screenshots=policy)
    await run.ask([case("good"), case("bad"), case("severe", 3)], is_wrong=wrong)
    assert sum(result.evidence.screenshot is not None for result in run.results) == pictures


async def test_an_error_while_judging_ends_the_run_and_is_no_probe_failure() -> None:
    async def broken(_case: GoldCase, _exchange: Exchange) -> bool:
        raise ConfigError("the panel has no graders")

    run = Run(lambda _question, _nth: "fine")
    with pytest.raises(ConfigError, match="no graders"):
        await run.ask([case("a")], is_wrong=broken)
    assert run.results == []


async def test_a_result_being_stored_at_cancellation_is_stored_whole() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    stored_ids: list[str] = []

    async def slowly(one: GoldCase, _result: ProbeResult) -> None:
        begun.set()
        await may_end.wait()
        stored_ids.append(one.id)

    driver = ScriptedDriver(lambda _question, _nth: "fine")
    running = asyncio.ensure_future(
        probe_cases(
            driver,
            [case("a"), case("b")],
            run_id="run-1",
            settings=SETTINGS,
            clock=Ticking(),
            concurrency=1,
            on_result=slowly,
        )
    )
    await begun.wait()
    running.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stored_ids == ["a"]
    assert driver.asked == ["a"]


def test_concurrency_follows_the_cores_unless_it_is_set() -> None:
    assert [compute_concurrency(ProbeSettings(), cores) for cores in (1, 2, 8)] == [2, 4, 16]
    assert compute_concurrency(ProbeSettings(concurrency=3), 8) == 3
