"""Verify a deploy: cases → ask → grade → gate → record → notify.

    prepare ─▶ ask_and_grade ─▶ evaluate_run ─▶ record ─▶ notify_people ─▶ post_results ─┐
                   │ each result: journal, at once  publish ◀─ write_experiment ◀─ ask_again ◀┘
                   └ first severity-3 failure: alert, at once

The run waits until the deployed commit serves: it never grades an older image. It grades each answer while its page
is open. The flow ends ``Completed``, named Pass, Fail or Inconclusive; ``Failed`` means that the monitor broke, and
says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment
from prefect.states import Completed

from flows.alerting.edits import finish_first_alerts
from flows.alerting.faults import fault_of
from flows.alerting.pipeline import notify
from flows.alerting.run_summary import format_recheck_of, run_summary
from flows.alerting.watchdog import masked, overseen
from flows.deploys.pull_requests import followed, post_results, pulls_of
from flows.goldset.mutation_testing import severe_mutation_score
from flows.runtime.run import stop_process
from flows.runtime.slack import heartbeat, log_line
from flows.verify.alerts import describe_notifications, flaky_notes, observe_run, scope_after
from flows.verify.asking import ask_in_time, prepare_run
from flows.verify.experiments import ExperimentWriter, experiment_of
from flows.verify.progress import NO_LISTENER, RunLog
from flows.verify.publish import ProgressPage, publish_artifacts
from flows.verify.recheck import recheck_failures
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun, find_baseline, find_judge_change
from flows.verify.snapshot import is_asked, last_pass, snapshot_of_run
from monitors.alerts.liveness import after_run
from monitors.alerts.redact import redact
from monitors.errors import ConfigError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.explain.run_attributes import first_look_at
from monitors.explain.what_changed import what_changed
from monitors.gate.evaluate import evaluate
from monitors.records.incidents import Incident, Link
from monitors.records.runs import RunReport, format_uncovered
from monitors.reports.write import ReportPaths, write_reports
from warehouse.database.rebuild import rebuild
from warehouse.journal.rows import RunRow

NAME: Final = "verify-deploy"
LOAD_WAIT_S = 30.0
"""Loading may wait this long for another process; the next run loads what this one cannot."""


@flow(name=NAME, description=__doc__)
async def verify_deploy(request: VerifyRequest) -> State[RunReport]:
    """Verify one target and return its report, as the data of a state that is named after the verdict.

    Raises `ConfigError` before anything is asked. A run that is stopped in the middle stores what was answered, and
    the next run with the same target, suite and commit goes on from there.
    """
    return await _verify(request, None)


def take_over(run: LiveRun) -> Callable[[VerifyRequest], Awaitable[State[RunReport]]]:
    """Return the same flow for a run that this process began before it had a server.

    Prefect stores a flow's parameters on its server, so what is alive comes with the function.
    """

    @flow(name=NAME, description=__doc__)
    async def verify_deploy(request: VerifyRequest) -> State[RunReport]:
        return await _verify(request, run)

    return verify_deploy


async def _verify(request: VerifyRequest, begun: LiveRun | None) -> State[RunReport]:
    run = await prepare(request, begun)
    context = run.context
    limits = context.config.watchdog
    beat = heartbeat(context.config, context.target.name)
    end_after_s = limits.run_deadline_s + limits.stop_grace_s + context.config.recheck.max_s
    with context.run_folder as run_folder:
        async with (
            overseen(
                context.notifier, beat, end_after_s=end_after_s, stop=stop_process, unreported=_raised_for_caller()
            ),
            followed(run),
            experiment_of(run) as experiment,
        ):
            await ask_and_grade(run)
            report = await evaluate_run(run, experiment)
            paths = await record(run, report)
            await notify_people(run, report, paths)
            await post_results(run, report)
            report = await ask_again(run, report)
            report = await write_experiment(run, report, experiment)
            run_folder.finish()
            await publish(run, report, paths)
    earned = after_run(graded=run.graded, broke=run.interrupted)
    if earned is not None:
        await beat.ping(earned, run_id=context.run_id, note=_in_one_line(report))
    return Completed(name=report.verdict.value.capitalize(), message=_in_one_line(report), data=report)


@task(name="prepare", cache_policy=NO_CACHE)
@masked
async def prepare(request: VerifyRequest, begun: LiveRun | None) -> LiveRun:
    """Take over the run that this process began before it had a server, or prepare one."""
    if begun is not None:
        return begun
    listener = RunLog(request.target, log_line) if deployment.id else NO_LISTENER
    return await prepare_run(request, listener, unreported=_raised_for_caller())


def _raised_for_caller() -> tuple[type[Exception], ...]:
    """The errors that the caller of a run reads himself; a deployment has no such caller."""
    return () if deployment.id else (ConfigError,)


@task(name="ask and grade", cache_policy=NO_CACHE)
@masked
async def ask_and_grade(run: LiveRun) -> None:
    """Ask every case, worst first; grade and store each answer, and send an alert at once when it is severe."""
    page = ProgressPage(run.context.target.name)
    await page.start(run.done, run.planned)
    run.on_step = page.show
    await (run.asking if run.asking is not None else ask_in_time(run))
    await page.show(run.done, run.planned)  # what came in while the page was made


@task(name="evaluate", cache_policy=NO_CACHE)
@masked
async def evaluate_run(run: LiveRun, experiment: ExperimentWriter | None = None) -> RunReport:
    """Apply the gate."""
    run.context.listener.stage("evaluating")
    await asyncio.to_thread(find_judge_change, run)
    baseline = await asyncio.to_thread(find_baseline, run)
    pulls = await asyncio.to_thread(pulls_of, run)
    context = run.context
    facts = run.facts(context.now(), next(iter(pulls), None))
    report = evaluate(facts, run.results, context.config.gate, baseline=baseline, suite=context.suite.cases)
    must_cite = context.configured.graders.citation_required
    mutation_score = await asyncio.to_thread(
        severe_mutation_score, context.suite.cases, context.panel, citation_required=must_cite
    )
    in_common = await asyncio.to_thread(
        first_look_at, run.results, partial(redact, account_patterns=context.configured.graders.account_patterns)
    )
    snapshot = await asyncio.to_thread(snapshot_of_run, run)
    accepted = await asyncio.to_thread(last_pass, run, baseline)
    run.accepted_commit = accepted.commit if accepted else None
    changed = await asyncio.to_thread(what_changed, snapshot, accepted) if is_asked(report) else None
    return report.add_background(
        mutation_score=mutation_score,
        first_look=in_common,
        snapshot=snapshot,
        what_changed=changed,
        experiment=experiment.known() if experiment else None,
    )


@task(name="record", cache_policy=NO_CACHE)
@masked
async def record(run: LiveRun, report: RunReport) -> ReportPaths:
    """Write the report into the journal first, then into the warehouse and into files."""
    run.context.listener.stage("recording")
    return await _stored(run, report)


async def _stored(run: LiveRun, report: RunReport) -> ReportPaths:
    context = run.context
    await asyncio.to_thread(context.journal.append, (RunRow(row=report),), run_id=context.run_id)
    await asyncio.to_thread(_load, run)
    return await asyncio.to_thread(_write_reports, run, report)


def _load(run: LiveRun) -> None:
    """Load what the journal has into the warehouse. When another process holds the file, it is loaded later.

    A damaged file is rebuilt from the journal, and the monitor's owners hear of it.
    """
    store = run.context.store
    try:
        loaded = store.load_pending(LOAD_WAIT_S)
    except WarehouseBusy:
        return
    except WarehouseDamaged as error:
        run.faults.append(fault_of(error))
        loaded = rebuild(store, wait_s=LOAD_WAIT_S)
    run.faults.extend(fault_of(error) for error in loaded.errors())


def _write_reports(run: LiveRun, report: RunReport) -> ReportPaths:
    context = run.context
    patterns = context.configured.graders.account_patterns
    previous, incidents = _history(run)
    return write_reports(
        context.folder,
        report,
        run.results,
        redact=lambda text: redact(text, account_patterns=patterns),
        settings=context.config.reports,
        previous=previous,
        incidents=incidents,
    )


def _history(run: LiveRun) -> tuple[RunReport | None, tuple[Incident, ...]]:
    """The run before and the open incidents, for "since which deploy"; a report can do without them."""
    store, target = run.context.store, run.context.target.name
    try:
        previous = store.last_report(target, run.context.suite.sha256, before=run.context.run_id)
        return None if run.judge_changed else previous, store.open_incidents(target)
    except WarehouseError:
        return None, ()


@task(name="notify people", cache_policy=NO_CACHE)
@masked
async def notify_people(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Report all that the run saw at once, with what it proved gone; people hear only of what is new."""
    run.context.listener.stage("notifying")
    notifier, patterns = run.context.notifier, run.context.configured.graders.account_patterns
    summary = run_summary(report, _links(report, paths), account_patterns=patterns)
    seen = observe_run(run, report)
    await notify(notifier, seen, summary=summary, scope=scope_after(run, report))
    await _complete_alerts(run, report, paths)
    what_came = await asyncio.to_thread(describe_notifications, notifier, seen)
    run.context.listener.ended(f"{report.verdict}, {what_came}", str(paths.html))


