"""Verify a deploy: cases → ask → grade → gate → record → tell.

    prepare ─▶ ask_and_grade ─▶ weigh ─▶ record ─▶ tell_people ─▶ post_results ─▶ publish
                   │ each result: journal, at once
                   └ first severity-3 failure: alert, at once

The flow ends ``Completed``, named Pass, Fail or Inconclusive; ``Failed`` means that the monitor broke, and says so.
"""

from __future__ import annotations

import asyncio

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment
from prefect.states import Completed

from flows.ask import ask_all
from flows.baselines import find_baseline, named_baseline
from flows.first_pages import finish_first_pages
from flows.judge_change import look_for_change
from flows.live_run import LiveRun
from flows.masked_errors import masked
from flows.monitor_fault import Fault, fault_of, tell_fault
from flows.notify import notice_of, tell
from flows.observed import flaky_notes, observed, scope_after, sighting
from flows.oversight import HUNG_RUN, overseen
from flows.page_early import EarlyPages
from flows.progress import listener
from flows.publish import publish_artifacts
from flows.pull_requests import followed, post_results, pulls_of
from flows.request import VerifyRequest
from flows.twin_counts import severe_bite
from flows.wiring import configuration, desk_without_run, heartbeat, runs_folder, stop_process, utc_now, wire
from monitors.alerts.heartbeat import after_run
from monitors.alerts.redact import redact
from monitors.errors import ConfigError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.gate.evaluate import evaluate
from monitors.records.incidents import Incident, Link
from monitors.records.runs import RunReport
from monitors.reports.write import ReportPaths, write_reports
from warehouse.rebuild import rebuild
from warehouse.rows import RunRow

LOAD_WAIT_S = 30.0
"""Loading may wait this long for another process; what is not loaded now is loaded by the next run."""


@flow(name="verify-deploy", description=__doc__)
async def verify_deploy(request: VerifyRequest) -> State[RunReport]:
    """Verify one target and return its report, as the data of a state that is named after the verdict.

    Raises `ConfigError` before anything is asked. Stopped in the middle, it keeps what was answered, and the next
    run with the same target, suite and commit goes on from there.
    """
    run = await prepare(request)
    wired = run.wired
    limits = wired.config.watchdog
    beat = heartbeat(wired.target.name)
    end_after_s = limits.run_deadline_s + limits.stop_grace_s
    with wired.begun as begun:
        async with (
            overseen(wired.desk, beat, end_after_s=end_after_s, stop=stop_process, untold=_told_to_the_caller()),
            followed(run),
        ):
            await ask_and_grade(run)
            report = await weigh(run)
            paths = await record(run, report)
            await tell_people(run, report, paths)
            await post_results(run, report)
            begun.finish()
            await publish(run, report, paths)
    earned = after_run(graded=run.graded, broke=run.interrupted)
    if earned is not None:
        await beat.ping(earned, run_id=wired.run_id, note=_in_one_line(report))
    return Completed(name=report.verdict.value.capitalize(), message=_in_one_line(report), data=report)


@task(name="prepare", cache_policy=NO_CACHE)
@masked
async def prepare(request: VerifyRequest) -> LiveRun:
    """Configuration, suite, journal; a stopped run's answers."""
    try:
        await asyncio.to_thread(named_baseline, request.baseline, runs_folder(configuration(request)))
        run = LiveRun(await asyncio.to_thread(wire, request))
        await asyncio.to_thread(run.wired.journal.append_suite, run.wired.suite)
        if run.wired.begun.resumed:
            await asyncio.to_thread(run.recall)
    except Exception as error:
        await _tell_unprepared(request, error)
        raise
    return run


def _told_to_the_caller() -> tuple[type[Exception], ...]:
    """What whoever started the run reads himself; a deployment has nobody who does."""
    return () if deployment.id else (ConfigError,)  # pyright: ignore[reportUnknownMemberType] - made at run time


async def _tell_unprepared(request: VerifyRequest, error: Exception) -> None:
    """A run that could not begin is a fault of the monitor; a wrong configuration is told to whoever calls.

    A schedule has nobody who reads exit codes: there the configuration's faults are told too.
    """
    if isinstance(error, _told_to_the_caller()):
        return
    try:
        config = configuration(request)
    except ConfigError:
        return  # it does not even say whom to tell; Prefect has the failed run
    await tell_fault(desk_without_run(config, request.target), fault_of(error), commit=request.commit)


