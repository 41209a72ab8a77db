"""Verify a deploy: ask all cases, grade the answers, apply the gate, store the report and notify people.

    prepare ─▶ ask_and_grade ─▶ evaluate_run ─▶ record ─▶ send_alerts_and_update_incidents
            ─▶ post_results_to_pull_requests ─▶ recheck_and_update_messages ─▶ write_experiment ─▶ publish

The run waits until the application serves the deployed commit. Otherwise the run could grade an older build. Each
result is stored immediately. The first severity-3 failure sends an alert immediately. The state of the flow is
Completed with the name Pass, Fail or Inconclusive. The state Failed means that Lookout itself has a fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment
from prefect.states import Cancelled, Completed

from flows.alerting.edits import add_summary_to_sent_alerts
from flows.alerting.faults import build_fault_from_error
from flows.alerting.pipeline import notify
from flows.alerting.run_summary import build_run_summary, format_alert_recheck
from flows.alerting.watchdog import redact_errors, run_under_watchdog
from flows.artifacts import build_report_page_path, find_site_page_address
from flows.clock import utc_now
from flows.deploys.pull_requests import (
    collect_pull_requests_of_run,
    post_pending_or_error_status,
    post_results_to_pull_requests,
)
from flows.deploys.queue import DeployQueue
from flows.goldset.mutation_testing import compute_mutation_score_of_severe_cases
from flows.runtime.run import end_process_immediately, load_request_config
from flows.runtime.slack import build_recorded_heartbeat, write_line_to_stderr
from flows.server.missed_runs import cancel_missed_runs_of_deployment, hold_target_exclusively
from flows.verify.alerts import (
    build_run_observations,
    build_run_resolution_scope,
    describe_notifications,
    find_incident_case_ids_not_in_suite,
    format_flaky_notes,
)
from flows.verify.asking import ask_until_deadline, prepare_run
from flows.verify.experiments import ExperimentWriter, open_experiment
from flows.verify.progress import NO_LISTENER, RunLog
from flows.verify.publish import ProgressPage, publish_artifacts
from flows.verify.recheck import recheck_failures
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun, find_baseline, mark_run_if_judge_changed
from flows.verify.snapshot import build_run_snapshot, find_last_accepted_report, should_report_changes
from flows.watching.polls import WATCH_TO_DO, format_late_polls, list_late_polls
from monitors.alerts.liveness import choose_final_ping
from monitors.alerts.redact import build_redactor, redact
from monitors.alerts.resolve import LEFT_SUITE
from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.explain.run_attributes import find_causes_of_failed_cases
from monitors.explain.what_changed import find_run_changes
from monitors.gate.evaluate import evaluate_results
from monitors.probes.readiness import can_read_serving_commit
from monitors.records.incidents import Incident, Link, NotifyReason
from monitors.records.runs import RunReport, format_uncovered_cases
from monitors.records.targets import is_same_commit
from monitors.reports.write import ReportPaths, write_reports
from warehouse.database.rebuild import rebuild_database
from warehouse.journal.rows import RunRow

NAME: Final = "verify-deploy"
LOAD_WAIT_S = 30.0
"""Maximum wait in seconds for another process that uses the warehouse.

