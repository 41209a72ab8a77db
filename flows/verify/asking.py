"""Asks a run's questions. This part of a verification works without a Prefect server.

prepare_run ─▶ wait_for_deploy ─▶ ask a question ─▶ grade ─▶ journal ─┬─▶ severity-3 failure: send an alert
                                  ▲                                   └─▶ ungraded: ask the judge
                                  └── wait_until_app_recovers, if the application stopped answering
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault
from flows.alerting.watchdog import HUNG_RUN
from flows.data_folder import get_runs_folder
from flows.runtime.probe import build_concurrency_limit, format_browser
from flows.runtime.run import build_run_context, load_request_config, open_chat_driver
from flows.runtime.slack import build_notifier_without_run
from flows.verify.alerts import EarlyAlerts, build_observation_context
from flows.verify.judging import JudgeStage
from flows.verify.progress import ProgressListener
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun, load_named_baseline
from monitors.errors import ConfigError, ProbeError
from monitors.gate.assess import assess_case
from monitors.graders.panel import grade_exchange
from monitors.plural import plural
from monitors.probes.readiness import can_read_serving_commit, wait_until_ready, wait_until_target_serves_again
from monitors.probes.request_limit import RequestLimit
from monitors.probes.runner import iterate_questions_by_severity, iterate_unanswered_questions, probe_questions
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import CaseOutcome, Grade
from monitors.records.incidents import Capability
from monitors.records.runs import CaseResult


async def prepare_run(
    request: VerifyRequest, listener: ProgressListener, *, unreported: tuple[type[Exception], ...]
) -> LiveRun:
    """Load the configuration and the suite, open the journal, and load the answers of a stopped run.

    Errors of the types ``unreported`` cause no alert, because the person who started the run sees them.
    """
    try:
        await asyncio.to_thread(
            load_named_baseline, request.baseline, get_runs_folder(load_request_config(request))
        )
        run = LiveRun(await asyncio.to_thread(build_run_context, request, listener))
        await asyncio.to_thread(run.context.journal.append_suite, run.context.suite)
        if run.context.run_folder.resumed:
            await asyncio.to_thread(run.load_earlier_results)
    except Exception as error:  # every error is reported to the owners; raised again
        if not isinstance(error, unreported):
            await _notify_of_failed_preparation(request, error)
        raise
    return run


async def _notify_of_failed_preparation(request: VerifyRequest, error: Exception) -> None:
    """Send an alert which says that a run could not start."""
    try:
        config = load_request_config(request)
    except ConfigError:
        return  # without a configuration there is no channel; Prefect shows the failed run
    await notify_fault(
        build_notifier_without_run(config, request.target, Capability.VERIFY),
        build_fault_from_error(error),
        commit=request.commit,
    )


async def ask_until_deadline(run: LiveRun) -> None:
    """Ask every case until the run's deadline. Send alerts about severe failures immediately."""
    limit_s = run.context.config.watchdog.run_deadline_s
    async with EarlyAlerts(run, build_observation_context(run)) as alerts:
        asking = asyncio.timeout(limit_s)
        try:
            async with asking:
                await ask_unanswered_cases(run, on_result=alerts.on_result, ends_at=asking.when())
        except TimeoutError:
            if not asking.expired():
                raise
            run.interrupted = True
            run.faults.append(Fault(HUNG_RUN, _format_deadline_reached(run, limit_s)))


def _format_deadline_reached(run: LiveRun, limit_s: float) -> str:
    return (
        f"Lookout stopped asking after {limit_s:g} s. {plural(len(run.results), 'answer')} arrived, and all other "
        "cases were not asked. If the suite needs more time, raise watchdog.run_deadline_s in lookout.toml."
        + (f" {limited[0].upper()}{limited[1:]}." if (limited := run.describe_request_limit()) else "")
    )


async def wait_for_deploy(run: LiveRun) -> bool:
    """Wait until the target serves the commit to verify. Return whether the target serves the commit.

    If the target does not serve the commit in time, the error is stored in ``run.not_ready``. A target that does
    not report its version counts as ready.
    """
    context = run.context
    settings = context.configured.probe
    if not can_read_serving_commit(context.target, settings.readiness):
        return True
    context.listener.on_stage("waiting for the deploy")
    try:
        ready = await wait_until_ready(
            context.target, settings, commit=context.start.commit, hub_token=context.hub_token
        )
    except ProbeError as error:
        run.not_ready = error
        return False
    run.serving = ready.commit
    await asyncio.to_thread(context.run_folder.store_build_commit, ready.commit)
    return True


