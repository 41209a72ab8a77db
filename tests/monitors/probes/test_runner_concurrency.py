"""Test that each of several concurrent questions ends once, and that the totals of the run are then correct.

The schedules are seeded. An app that answers, fails, stops and recovers at random is asked several questions at
once, with a changing number of concurrent questions. The run is killed at a random moment and resumed with its
stored results.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from syrupy.assertion import SnapshotAssertion

from monitors.errors import (
    AnswerTimeout,
    AppErrorShown,
    BrowserLost,
    NotReady,
    PageNotUnderstood,
    ProbeError,
    Unreachable,
)
from monitors.probes.driver import Answer, SelectEvidence, select_no_evidence
from monitors.probes.pace import Pace
from monitors.probes.request_limit import RequestLimit
from monitors.probes.runner import (
    CircuitBreaker,
    ProbeTally,
    Question,
    Runner,
    iterate_questions_by_severity,
    iterate_unanswered_questions,
)
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, ProbeResult, Timings
from tests.monitors.probes.scripted import Ticking, case

SCHEDULES = 400
ERRORS: tuple[type[ProbeError], ...] = (Unreachable, AnswerTimeout, AppErrorShown, PageNotUnderstood, BrowserLost)


@dataclass
class Schedule:
    """A seeded application. It has a probability for each outcome, and a duration in turns of the event loop."""

    seed: int
    at_once: int = 0
    most_at_once: int = 0
    results: dict[tuple[str, int], list[ProbeResult]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.up = self.chance.choice((0.0, 0.3, 0.7, 0.95))
        self.settings = ProbeSettings(
            retry_pause_s=0,
            attempts=self.chance.randint(1, 3),
            circuit_breaker_failures=self.chance.randint(1, 5),
            repeats_severity_3=self.chance.randint(1, 3),
        )
        cases = [case(f"c{number}", self.chance.randint(1, 3)) for number in range(self.chance.randint(1, 25))]
        self.planned = tuple(
            iterate_questions_by_severity(cases, repeats_severity_3=self.settings.repeats_severity_3)
        )

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "", select_evidence: SelectEvidence = select_no_evidence
    ) -> Answer:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._turns(12)
            if self.chance.random() > self.up:
                raise self.chance.choice(ERRORS)(f"{turns[-1]} {name}")
            answer = Answer(visible_text="24 months", timings=Timings(total_ms=1))
            await select_evidence(answer)
            return answer
        finally:
            self.at_once -= 1

    async def recover(self) -> None:
        await self._turns(20)
        if self.chance.random() < 0.3:
            raise NotReady("it did not come back")
        self.up = min(1.0, self.up + 0.2)

    async def keep(self, case: GoldCase, result: ProbeResult) -> None:
        await self._turns(4)
        self.results.setdefault((case.id, result.repeat), []).append(result)

    async def _turns(self, most: int) -> None:
        for _ in range(self.chance.randint(0, most)):
            await asyncio.sleep(0)

    def run(self, left: tuple[Question, ...], pace: Pace) -> asyncio.Task[ProbeTally]:
        runner = Runner(
            driver=self,
            run_id="run-1",
            settings=self.settings,
            clock=Ticking(),
            limit=RequestLimit(),
            on_result=self.keep,
            recover=self.recover if self.seed % 2 else None,
        )
        return asyncio.ensure_future(runner.run(left, concurrency=pace))


@pytest.mark.parametrize("block", range(8))
async def test_every_schedule_ends_each_question_once_with_a_reason_that_stands(block: int) -> None:
    """In 400 schedules, each question ends once, and an open circuit breaker keeps the reason why it opened.

    No error escapes, and no question is lost or asked twice.
    """
    for seed in range(block * SCHEDULES // 8, (block + 1) * SCHEDULES // 8):
        schedule = Schedule(seed)
        first = schedule.run(schedule.planned, _pace(schedule))
        if schedule.chance.random() < 0.4:
            await schedule._turns(200)
            first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        if first.cancelled():
            assert schedule.at_once == 0, f"seed {seed}: a question goes on after its run was ended"
            left = tuple(iterate_unanswered_questions(schedule.planned, frozenset(schedule.results)))
            tally = await schedule.run(left, _pace(schedule))
        else:
            left, tally = schedule.planned, first.result()
        _holds(schedule, left, tally)


def _pace(schedule: Schedule) -> Pace:
    most = schedule.chance.randint(1, 6)
    begin = schedule.chance.randint(1, most)
    return Pace(initial=begin, minimum=1, maximum=most, idle=lambda: schedule.chance.choice((0.0, 0.2, 0.9, None)))


def _holds(schedule: Schedule, left: tuple[Question, ...], tally: ProbeTally) -> None:
    seed = schedule.seed
    assert set(schedule.results) == {(one.case.id, one.repeat) for one in schedule.planned}, f"seed {seed}: lost"
    assert all(len(each) == 1 for each in schedule.results.values()), f"seed {seed}: twice"
    assert tally.answered + tally.unanswered == len(left), f"seed {seed}: the account is wrong"
    assert schedule.at_once == 0
    assert schedule.most_at_once <= 6
    ended = [schedule.results[one.case.id, one.repeat][0] for one in left]
    assert tally.answered == sum(isinstance(one, Exchange) for one in ended)
    not_asked = {(one.detail, one.blame) for one in ended if _is_not_asked(one)}
    assert len(not_asked) <= 1, f"seed {seed}: the reason changed after the circuit opened: {not_asked}"
    assert not not_asked or {detail for detail, _ in not_asked} == {tally.circuit_opened}


def _is_not_asked(result: ProbeResult) -> bool:
    return isinstance(result, NoAnswer) and result.reason is NoAnswerReason.CIRCUIT_OPEN


async def test_a_question_under_way_that_succeeds_leaves_the_open_circuit_its_reason(
    snapshot: SnapshotAssertion,
) -> None:
    """If a slow question succeeds after the circuit opened, the reason for the open circuit stays the same.

    The app failed five times and recovered before the slow question got its answer.
    """
    released = asyncio.Event()

    class Recovering:
        async def ask(
            self,
            turns: tuple[str, ...],
            *,
            name: str = "",  # noqa: ARG002 - the driver's protocol
            select_evidence: SelectEvidence = select_no_evidence,  # noqa: ARG002 - same
        ) -> Answer:
            if turns == ("slow",):
                await released.wait()
                return Answer(visible_text="24 months", timings=Timings(total_ms=1))
            raise AnswerTimeout("no answer in 60 s")

    results: list[ProbeResult] = []

    async def keep(_case: GoldCase, result: ProbeResult) -> None:
        results.append(result)
        if len(results) == 5:
            released.set()

    settings = ProbeSettings(retry_pause_s=0, attempts=1, circuit_breaker_failures=5)
    runner = Runner(
        driver=Recovering(),
        run_id="run-1",
        settings=settings,
        clock=Ticking(),
        limit=RequestLimit(),
        on_result=keep,
    )
    cases = [case("slow", 3), *(case(f"c{number}") for number in range(9))]
    tally = await runner.run(iterate_questions_by_severity(cases), concurrency=2)
    assert (tally.answered, tally.unanswered) == (1, 9)
    assert tally.circuit_opened is not None
    assert tally.circuit_opened == snapshot


def test_a_closed_circuit_has_no_reason() -> None:
    breaker = CircuitBreaker(2)
    breaker.record_answer()
    with pytest.raises(ValueError, match="closed"):
        _ = breaker.why
    with pytest.raises(ValueError, match="closed"):
        _ = breaker.blame
    breaker.open_circuit_breaker(_failure("a"))
    breaker.record_answer()
    breaker.count_failure_toward_breaker(_failure("b"))
    breaker.open_circuit_breaker(_failure("c"))
    assert breaker.is_open
    assert breaker.blame is Blame.APP
    assert "(a)" in breaker.why


def _failure(detail: str) -> NoAnswer:
    return NoAnswer(
        run_id="run-1",
        case_id=detail,
        turns=(detail,),
        reason=NoAnswerReason.UNREACHABLE,
        blame=Blame.APP,
        detail=detail,
        asked_at=Ticking()(),
    )
