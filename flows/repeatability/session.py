"""Runs one repeatability session: asks cases twice, and grades the answers like the answers of a run.

The answers are stored separately from runs. Before and after asking, the session checks which build the target
serves. If there was a deploy during the session, the session does not count.
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

from flows.explain.asking import open_case_asker
from flows.repeatability.context import RepeatabilityContext
from flows.repeatability.sample import sample_cases
from flows.runtime.judge import open_judge
from flows.verify.judging import JudgeQueue, PendingAnswer, apply_ruling
from flows.waiting import update_waiting
from monitors.errors import ProbeError, WarehouseBusy
from monitors.gate.evaluate import RunFacts
from monitors.gate.repeatability import compute_repeatability, pair_consecutive_answers
from monitors.judge.consensus import Ruling
from monitors.judge.judge import Account, JudgedGroup
from monitors.judge.model import build_price_function
from monitors.judge.precheck import needs_judge
from monitors.plural import plural
from monitors.probes.readiness import is_same_commit, wait_until_ready
from monitors.probes.runner import Question
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import Assessment
from monitors.records.runs import CaseResult
from monitors.records.self_checks import Repeatability, RepeatabilityRun, RepeatedCase, build_recorded_ask
from warehouse.database.store import Store
from warehouse.journal.rows import RepeatabilityRow
from warehouse.queries.repeatability import (
    load_last_repeat_times,
    load_recorded_repeats,
)
from warehouse.queries.runs import find_baseline_run

ASKINGS_PER_CASE: Final = 2
CASES_PER_BLOCK: Final = 8
"""The number of cases in a block. All cases of a block are asked once before they are asked again.

