"""What becomes of answers that the plain graders leave open: a rule, the judge, or an abstention that says why."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from types import TracebackType
from typing import Self

from flows.judge_queue import JudgeQueue, Waiting
from flows.judge_wiring import open_judge
from flows.keys import nonce
from flows.live_run import LiveRun
from flows.monitor_fault import Fault
from flows.wiring import environment
from monitors.gate.assess import assess
from monitors.judge.account import Account
from monitors.judge.cascade import PRECHECK, fails_by_rule, is_open, is_replaced
from monitors.judge.grading import JUDGE, OFF, abstention, grade_of
from monitors.judge.judge import JudgedGroup
from monitors.judge.prices import price_list
from monitors.judge.ruling import Cost, Ruled, Ruling
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Assessment, CaseOutcome, Grade, Judged
from monitors.records.judging import JudgeState, Judging
from monitors.records.runs import CaseResult

UNAVAILABLE = "JudgeUnavailable"
"""The fault's name when there is a judge and not one of its grades."""

MOST_REASONS = 5

Told = Callable[[CaseResult], Awaitable[None]]


class JudgeStage:
    """Settles open answers of one run; ``told`` hears of each once, when its assessment is final.

    Every answer is in the journal before it waits for a judge, and again when it has a grade.
    """

    def __init__(self, run: LiveRun, told: Told) -> None:
        self._run = run
        self._told = told
        self._plan = run.wired.judge
        self._stack = AsyncExitStack()
        self._queue: JudgeQueue | None = None
        self._voids: list[JudgedGroup] = []
        self._groups = 0
        settings = self._plan.settings
        self._account = Account(
            price_list(settings.prices if settings else ()), limit_usd=settings.budget_usd if settings else None
        )

    async def __aenter__(self) -> Self:
        self._account.total = _spent_before(self._run.results)
        settings = self._plan.settings
        if settings is not None and not self._plan.why_off:
            judge = await self._stack.enter_async_context(
                open_judge(self._plan, environment(), self._account, nonce)
            )
            queue = JudgeQueue(
                judge,
                self._run.wired.suite.cases,
                seed=self._run.wired.run_id,
                size=settings.batch_size,
                on_ruling=self._ruled,
                on_group=self._group_done,
            )
            self._queue = await self._stack.enter_async_context(queue)
            await self._take_up()
        return self

    async def _take_up(self) -> None:
        """What a run that was stopped left open, or could not have judged."""
        for kept in [one for one in self._run.results if is_open(one.assessment)]:
            if isinstance(kept.result, Exchange):
                await self.settle(kept.case, kept.result, kept.assessment.grades)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            self._conclude()

    async def settle(self, case: GoldCase, exchange: Exchange, grades: Sequence[Grade]) -> None:
        """An answer whose facts the plain graders left untold."""
        by_rule = fails_by_rule(case, exchange)
        if by_rule is not None:
            await self._keep(case, exchange, _with(grades, by_rule), unconfirmed=False)
        elif self._queue is None:
            off = abstention(f"{OFF}: {self._plan.why_off}")
            await self._keep(case, exchange, _with(grades, off), unconfirmed=False)
        else:
            await asyncio.to_thread(self._run.keep, case, exchange, assess(case, exchange, grades))
            self._queue.put(Waiting(case, exchange, tuple(grades)))

    async def _ruled(self, waiting: Waiting, ruling: Ruling) -> None:
        grades = _with(waiting.grades, grade_of(ruling, waiting.exchange))
        unconfirmed = isinstance(ruling, Ruled) and ruling.decision.unconfirmed
        await self._keep(waiting.case, waiting.exchange, grades, unconfirmed=unconfirmed)

    async def _keep(
        self, case: GoldCase, exchange: Exchange, grades: tuple[Grade, ...], *, unconfirmed: bool
    ) -> None:
        assessment = marked(assess(case, exchange, grades), unconfirmed=unconfirmed)
        await self._told(await asyncio.to_thread(self._run.keep, case, exchange, assessment))

    def _group_done(self, group: JudgedGroup) -> None:
        self._groups += 1
        if group.is_void:
            self._voids.append(group)

    def _conclude(self) -> None:
        """What the run says of its judging, and what people must hear of it."""
        told = summary(self._run.results)
        settings = self._plan.settings
        off = self._queue is None
        cost = self._account.total
        self._run.judging = told.model_copy(
            update={
                "state": JudgeState.OFF if off else JudgeState.ON,
                "why": self._plan.why_off,
                "models": self._plan.models,
                "groups": self._groups,
                "void_groups": len(self._voids),
                "void_grades": sum(len(group.rulings) for group in self._voids),
                "calls": cost.calls,
                "input_tokens": cost.input_tokens,
                "cached_tokens": cost.cached_tokens,
                "output_tokens": cost.output_tokens,
                "cost_usd": cost.usd,
                "budget_usd": settings.budget_usd if settings else None,
                "budget_reached": self._account.is_reached,
            }
        )
        if self._voids:
            self._run.judge_void = _void_text(self._voids)
        elif _is_unavailable(self._run.judging):
            self._run.faults.append(Fault(UNAVAILABLE, _unavailable_text(self._run.judging)))