If the wait takes longer, the next run loads the journal.
"""


@flow(name=NAME, description=__doc__)
async def verify_deploy(request: VerifyRequest) -> State[RunReport] | State[None]:
    """Verify one target. Return a state that is named after the verdict. The state's data is the report.

    A missed scheduled run ends as Skipped if a newer run replaces it. The run of a deploy ends as Superseded if a
    newer commit was reported before the run started, and the application does not report which commit it serves.

    Raises `ConfigError` before any question is asked. The next run with the same target, suite and commit resumes a
    stopped run.
    """
    config = await asyncio.to_thread(load_request_config, request)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    async with hold_target_exclusively(request.target, config.prefect.tag, write_line_to_stderr):
        newer = await asyncio.to_thread(find_newer_commit, config, request)
        if newer is not None:
            message = f"not asked, because commit {newer} was deployed after commit {request.commit}"
            return Cancelled(name="Superseded", message=message)
        return await _run_verification(request, None)


def find_newer_commit(config: Config, request: VerifyRequest) -> str | None:
    """Return the commit that was reported after the requested commit, or ``None`` if this run can continue.

    If the application reports which commit it serves, this run can continue, because it waits until its own commit
    is served.
    """
    configured = config.require_target(request.target)
    if request.commit is None or not deployment.id:
        return None
    if can_read_serving_commit(build_target_record(request.target, configured), configured.probe.readiness):
        return None
    newest = DeployQueue(config.data_folder).find_newest_reported_commit(request.target)
    return newest if newest is not None and not is_same_commit(newest, request.commit) else None


def build_flow_for_run(run: LiveRun) -> Callable[[VerifyRequest], Awaitable[State[RunReport]]]:
    """Build the flow for a run that this process started before the server was ready.

    The run is not a parameter of the flow, because Prefect would store every parameter on the server.
    """

    @flow(name=NAME, description=__doc__)
    async def verify_deploy(
        request: Any,
    ) -> State[RunReport]:  # for another type, Prefect builds a schema, which takes 0.3 s
        return await _run_verification(request, run)

    return verify_deploy


async def _run_verification(request: VerifyRequest, begun: LiveRun | None) -> State[RunReport]:
    run = await prepare_unless_begun(request, begun)
    context = run.context
    limits = context.config.watchdog
    beat = build_recorded_heartbeat(context.config, context.target.name)
    end_after_s = limits.run_deadline_s + limits.stop_grace_s + context.config.recheck.max_s
    with context.run_folder as run_folder:
        async with (
            run_under_watchdog(
                context.notifier,
                beat,
                end_after_s=end_after_s,
                stop=end_process_immediately,
                unreported=_select_errors_shown_to_caller(),
            ),
            post_pending_or_error_status(run),
            open_experiment(run) as experiment,
        ):
            await ask_and_grade(run)
            report = await evaluate_run(run, experiment)
            paths = await store_run_and_reports(run, report)
            await send_alerts_and_update_incidents(run, report, paths)
            await post_results_to_pull_requests(run, report)
            report = await recheck_and_update_messages(run, report)
            report = await write_experiment(run, report, experiment)
            run_folder.mark_finished()
            await publish_to_prefect(run, report, paths)
    late = await asyncio.to_thread(list_late_polls, context.config.data_folder, context.now(), context.target.name)
    final_beat = choose_final_ping(graded=run.graded, broke=run.interrupted or bool(late))
    if final_beat is not None:
        note = f"{format_late_polls(late)}. {WATCH_TO_DO}" if late else _format_verdict_briefly(report)
        await beat.ping(final_beat, run_id=context.run_id, note=note)
    return Completed(name=report.verdict.value.capitalize(), message=_format_verdict_briefly(report), data=report)


@task(name="prepare", cache_policy=NO_CACHE)
@redact_errors
async def prepare_unless_begun(request: VerifyRequest, begun: LiveRun | None) -> LiveRun:
    """Return the run that this process started before the server was ready. Otherwise, prepare a new run."""
    if begun is not None:
        return begun
    listener = RunLog(request.target, write_line_to_stderr) if deployment.id else NO_LISTENER
    return await prepare_run(request, listener, unreported=_select_errors_shown_to_caller())


def _select_errors_shown_to_caller() -> tuple[type[Exception], ...]:
    """Return the error types that the person who started the run sees.

    Return no types if a Prefect deployment started the run.
    """
    return () if deployment.id else (ConfigError,)


@task(name="ask and grade", cache_policy=NO_CACHE)
@redact_errors
async def ask_and_grade(run: LiveRun) -> None:
    """Ask every case, most severe first. Grade and store each answer, and send alerts about severe failures."""
    page = ProgressPage(_build_artifact_name(run))
    await page.start(run.done, run.planned)
    run.on_step = page.show
    await (run.asking if run.asking is not None else ask_until_deadline(run))
    await page.show(run.done, run.planned)  # some results arrived before the page existed


@task(name="evaluate", cache_policy=NO_CACHE)
@redact_errors
async def evaluate_run(run: LiveRun, experiment: ExperimentWriter | None = None) -> RunReport:
    """Compare the results with the baseline, apply the gate, and build the report of the run."""
    run.context.listener.on_stage("evaluating")
    await asyncio.to_thread(mark_run_if_judge_changed, run)
    baseline = await asyncio.to_thread(find_baseline, run)
    pulls = await asyncio.to_thread(collect_pull_requests_of_run, run)
    context = run.context
    facts = run.build_facts(context.now(), next(iter(pulls), None))
    report = evaluate_results(facts, run.results, context.config.gate, baseline=baseline, suite=context.suite.cases)
    must_cite = context.configured.graders.citation_required
    mutation_score = await asyncio.to_thread(
        compute_mutation_score_of_severe_cases, context.suite.cases, context.panel, citation_required=must_cite
    )
    in_common = await asyncio.to_thread(
        find_causes_of_failed_cases,
        run.results,
        partial(redact, account_patterns=context.configured.graders.account_patterns),
    )
    snapshot = await asyncio.to_thread(build_run_snapshot, run)
    accepted = await asyncio.to_thread(find_last_accepted_report, run, baseline)
    run.accepted_commit = accepted.commit if accepted else None
    changes = None
    if should_report_changes(report):
        changes = await asyncio.to_thread(find_run_changes, snapshot, accepted, report.comparison)
    return report.with_nondecisive_facts(
        mutation_score=mutation_score,
        first_look=in_common,
        snapshot=snapshot,
        what_changed=changes,
        experiment=experiment.describe() if experiment else None,
    )


@task(name="record", cache_policy=NO_CACHE)
@redact_errors
async def store_run_and_reports(run: LiveRun, report: RunReport) -> ReportPaths:
    """Store the report in the journal, then in the warehouse and in files. Return the paths of the files."""
    run.context.listener.on_stage("recording")
    return await _store_run(run, report)


async def _store_run(run: LiveRun, report: RunReport) -> ReportPaths:
    context = run.context
    await asyncio.to_thread(context.journal.append, (RunRow(row=report),), run_id=context.run_id)
    await asyncio.to_thread(_load_journal_or_rebuild, run)
    return await asyncio.to_thread(_write_reports, run, report)


def _load_journal_or_rebuild(run: LiveRun) -> None:
    """Load the journal into the warehouse. If another process has locked the file, do nothing.

    A damaged file is rebuilt from the journal, and Lookout's owners are notified.
    """
    store = run.context.store
    try:
        store.load_pending(LOAD_WAIT_S)  # the next notification reports data that could not be loaded
    except WarehouseBusy:
        return
    except WarehouseDamaged as error:
        rebuilt = rebuild_database(store, wait_s=LOAD_WAIT_S)
        run.faults.extend(map(build_fault_from_error, (error, *rebuilt.errors())))


def _write_reports(run: LiveRun, report: RunReport) -> ReportPaths:
    context = run.context
    patterns = context.configured.graders.account_patterns
    previous, incidents = _read_previous_report_and_incidents(run)
    return write_reports(
        context.folder,
        report,
        run.results,
        redact=build_redactor(patterns, [case_result.case for case_result in run.results]),
        settings=context.config.reports,
        previous=previous,
        incidents=incidents,
    )


def _read_previous_report_and_incidents(run: LiveRun) -> tuple[RunReport | None, tuple[Incident, ...]]:
    """Read the report of the previous run and the open incidents.

    The report is ``None`` if there is no comparable previous run. If the warehouse cannot be read, the report is
    ``None`` and there are no incidents.
    """
    store, target = run.context.store, run.context.target.name
    try:
        previous = store.find_last_report(target, run.context.suite.sha256, except_run=run.context.run_id)
        return None if run.judge_changed else previous, store.list_open_incidents(target)
    except WarehouseError:
        return None, ()


@task(name="notify people", cache_policy=NO_CACHE)
@redact_errors
async def send_alerts_and_update_incidents(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Send alerts about everything that is new in this run, and resolve incidents that have ended."""
    run.context.listener.on_stage("notifying")
    notifier, patterns = run.context.notifier, run.context.configured.graders.account_patterns
    summary = build_run_summary(report, _build_links(report, paths), account_patterns=patterns)
    observations = build_run_observations(run, report)
    scope = build_run_resolution_scope(run, report)
    await notify(notifier, observations, summary=summary, scope=scope)
    if gone := await asyncio.to_thread(find_incident_case_ids_not_in_suite, run):
        await notify(notifier, [], scope=scope.narrow_to(text=LEFT_SUITE, cases=gone, reason=NotifyReason.CLOSED))
    await _add_summary_to_messages(run, report, paths)
    notifications = await asyncio.to_thread(
        describe_notifications, notifier, observations, run.context.start.started_at
    )
    run.context.listener.on_ended(f"{report.verdict}, {notifications}", str(paths.html))