async def _complete_alerts(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Add to this run's alerts all that is known of it by now."""
    patterns, found = run.context.configured.graders.account_patterns, report.recheck
    await finish_first_alerts(
        run.context.notifier,
        run_summary(report, _links(report, paths), account_patterns=patterns),
        flaky=flaky_notes(report),
        again=(lambda alert: format_recheck_of(alert, found, account_patterns=patterns)) if found else None,
    )


@task(name="ask again", cache_policy=NO_CACHE)
@masked
async def ask_again(run: LiveRun, report: RunReport) -> RunReport:
    """Ask the severe failed cases again, now that people know of them; add what came of it wherever they stand.

    The verdict and its figures stay as they are.
    """
    found = await recheck_failures(run, hub_token=run.context.hub_token)
    if found is None:
        return report
    report = report.add_recheck(found)
    await _complete_alerts(run, report, await _stored(run, report))
    await post_results(run, report)
    return report


@task(name="write the experiment", cache_policy=NO_CACHE)
@masked
async def write_experiment(run: LiveRun, report: RunReport, experiment: ExperimentWriter | None) -> RunReport:
    """Show the run on the target's platform. What the reports said of it before is set right, if it was wrong."""
    if experiment is None:
        return report
    run.context.listener.stage("writing the experiment")
    written = report.add_experiment(await experiment.write(report))
    if written != report:
        await asyncio.to_thread(_write_reports, run, written)
    return written


@task(name="publish", cache_policy=NO_CACHE)
@masked
async def publish(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Publish the run on Prefect's own pages."""
    await publish_artifacts(report, run.results, paths)


def _links(report: RunReport, paths: ReportPaths) -> tuple[Link, ...]:
    places = [Link(label="Report", href=str(paths.html))]
    if report.experiment is not None and report.experiment.url is not None:
        places.append(Link(label="Experiment", href=report.experiment.url))
    return tuple(places)


def _in_one_line(report: RunReport) -> str:
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    scores = (
        "nothing was graded" if weighted is None or flat is None else f"weighted {weighted:.3f}, flat {flat:.3f}"
    )
    left_out = format_uncovered(report.reasons)
    return f"{report.verdict}: {scores}" + (f"; not covered: {left_out}" if left_out else "")
