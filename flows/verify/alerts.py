"""Builds and sends the alerts of a run: severe failures during the run, and everything else at its end.

The first severity-3 failure sends an alert immediately. Later failures are collected and added to the same message.
At the end, one line says which faults are new, which faults were known before, and whether people were notified.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from flows.alerting.faults import build_fault_from_error
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.verify.run_state import LiveRun
from monitors.alerts.observe import (
    ObservationContext,
    build_app_down_observation,
    build_failed_deploy_observation,
    build_failed_gate_observation,
    build_monitor_fault_observation,
    build_severe_failure_observations,
    build_void_judge_observation,
    select_failed_cases_for_message,
)
from monitors.alerts.resolve import ResolutionScope, build_resolution_scope
from monitors.alerts.wording import TRAFFIC_CASE
from monitors.errors import ProbeError, WarehouseError
from monitors.explain.what_changed import list_solely_changed_probe_settings
from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.exchanges import NOT_LET_IN, NOT_READ, NoAnswer, NoAnswerReason
from monitors.records.incidents import IncidentKind, NotifyReason, Observation, RunSummary
from monitors.records.runs import CaseResult, JudgeState, ReasonKind, RunReport, Verdict
from monitors.reports.format import shorten
from warehouse.queries.incidents import (
    RunMessage,
    list_alerts_with_delivery_status,
    list_delayed_messages_of_earlier_runs,
)
from warehouse.queries.runs import find_last_run_with_answers

COLLECT_S: Final = 60.0
"""Time in seconds during which failures are collected after an alert. One message then contains these failures."""


class EarlyAlerts:
    """Sends alerts about severe failures in a background task, so that asking does not wait for Slack.

    At the end of the ``async with`` block, the collected failures are sent. An error becomes a fault of the run.
    This fault is reported at the end of the run.
    """

    def __init__(self, run: LiveRun, at: ObservationContext) -> None:
        self._run = run
        self._at = at
        self._waiting: list[Observation] = []
        self._arrived = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._message: asyncio.Task[object] | None = None

    def on_result(self, result: CaseResult) -> None:
        """Queue an alert if the result is a severe failure."""
        observations = build_severe_failure_observations(
            [result],
            target=self._at.target,
            run_id=self._at.run_id,
            seen_at=result.result.asked_at,
            commit=self._at.commit,
            settings=self._run.context.config.alerts,
            account_patterns=self._at.account_patterns,
        )
        if observations:
            self._waiting.extend(observations)
            self._arrived.set()

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._send_early_alerts())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop collecting, wait for the current message, and send the failures collected since that message."""
        del kind, error, trace
        finishing = asyncio.create_task(self._send_remaining_alerts())
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await finishing
            raise

    async def _send_remaining_alerts(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        await self._wait_for_message()
        if self._waiting:
            await self._send_batch()

    async def _send_early_alerts(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._send_batch()
            # Failures of the next seconds are sent in one message instead of one message each.
            await asyncio.sleep(COLLECT_S)

    async def _send_batch(self) -> None:
        """Send the collected failures as one message, in a task that continues if the sender is cancelled."""
        batch, self._waiting = self._waiting, []
        summary = RunSummary(commit=self._at.commit, under_way=True)
        self._message = asyncio.create_task(notify(self._run.context.notifier, batch, summary=summary))
        await asyncio.wait({self._message})
        await self._wait_for_message()

    async def _wait_for_message(self) -> None:
        """Wait for the current message. An error becomes a fault of the run."""
        if self._message is None:
            return
        (outcome,) = await asyncio.gather(self._message, return_exceptions=True)
        self._message = None
        if isinstance(outcome, Exception):
            self._run.faults.append(build_fault_from_error(outcome))


NOTHING_GRADED = "NothingGraded"
TOO_LITTLE_GRADED = "TooLittleGraded"
EXPLAINING_KINDS = frozenset(
    {IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE, IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID}
)
"""Kinds of incidents that explain why nothing was graded."""


def build_run_observations(run: LiveRun, report: RunReport) -> tuple[Observation, ...]:
    """Build all observations of a run: failed cases, the failed gate, outages and internal faults of Lookout."""
    context, observed_in = run.context, build_observation_context(run)
    observations = list(
        build_severe_failure_observations(
            run.results,
            target=context.target.name,
            run_id=context.run_id,
            seen_at=observed_in.seen_at,
            commit=observed_in.commit,
            settings=context.config.alerts,
            account_patterns=observed_in.account_patterns,
            flaky=format_flaky_notes(report),
        )
    )
    if report.verdict is Verdict.FAIL:
        failed = select_failed_cases_for_message(
            run.results,
            settings=context.config.alerts,
            account_patterns=observed_in.account_patterns,
            named_before=_find_notified_case_ids(run),
        )
        observations.append(build_failed_gate_observation(report, observed_in, failed))
    observations.extend(_observe_outages(run, report, observed_in))
    if run.judge_void:
        observations.append(build_void_judge_observation(observed_in, detail=run.judge_void))
    observations.extend(
        build_monitor_fault_observation(observed_in, fault_name=name, detail=detail)
        for name, detail in {fault.name: fault for fault in reversed(run.faults)}.values()
    )
    if not run.graded and not any(observation.kind in EXPLAINING_KINDS for observation in observations):
        observations.append(
            build_monitor_fault_observation(
                observed_in, fault_name=NOTHING_GRADED, detail=_format_nothing_graded(run)
            )
        )
    elif not any(observation.kind in EXPLAINING_KINDS for observation in observations) and (
        detail := _format_too_little_graded(run, report)
    ):
        observations.append(
            build_monitor_fault_observation(
                observed_in, fault_name=TOO_LITTLE_GRADED, detail=detail, title=CANNOT_GRADE
            )
        )
    return tuple(observations)


def _find_notified_case_ids(run: LiveRun) -> frozenset[str]:
    """Find the ids of cases in earlier alerts. The alert about the gate shows other cases before these cases.

    Return an empty set if the warehouse cannot be read.
    """
    try:
        open_incidents = run.context.store.list_open_incidents(run.context.target.name)
    except WarehouseError:
        return frozenset()  # without these alerts, the worst cases are shown first
    return frozenset(case for incident in open_incidents for case in incident.notified_cases)


def format_flaky_notes(report: RunReport) -> Mapping[str, str]:
    """Format, for each flaky case, how often it was answered correctly. The keys are case ids."""
    return {case.case_id: case.text for case in report.flaky}


def _format_nothing_graded(run: LiveRun) -> str:
    """Format the fault for a run that graded no answers."""
    reason = next((r.assessment.reason for r in run.results), "no question was answered")
    return (
        f"The run could not grade any of its {plural(len(run.results), 'result')}. First reason: "
        f"{reason.rstrip('.')}. Lookout does not monitor this target until this is fixed."
    )


def _format_too_little_graded(run: LiveRun, report: RunReport) -> str:
    """Format why a complete run is INCONCLUSIVE if too few answers are graded. Otherwise return an empty string."""
    reason = next(
        (candidate for candidate in report.reasons if candidate.kind is ReasonKind.COVERAGE and candidate.case_ids),
        None,
    )
    ungraded = [candidate for candidate in run.results if reason and candidate.case.id in reason.case_ids]
    if reason is None or not ungraded or run.interrupted or report.verdict is not Verdict.INCONCLUSIVE:
        return ""
    judging = run.judging
    judge = (
        f" The judge is off: {judging.why}." if judging and judging.state is JudgeState.OFF and judging.why else ""
    )
    why = shorten(f"{ungraded[0].case.id}: {ungraded[0].assessment.reason}", _MAX_DETAIL_CHARACTERS).rstrip(".")
    return (
        f"Neither PASS nor FAIL: {reason.text}. The ungraded answers may be right or wrong.{judge} The first "
        f"ungraded case is {why}. To list all cases, run `lookout report {run.context.run_id}`."
    )


def _observe_outages(run: LiveRun, report: RunReport, at: ObservationContext) -> list[Observation]:
    """Build up to two observations: the application did not answer, and Lookout could not ask."""
    if run.not_ready is not None:
        return [_build_not_ready_observation(run.not_ready, at)]
    silent = [r.result for r in run.results if isinstance(r.result, NoAnswer)]
    down = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN and n.blame is Blame.APP]
    not_visible = [n for n in silent if n.blame is not Blame.APP]
    observations: list[Observation] = []
    not_asked = [n for n in silent if n.reason is NoAnswerReason.CIRCUIT_OPEN]
    rest = f", and {len(not_asked):,} {'was' if len(not_asked) == 1 else 'were'} not asked" if not_asked else ""
    stopped = any(n.reason is NoAnswerReason.CIRCUIT_OPEN and n.blame is Blame.APP for n in silent)
    if stopped or len(down) == len(run.results) > 0:
        detail = down[0].detail if down else "no answer arrived"
        where = "" if at.address in detail else f" from {at.address}{_find_api_path(run)}"
        detail_text = f"{plural(len(down), 'question')} had no answer{where}{rest}: {detail}"
        is_settings_change, cause = _explain_missing_answers_by_settings(run, report)
        observations.append(
            build_app_down_observation(
                at, detail=_format_detail_with_cause(run, cause, detail_text), title=NO_ANSWERS_SINCE
            )
            if is_settings_change
            else build_app_down_observation(at, detail=detail_text)
        )
    if refused := [n for n in not_visible if n not in not_asked] or not_visible:
        reason = refused[0].reason
        how = "had an unreadable answer" if reason in NOT_READ else "could not be asked"
        detail_text = f"{plural(len(refused), 'question')} {how}{rest}: {refused[0].detail}"
        is_settings_change, cause = _explain_missing_answers_by_settings(run, report)
        may_be_settings = reason is NoAnswerReason.NO_SUCH_PATH or reason in NOT_READ
        if is_settings_change or may_be_settings:
            detail_text = _format_detail_with_cause(run, cause, detail_text)
        if may_be_settings and cause and not is_settings_change:  # users get no answer either
            return [*observations, build_app_down_observation(at, detail=detail_text, title=NO_ANSWERS_THOUGH)]
        title = CANNOT_READ if reason in NOT_READ else CANNOT_ASK if reason in NOT_LET_IN else ""
        observations.append(
            build_monitor_fault_observation(at, fault_name=reason.value, detail=detail_text, title=title)
        )
    return observations


CANNOT_ASK: Final = "Lookout cannot ask"
CANNOT_GRADE: Final = "Lookout cannot grade enough answers"
CANNOT_READ: Final = "Lookout cannot read the answers"
NO_ANSWERS_SINCE: Final = "No answers since a change of lookout.toml"
NO_ANSWERS_THOUGH: Final = "No answers, although lookout.toml is unchanged"
_MAX_DETAIL_CHARACTERS: Final = 260
"""Maximum number of characters of an error. A longer error would push the next step out of the message."""


def _format_detail_with_cause(run: LiveRun, cause: str, detail: str) -> str:
    """Format the detail of an alert: the ``cause`` if it is known, the ``detail``, and the command to run next."""
    shortened = shorten(detail, _MAX_DETAIL_CHARACTERS).rstrip(".")
    return f"{f'{cause} ' if cause else ''}{shortened}. Next: `lookout doctor {run.context.target.name}`."


def _explain_missing_answers_by_settings(run: LiveRun, report: RunReport) -> tuple[bool, str]:
    """Return whether a change in lookout.toml probably caused the missing answers, and an explanation.

    A change is the probable cause if the target's settings differ from those of the last run with answers.
    """
    if run.has_answers or report.snapshot is None:
        return False, ""
    name = run.context.target.name
    try:
        last_run = find_last_run_with_answers(run.context.store, name, except_run=run.context.run_id)
    except WarehouseError:
        return False, ""
    if last_run is None or last_run.snapshot is None:
        return False, ""
    if changed := list_solely_changed_probe_settings(report.snapshot, last_run):
        tables = " and ".join(f"[targets.{name}{'.probe' if table == 'probe' else ''}]" for table in changed)
        are = "are" if len(changed) > 1 else "is"
        return True, (
            f"the likely cause is a change of lookout.toml: {tables} {are} different from the last run with "
            f"answers ({last_run.finished_at:%Y-%m-%d %H:%M} UTC)."
        )
    if report.snapshot.settings == last_run.snapshot.settings:
        return False, (
            f"The run at {last_run.finished_at:%Y-%m-%d %H:%M} UTC received answers with the same settings, so the "
            "application may have changed since then."
        )
    return False, ""


def _find_api_path(run: LiveRun) -> str:
    """Find the URL path of the target's API. Return an empty string if the target has no JSON or SSE API."""
    probe = run.context.configured.probe
    if probe.driver not in {"json", "sse"}:
        return ""
    return urlsplit(probe.api.url or run.context.target.address).path


def _build_not_ready_observation(error: ProbeError, at: ObservationContext) -> Observation:
    """Build the observation of a target that was not ready: a failed deploy, or else an internal fault."""
    if error.blame is Blame.APP:
        return build_failed_deploy_observation(at, detail=str(error))
    return build_monitor_fault_observation(at, fault_name=type(error).__name__, detail=str(error))


def build_run_resolution_scope(run: LiveRun, report: RunReport) -> ResolutionScope:
    """Build the scope that states which incidents this run can resolve."""
    cleared = {IncidentKind.GATE_FAIL} if report.verdict is Verdict.PASS else set[IncidentKind]()
    has_own_faults = any(isinstance(r.result, NoAnswer) and r.result.blame is not Blame.APP for r in run.results)
    if run.graded and not has_own_faults and not run.faults:
        cleared.add(IncidentKind.MONITOR_FAULT)
    if run.judging is not None and run.judging.judged and not run.judge_void:
        cleared.add(IncidentKind.JUDGE_VOID)
    return build_resolution_scope(
        run.results,
        target=run.context.target.name,
        run_id=run.context.run_id,
        began_at=report.started_at,
        ended_at=report.finished_at,
        commit=report.commit,
        cleared=cleared,
    )


def find_incident_case_ids_not_in_suite(run: LiveRun) -> tuple[str, ...]:
    """Return the case ids of open incidents whose cases were in this suite before and are no longer in it."""
    context = run.context
    suite_ids = {case.id for case in context.suite.cases}
    asked = (
        (incident.case_id, context.store.find_report(incident.last_run_id))
        for incident in context.store.list_open_incidents(context.target.name)
        if incident.kind is IncidentKind.CASE_FAILURE
        and incident.case_id not in suite_ids
        and not (incident.case_id or "").startswith(TRAFFIC_CASE)
    )
    return tuple(
        case_id for case_id, report in asked if case_id and report and report.suite_name == context.suite.name
    )


def build_observation_context(run: LiveRun) -> ObservationContext:
    """Build the context of the run's observations: target, time, commit and address."""
    context = run.context
    parsed = urlsplit(context.target.address)
    return ObservationContext(
        target=context.target.name,
        run_id=context.run_id,
        seen_at=context.now(),
        commit=run.commit,
        account_patterns=context.configured.graders.account_patterns,
        address=f"{parsed.scheme}://{parsed.netloc.rpartition('@')[2]}",
    )


REASON_WORDS: Final[dict[NotifyReason, str]] = {
    NotifyReason.FIRST_SEEN: "new",
    NotifyReason.REGRESSED: "back again",
    NotifyReason.WORSE: "worse",
    NotifyReason.OPEN_BEFORE: "not reported until now",
    NotifyReason.MISSED: "missed while Slack refused messages",
    NotifyReason.SILENCED: "withheld by a recurring silence",
    NotifyReason.REMINDER: "still failing",
    NotifyReason.RECOVERED: "recovered",
    NotifyReason.CLOSED: "closed",
}
"""The label of each reason for an alert. The labels are printed in this order."""

DELIVERY_WORDS: Final = {
    "rejected": "refused by Slack and only printed here, so no person was notified",
    "waiting": "not sent yet, because Slack did not accept the message; Lookout tries again",
    "printed": "only printed here: Slack is not configured, so no person was notified",
    "sent": "sent now",
}
"""Maps each delivery status of a message to the words that are printed. The worst status is first."""
EARLIER_WORDS: Final = {
    "waiting": "not sent yet, because Slack did not accept the message; Lookout tries again",
    "sent": "sent now, late",
}
"""Maps each delivery status of a message from before the run to the printed words. The worst status is first."""


def describe_notifications(notifier: Notifier, observations: Sequence[Observation], since: datetime) -> str:
    """Describe which alerts were sent, for example ``1 new, sent now; 2 already known``.

    Messages of earlier runs are included if they still wait or were sent during this run. ``since`` is the start of
    the run. If the warehouse cannot be read, the text says so.
    """
    try:
        messages = list_alerts_with_delivery_status(notifier.store, notifier.run_id)
        earlier = list_delayed_messages_of_earlier_runs(notifier.store, notifier.target, notifier.run_id, since)
        incidents = notifier.store.load_incidents(notifier.target)
    except WarehouseError as error:
        return f"Lookout cannot read which alerts were sent ({type(error).__name__})"
    reasons = {item.incident.fingerprint: item.reason for message in messages for item in message.alert.items}
    silent = [key for key in dict.fromkeys(message.fingerprint for message in observations) if key not in reasons]
    muted = sum(key in incidents and incidents[key].last_notified_at is None for key in silent)
    quiet_text = _format_counts({"already known": len(silent) - muted, "silenced": muted}.items())
    if quiet_text and not messages and not earlier:
        quiet_text += ", nothing sent"
    tally = Counter(reasons.values())
    news = _format_counts((text, tally[reason]) for reason, text in REASON_WORDS.items())
    sent_text = f"{news}, {_format_delivery(messages)}" if messages else ""
    statuses = Counter(message.delivery_status for message in earlier)
    earlier_texts = [
        f"{plural(statuses[status], 'message')} from before {text}"
        for status, text in EARLIER_WORDS.items()
        if statuses[status]
    ]
    return "; ".join(filter(None, [sent_text, quiet_text, *earlier_texts])) or "nothing to send"


def _format_counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {text}" for text, count in counts if count)


def _format_delivery(messages: Sequence[RunMessage]) -> str:
    statuses = {message.delivery_status for message in messages}
    return next(text for status, text in DELIVERY_WORDS.items() if status in statuses)
