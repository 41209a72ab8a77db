"""Test the queue of a judge: answers wait until their group is complete, but severe answers never wait."""

from __future__ import annotations

import asyncio

import pytest

from flows.verify.judging import JudgeQueue, PendingAnswer
from monitors.judge.consensus import Cost, NoRuling
from monitors.judge.judge import JudgedGroup
from monitors.records.base import Blame, Severity
from tests.builders import exchange, gold_case


class Judge:
    """A judge that records its groups and gives no verdicts. It responds only while the event ``open`` is set."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.open = asyncio.Event()
        self.open.set()

    def build_group_canaries(self, _cases, _suite_cases, **_options):
        return ()

    async def judge_group(self, cases, _canaries) -> JudgedGroup:
        self.groups.append([case.subject.turns[0] for case in cases])
        await self.open.wait()
        rulings = tuple(NoRuling(case=case, reason="x", blame=Blame.MONITOR, cost=Cost()) for case in cases)
        return JudgedGroup(rulings=rulings, canaries=None, canary_cost=Cost())


def waiting(name: str, severity: Severity = Severity.MINOR) -> PendingAnswer:
    case = gold_case(name, turns=(name,), severity=severity)
    return PendingAnswer(case, exchange(case), ())


class Heard:
    """A judge queue, its judge, and the ids of the cases for which the judge returned a ruling."""

    def __init__(self, judge: Judge, size: int = 3) -> None:
        self.ruled: list[str] = []
        self.judge = judge
        self.queue = JudgeQueue(
            judge, (), seed="s", size=size, on_ruling=self.on_ruling, on_group=lambda _group: None
        )

    async def on_ruling(self, one: PendingAnswer, _ruling) -> None:
        self.ruled.append(one.case.id)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_full_group_goes_and_the_rest_waits_for_the_end():
    heard = Heard(Judge())
    async with heard.queue as queue:
        for name in "abcd":
            queue.add(waiting(name))
        await settled()
        assert heard.judge.groups == [["a", "b", "c"]]
    assert heard.judge.groups == [["a", "b", "c"], ["d"]]
    assert heard.ruled == list("abcd")


async def test_a_severe_one_does_not_wait():
    heard = Heard(Judge())
    async with heard.queue as queue:
        queue.add(waiting("a"))
        await settled()
        assert heard.judge.groups == []
        queue.add(waiting("b", Severity.CRITICAL))
        await settled()
        assert heard.judge.groups == [["a", "b"]]


async def test_answers_that_arrive_during_judging_go_into_the_next_group():
    heard = Heard(Judge(), size=2)
    heard.judge.open.clear()
    async with heard.queue as queue:
        for name in "abcde":
            queue.add(waiting(name))
            await settled()
        assert heard.judge.groups == [["a", "b"]]
        heard.judge.open.set()
    assert heard.judge.groups == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_run_that_is_stopped_does_not_wait_for_its_judge():
    heard = Heard(Judge(), size=1)
    heard.judge.open.clear()

    async def stopped() -> None:
        async with heard.queue as queue:
            queue.add(waiting("a"))
            await settled()
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await stopped()
    assert heard.ruled == []


async def test_nothing_to_judge_is_no_group():
    heard = Heard(Judge())
    async with heard.queue:
        pass
    assert heard.judge.groups == []
