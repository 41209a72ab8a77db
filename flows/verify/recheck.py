"""Rechecks severe failed cases after the verdict, at the target and at the application's previous build.

The alerts have already been sent. The results do not change the verdict, a rate or the next baseline. Each result
is stored before the next question is asked, so that a resumed run asks no question twice. Errors of the recheck are
part of the report.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from typing import Final

from flows.explain.asking import CaseAsker, open_case_asker
from flows.runtime.judge import open_judge
from flows.verify.judging import JudgeQueue, PendingAnswer, add_or_replace_grade
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import redact
from monitors.config.isolation import refuse_production_previous_url
from monitors.errors import ConfigError, MonitorError
from monitors.explain.recheck import (
    RecheckPlan,
    build_previous_address,
    count_recheck_outcomes_by_case,
    find_proof_of_previous_build,
    is_same_build,
    list_build_names_in_answer,
    plan_recheck,
    select_severe_failures,
)
from monitors.gate.assess import assess_case
from monitors.judge.consensus import Cost, Ruling, build_judge_grade
from monitors.judge.judge import Account
from monitors.judge.model import build_price_function
from monitors.judge.precheck import is_judge_required_for_ungraded
from monitors.probes.readiness import wait_until_ready
from monitors.probes.runner import Question
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.explanations import BuildProof, PreviousBuild, Recheck, RecheckAnswer, RecheckPlace
from monitors.records.grades import JUDGE, Assessment, CaseOutcome, Judged
from monitors.records.runs import CaseResult
from monitors.records.targets import Target
from warehouse.journal.rows import RecheckRow

RECOVERY_DEADLINE_S: Final = 5.0
"""Maximum wait in seconds for an application that must recover after the run asked it the whole suite."""
POLL_S: Final = 1.0
RECHECK_FOLDER: Final = "recheck"
"""Name of the folder inside the run's folder for files that a driver writes during the recheck."""
JOB_DRIVER: Final = "job"
AGENT_TEXT: Final = "each question would start a new job of the agent"
APP_DOWN_TEXT: Final = "the application stopped answering before the end of the run"

MAX_BUILD_CHARACTERS: Final = 120

OnOpen = Callable[[CaseResult], bool]
"""A function that is called with an answer that rules could not grade.

The function returns whether the judge will grade the answer.
"""


async def recheck_failures(run: LiveRun, *, hub_token: str | None) -> Recheck | None:
    """Recheck the severe failed cases, according to ``[recheck]``. Return ``None`` if there are no such cases.

    ``hub_token`` gives access to a private Space. Errors of the application, of its previous build and of the judge
    are part of the result, and are not raised.
    """
    settings = run.context.config.recheck
    failed = await asyncio.to_thread(select_severe_failures, run.results) if settings.times else ()
    if not failed:
        return None
    if why := _explain_why_not_rechecked(run):
        return Recheck(left_out=len(failed), problem=why)
    run.context.listener.on_stage("rechecking failed cases")
    address, previous = _find_previous_build(run)
    places = 1 if address is None else 2
    plan = plan_recheck(failed, times=settings.times, max_questions=settings.max_questions, places=places)
    rechecker = await asyncio.to_thread(Rechecker, run, plan, previous, hub_token)
    limit = asyncio.timeout(settings.max_s)
    try:
        async with limit:
            await rechecker.ask(address)
    except TimeoutError:
        if not limit.expired():
            raise
        rechecker.problem = f"the recheck was stopped after {settings.max_s:g} s (recheck.max_s)"
    return rechecker.build_recheck_report()


def _explain_why_not_rechecked(run: LiveRun) -> str:
    """Explain why no case of this run is rechecked. Return an empty string if cases are rechecked."""
    if run.context.configured.probe.driver == JOB_DRIVER:
        return AGENT_TEXT
    silent = (answer.result for answer in run.results if isinstance(answer.result, NoAnswer))
    away = any(answer.reason is NoAnswerReason.CIRCUIT_OPEN for answer in silent)
    return APP_DOWN_TEXT if away or run.interrupted else ""


def _find_previous_build(run: LiveRun) -> tuple[str | None, PreviousBuild | None]:
    """Return the address and a record of the previous build, or ``None`` if no previous build is configured.

    If there is no address, the record contains the reason.
    """
    context = run.context
    template = context.configured.previous_url
    if template is None:
        return None, None
    commit = run.accepted_commit
    try:
        address = build_previous_address(template, commit, run.commit)
        refuse_production_previous_url(context.config, context.target.name, address)
    except (ValueError, ConfigError) as error:
        return None, PreviousBuild(commit=commit, problem=str(error))
    return address, PreviousBuild(commit=commit)


