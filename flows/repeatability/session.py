"""One session: sampled cases are asked twice in fresh sessions, graded as a run grades them, and stored apart.

The build that serves is read before and after, and off every answer that names one: pairs across a deploy are void.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Self

from flows.explain.asking import asker_at
from flows.repeatability.context import RepeatabilityContext
from flows.repeatability.sample import sampled_cases
from flows.runtime.judge import open_judge
from flows.verify.judging import JudgeQueue, PendingAnswer, ruled_assessment
from flows.waiting import doing
from monitors.errors import ProbeError, WarehouseBusy
from monitors.gate.evaluate import RunFacts
from monitors.gate.repeatability import pairs_of, repeatability
from monitors.judge.consensus import Ruling
from monitors.judge.judge import Account, JudgedGroup
from monitors.judge.model import price_list
from monitors.judge.precheck import needs_judge
from monitors.plural import plural
from monitors.probes.readiness import same_commit, wait_until_ready
from monitors.probes.runner import Question
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import Assessment
from monitors.records.runs import CaseResult
from monitors.records.self_checks import Repeatability, RepeatabilityRun, RepeatedCase, recorded_ask
from warehouse.database.store import Store
from warehouse.journal.rows import RepeatabilityRow
from warehouse.queries.repeatability import (
    RecordedRepeats,
    last_asked,
    recorded_repeats,
)
from warehouse.queries.runs import last_accepted

TIMES: Final = 2
BLOCK: Final = 8
"""Cases that are asked once before each of them is asked again: the two askings are not one moment's."""

LOAD_WAIT_S: Final = 60.0
FOLDER: Final = "repeatability"
"""Inside the data folder: what a driver leaves behind while it asks."""


@dataclass
class _AskedTwice:
    """What came back so far, by case."""

    assessments: defaultdict[str, list[Assessment]] = field(default_factory=lambda: defaultdict(list))
    versions: set[str] = field(default_factory=set[str])
    away: str = ""
    cost_usd: Decimal = Decimal(0)

    def take(self, result: CaseResult) -> None:
        """Count an answer, or that there was none; what was not asked does not count."""
        came = result.result
        if isinstance(came, NoAnswer) and came.reason is NoAnswerReason.CIRCUIT_OPEN:
            self.away = came.detail
            return
        if isinstance(came, Exchange) and came.app_version:
            self.versions.add(came.app_version)
        self.assessments[result.case.id].append(result.assessment)


class RepeatabilitySession:
    """Asks, stores, and computes the figures. Belongs to one event loop."""

    def __init__(self, context: RepeatabilityContext) -> None:
        self._context = context
        self._asked = _AskedTwice()

    async def work(self, cases: int | None = None) -> RepeatabilityRun:
        """The whole session; ``cases`` instead of the configured number. Raises `MonitorError`."""
        context, started_at = self._context, self._context.now()
        await asyncio.to_thread(_load, context.store)
        await asyncio.to_thread(context.store.journal.append_suite, context.suite)
        sampled = await self._sampled(cases or context.configured.repeatability.cases)
        before, why_not = await _serving(context)
        after = before
        if not why_not:
            await self._ask(sampled, started_at + timedelta(seconds=context.configured.repeatability.limit_s))
            after, why_not = await _serving(context)
        session = self._session(sampled, started_at, before, why_not, self._void(before, after))
        await self._store(session)
        session = session.add_figures(await asyncio.to_thread(figures, context, session))
        await self._store(session)
        return session

    async def _sampled(self, count: int) -> tuple[GoldCase, ...]:
        context = self._context
        known = await asyncio.to_thread(last_asked, context.store, context.target.name)
        return sampled_cases(context.suite.cases, count, known, context.rng)

    async def _ask(self, sampled: Sequence[GoldCase], until: datetime) -> None:
        context = self._context
        folder = context.config.data_folder / FOLDER / context.run_id
        opening = asker_at(
            context.config,
            context.target.name,
            context.target.address,
            folder=folder,
            run_id=context.run_id,
            cases=context.suite.cases,
            environment=context.environment,
            clock=context.now,
        )
        async with opening as asker, _Judging(context, self._asked) as judging:
            as_in_runs = {"attempts": context.configured.probe.attempts}
            patient = replace(asker, settings=asker.settings.model_copy(update=as_in_runs))
            doing(self._progress(0, sampled))
            asked = 0

            async def take(result: CaseResult) -> None:
                nonlocal asked
                asked += 1
                doing(self._progress(asked, sampled))
                await judging.take(result)

            await patient.ask(self._questions(sampled, until), on_asked=take)

    def _progress(self, asked: int, sampled: Sequence[GoldCase]) -> str:
        name = self._context.target.name
        return f"{name}: asking each case {TIMES} times, {asked} of {TIMES * len(sampled)} questions done"

    def _questions(self, sampled: Sequence[GoldCase], until: datetime) -> Iterator[Question]:
        for start in range(0, len(sampled), BLOCK):
            if self._context.now() >= until:
                return
            block = sampled[start : start + BLOCK]
            yield from (Question(case=case, repeat=repeat) for repeat in range(TIMES) for case in block)

    def _void(self, before: str | None, after: str | None) -> str:
        if before and after and before != after and not same_commit(before, after):
            return f"a deploy came in between: {before} served before, {after} after"
        if len(self._asked.versions) > 1:
            return f"answers came from several builds: {', '.join(sorted(self._asked.versions))}"
        return ""

    def _session(
        self, sampled: Sequence[GoldCase], started_at: datetime, commit: str | None, why_not: str, void: str
    ) -> RepeatabilityRun:
        context, asked = self._context, self._asked
        build = commit or next(iter(asked.versions), context.run_id)
        cases = tuple(_repeated(case, build, asked.assessments[case.id]) for case in sampled)
        complete = [case for case in cases if len(case.asks) >= TIMES]
        return RepeatabilityRun(
            run_id=context.run_id,
            target=context.target.name,
            environment=context.target.environment,
            suite_name=context.suite.name,
            suite_sha256=context.suite.sha256,
            graded_by=context.scope.graded_by,
            commit=commit,
            started_at=started_at,
            finished_at=context.now(),
            sampled=len(sampled),
            void=void,
            stopped="" if len(complete) == len(sampled) else self._why_stopped(why_not, len(complete)),
            cases=tuple(complete),
            cost_usd=asked.cost_usd,
        )

    def _why_stopped(self, why_not: str, complete: int) -> str:
        if why_not or self._asked.away:
            return why_not or self._asked.away
        limit_s = self._context.configured.repeatability.limit_s
        return f"the limit of {limit_s:g} s was reached after {plural(complete, 'case')}"

    async def _store(self, session: RepeatabilityRun) -> None:
        store = self._context.store
        await asyncio.to_thread(store.journal.append, (RepeatabilityRow(row=session),), run_id=session.run_id)
        await asyncio.to_thread(_load, store)


