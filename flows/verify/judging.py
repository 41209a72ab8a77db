"""Settles the answers that need a judge: by a rule, the judge, or an abstention that says why.

A judge grades what the plain graders leave open and, as `[judge] scope` says, confirms what they grade.

Answers wait here for the judge while the run goes on asking: in groups, and a severity-3 case without delay.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from types import TracebackType
from typing import NamedTuple, Self

from flows.alerting.faults import Fault
from flows.runtime.judge import open_judge
from flows.verify.run_state import LiveRun
from monitors.gate.assess import assess
from monitors.judge.consensus import OFF, Cost, PanelRuling, Ruling, abstention, grade_of
from monitors.judge.judge import Account, Judge, JudgedGroup
from monitors.judge.model import price_list
from monitors.judge.precheck import PRECHECK, fails_by_rule, is_open, is_replaced, judge_case, needs_judge
from monitors.judge.prompt import Task
from monitors.judge.settings import JudgeScope
from monitors.plural import plural
from monitors.records.base import Finding, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import JUDGE, Abstained, Assessment, CaseOutcome, Grade, Judged, JudgeLineage
from monitors.records.runs import CaseResult, JudgeState, Judging


class PendingAnswer(NamedTuple):
    """An answer that needs a judge, with what the plain graders said of it and of its facts."""

    case: GoldCase
    exchange: Exchange
    grades: tuple[Grade, ...]
    rules: Finding = Finding.UNGRADED


OnRuling = Callable[[PendingAnswer, Ruling], Awaitable[None]]


class JudgeQueue:
    """Judges in a task of its own, so that asking never waits for a provider.

    It sends a group when the group is full, when something severe in it is open, or when nothing more comes: what
    the rules pass can wait for its confirmation. The first group, and one after a void group, holds a canary of
    each kind. ``known`` are the cases that canaries are made of. Leaving the ``async with`` block waits until all
    is judged; leaving it by an exception does not: what was not judged stays open, and a resumed run takes it up.
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
        self._waiting: list[PendingAnswer] = []
        self._news = asyncio.Event()
        self._closing = False
        self._groups = 0
        self._is_exam_due = True
        self._worker: asyncio.Task[None] | None = None

    def put(self, waiting: PendingAnswer) -> None:
        """Add one answer."""
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
        urgent = any(one.case.severity is Severity.PAGE and one.rules is Finding.UNGRADED for one in self._waiting)
        return bool(self._waiting) and (self._closing or urgent or len(self._waiting) >= self._size)

    async def _judge_group(self, group: Sequence[PendingAnswer]) -> None:
        self._groups += 1
        cases = [judge_case(one.case, one.exchange, one.grades, rules=one.rules) for one in group]
        canaries = self._judge.group_canaries(
            cases, self._known, seed=f"{self._seed}:{self._groups}", exam=self._is_exam_due
        )
        judged = await self._judge.group(cases, canaries)
        self._is_exam_due = judged.is_void
        self._on_group(judged)
        for one, ruling in zip(group, judged.rulings, strict=True):
            await self._on_ruling(one, ruling)


UNAVAILABLE = "JudgeUnavailable"
"""The fault's name when there is a judge and not one of its grades."""

MOST_REASONS = 5

OnGraded = Callable[[CaseResult], Awaitable[None]]