async def wait_until_app_recovers(run: LiveRun) -> None:
    """Wait until an application that stopped answering serves the verified commit again.

    Raises `ProbeError` if the application does not recover in time. The run then stops.
    """
    settings, listener = run.context.configured.probe, run.context.listener
    listener.on_stage("waiting for the app to recover")
    try:
        await wait_until_target_serves_again(
            run.context.target,
            settings,
            has_answered=run.has_answers,
            commit=run.commit,
            hub_token=run.context.hub_token,
        )
    finally:
        listener.on_stage("asking")


async def ask_unanswered_cases(
    run: LiveRun, *, on_result: Callable[[CaseResult], None], ends_at: float | None = None
) -> None:
    """Ask the cases without an answer, most severe first and several at a time, and grade the answers.

    ``ends_at`` is the deadline, as a time of the event loop's clock. Each result is stored before ``on_result`` is
    called.
    """
    context = run.context
    settings = context.configured.probe
    planned = tuple(
        iterate_questions_by_severity(context.suite.cases, repeats_severity_3=settings.repeats_severity_3)
    )
    context.listener.on_planned(context.run_id, len(planned), run.resumed)
    answered = frozenset(run.answered_questions)
    left = tuple(iterate_unanswered_questions(planned, answered))

    is_paused = False

    def show_pause(wait_s: float) -> None:
        nonlocal is_paused
        is_paused = True
        context.listener.on_stage(f"waiting {wait_s:.0f} s: the app limits requests")

    async def on_graded(result: CaseResult) -> None:
        nonlocal is_paused
        on_result(result)
        if is_paused:
            is_paused = False
            context.listener.on_stage("asking")
        if (
            result.case.id,
            result.result.repeat,
        ) not in answered:  # otherwise the answer was already counted as stored and is judged now
            context.listener.on_result(result)
            run.done += 1
            await run.on_step(run.done, len(planned))

    async with JudgeStage(run, on_graded) as judges, AsyncExitStack() as stack:
        if not left or not await wait_for_deploy(run):
            return
        context.listener.on_stage("asking")
        grader = _AnswerGrader(run, judges, on_graded)
        driver = await stack.enter_async_context(open_chat_driver(context))
        run.browser = format_browser(driver)
        run.limit = RequestLimit(settings.requests_per_minute, ends_at=ends_at, on_pause=show_pause)
        await probe_questions(
            driver,
            left,
            run_id=context.run_id,
            settings=settings,
            clock=context.now,
            concurrency=build_concurrency_limit(settings),
            on_result=grader.save,
            is_wrong=grader.grade_and_check_if_wrong,
            recover=lambda: wait_until_app_recovers(run),
            limit=run.limit,
        )


class _AnswerGrader:
    """Grades each answer while its page is open, and stores the result and its evidence."""

    def __init__(
        self, run: LiveRun, judges: JudgeStage, on_graded: Callable[[CaseResult], Awaitable[None]]
    ) -> None:
        self._run = run
        self._judges = judges
        self._on_graded = on_graded
        self._graded: dict[tuple[str, int], tuple[Grade, ...]] = {}

    async def grade_and_check_if_wrong(self, case: GoldCase, exchange: Exchange) -> bool:
        """Grade the answer. Return true for an answer that is not correct, so that a screenshot is stored."""
        grades = grade_exchange(self._run.context.panel, case, exchange)
        self._graded[case.id, exchange.repeat] = grades
        return assess_case(case, exchange, grades).outcome is not CaseOutcome.CORRECT

    async def save(self, case: GoldCase, result: ProbeResult) -> None:
        """Store and report a result. If the judge must grade the answer, queue the answer for the judge instead."""
        grades = self._graded.pop((case.id, result.repeat), ())
        assessment = assess_case(case, result, grades if isinstance(result, Exchange) else ())
        if isinstance(result, Exchange) and self._judges.is_needed(assessment):
            await self._judges.grade_or_queue_answer(case, result, grades)
            return
        await self._on_graded(await asyncio.to_thread(self._run.save, case, result, assessment))