class _Judging:
    """Settles what the plain graders leave open, where there is a judge; leaving it waits for all verdicts."""

    def __init__(self, context: RepeatabilityContext, asked: _AskedTwice) -> None:
        self._context = context
        self._asked = asked
        self._stack = AsyncExitStack()
        self._queue: JudgeQueue | None = None
        settings = context.judge.settings
        self._account = Account(
            price_list(settings.prices if settings else ()), limit_usd=settings.budget_usd if settings else None
        )

    async def __aenter__(self) -> Self:
        context, settings = self._context, self._context.judge.settings
        if settings is not None and not context.judge.why_off:
            opening = open_judge(context.judge, context.environment, self._account, context.nonce)
            judge = await self._stack.enter_async_context(opening)
            queue = JudgeQueue(
                judge,
                context.suite.cases,
                seed=context.run_id,
                size=settings.batch_size,
                on_ruling=self._ruled,
                on_group=_no_more,
            )
            self._queue = await self._stack.enter_async_context(queue)
        return self

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._stack.__aexit__(*raised)  # pyright: ignore[reportArgumentType] - as they come
        finally:
            self._asked.cost_usd = self._account.total.usd

    async def take(self, result: CaseResult) -> None:
        """Count a result, or pass it to the judge."""
        settings, found = self._context.judge.settings, result.assessment
        if (
            self._queue is not None
            and settings is not None
            and isinstance(result.result, Exchange)
            and needs_judge(found, settings.scope)
        ):
            self._queue.put(PendingAnswer(result.case, result.result, found.grades, found.factual_match))
        else:
            self._asked.take(result)

    async def _ruled(self, waiting: PendingAnswer, ruling: Ruling) -> None:
        assessment = ruled_assessment(waiting, ruling)
        self._asked.take(CaseResult(case=waiting.case, result=waiting.exchange, assessment=assessment))


def _no_more(_group: JudgedGroup) -> None:
    """A group whose canaries failed is void already: its answers came back ungraded."""


async def _serving(context: RepeatabilityContext) -> tuple[str | None, str]:
    """The commit that serves, ``None`` where nothing names it; and why the target cannot be asked, or nothing."""
    settings = context.configured.probe.readiness
    if context.target.space is None and settings.version_url is None:
        return None, ""
    try:
        ready = await wait_until_ready(context.target, settings, hub_token=context.hub_token)
    except ProbeError as error:
        return None, str(error)
    return ready.commit, ""


def _repeated(case: GoldCase, build: str, assessments: Sequence[Assessment]) -> RepeatedCase:
    in_order = sorted(assessments, key=lambda one: one.repeat)
    return RepeatedCase(
        case_id=case.id,
        build=build,
        case_severity=case.severity,
        type=case.type,
        language=case.language,
        cluster=case.cluster,
        asks=tuple(map(recorded_ask, in_order)),
    )


def _load(store: Store) -> None:
    """Load what the journal has. When another process holds the file, it is loaded later."""
    try:
        store.load_pending(LOAD_WAIT_S)
    except WarehouseBusy:
        return


def figures(context: RepeatabilityContext, session: RepeatabilityRun | None = None) -> Repeatability:
    """The figures of all recorded repeats that count; with ``session``, also where it is not loaded yet."""
    _load(context.store)
    found = recorded_repeats(context.store, context.scope)
    if session is not None and not session.void and not _has(found, session.run_id):
        found = found._replace(of_sessions=(*found.of_sessions, *session.cases), sessions=found.sessions + 1)
    baseline = last_accepted(context.store, context.target.name, context.target.environment, context.suite.sha256)
    now = context.now()
    facts = RunFacts(
        run_id=context.run_id,
        target=context.target,
        suite_name=context.suite.name,
        suite_sha256=context.suite.sha256,
        planned=len(context.suite.cases),
        started_at=now,
        finished_at=now,
    )
    known = repeatability(
        facts,
        context.suite,
        (*found.of_sessions, *found.of_runs),
        context.config.gate,
        context.rng,
        configured=context.configured.probe.repeats_severity_3,
        baseline=baseline,
    )
    return known.count_sessions(
        sessions=found.sessions, void_sessions=found.void_sessions, free_pairs=len(pairs_of(found.of_runs))
    )


def _has(found: RecordedRepeats, run_id: str) -> bool:
    return any(ask.run_id == run_id for case in found.of_sessions for ask in case.asks)