class JudgeStage:
    """Settles the answers of one run that need a judge; ``on_graded`` hears of each once, when it is final.

    Every answer is in the journal before it waits for a judge, and again when it has a grade.
    """

    def __init__(self, run: LiveRun, on_graded: OnGraded) -> None:
        self._run = run
        self._on_graded = on_graded
        self._plan = run.context.judge
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
        context, settings = self._run.context, self._plan.settings
        if settings is not None and not self._plan.why_off:
            judge = await self._stack.enter_async_context(
                open_judge(self._plan, context.environment, self._account, context.nonce)
            )
            queue = JudgeQueue(
                judge,
                context.suite.cases,
                seed=context.run_id,
                size=settings.batch_size,
                on_ruling=self._ruled,
                on_group=self._group_done,
            )
            self._queue = await self._stack.enter_async_context(queue)
            await self._take_up()
        return self

    async def _take_up(self) -> None:
        """Take up what a stopped run left open, or could not have judged."""
        for opened in [one for one in self._run.results if self.is_needed(one.assessment)]:
            if isinstance(opened.result, Exchange):
                await self.settle(opened.case, opened.result, opened.assessment.grades)

    def is_needed(self, assessment: Assessment) -> bool:
        """Whether `settle` must settle the answer before it counts."""
        settings = self._plan.settings
        return needs_judge(assessment, settings.scope if settings and self._queue else JudgeScope.OPEN)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            self._conclude()

    async def settle(self, case: GoldCase, exchange: Exchange, grades: Sequence[Grade]) -> None:
        """Settle an answer that needs a judge."""
        assessment = assess(case, exchange, [grade for grade in grades if grade.grader != JUDGE])
        by_rule = fails_by_rule(case, exchange) if is_open(assessment) else None
        if by_rule is not None:
            await self._save(case, exchange, with_grade(grades, by_rule))
        elif self._queue is None:
            task = Task.RUBRIC if case.triage else Task.FACTUAL
            off = abstention(f"{OFF}: {self._plan.why_off}", task=task)
            await self._save(case, exchange, with_grade(grades, off))
        else:
            await asyncio.to_thread(self._run.save, case, exchange, assessment)
            self._queue.put(PendingAnswer(case, exchange, assessment.grades, assessment.factual_match))

    async def _ruled(self, waiting: PendingAnswer, ruling: Ruling) -> None:
        ruled = ruled_assessment(waiting, ruling)
        await self._on_graded(await asyncio.to_thread(self._run.save, waiting.case, waiting.exchange, ruled))

    async def _save(self, case: GoldCase, exchange: Exchange, grades: tuple[Grade, ...]) -> None:
        assessment = assess(case, exchange, grades)
        await self._on_graded(await asyncio.to_thread(self._run.save, case, exchange, assessment))

    def _group_done(self, group: JudgedGroup) -> None:
        self._groups += 1
        if group.is_void:
            self._voids.append(group)

    def _conclude(self) -> None:
        """Record what the run says of its judging, and what people must hear of it."""
        self._run.judging = judging = self._account_for(self._run.results)
        if self._voids:
            self._run.judge_void = _void_text(self._voids)
        elif _is_unavailable(judging):
            because = "; ".join(judging.ungraded_because[:2]) or "it was stopped before its first verdict"
            detail = f"{plural(judging.ungraded, 'answer')} needed a judge and got no verdict: {because}"
            self._run.faults.append(Fault(UNAVAILABLE, detail))

    def _account_for(self, results: Sequence[CaseResult]) -> Judging:
        """How many answers needed a judge and what became of them, counted from their grades; and what it cost."""
        answers = by_rule = spoken = judged = waiting = to_confirm = disputed = 0
        graded_by = set[JudgeLineage]()
        why = Counter[str]()
        for one in results:
            if not isinstance(one.result, Exchange):
                continue
            said = [grade for grade in one.assessment.grades if grade.grader == JUDGE]
            answers += 1
            by_rule += sum(grade.grader == PRECHECK for grade in one.assessment.grades)
            spoken += len(said)
            judged += sum(isinstance(grade, Judged) for grade in said)
            waiting += is_open(one.assessment) and not said
            if said and assess(one.case, one.result, _without_judge(one)).outcome is not CaseOutcome.UNGRADED:
                to_confirm += 1
                disputed += one.assessment.is_disputed
            graded_by.update(grade.lineage for grade in said if isinstance(grade, Judged) and grade.lineage)
            why.update(grade.reason for grade in said if isinstance(grade, Abstained))
        settings, cost = self._plan.settings, self._account.total
        return Judging(
            state=JudgeState.OFF if self._queue is None else JudgeState.ON,
            why=self._plan.why_off,
            models=self._plan.models,
            answers=answers,
            left_open=spoken + by_rule + waiting,
            to_confirm=to_confirm,
            disputed=disputed,
            by_rule=by_rule,
            judged=judged,
            ungraded_because=tuple(reason for reason, _ in why.most_common(MOST_REASONS)),
            lineages=tuple(sorted(graded_by, key=lambda one: (one.model, one.prompt_sha256))),
            groups=self._groups,
            void_groups=len(self._voids),
            void_grades=sum(len(group.rulings) for group in self._voids),
            calls=cost.calls,
            input_tokens=cost.input_tokens,
            cached_tokens=cost.cached_tokens,
            output_tokens=cost.output_tokens,
            cost_usd=cost.usd,
            budget_usd=settings.budget_usd if settings else None,
            budget_reached=self._account.is_reached,
        )


def ruled_assessment(waiting: PendingAnswer, ruling: Ruling) -> Assessment:
    """What an answer comes to once the judge has ruled."""
    grades = with_grade(waiting.grades, grade_of(ruling, waiting.exchange))
    unconfirmed = isinstance(ruling, PanelRuling) and ruling.decision.unconfirmed
    return marked(assess(waiting.case, waiting.exchange, grades), unconfirmed=unconfirmed)


def marked(assessment: Assessment, *, unconfirmed: bool) -> Assessment:
    """The assessment; a severity-3 failure that rests on one judge alone says so, as a disputed case does."""
    severe = assessment.outcome is CaseOutcome.FAILED and assessment.severity is Severity.PAGE
    return assessment.mark_unconfirmed((unconfirmed and severe) or assessment.is_disputed)


def with_grade(grades: Sequence[Grade], added: Judged | Abstained) -> tuple[Grade, ...]:
    """The grades with one more, in place of an earlier word of the same grader."""
    return (*(grade for grade in grades if not is_replaced(grade, added)), added)


def _without_judge(result: CaseResult) -> Sequence[Grade]:
    return [grade for grade in result.assessment.grades if grade.grader != JUDGE]


def _spent_before(results: Sequence[CaseResult]) -> Cost:
    """What the process that was stopped had spent on grades that are stored."""
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
