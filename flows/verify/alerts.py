"""What a run reports to people: severe failures while it goes on, and everything it saw and resolved at its end.

The first severity-3 failure sends an alert at once; the next ones are collected and added to its message. At the
end the run's observations become messages where they are news. One line sums them up: what is new, what was known,
and whether anybody was notified.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from flows.alerting.faults import Fault, fault_of
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.verify.run_state import LiveRun
from monitors.alerts.observe import (
    ObservationContext,
    app_down,
    deploy_failed,
    gate_examples,
    gate_failed,
    judge_void,
    monitor_fault,
    observe_cases,
)
from monitors.alerts.resolve import ResolutionScope, scope_of
from monitors.errors import ProbeError, WarehouseError
from monitors.explain.what_changed import our_settings_alone
from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.exchanges import NOT_LET_IN, NOT_READ, NoAnswer, NoAnswerReason
from monitors.records.incidents import IncidentKind, NotifyReason, Observation, RunSummary
from monitors.records.runs import CaseResult, JudgeState, ReasonKind, RunReport, Verdict
from monitors.reports.format import shortened
from warehouse.queries.incidents import RunMessage, messages_of
from warehouse.queries.runs import last_answered

PAUSE_S: Final = 60.0
"""After an alert, further failures are collected this long: the first second matters, the tenth message does
not."""


class EarlyAlerts:
    """Sends alerts about severe failures from a task of its own, so that asking never waits for Slack.

    What is left when the run ends is reported with everything else, so an error here drops nothing; it becomes a
    fault of the run, which is reported then too.
    """

    def __init__(self, run: LiveRun, at: ObservationContext) -> None:
        self._run = run
        self._at = at
        self._waiting: list[Observation] = []
        self._news = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._message: asyncio.Task[object] | None = None

    def on_result(self, result: CaseResult) -> None:
        """Take in one result."""
        seen = observe_cases(
            [result],
            target=self._at.target,
            run_id=self._at.run_id,
            seen_at=result.result.asked_at,
            commit=self._at.commit,
            settings=self._run.context.config.alerts,
            account_patterns=self._at.account_patterns,
        )
        if seen:
            self._waiting.extend(seen)
            self._news.set()

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._send_as_it_comes())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop collecting; let a message that is under way finish."""
        del kind, error, trace
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        await self._settle()

    async def _send_as_it_comes(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            batch, self._waiting = self._waiting, []
            summary = RunSummary(commit=self._at.commit, under_way=True)
            self._message = asyncio.create_task(notify(self._run.context.notifier, batch, summary=summary))
            await asyncio.wait({self._message})
            await self._settle()
            # Failures of the next seconds go into one message instead of one each.
            await asyncio.sleep(PAUSE_S)

    async def _settle(self) -> None:
        """Let the message under way end; what stopped it is a fault of the run."""
        if self._message is None:
            return
        (outcome,) = await asyncio.gather(self._message, return_exceptions=True)
        self._message = None
        if isinstance(outcome, Exception):
            self._run.faults.append(fault_of(outcome))


NOTHING_GRADED = "NothingGraded"
TOO_LITTLE_GRADED = "TooLittleGraded"
SAYS_WHY_NOTHING = frozenset(
    {IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE, IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID}
)
"""Where one of these is reported, it is why nothing was graded."""


def observe_run(run: LiveRun, report: RunReport) -> tuple[Observation, ...]:
    """Everything that is wrong: worst cases, outages, the monitor's own faults; before folding into incidents."""
    context, at = run.context, observation_context(run)
    seen = list(
        observe_cases(
            run.results,
            target=context.target.name,
            run_id=context.run_id,
            seen_at=at.seen_at,
            commit=at.commit,
            settings=context.config.alerts,
            account_patterns=at.account_patterns,
            flaky=flaky_notes(report),
        )
    )
    if report.verdict is Verdict.FAIL:
        failed = gate_examples(
            run.results, settings=context.config.alerts, account_patterns=at.account_patterns, known=_known(run)
        )
        seen.append(gate_failed(report, at, failed))
    seen.extend(_outages(run, report, at))
    if run.judge_void:
        seen.append(judge_void(at, detail=run.judge_void))
    seen.extend(monitor_fault(at, what=what, detail=detail) for what, detail in _one_of_each(run.faults))
    if not run.graded and not any(one.kind in SAYS_WHY_NOTHING for one in seen):
        seen.append(monitor_fault(at, what=NOTHING_GRADED, detail=_nothing_graded(run)))
    elif not any(one.kind in SAYS_WHY_NOTHING for one in seen) and (detail := _too_little_graded(run, report)):
        seen.append(monitor_fault(at, what=TOO_LITTLE_GRADED, detail=detail, title=CANNOT_GRADE))
    return tuple(seen)


def _known(run: LiveRun) -> frozenset[str]:
    """The failed cases that a message about the open gate incident has reported: the new ones are shown first."""
    try:
        still = run.context.store.open_incidents(run.context.target.name)
    except WarehouseError:
        return frozenset()  # then the worst are shown first
    return frozenset(case for one in still for case in one.notified_cases)


def flaky_notes(report: RunReport) -> Mapping[str, str]:
    """By case id, how often a case was right that was right only sometimes."""
    return {one.case_id: one.text for one in report.flaky}


def _one_of_each(faults: Sequence[Fault]) -> Sequence[Fault]:
    """The first fault of each name: one incident needs one message."""
    return tuple({fault.what: fault for fault in reversed(faults)}.values())


def _nothing_graded(run: LiveRun) -> str:
    """Green or not, a run that graded nothing has watched nothing."""
    why = next((r.assessment.reason for r in run.results), "no question came back")
    return (
        f"The run ended without grading a single answer: {plural(len(run.results), 'result')}, and none "
        f"could be graded ({why}). Nobody is watching this target until that is mended."
    )


def _too_little_graded(run: LiveRun, report: RunReport) -> str:
    """Of a whole run that is INCONCLUSIVE because too few of its answers were graded: which, and why the first."""
    reason = next((one for one in report.reasons if one.kind is ReasonKind.COVERAGE and one.case_ids), None)
    left = [one for one in run.results if reason and one.case.id in reason.case_ids]
    if reason is None or not left or run.interrupted or report.verdict is not Verdict.INCONCLUSIVE:
        return ""
    judging = run.judging
    judge = (
        f" The judge is off: {judging.why}." if judging and judging.state is JudgeState.OFF and judging.why else ""
    )
    why = shortened(f"{left[0].case.id}: {left[0].assessment.reason}", _DETAIL_CHARACTERS).rstrip(".")
    return (
        f"Neither PASS nor FAIL: {reason.text}. The others may be right or wrong.{judge} "
        f"The first of them is {why}. All of them: `lookout report {run.context.run_id}`."
    )


def _outages(run: LiveRun, report: RunReport, at: ObservationContext) -> list[Observation]:
    """One message for an app that was down, one for a monitor that could not see; never one per case."""
    if run.not_ready is not None:
        return [_not_served(run.not_ready, at)]
    silent = [r.result for r in run.results if isinstance(r.result, NoAnswer)]
    down = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN and n.blame is Blame.APP]
    blind = [n for n in silent if n.blame is not Blame.APP]
    seen: list[Observation] = []
    not_asked = [n for n in silent if n.reason is NoAnswerReason.CIRCUIT_OPEN]
    rest = f", {len(not_asked):,} {'was' if len(not_asked) == 1 else 'were'} not asked" if not_asked else ""
    stopped = any(n.reason is NoAnswerReason.CIRCUIT_OPEN and n.blame is Blame.APP for n in silent)
    if stopped or len(down) == len(run.results) > 0:
        detail = down[0].detail if down else "nothing came back"
        where = "" if at.address in detail else f" from {at.address}{_path(run)}"
        what = f"{plural(len(down), 'question')} got no answer{where}{rest}: {detail}"
        ours, cause = _settings(run, report)
        seen.append(
            app_down(at, detail=_with_cause(run, cause, what), title=NO_ANSWERS_SINCE)
            if ours
            else app_down(at, detail=what)
        )
    if refused := [n for n in blind if n not in not_asked] or blind:
        reason = refused[0].reason
        how = "got an answer that cannot be read" if reason in NOT_READ else "could not be asked"
        what = f"{plural(len(refused), 'question')} {how}{rest}: {refused[0].detail}"
        ours, cause = _settings(run, report)
        of_settings = reason is NoAnswerReason.NO_SUCH_PATH or reason in NOT_READ
        if ours or of_settings:
            what = _with_cause(run, cause, what)
        if of_settings and cause and not ours:  # users get nothing either
            return [*seen, app_down(at, detail=what, title=NO_ANSWERS_THOUGH)]
        title = CANNOT_READ if reason in NOT_READ else CANNOT_ASK if reason in NOT_LET_IN else ""
        seen.append(monitor_fault(at, what=reason.value, detail=what, title=title))
    return seen


