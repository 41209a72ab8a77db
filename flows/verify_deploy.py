"""Verify a deploy: cases → ask → grade → gate → record → tell.

    prepare ─▶ ask_and_grade ─▶ weigh ─▶ record ─▶ tell_people ─▶ publish
                   │ each result: journal, at once
                   └ first severity-3 failure: alert, at once

The flow ends ``Completed``, named Pass, Fail or Inconclusive; ``Failed`` means that the monitor broke.
"""

from __future__ import annotations

import asyncio

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.ask import ask_all
from flows.live_run import LiveRun
from flows.notify import notice_of, tell
from flows.page_early import EarlyPages
from flows.progress import listener
from flows.publish import publish_artifacts
from flows.request import VerifyRequest
from flows.wiring import utc_now, wire
from monitors.alerts.events import Sighting, app_down, deploy_failed, gate_failed, monitor_fault
from monitors.alerts.observe import observations
from monitors.alerts.redact import redact
from monitors.alerts.scope import Scope, scope_of
from monitors.errors import ProbeError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.gate.evaluate import evaluate
from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswer, NoAnswerReason
from monitors.records.incidents import Incident, IncidentKind, Link, Observation
from monitors.records.runs import RunReport, Verdict
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
    await ask_and_grade(run)
    report = await weigh(run)
    paths = await record(run, report)
    await tell_people(run, report, paths)
    await publish(run, report, paths)
    return Completed(name=report.verdict.value.capitalize(), message=_in_one_line(report), data=report)


@task(name="prepare", cache_policy=NO_CACHE)
async def prepare(request: VerifyRequest) -> LiveRun:
    """Configuration, suite, journal; a stopped run's answers."""
    run = LiveRun(await asyncio.to_thread(wire, request))
    await asyncio.to_thread(run.wired.journal.append_suite, run.wired.suite)
    if run.wired.resumed:
        await asyncio.to_thread(run.recall)
    return run


@task(name="ask and grade", cache_policy=NO_CACHE)
async def ask_and_grade(run: LiveRun) -> None:
    """Ask every case, worst first; grade, keep and, when it is severe, tell each at once."""
    async with EarlyPages(run, _sighting(run)) as pages:
        await ask_all(run, on_result=pages.told)


@task(name="weigh", cache_policy=NO_CACHE)
async def weigh(run: LiveRun) -> RunReport:
    """The gate."""
    listener.get().stage("weighing")
    return evaluate(run.facts(utc_now()), run.results, run.wired.config.gate)


@task(name="record", cache_policy=NO_CACHE)
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
        run.faults.append(str(error))
        loaded = rebuild(store, wait_s=LOAD_WAIT_S).loaded
    run.faults.extend(str(error) for error in loaded.errors())


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
        return previous, store.open_incidents(target)
    except WarehouseError:
        return None, ()


@task(name="tell people", cache_policy=NO_CACHE)
async def tell_people(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Everything the run saw at once, with what it proved gone; said is only what is new."""
    listener.get().stage("telling")
    seen = _observed(run, report)
    await tell(run.wired, seen, notice=notice_of(report, _links(paths)), scope=_scope(run, report))


@task(name="publish", cache_policy=NO_CACHE)
async def publish(run: LiveRun, report: RunReport, paths: ReportPaths) -> None:
    """Prefect's own pages of the run."""
    await publish_artifacts(report, run.results, paths)


def _observed(run: LiveRun, report: RunReport) -> tuple[Observation, ...]:
    wired, at = run.wired, _sighting(run)
    seen = list(
        observations(
            run.results,
            target=wired.target.name,
            run_id=wired.run_id,
            seen_at=at.seen_at,
            commit=at.commit,
            settings=wired.config.alerts,
            account_patterns=at.account_patterns,
        )
    )
    if report.verdict is Verdict.FAIL:
        seen.append(gate_failed(report, at))
    seen.extend(_outages(run, at))
    seen.extend(monitor_fault(at, what="WarehouseDamaged", detail=fault) for fault in run.faults[:1])
    return tuple(seen)


def _outages(run: LiveRun, at: Sighting) -> list[Observation]:
    """One message for an app that was down, one for a monitor that could not see; never one per case."""
    if run.not_ready is not None:
        return [_not_served(run.not_ready, at)]
    silent = [r.result for r in run.results if isinstance(r.result, NoAnswer)]
    down = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN and n.blame is Blame.APP]
    blind = [n for n in silent if n.blame is not Blame.APP]
    seen: list[Observation] = []
    if any(n.reason is NoAnswerReason.CIRCUIT_OPEN for n in silent) or len(down) == len(run.results) > 0:
        detail = down[0].detail if down else "nothing came back"
        seen.append(app_down(at, detail=f"{len(silent)} of {len(run.results)} questions got no answer: {detail}"))
    if blind:
        what = blind[0].reason.value
        seen.append(
            monitor_fault(at, what=what, detail=f"{len(blind)} questions could not be asked: {blind[0].detail}")
        )
    return seen


def _not_served(why: ProbeError, at: Sighting) -> Observation:
    if why.blame is Blame.APP:
        return deploy_failed(at, detail=str(why))
    return monitor_fault(at, what=type(why).__name__, detail=str(why))


def _scope(run: LiveRun, report: RunReport) -> Scope:
    cleared = {IncidentKind.GATE_FAIL} if report.verdict is Verdict.PASS else set[IncidentKind]()
    blind = any(isinstance(r.result, NoAnswer) and r.result.blame is not Blame.APP for r in run.results)
    if run.results and not blind and not run.faults:
        cleared.add(IncidentKind.MONITOR_FAULT)
    return scope_of(
        run.results,
        target=run.wired.target.name,
        run_id=run.wired.run_id,
        began_at=report.started_at,
        ended_at=report.finished_at,
        commit=report.commit,
        cleared=cleared,
    )


def _sighting(run: LiveRun) -> Sighting:
    wired = run.wired
    return Sighting(
        target=wired.target.name,
        run_id=wired.run_id,
        seen_at=utc_now(),
        commit=run.commit,
        account_patterns=wired.configured.graders.account_patterns,
    )


def _links(paths: ReportPaths) -> tuple[Link, ...]:
    return (Link(label="Report", href=str(paths.html)),)


def _in_one_line(report: RunReport) -> str:
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    scores = "nothing was told" if weighted is None or flat is None else f"weighted {weighted:.3f}, flat {flat:.3f}"
    return f"{report.verdict}: {scores}"
