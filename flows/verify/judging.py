"""Grades the answers that rules cannot grade, or that the judge must confirm according to `[judge] scope`.

Answers are queued for the judge while the run continues to ask. The judge grades the answers in groups, but
severity-3 cases do not wait for a full group. Without a judge, these answers stay ungraded, with a reason.
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
from monitors.gate.assess import assess_case
from monitors.judge.consensus import JUDGE_OFF, Cost, PanelRuling, Ruling, build_judge_abstention, build_judge_grade
from monitors.judge.judge import Account, Judge, JudgedGroup
from monitors.judge.model import build_price_function
from monitors.judge.precheck import (
    PRECHECK,
    build_judge_case,
    grade_trivial_answer_as_failed,
    is_judge_required_for_ungraded,
    is_replaced_by,
    needs_judge,
)
from monitors.judge.prompt import Task
from monitors.judge.settings import JudgeScope
from monitors.plural import plural
from monitors.records.base import Finding, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import JUDGE, Abstained, Assessment, CaseOutcome, Grade, Judged, JudgeLineage
from monitors.records.runs import CaseResult, JudgeState, Judging


class PendingAnswer(NamedTuple):
    """An answer that waits for the judge, and the grades that rules gave this answer.

    ``rules`` says whether rules found the facts of the answer right or wrong, or could not grade them.
    """

    case: GoldCase
    exchange: Exchange
    grades: tuple[Grade, ...]
    rules: Finding = Finding.UNGRADED


OnRuling = Callable[[PendingAnswer, Ruling], Awaitable[None]]


class JudgeQueue:
    """Asks the judge in a background task, so that asking the application does not wait for a provider.

    A group is sent if it is full, if it contains an ungraded severe case, or if the queue is closed. The groups
    also contain known answers (canaries), made from ``canary_cases``, that test the judge. The ``async with`` block
    waits at its end for all verdicts. After an exception, the block does not wait, because a resumed run asks the
    judge again.
    """

    def __init__(
        self,
        judge: Judge,
        canary_cases: Sequence[GoldCase],
        *,
        seed: str,
        size: int,
        on_ruling: OnRuling,
        on_group: Callable[[JudgedGroup], None],
    ) -> None:
        self._judge = judge
        self._canary_cases = canary_cases
        self._seed = seed
        self._size = size
        self._on_ruling = on_ruling
        self._on_group = on_group
        self._waiting: list[PendingAnswer] = []
        self._arrived = asyncio.Event()
        self._closing = False
        self._groups = 0
        self._is_exam_due = True
        self._worker: asyncio.Task[None] | None = None

    def add(self, waiting: PendingAnswer) -> None:
        """Add an answer to the queue."""
        self._waiting.append(waiting)
        self._arrived.set()

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._judge_groups())
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
        self._arrived.set()
        await self._worker

    async def _judge_groups(self) -> None:
        while not (self._closing and not self._waiting):
            await self._arrived.wait()
            self._arrived.clear()
            while self._is_group_due():
                group, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
                await self._judge_group(group)

    def _is_group_due(self) -> bool:
        urgent = any(
            answer.rules is Finding.UNGRADED and answer.case.severity is Severity.CRITICAL
            for answer in self._waiting
        )
        return bool(self._waiting) and (self._closing or urgent or len(self._waiting) >= self._size)

    async def _judge_group(self, group: Sequence[PendingAnswer]) -> None:
        self._groups += 1
        cases = [
            build_judge_case(answer.case, answer.exchange, answer.grades, rules=answer.rules) for answer in group
        ]
        canaries = self._judge.build_group_canaries(
            cases, self._canary_cases, seed=f"{self._seed}:{self._groups}", exam=self._is_exam_due
        )
        judged = await self._judge.judge_group(cases, canaries)
        self._is_exam_due = judged.is_void
        self._on_group(judged)
        for answer, ruling in zip(group, judged.rulings, strict=True):
            await self._on_ruling(answer, ruling)


JUDGE_UNAVAILABLE = "JudgeUnavailable"
"""The name of the fault that is reported if a configured judge gave no grade."""

MAX_REASONS = 5

OnGraded = Callable[[CaseResult], Awaitable[None]]


class JudgeStage:
    """Grades the answers of one run that need a judge. Calls ``on_graded`` once for each final result.

    Each answer is stored in the journal before it waits for the judge, and again with its final grade.
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
            build_price_function(settings.prices if settings else ()),
            limit_usd=settings.limit_usd if settings else None,
        )

    async def __aenter__(self) -> Self:
        # The cost of grades from before the run was resumed counts too.
        grades = (grade for result in self._run.results for grade in result.assessment.grades)
        spent = [grade.cost_usd for grade in grades if isinstance(grade, Judged) and grade.grader == JUDGE]
        self._account.total = Cost(calls=len(spent), usd=sum(spent, Decimal(0)))
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
                on_ruling=self._save_ruling,
                on_group=self._count_judged_group,
            )
            self._queue = await self._stack.enter_async_context(queue)
            await self._grade_answers_left_open()
        return self

    async def _grade_answers_left_open(self) -> None:
        """Grade the answers that were still ungraded when an earlier run stopped."""
        for opened in [result for result in self._run.results if self.is_needed(result.assessment)]:
            if isinstance(opened.result, Exchange):
                await self.grade_or_queue_answer(opened.case, opened.result, opened.assessment.grades)

    def is_needed(self, assessment: Assessment) -> bool:
        """Return whether rules could not grade the answer, or the judge must confirm the grade."""
        settings = self._plan.settings
        return needs_judge(assessment, settings.scope if settings and self._queue else JudgeScope.OPEN)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            self._store_judging_and_add_faults()

    async def grade_or_queue_answer(self, case: GoldCase, exchange: Exchange, grades: Sequence[Grade]) -> None:
        """Grade an answer by a rule, or queue the answer for the judge.

        Without a judge, leave the answer ungraded.
        """
        assessment = assess_case(case, exchange, [grade for grade in grades if grade.grader != JUDGE])
        by_rule = (
            grade_trivial_answer_as_failed(case, exchange) if is_judge_required_for_ungraded(assessment) else None
        )
        if by_rule is not None:
            await self._save(case, exchange, add_or_replace_grade(grades, by_rule))
        elif self._queue is None:
            task = Task.RUBRIC if case.triage else Task.FACTUAL
            off = build_judge_abstention(f"{JUDGE_OFF}: {self._plan.why_off}", task=task)
            await self._save(case, exchange, add_or_replace_grade(grades, off))
        else:
            await asyncio.to_thread(self._run.save, case, exchange, assessment)
            self._queue.add(PendingAnswer(case, exchange, assessment.grades, assessment.factual_match))

    async def _save_ruling(self, pending: PendingAnswer, ruling: Ruling) -> None:
        ruled = apply_ruling(pending, ruling)
        await self._on_graded(await asyncio.to_thread(self._run.save, pending.case, pending.exchange, ruled))

    async def _save(self, case: GoldCase, exchange: Exchange, grades: tuple[Grade, ...]) -> None:
        assessment = assess_case(case, exchange, grades)
        await self._on_graded(await asyncio.to_thread(self._run.save, case, exchange, assessment))

    def _count_judged_group(self, group: JudgedGroup) -> None:
        self._groups += 1
        if group.is_void:
            self._voids.append(group)

    def _store_judging_and_add_faults(self) -> None:
        """Store the figures of judging in the run. Add a fault if the verdicts are unreliable or missing."""
        self._run.judging = judging = self._build_judging(self._run.results)
        if self._voids:
            self._run.judge_void = _format_void_alert(self._voids)
        elif (
            judging.state is JudgeState.ON
            and judging.needed_judge_count
            and not judging.judged
            and not judging.budget_reached
        ):
            reasons = "; ".join(judging.ungraded_because[:2]) or "the judge was stopped before its first verdict"
            detail = (
                f"{plural(judging.ungraded, 'answer')} needed a judge, but the judge gave no verdict: {reasons}"
            )
            self._run.faults.append(Fault(JUDGE_UNAVAILABLE, detail))

    def _build_judging(self, results: Sequence[CaseResult]) -> Judging:
        """Build the figures of judging: how many answers needed the judge, the verdicts and the cost."""
        answers = by_rule = spoken = judged = waiting = to_confirm = disputed = 0
        graded_by = set[JudgeLineage]()
        reasons = Counter[str]()
        for result in results:
            if not isinstance(result.result, Exchange):
                continue
            judge_grades = [grade for grade in result.assessment.grades if grade.grader == JUDGE]
            rule_grades = [grade for grade in result.assessment.grades if grade.grader != JUDGE]
            answers += 1
            by_rule += sum(grade.grader == PRECHECK for grade in result.assessment.grades)
            spoken += len(judge_grades)
            judged += sum(isinstance(grade, Judged) for grade in judge_grades)
            waiting += is_judge_required_for_ungraded(result.assessment) and not judge_grades
            if (
                judge_grades
                and assess_case(result.case, result.result, rule_grades).outcome is not CaseOutcome.UNGRADED
            ):
                to_confirm += 1
                disputed += result.assessment.is_disputed
            graded_by.update(grade.lineage for grade in judge_grades if isinstance(grade, Judged) and grade.lineage)
            reasons.update(grade.reason for grade in judge_grades if isinstance(grade, Abstained))
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
            ungraded_because=tuple(reason for reason, _ in reasons.most_common(MAX_REASONS)),
            lineages=tuple(sorted(graded_by, key=lambda result: (result.model, result.prompt_sha256))),
            groups=self._groups,
            void_groups=len(self._voids),
            void_grades=sum(len(group.rulings) for group in self._voids),
            calls=cost.calls,
            estimated_calls=cost.estimated_calls,
            input_tokens=cost.input_tokens,
            cached_tokens=cost.cached_tokens,
            output_tokens=cost.output_tokens,
            cost_usd=cost.usd,
            budget_usd=settings.limit_usd if settings else None,
            budget_reached=self._account.is_limit_reached,
            unpriced_models=settings.unpriced_models if settings else (),
        )