CANNOT_ASK: Final = "Lookout cannot ask"
CANNOT_GRADE: Final = "Lookout cannot grade enough answers"
CANNOT_READ: Final = "Lookout cannot read the answers"
NO_ANSWERS_SINCE: Final = "No answers since lookout.toml changed"
NO_ANSWERS_THOUGH: Final = "No answers, though lookout.toml is unchanged"
_DETAIL_CHARACTERS: Final = 260
"""The most of what went wrong, so that the next step behind it is not cut off."""


def _with_cause(run: LiveRun, cause: str, what: str) -> str:
    """The cause first, where one is known, and the next step last."""
    said = shortened(what, _DETAIL_CHARACTERS).rstrip(".")
    return f"{f'{cause} ' if cause else ''}{said}. Next: `lookout doctor {run.context.target.name}`."


def _settings(run: LiveRun, report: RunReport) -> tuple[bool, str]:
    """Whether lookout.toml is the likely cause that nothing came back, and that in words.

    It is where its settings of the target are not those of the last run that got answers, and nothing of the
    application is known to have changed.
    """
    if run.has_answers or report.snapshot is None:
        return False, ""
    name = run.context.target.name
    try:
        since = last_answered(run.context.store, name, before=run.context.run_id)
    except WarehouseError:
        return False, ""
    if since is None or since.snapshot is None:
        return False, ""
    if changed := our_settings_alone(report.snapshot, since):
        tables = " and ".join(f"[targets.{name}{'.probe' if one == 'probe' else ''}]" for one in changed)
        are = "are" if len(changed) > 1 else "is"
        return True, (
            f"lookout.toml changed, which is the likely cause: {tables} {are} not as in the last run that got "
            f"answers ({since.finished_at:%Y-%m-%d %H:%M} UTC)."
        )
    if report.snapshot.settings == since.snapshot.settings:
        return False, (
            f"With the same settings the run of {since.finished_at:%Y-%m-%d %H:%M} UTC got answers, so the "
            "application may have changed."
        )
    return False, ""