Therefore some time passes between two answers to the same case.
"""

LOAD_WAIT_S: Final = 60.0
REPEATABILITY_FOLDER: Final = "repeatability"
"""Name of the folder inside the data folder for files that a driver writes during a session."""


@dataclass
class _AskedTwice:
    """The assessments of the session so far, keyed by case, and the versions that the application reported.

    ``away`` is the reason why Lookout stopped asking, if the application did not answer.
    """

    assessments: defaultdict[str, list[Assessment]] = field(default_factory=lambda: defaultdict(list))
    versions: set[str] = field(default_factory=set[str])
    away: str = ""
    cost_usd: Decimal = Decimal(0)

    def add_result(self, result: CaseResult) -> None:
        """Add a result. A question that was not asked does not count."""
        probe_result = result.result
        if isinstance(probe_result, NoAnswer) and probe_result.reason is NoAnswerReason.CIRCUIT_OPEN:
            self.away = probe_result.detail
            return
        if isinstance(probe_result, Exchange) and probe_result.app_version:
            self.versions.add(probe_result.app_version)
        self.assessments[result.case.id].append(result.assessment)


class RepeatabilitySession:
    """Asks cases twice, stores the results and computes the figures. Use each instance in one event loop only."""

    def __init__(self, context: RepeatabilityContext) -> None:
        self._context = context
        self._asked = _AskedTwice()

    async def run(self, cases: int | None = None) -> RepeatabilityRun:
        """Run the whole session. ``cases`` replaces the configured number of cases. Raises `MonitorError`."""
        context, started_at = self._context, self._context.now()
        await asyncio.to_thread(_load_pending_unless_busy, context.store)
        await asyncio.to_thread(context.store.journal.append_suite, context.suite)
        sampled = await self._select_cases(cases or context.configured.repeatability.cases)
        before, why_not = await _wait_for_commit_or_reason(context)
        after = before
        if not why_not:
            await self._ask_twice_and_grade(
                sampled, started_at + timedelta(seconds=context.configured.repeatability.limit_s)
            )
            after, why_not = await _wait_for_commit_or_reason(context)
        session = self._build_session(
            sampled, started_at, before, why_not, self._explain_why_invalid(before, after)
        )
        await self._store(session)
        session = session.with_figures(await asyncio.to_thread(compute_repeatability_figures, context, session))
        await self._store(session)
        return session

    async def _select_cases(self, count: int) -> tuple[GoldCase, ...]:
        context = self._context
        last_asked_at = await asyncio.to_thread(load_last_repeat_times, context.store, context.target.name)
        return sample_cases(context.suite.cases, count, last_asked_at, context.rng)

    async def _ask_twice_and_grade(self, sampled: Sequence[GoldCase], until: datetime) -> None:
        """Ask each sampled case twice. No case is started after ``until``. The results are in `_asked`."""
        context = self._context
        folder = context.config.data_folder / REPEATABILITY_FOLDER / context.run_id
        opening = open_case_asker(
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
            update_waiting(self._format_progress(0, sampled))
            asked = 0

            async def report_progress_and_grade(result: CaseResult) -> None:
                nonlocal asked
                asked += 1
                update_waiting(self._format_progress(asked, sampled))
                await judging.add_or_queue_for_judge(result)

            await patient.ask(self._iterate_questions(sampled, until), on_asked=report_progress_and_grade)

    def _format_progress(self, asked: int, sampled: Sequence[GoldCase]) -> str:
        name = self._context.target.name
        total = ASKINGS_PER_CASE * len(sampled)
        return f"{name}: asking each case {ASKINGS_PER_CASE} times, {asked} of {total} questions done"

    def _iterate_questions(self, sampled: Sequence[GoldCase], until: datetime) -> Iterator[Question]:
        for start in range(0, len(sampled), CASES_PER_BLOCK):
            if self._context.now() >= until:
                return
            block = sampled[start : start + CASES_PER_BLOCK]
            yield from (Question(case=case, repeat=repeat) for repeat in range(ASKINGS_PER_CASE) for case in block)

    def _explain_why_invalid(self, before: str | None, after: str | None) -> str:
        if before and after and before != after and not is_same_commit(before, after):
            return f"there was a deploy during the session: {before} before, {after} after"
        if len(self._asked.versions) > 1:
            return f"answers came from several builds: {', '.join(sorted(self._asked.versions))}"
        return ""

    def _build_session(
        self, sampled: Sequence[GoldCase], started_at: datetime, commit: str | None, why_not: str, void: str
    ) -> RepeatabilityRun:
        context, asked = self._context, self._asked
        build = commit or next(iter(asked.versions), context.run_id)
        cases = tuple(_build_repeated_case(case, build, asked.assessments[case.id]) for case in sampled)
        complete = [case for case in cases if len(case.asks) >= ASKINGS_PER_CASE]
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
            stopped="" if len(complete) == len(sampled) else self._explain_why_incomplete(why_not, len(complete)),
            cases=tuple(complete),
            cost_usd=asked.cost_usd,
        )

    def _explain_why_incomplete(self, why_not: str, complete: int) -> str:
        if why_not or self._asked.away:
            return why_not or self._asked.away
        limit_s = self._context.configured.repeatability.limit_s
        return f"the session reached its limit of {limit_s:g} s after {plural(complete, 'case')}"

    async def _store(self, session: RepeatabilityRun) -> None:
        store = self._context.store
        await asyncio.to_thread(store.journal.append, (RepeatabilityRow(row=session),), run_id=session.run_id)
        await asyncio.to_thread(_load_pending_unless_busy, store)


class _Judging:
    """Sends the answers that rules leave open to the judge, if there is a judge.

    The ``async with`` block waits at its end for all verdicts.
    """

    def __init__(self, context: RepeatabilityContext, asked: _AskedTwice) -> None:
        self._context = context
        self._asked = asked
        self._stack = AsyncExitStack()
        self._queue: JudgeQueue | None = None
        settings = context.judge.settings
        self._account = Account(
            build_price_function(settings.prices if settings else ()),
            limit_usd=settings.limit_usd if settings else None,
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
                on_ruling=self._apply_judge_ruling,
                on_group=_ignore_group,
            )
            self._queue = await self._stack.enter_async_context(queue)
        return self

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._stack.__aexit__(*raised)  # pyright: ignore[reportArgumentType] - as they come
        finally:
            self._asked.cost_usd = self._account.total.usd

    async def add_or_queue_for_judge(self, result: CaseResult) -> None:
        """Add a result to the session. A result that rules could not grade is first queued for the judge."""
        settings, assessment = self._context.judge.settings, result.assessment
        if (
            self._queue is not None
            and settings is not None
            and isinstance(result.result, Exchange)
            and needs_judge(assessment, settings.scope)
        ):
            self._queue.add(PendingAnswer(result.case, result.result, assessment.grades, assessment.factual_match))
        else:
            self._asked.add_result(result)

    async def _apply_judge_ruling(self, waiting: PendingAnswer, ruling: Ruling) -> None:
        assessment = apply_ruling(waiting, ruling)
        self._asked.add_result(CaseResult(case=waiting.case, result=waiting.exchange, assessment=assessment))


def _ignore_group(_group: JudgedGroup) -> None:
    """Do nothing with a judged group.

    If the judge graded the known answers of a group incorrectly, the answers of this group are already ungraded.
    """


async def _wait_for_commit_or_reason(context: RepeatabilityContext) -> tuple[str | None, str]:
    """Return the commit that the target serves, if known. If the target cannot be asked, return the reason."""
    settings = context.configured.probe
    if context.target.space is None and settings.readiness.version_url is None:
        return None, ""
    try:
        ready = await wait_until_ready(context.target, settings, hub_token=context.hub_token)
    except ProbeError as error:
        return None, str(error)
    return ready.commit, ""


def _build_repeated_case(case: GoldCase, build: str, assessments: Sequence[Assessment]) -> RepeatedCase:
    in_order = sorted(assessments, key=lambda assessment: assessment.repeat)
    return RepeatedCase(
        case_id=case.id,
        build=build,
        case_severity=case.severity,
        type=case.type,
        language=case.language,
        cluster=case.cluster,
        asks=tuple(map(build_recorded_ask, in_order)),
    )


def _load_pending_unless_busy(store: Store) -> None:
    """Load the journal into the warehouse. If another process has locked the file, do nothing."""
    try:
        store.load_pending(LOAD_WAIT_S)
    except WarehouseBusy:
        return


def compute_repeatability_figures(
    context: RepeatabilityContext, session: RepeatabilityRun | None = None
) -> Repeatability:
    """Compute the figures from all stored repeats that count and from the repeats of ``session``."""
    _load_pending_unless_busy(context.store)
    repeats = load_recorded_repeats(context.store, context.scope)
    if (
        session is not None
        and not session.void
        and not any(ask.run_id == session.run_id for case in repeats.of_sessions for ask in case.asks)
    ):
        repeats = repeats._replace(
            of_sessions=(*repeats.of_sessions, *session.cases), sessions=repeats.sessions + 1
        )
    baseline = find_baseline_run(
        context.store, context.target.name, context.target.environment, context.suite.sha256
    )
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
    repeatability = compute_repeatability(
        facts,
        context.suite,
        (*repeats.of_sessions, *repeats.of_runs),
        context.config.gate,
        context.rng,
        configured=context.configured.probe.repeats_severity_3,
        baseline=baseline,
    )
    return repeatability.with_session_counts(
        sessions=repeats.sessions,
        void_sessions=repeats.void_sessions,
        free_pairs=len(pair_consecutive_answers(repeats.of_runs)),
    )