def apply_ruling(pending: PendingAnswer, ruling: Ruling) -> Assessment:
    """Return the assessment of an answer with the judge's verdict."""
    grades = add_or_replace_grade(pending.grades, build_judge_grade(ruling, pending.exchange))
    unconfirmed = isinstance(ruling, PanelRuling) and ruling.decision.unconfirmed
    return mark_unconfirmed(assess_case(pending.case, pending.exchange, grades), unconfirmed=unconfirmed)


def mark_unconfirmed(assessment: Assessment, *, unconfirmed: bool) -> Assessment:
    """Return the assessment, marked as unconfirmed if its failure is not certain.

    A failure is not certain if it has severity 3 and only one judge found it (``unconfirmed``), or if the graders
    disagree.
    """
    severe = assessment.outcome is CaseOutcome.FAILED and assessment.severity is Severity.CRITICAL
    return assessment.mark_unconfirmed((unconfirmed and severe) or assessment.is_disputed)


def add_or_replace_grade(grades: Sequence[Grade], added: Judged | Abstained) -> tuple[Grade, ...]:
    """Return the grades plus the grade ``added``, which replaces an earlier grade of the same grader."""
    return (*(grade for grade in grades if not is_replaced_by(grade, added)), added)


def _format_void_alert(voids: Sequence[JudgedGroup]) -> str:
    first = next(group.canaries for group in voids if group.canaries is not None)
    grades = sum(len(group.rulings) for group in voids)
    more = f" The same happened in {len(voids)} batches of this run." if len(voids) > 1 else ""
    return first.format_void_alert(grades) + more