@task(name="ask and grade", cache_policy=NO_CACHE)
@masked
async def ask_and_grade(run: LiveRun) -> None:
    """Ask every case, worst first; grade, keep and, when it is severe, tell each at once."""
    limit_s = run.wired.config.watchdog.run_deadline_s
    async with EarlyPages(run, sighting(run)) as pages:
        asking = asyncio.timeout(limit_s)
        try:
            async with asking:
                await ask_all(run, on_result=pages.told)
        except TimeoutError:
            if not asking.expired():
                raise
            run.interrupted = True
            run.faults.append(Fault(HUNG_RUN, _stopped_after(run, limit_s)))


def _stopped_after(run: LiveRun, limit_s: float) -> str:
    return (
        f"Asking was not over after {limit_s:g} s and was stopped: {len(run.results)} answers are weighed, the "
        "rest was not asked. If the suite needs longer, set watchdog.run_deadline_s in lookout.toml."
    )


@task(name="weigh", cache_policy=NO_CACHE)
@masked
async def weigh(run: LiveRun) -> RunReport:
    """The gate."""
    listener.get().stage("weighing")
    await asyncio.to_thread(look_for_change, run)
    baseline = await asyncio.to_thread(find_baseline, run)
    pulls = await asyncio.to_thread(pulls_of, run)
    facts = run.facts(utc_now()).model_copy(update={"pull_request": next(iter(pulls), None)})
    wired = run.wired
    report = evaluate(facts, run.results, wired.config.gate, baseline=baseline, suite=wired.suite.cases)
    must_cite = wired.configured.graders.citation_required
    bite = await asyncio.to_thread(severe_bite, wired.suite.cases, wired.panel, citation_required=must_cite)
    return report.model_copy(update={"bite": bite})


@task(name="record", cache_policy=NO_CACHE)
@masked
async def record(run: LiveRun, report: RunReport) -> ReportPaths:
    """The report into the journal first, then into the warehouse and into files."""
    listener.get().stage("recording")
    wired = run.wired
    await asyncio.to_thread(wired.journal.append, (RunRow(row=report),), run_id=wired.run_id)
    await asyncio.to_thread(_load, run)
    return await asyncio.to_thread(_write_reports, run, report)


def _load(run: LiveRun) -> None:
    """Take what the journal has into the warehouse. When another process keeps the file, it is loaded later.

    A damaged file is made anew from the journal, and the monitor's owners hear of it.
    """
    store = run.wired.store
    try:
        loaded = store.load_pending(LOAD_WAIT_S)
    except WarehouseBusy:
        return
    except WarehouseDamaged as error:
        run.faults.append(fault_of(error))
        loaded = rebuild(store, wait_s=LOAD_WAIT_S).loaded
    run.faults.extend(fault_of(error) for error in loaded.errors())


def _write_reports(run: LiveRun, report: RunReport) -> ReportPaths:
    wired = run.wired
    patterns = wired.configured.graders.account_patterns
    previous, incidents = _history(run)
    return write_reports(
        wired.folder,
        report,
        run.results,
        redact=lambda text: redact(text, account_patterns=patterns),
        settings=wired.config.reports,
        previous=previous,
        incidents=incidents,
    )


def _history(run: LiveRun) -> tuple[RunReport | None, tuple[Incident, ...]]:
    """The run before and what is open, for "since which deploy"; a report without them is better than none."""
    store, target = run.wired.store, run.wired.target.name
    try:
        previous = store.last_report(target, run.wired.suite.sha256, before=run.wired.run_id)
        return None if run.judge_changed else previous, store.open_incidents(target)
    except WarehouseError:
        return None, ()


@task(name="tell people", cache_policy=NO_CACHE)
@masked
async def tell_people(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Everything the run saw at once, with what it proved gone; said is only what is new."""
    listener.get().stage("telling")
    desk, notice = run.wired.desk, notice_of(report, _links(paths))
    await tell(desk, observed(run, report), notice=notice, scope=scope_after(run, report))
    await finish_first_pages(
        desk, flat=notice.flat, weighted=notice.weighted, links=notice.links, flaky=flaky_notes(report)
    )


@task(name="publish", cache_policy=NO_CACHE)
@masked
async def publish(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Prefect's own pages of the run."""
    await publish_artifacts(report, run.results, paths)


def _links(paths: ReportPaths) -> tuple[Link, ...]:
    return (Link(label="Report", href=str(paths.html)),)


def _in_one_line(report: RunReport) -> str:
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    scores = "nothing was told" if weighted is None or flat is None else f"weighted {weighted:.3f}, flat {flat:.3f}"
    return f"{report.verdict}: {scores}"
