"""What a finished run saw, and what it proved gone: the news that is told, if it is news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flows.live_run import LiveRun
from flows.monitor_fault import Fault
from flows.night_telling import night_fault_fingerprints
from flows.notify import refusal_fingerprint
from flows.wiring import utc_now
from monitors.alerts.events import Sighting, app_down, deploy_failed, gate_failed, judge_void, monitor_fault
from monitors.alerts.log_silence import log_fault_fingerprints
from monitors.alerts.observe import observations
from monitors.alerts.scope import Scope, scope_of
from monitors.errors import ProbeError
from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswer, NoAnswerReason
from monitors.records.incidents import IncidentKind, Observation
from monitors.records.runs import RunReport, Verdict

NOTHING_GRADED = "NothingGraded"
SAYS_WHY_NOTHING = frozenset(
    {IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE, IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID}
)
"""Where one of these is told, it is why nothing was graded."""


def observed(run: LiveRun, report: RunReport) -> tuple[Observation, ...]:
    """Everything that is wrong, worst cases and outages and the monitor's own faults, before anything is folded."""
    wired, at = run.wired, sighting(run)
    seen = list(
        observations(
            run.results,
            target=wired.target.name,
            run_id=wired.run_id,
            seen_at=at.seen_at,
            commit=at.commit,
            settings=wired.config.alerts,
            account_patterns=at.account_patterns,
            flaky=flaky_notes(report),
        )
    )
    if report.verdict is Verdict.FAIL:
        seen.append(gate_failed(report, at))
    seen.extend(_outages(run, at))
    if run.judge_void:
        seen.append(judge_void(at, detail=run.judge_void))
    seen.extend(monitor_fault(at, what=what, detail=detail) for what, detail in _one_of_each(run.faults))
    if not run.graded and not any(one.kind in SAYS_WHY_NOTHING for one in seen):
        seen.append(monitor_fault(at, what=NOTHING_GRADED, detail=_nothing_graded(run)))
    return tuple(seen)


def flaky_notes(report: RunReport) -> Mapping[str, str]:
    """By case id, how often a case was right that was right only sometimes."""
    return {one.case_id: one.words for one in report.flaky}


def _one_of_each(faults: Sequence[Fault]) -> Sequence[Fault]:
    """The first fault of each name: one incident needs one message."""
    return tuple({fault.what: fault for fault in reversed(faults)}.values())


def _nothing_graded(run: LiveRun) -> str:
    """Green or not, a run that told nothing has watched nothing."""
    why = next((r.assessment.reason for r in run.results), "no question came back")
    return (
        f"The run ended without grading a single answer: {len(run.results)} results, none of which could be told "
        f"right or wrong ({why}). Nobody is watching this target until that is mended."
    )


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


def scope_after(run: LiveRun, report: RunReport) -> Scope:
    """What the run had the standing to resolve."""
    cleared = {IncidentKind.GATE_FAIL} if report.verdict is Verdict.PASS else set[IncidentKind]()
    blind = any(isinstance(r.result, NoAnswer) and r.result.blame is not Blame.APP for r in run.results)
    if run.graded and not blind and not run.faults:
        cleared.add(IncidentKind.MONITOR_FAULT)
    if run.judging is not None and run.judging.judged and not run.judge_void:
        cleared.add(IncidentKind.JUDGE_VOID)
    name = run.wired.target.name
    return scope_of(
        run.results,
        target=name,
        run_id=run.wired.run_id,
        began_at=report.started_at,
        ended_at=report.finished_at,
        commit=report.commit,
        cleared=cleared,
        spared=(refusal_fingerprint(name), *log_fault_fingerprints(name), *night_fault_fingerprints(name)),
    )


def sighting(run: LiveRun) -> Sighting:
    """When and where the run sees something."""
    wired = run.wired
    return Sighting(
        target=wired.target.name,
        run_id=wired.run_id,
        seen_at=utc_now(),
        commit=run.commit,
        account_patterns=wired.configured.graders.account_patterns,
    )