def _path(run: LiveRun) -> str:
    """The path that an API is asked at; nothing for a page."""
    probe = run.context.configured.probe
    if probe.driver not in {"json", "sse"}:
        return ""
    return urlsplit(probe.api.url or run.context.target.address).path


def _not_served(why: ProbeError, at: ObservationContext) -> Observation:
    if why.blame is Blame.APP:
        return deploy_failed(at, detail=str(why))
    return monitor_fault(at, what=type(why).__name__, detail=str(why))


def scope_after(run: LiveRun, report: RunReport) -> ResolutionScope:
    """What the run may resolve."""
    cleared = {IncidentKind.GATE_FAIL} if report.verdict is Verdict.PASS else set[IncidentKind]()
    blind = any(isinstance(r.result, NoAnswer) and r.result.blame is not Blame.APP for r in run.results)
    if run.graded and not blind and not run.faults:
        cleared.add(IncidentKind.MONITOR_FAULT)
    if run.judging is not None and run.judging.judged and not run.judge_void:
        cleared.add(IncidentKind.JUDGE_VOID)
    return scope_of(
        run.results,
        target=run.context.target.name,
        run_id=run.context.run_id,
        began_at=report.started_at,
        ended_at=report.finished_at,
        commit=report.commit,
        cleared=cleared,
    )


def observation_context(run: LiveRun) -> ObservationContext:
    """When and where the run sees something."""
    context = run.context
    return ObservationContext(
        target=context.target.name,
        run_id=context.run_id,
        seen_at=context.now(),
        commit=run.commit,
        account_patterns=context.configured.graders.account_patterns,
        address=_origin(context.target.address),
    )


def _origin(address: str) -> str:
    """``http://host:port`` of an address, without what else may stand in it."""
    found = urlsplit(address)
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}"


REASONS: Final[dict[NotifyReason, str]] = {
    NotifyReason.FIRST_SEEN: "new",
    NotifyReason.REGRESSED: "back again",
    NotifyReason.WORSE: "worse",
    NotifyReason.OPEN_BEFORE: "open before Slack could be reached",
    NotifyReason.REMINDER: "still failing",
    NotifyReason.RECOVERED: "recovered",
}
"""Short words, in the order in which they are printed."""

HOW: Final = {
    "rejected": "refused by Slack and printed here, so nobody was notified",
    "waiting": "not sent yet: Slack did not take it, and it is tried again",
    "printed": "printed here: no Slack is set up, so nobody was notified",
    "sent": "sent now",
}
"""How far the messages came, the worst first: a reader must know of one that did not arrive."""


def describe_notifications(notifier: Notifier, observations: Sequence[Observation]) -> str:
    """``2 already known, nothing sent``, or ``1 new, sent now; 2 already known``, for all that a run saw.

    "Nothing to send" when it saw nothing and nothing recovered. A warehouse that cannot be read is named as the
    reason.
    """
    try:
        messages = messages_of(notifier.store, notifier.run_id)
        incidents = notifier.store.incidents(notifier.target)
    except WarehouseError as error:
        return f"what was sent is not known ({type(error).__name__})"
    reasons = {item.incident.fingerprint: item.reason for one in messages for item in one.alert.items}
    silent = [key for key in dict.fromkeys(one.fingerprint for one in observations) if key not in reasons]
    muted = sum(key in incidents and incidents[key].last_notified_at is None for key in silent)
    quiet = _counted({"already known": len(silent) - muted, "silenced": muted}.items())
    if not messages:
        return f"{quiet}, nothing sent" if quiet else "nothing to send"
    tally = Counter(reasons.values())
    news = _counted((text, tally[reason]) for reason, text in REASONS.items())
    return f"{news}, {_how(messages)}" + (f"; {quiet}" if quiet else "")


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {text}" for text, count in counts if count)


def _how(messages: Sequence[RunMessage]) -> str:
    came = {one.came_to for one in messages}
    return next(text for status, text in HOW.items() if status in came)