class Rechecker:
    """Asks one run's failed cases again and counts the results, including results from before the run was resumed.

    ``problem`` is the reason why some questions were not asked.
    """

    def __init__(
        self, run: LiveRun, plan: RecheckPlan, previous: PreviousBuild | None, hub_token: str | None
    ) -> None:
        self._run = run
        self._hub_token = hub_token
        self._plan = plan
        self._previous = previous
        self._by_judge = frozenset(_list_failed_by_judge(run))
        self._answers = _load_earlier_answers(run)
        self._unjudged: dict[tuple[str, int], CaseResult] = {}
        self.problem = ""

    def build_recheck_report(self) -> Recheck:
        """Build the report about the rechecked cases."""
        patterns = self._run.context.configured.graders.account_patterns
        previous = self._previous
        if previous is not None:
            previous = previous.with_problem(redact(previous.problem, account_patterns=patterns))
        return Recheck(
            cases=count_recheck_outcomes_by_case(
                self._plan.cases, self._answers, with_previous=previous is not None
            ),
            left_out=self._plan.left_out,
            problem=redact(self.problem, account_patterns=patterns),
            previous=previous,
        )

    async def ask(self, address: str | None) -> None:
        """Ask the failed cases at the target, then at ``address``, where the previous build is served."""
        try:
            self.problem = await self._ask_target_and_explain_gap()
        except Exception as error:  # noqa: BLE001 - an error of asking again does not change the verdict
            self.problem = _format_error(error)
        if address is not None and self._previous is not None:
            self._previous = await self._ask_previous_build(address, self._previous)

    async def _ask_target_and_explain_gap(self) -> str:
        """Ask the cases at the target.

        Return why some questions were not asked, or an empty string if all were asked.
        """
        target, own_commit = self._run.context.target, self._run.commit
        async with self._open_asker(target.address) as asker:
            serving = await self._find_serving_commit(asker, target)
            if own_commit is not None and serving is not None and not is_same_build(serving, own_commit):
                return f"the target now serves {serving} instead of {own_commit}"
            return await self._ask_unanswered_and_explain_gap(asker, RecheckPlace.TARGET)

    async def _ask_previous_build(self, address: str, previous: PreviousBuild) -> PreviousBuild:
        """Ask the previous build. Return a record of the previous build, with a problem if there was one."""
        problem, serving = "", None
        try:
            async with self._open_asker(address) as asker:
                serving = await self._find_serving_commit(
                    asker, Target(name=self._run.context.target.name, url=address)
                )
                proven = self._check_previous_build(serving)
                if proven.proof is BuildProof.ANOTHER:
                    instead = f", not {previous.commit}" if previous.commit else ""
                    return proven.with_problem(f"its address serves {proven.names}{instead}")
                problem = await self._ask_unanswered_and_explain_gap(asker, RecheckPlace.PREVIOUS)
        except Exception as error:  # noqa: BLE001 - the results of the target remain valid
            problem = _format_error(error)
        finally:
            self._previous = self._check_previous_build(serving)  # also if the time limit was reached
        return self._previous.with_problem(problem)

    def _check_previous_build(self, serving: str | None) -> PreviousBuild:
        named = [
            name for answer in self._answers if answer.place is RecheckPlace.PREVIOUS for name in answer.builds
        ]
        commit = self._previous.commit if self._previous else None
        return find_proof_of_previous_build([*([serving] if serving else []), *named], commit, self._run.commit)

    def _open_asker(self, address: str) -> AbstractAsyncContextManager[CaseAsker]:
        context = self._run.context
        return open_case_asker(
            context.config,
            context.target.name,
            address,
            folder=context.folder / RECHECK_FOLDER,
            run_id=context.run_id,
            cases=[case.case for case in self._plan.cases],
            environment=context.environment,
            clock=context.now,
        )

    async def _find_serving_commit(self, asker: CaseAsker, target: Target) -> str | None:
        """Find the commit that an address serves. Return ``None`` if the commit is unknown.

        Raises `ProbeError` if there is no answer.
        """
        readiness = asker.settings.readiness
        if target.space is None and readiness.version_url is None:
            return None
        settings = asker.settings.with_readiness_times(
            deadline_s=min(readiness.deadline_s, RECOVERY_DEADLINE_S),
            poll_s=min(readiness.poll_s, POLL_S),
        )
        ready = await wait_until_ready(target, settings, hub_token=self._hub_token)
        return self._redact(ready.commit) if ready.commit else None

    async def _ask_unanswered_and_explain_gap(self, asker: CaseAsker, place: RecheckPlace) -> str:
        """Ask the remaining questions at ``place``, which is the target or the previous build.

        Return why some questions were not asked, or an empty string if all were asked.
        """
        asked = {(case.case_id, case.repeat) for case in self._answers if case.place is place}
        questions = [
            Question(case=case.case, repeat=repeat)
            for case in self._plan.cases
            for repeat in range(self._plan.times)
            if (case.case.id, repeat) not in asked
        ]
        if not questions:
            return ""
        try:
            async with self._open_judging(place) as is_judged:
                tally = await asker.ask(
                    questions, on_asked=lambda result: self._save_or_queue_for_judge(place, result, is_judged)
                )
        finally:
            for result in self._unjudged.values():  # the judge did not grade these results in time
                self._store_and_count_answer(place, result, result.assessment)
            self._unjudged.clear()
        return (tally.circuit_opened or "").removeprefix("not asked: ")

    async def _save_or_queue_for_judge(self, place: RecheckPlace, result: CaseResult, is_judged: OnOpen) -> None:
        unasked = isinstance(result.result, NoAnswer) and result.result.reason is NoAnswerReason.CIRCUIT_OPEN
        if not (unasked or (is_judge_required_for_ungraded(result.assessment) and is_judged(result))):
            await asyncio.to_thread(self._store_and_count_answer, place, result, result.assessment)

    @asynccontextmanager
    async def _open_judging(self, place: RecheckPlace) -> AsyncGenerator[OnOpen]:
        """Open the judge within the run's budget, for cases that the judge failed in the run.

        Yield a function that queues an answer for the judge. The function returns false for an answer that the
        judge does not grade.
        """
        context, settings = self._run.context, self._run.context.judge.settings
        if not self._by_judge or settings is None or context.judge.why_off:
            yield lambda _: False
            return
        account = Account(build_price_function(settings.prices), limit_usd=settings.limit_usd)
        # The judge's budget is for the whole run. Therefore the cost so far counts.
        in_run = self._run.judging.cost_usd if self._run.judging else Decimal(0)
        account.total = Cost(usd=in_run + sum((answer.cost_usd for answer in self._answers), Decimal(0)))

        async def save_ruling(pending: PendingAnswer, ruling: Ruling) -> None:
            result = self._unjudged.pop((pending.case.id, pending.exchange.repeat))
            grades = add_or_replace_grade(pending.grades, build_judge_grade(ruling, pending.exchange))
            assessment = assess_case(pending.case, pending.exchange, grades)
            await asyncio.to_thread(self._store_and_count_answer, place, result, assessment)

        async with (
            open_judge(context.judge, context.environment, account, context.nonce) as judge,
            JudgeQueue(
                judge,
                context.suite.cases,
                seed=f"{context.run_id}:{place}",
                size=settings.batch_size,
                on_ruling=save_ruling,
                on_group=lambda _: None,
            ) as queue,
        ):
            yield lambda result: self._queue_for_judge(queue, result)

    def _queue_for_judge(self, queue: JudgeQueue, result: CaseResult) -> bool:
        if result.case.id not in self._by_judge or not isinstance(result.result, Exchange):
            return False
        self._unjudged[result.case.id, result.result.repeat] = result
        queue.add(PendingAnswer(result.case, result.result, result.assessment.grades))
        return True

    def _store_and_count_answer(self, place: RecheckPlace, result: CaseResult, assessment: Assessment) -> None:
        """Store a result in the journal and count it as an answer."""
        context, probe_result = self._run.context, result.result
        builds = list_build_names_in_answer(probe_result) if isinstance(probe_result, Exchange) else ()
        costs = (grade.cost_usd for grade in assessment.grades if isinstance(grade, Judged))
        answer = RecheckAnswer(
            run_id=context.run_id,
            target=context.target.name,
            case_id=result.case.id,
            place=place,
            repeat=probe_result.repeat,
            asked_at=probe_result.asked_at,
            outcome=assessment.outcome,
            severity=assessment.severity,
            failure_kinds=assessment.failure_kinds,
            reason=self._redact(assessment.reason),
            builds=tuple(self._redact(name[:MAX_BUILD_CHARACTERS]) for name in builds),
            cost_usd=sum(costs, Decimal(0)),
        )
        context.journal.append((RecheckRow(row=answer),), run_id=context.run_id)
        self._answers.append(answer)

    def _redact(self, text: str) -> str:
        return redact(text, account_patterns=self._run.context.configured.graders.account_patterns)


def _list_failed_by_judge(run: LiveRun) -> Iterator[str]:
    """Yield the ids of the cases that the judge failed."""
    for result in run.results:
        if result.assessment.outcome is CaseOutcome.FAILED and any(
            isinstance(grade, Judged) and grade.grader == JUDGE and not grade.passed
            for grade in result.assessment.grades
        ):
            yield result.case.id


def _load_earlier_answers(run: LiveRun) -> list[RecheckAnswer]:
    """Load the recheck results from before the run was resumed."""
    context = run.context
    if not context.run_folder.resumed:
        return []
    rows = context.journal.read_run(context.run_id)
    return [row.row for row in rows if isinstance(row, RecheckRow)]


def _format_error(error: Exception) -> str:
    return str(error) if isinstance(error, MonitorError) else f"{type(error).__name__}: {error}"