async def _add_summary_to_messages(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Add the summary of the run, and the recheck if there was one, to the messages that the run sent."""
    patterns, recheck = run.context.configured.graders.account_patterns, report.recheck
    format_recheck = None
    if recheck is not None:
        format_recheck = partial(format_alert_recheck, recheck=recheck, account_patterns=patterns)
    await add_summary_to_sent_alerts(
        run.context.notifier,
        build_run_summary(report, _build_links(report, paths), account_patterns=patterns),
        flaky=format_flaky_notes(report),
        format_recheck=format_recheck,
    )


@task(name="ask again", cache_policy=NO_CACHE)
@redact_errors
async def recheck_and_update_messages(run: LiveRun, report: RunReport) -> RunReport:
    """Ask the severe failed cases again. Add the results to the report, the sent messages and the comments.

    The verdict and its figures do not change.
    """
    recheck = await recheck_failures(run, hub_token=run.context.hub_token)
    if recheck is None:
        return report
    report = report.with_recheck(recheck)
    await _add_summary_to_messages(run, report, await _store_run(run, report))
    await post_results_to_pull_requests(run, report)
    return report


@task(name="write the experiment", cache_policy=NO_CACHE)
@redact_errors
async def write_experiment(run: LiveRun, report: RunReport, experiment: ExperimentWriter | None) -> RunReport:
    """Write the run as an experiment to the target's platform. If the report changes, write its files again."""
    if experiment is None:
        return report
    run.context.listener.on_stage("writing the experiment")
    written = report.with_experiment(await experiment.write(report))
    if written != report:
        await asyncio.to_thread(_write_reports, run, written)
    return written


@task(name="publish", cache_policy=NO_CACHE)
@redact_errors
async def publish_to_prefect(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Publish the report of the run in Prefect's UI."""
    link = find_site_page_address(run.context.config, build_report_page_path(report.run_id))
    await publish_artifacts(_build_artifact_name(run), report, run.results, paths, link)


def _build_artifact_name(run: LiveRun) -> str:
    return run.context.config.prefect.add_prefix(f"verify-{run.context.target.name}")


def _build_links(report: RunReport, paths: ReportPaths) -> tuple[Link, ...]:
    places = [Link(label="Report", href=str(paths.html))]
    if report.experiment is not None and report.experiment.url is not None:
        places.append(Link(label="Experiment", href=report.experiment.url))
    return tuple(places)


def _format_verdict_briefly(report: RunReport) -> str:
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    scores = (
        "nothing was graded" if weighted is None or flat is None else f"weighted {weighted:.3f}, flat {flat:.3f}"
    )
    uncovered = format_uncovered_cases(report.reasons)
    return f"{report.verdict}: {scores}" + (f"; not covered: {uncovered}" if uncovered else "")