def marked(assessment: Assessment, *, unconfirmed: bool) -> Assessment:
    """A severity-3 failure that rests on one judge alone says so."""
    severe = assessment.outcome is CaseOutcome.FAILED and assessment.severity is Severity.PAGE
    return assessment.model_copy(update={"unconfirmed": unconfirmed and severe})


def _with(grades: Sequence[Grade], added: Judged | Abstained) -> tuple[Grade, ...]:
    return (*(grade for grade in grades if not is_replaced(grade, added)), added)


def summary(results: Sequence[CaseResult]) -> Judging:
    """How many answers needed a judge and what became of them, told from their grades."""
    answers = [one for one in results if isinstance(one.result, Exchange)]
    spoken = [grade for one in answers for grade in one.assessment.grades if grade.grader == JUDGE]
    by_rule = sum(grade.grader == PRECHECK for one in answers for grade in one.assessment.grades)
    judged = sum(isinstance(grade, Judged) for grade in spoken)
    waiting = sum(
        is_open(one.assessment) and not any(grade.grader == JUDGE for grade in one.assessment.grades)
        for one in answers
    )
    graded_by = [grade.lineage for grade in spoken if isinstance(grade, Judged) and grade.lineage]
    why = Counter(grade.reason for grade in spoken if isinstance(grade, Abstained))
    return Judging(
        state=JudgeState.OFF,
        answers=len(answers),
        left_open=len(spoken) + by_rule + waiting,
        by_rule=by_rule,
        judged=judged,
        ungraded_because=tuple(reason for reason, _ in why.most_common(MOST_REASONS)),
        lineages=tuple(sorted(set(graded_by), key=lambda one: (one.model, one.prompt_sha256))),
    )


def _spent_before(results: Sequence[CaseResult]) -> Cost:
    """What the process that was stopped had spent on grades that are kept."""
    grades = (grade for one in results for grade in one.assessment.grades)
    spent = [grade.cost_usd for grade in grades if isinstance(grade, Judged) and grade.grader == JUDGE]
    return Cost(calls=len(spent), usd=sum(spent, Decimal(0)))


def _void_text(voids: Sequence[JudgedGroup]) -> str:
    first = next(group.canaries for group in voids if group.canaries is not None)
    grades = sum(len(group.rulings) for group in voids)
    more = f" It happened in {len(voids)} groups of this run." if len(voids) > 1 else ""
    return first.alert_text(grades) + more


def _is_unavailable(judging: Judging) -> bool:
    asked_in_vain = judging.reached_judge and not judging.judged
    return judging.state is JudgeState.ON and bool(asked_in_vain) and not judging.budget_reached


def _unavailable_text(judging: Judging) -> str:
    because = "; ".join(judging.ungraded_because[:2]) or "it was stopped before its first verdict"
    return f"{judging.ungraded} answers needed a judge and got no verdict: {because}"
