"""The stations of a drill that test the path of a wrong answer: ask, grade, judge, gate, store and send.

Each station uses the same code as a verification run. A drill is not stored as a run. Therefore no score, trend or
baseline includes a drill.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.data_folder import open_store
from flows.drill.context import DrillContext, NotSetUp, StationFailed
from flows.maintenance.self_test import check_judges_on_known_answers
from flows.runtime.judge import build_judge_plan
from flows.runtime.probe import format_browser, open_driver
from flows.runtime.slack import (
    TOKEN_VARIABLE,
    WEBHOOK_VARIABLE,
    build_alert_sender,
    build_heartbeat_from_environment,
    build_notifier,
)
from monitors.alerts.liveness import TARGET_PLACEHOLDER, Beat
from monitors.alerts.observe import ObservationContext
from monitors.alerts.observe import build_drill_observation as drill_observation
from monitors.alerts.sender import REFUSED_PREFIX
from monitors.config.file import build_target_record
from monitors.domains.pack import DEFAULT_DOMAINS, load_domain
from monitors.errors import MonitorError
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader, GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.plural import plural
from monitors.probes.runner import Question, probe_questions
from monitors.probes.settings import BROWSER_VARIABLE, CapturePolicy, ProbeSettings
from monitors.records.base import Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.exchanges import Exchange, NoAnswer, ProbeResult
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Capability, DeliveryStatus
from monitors.records.runs import CaseResult, Verdict
from monitors.records.self_checks import DRILL_TARGET, DrillReport
from monitors.records.targets import Target
from warehouse.database.store import Store
from warehouse.journal.journal import SHARED
from warehouse.journal.rows import DrillRow
from warehouse.journal.segments import SUFFIX
from warehouse.queries.drills import has_drill_row, list_receipts, load_backlog_of_other_alerts

LOAD_WAIT_S: Final = 30.0
PAGE_START_TIMEOUT_S: Final = 60.0
HEARTBEAT_VARIABLE: Final = "LOOKOUT_HEARTBEAT_URL"
_PAGE_ARGUMENTS: Final = ("-P", "-m", "deployments.demo.drill_page", "--chance")
"""The Python arguments that start the drill page. The page runs in its own process, like an application."""


class DrillPage(BaseModel):
    """The line that the drill page prints when it starts.

    ``url`` is the address of the page. ``wrong`` is the id of the case in ``suite`` that gets the wrong answer, and
    ``right`` is the id of a case that gets a correct answer. ``fault`` describes the wrong answer.
    """

    url: str
    suite: Path
    wrong: str
    right: str
    fault: str


@dataclass
class WrongAnswer:
    """What the stations have found about the wrong answer so far. Each station adds its result."""

    process: Process | None = None
    page: DrillPage | None = None
    suite: Suite | None = None
    results: list[CaseResult] = field(default_factory=list[CaseResult])
    answered_s: float | None = None
    answered_at: datetime | None = None
    message_after_s: float | None = None
    store: Store | None = None
    alert_id: str = ""
    incident: str = ""

    @property
    def started_page(self) -> DrillPage:
        """The drill page. Raises `AssertionError` if the page was not started."""
        if self.page is None:
            raise AssertionError("internal error: the drill page was not started")
        return self.page

    @property
    def cases(self) -> Suite:
        """The cases to ask. Raises `AssertionError` if the drill page was not started."""
        if self.suite is None:
            raise AssertionError("internal error: the drill page was not started")
        return self.suite


async def start_drill_page(drill: DrillContext, answer: WrongAnswer) -> str:
    """Start the drill page with a wrong answer that is selected at random."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *_PAGE_ARGUMENTS,
        str(drill.chance),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    answer.process = process
    if process.stdout is None:
        raise AssertionError("internal error: the output was not requested")
    async with asyncio.timeout(PAGE_START_TIMEOUT_S):
        line = await process.stdout.readline()
    if not line:
        raise StationFailed(
            "the drill page did not start on this machine",
            "for the cause, run LOOKOUT_DEBUG=1 lookout drill --here",
        )
    answer.page = DrillPage.model_validate(json.loads(line))
    whole = await asyncio.to_thread(load_suite, answer.page.suite)
    chosen = {case.id: case for case in whole.cases if case.id in (answer.page.wrong, answer.page.right)}
    wrong = chosen[answer.page.wrong].with_severity(Severity.CRITICAL)
    answer.suite = whole.model_copy(update={"cases": (wrong, chosen[answer.page.right])})
    return f"planted a wrong answer: {answer.page.fault}"


async def stop_drill_page(answer: WrongAnswer) -> None:
    """Stop the process of the drill page."""
    if answer.process is not None and answer.process.returncode is None:
        answer.process.kill()
        await answer.process.wait()


async def ask_drill_page(drill: DrillContext, answer: WrongAnswer) -> str:
    """Ask the drill page with the browser that this installation uses. The answers are stored in ``answer``."""
    settings = ProbeSettings(
        attempts=1,
        concurrency=1,
        browser_path=drill.environment.get(BROWSER_VARIABLE),
        screenshots=CapturePolicy.NEVER,
    )
    answers: list[tuple[GoldCase, ProbeResult, float, datetime]] = []

    async def save(case: GoldCase, result: ProbeResult) -> None:
        answers.append((case, result, drill.monotonic(), drill.now()))

    page_url = answer.started_page.url
    async with open_driver(page_url, settings, folder=drill.folder, environment=drill.environment) as driver:
        await probe_questions(
            driver,
            [Question(case=case) for case in reversed(answer.cases.cases)],
            run_id=drill.drill_id,
            settings=settings,
            clock=drill.now,
            concurrency=1,
            on_result=save,
        )
        browser_name = format_browser(driver) or "a browser"
    for case, result, at_s, at in answers:
        if isinstance(result, NoAnswer):
            raise StationFailed(
                f"the drill page gave no answer: {result.detail}",
                "run `lookout browser install`. For details, run `lookout doctor`",
            )
        answer.results.append(CaseResult(case=case, result=result, assessment=assess_case(case, result, ())))
        if case.id == answer.started_page.wrong:
            answer.answered_s, answer.answered_at = at_s, at
    return f"{browser_name} read {len(answers)} answers"


async def check_graders(drill: DrillContext, answer: WrongAnswer) -> str:
    """Check that the graders fail the planted fault and pass the right answer."""
    del drill
    panel = build_rule_panel(GraderSettings(), load_domain(DEFAULT_DOMAINS))
    answer.results = [_grade_result(panel, result) for result in answer.results]
    for result in answer.results:
        expected = CaseOutcome.FAILED if result.case.id == answer.started_page.wrong else CaseOutcome.CORRECT
        if result.assessment.outcome is not expected:
            raise StationFailed(
                f"an answer was graded {result.assessment.outcome.value} instead of {expected.value}: "
                f"{result.assessment.reason}",
                "report this line as an internal error of Lookout",
            )
    wrong = next(result for result in answer.results if result.case.id == answer.started_page.wrong)
    return f"Lookout found the planted fault: {', '.join(wrong.assessment.failure_kinds)}"


def _grade_result(panel: Sequence[Grader], result: CaseResult) -> CaseResult:
    grades = grade_exchange(panel, result.case, result.result) if isinstance(result.result, Exchange) else ()
    return result.with_assessment(assess_case(result.case, result.result, grades))


async def check_judges_tell_right_from_wrong(drill: DrillContext, answer: WrongAnswer) -> str:
    """Check that each judge passes a known right answer and fails a known wrong answer."""
    del answer
    if drill.config.judge is None:
        raise NotSetUp("no [judge] is configured")
    name, target = next(iter(drill.config.targets.items()))
    plan = build_judge_plan(drill.config.judge, build_target_record(name, target), drill.environment)
    if plan.why_off:
        raise StationFailed(
            f"the judge is off: {plan.why_off}", "set the judge's key in the environment of `lookout up`"
        )
    outcomes = await check_judges_on_known_answers(plan, drill.environment, nonce=drill.nonce)
    bad = next((outcome for outcome in outcomes if not outcome.distinguished), None)
    if bad is not None:
        raise StationFailed(
            f"{bad.model}: {bad.detail}",
            "check the judge's key and provider. To test the judge again, run `lookout doctor`",
        )
    return f"{', '.join(outcome.model for outcome in outcomes)} passed a right answer and failed a wrong answer"


async def check_gate_fails_wrong_answer(drill: DrillContext, answer: WrongAnswer) -> str:
    """Check that the configured gate fails the wrong answer."""
    now = drill.now()
    facts = RunFacts(
        run_id=drill.drill_id,
        target=Target(name=DRILL_TARGET, url=answer.started_page.url),
        suite_name=answer.cases.name,
        suite_sha256=answer.cases.sha256,
        planned=len(answer.results),
        started_at=now,
        finished_at=now,
    )
    report = evaluate_results(facts, answer.results, drill.config.gate, suite=answer.cases.cases)
    if report.verdict is not Verdict.FAIL:
        raise StationFailed(
            f"the verdict of a severity-3 failure was {report.verdict}, not FAIL",
            "check [gate] in lookout.toml, which lets this failure pass",
        )
    return "FAIL, as expected"


async def write_and_read_drill_in_journal(drill: DrillContext, answer: WrongAnswer, report: DrillReport) -> str:
    """Check that the drill can be written to the journal and read back."""
    answer.store = await asyncio.to_thread(open_store, drill.config)
    journal_place = drill.config.warehouse.journal or "the data folder"
    try:
        segment = await asyncio.to_thread(answer.store.journal.append, (DrillRow(row=report),), run_id=None)
        await asyncio.to_thread(answer.store.journal.read, f"{SHARED}/{segment}{SUFFIX}")
    except (MonitorError, OSError) as error:
        raise StationFailed(
            f"the journal in {journal_place} cannot be written or read: {error}",
            "check warehouse.journal, its disk or its bucket",
        ) from error
    return f"written to {journal_place} and read back"


async def check_warehouse(drill: DrillContext, answer: WrongAnswer) -> str:
    """Check that the warehouse can load the drill and return it."""
    store = _require_store(answer)
    try:
        await asyncio.to_thread(store.load_pending, LOAD_WAIT_S)
        stored = await asyncio.to_thread(has_drill_row, store, drill.drill_id)
    except (MonitorError, OSError) as error:
        raise StationFailed(
            f"the warehouse cannot load the drill: {error}",
            "stop the process that uses the warehouse. If its file is damaged, run `lookout warehouse rebuild`",
        ) from error
    if not stored:
        raise StationFailed("the warehouse did not load the drill's report", "run `lookout warehouse check`")
    return "the warehouse loaded the drill's report"


async def send_and_check_drill_alert(drill: DrillContext, answer: WrongAnswer) -> str:
    """Open an incident about the wrong answer. Check that the outbox sends the message about the incident."""
    notifier = build_drill_notifier(drill, _require_store(answer))
    after_s = drill.monotonic() - (answer.answered_s or drill.monotonic())
    context = ObservationContext(
        target=DRILL_TARGET, run_id=drill.drill_id, seen_at=drill.now(), owner=Capability.DRILL
    )
    title = f"Drill, no action needed: Lookout sent this alert {after_s:.0f} s after a planted wrong answer"
    detail = format_drill_passed_message(answer.started_page.fault, judged=drill.config.judge is not None)
    observation = drill_observation(context, title=title, detail=detail, failed=False)
    alerts = await notify(notifier, [observation])
    drill_alert = next((alert for alert in alerts if alert.target == DRILL_TARGET), None)
    if drill_alert is None:
        raise StationFailed(
            "Lookout created no alert for the planted wrong answer",
            "check the silences: lookout alerts silences",
        )
    answer.alert_id, answer.incident = drill_alert.id, observation.fingerprint
    if not await asyncio.to_thread(list_receipts, notifier.store, drill_alert.id):
        waiting, oldest = await asyncio.to_thread(load_backlog_of_other_alerts, notifier.store, drill_alert.id)
        since = f", the oldest since {oldest:%Y-%m-%d %H:%M} UTC" if oldest else ""
        raise StationFailed(
            f"the message is still in the outbox, behind {plural(waiting, 'message')}{since}",
            "list the waiting messages with `lookout sql 'from unsent_alerts'`",
        )
    return "the message was stored and removed from the outbox"


def format_drill_passed_message(fault: str, *, judged: bool) -> str:
    """Format the message that explains the planted wrong answer. ``judged`` is true if a judge is configured."""
    judge = "judge, " if judged else ""
    return (
        f"Lookout planted a wrong answer on its own test page ({fault}) and tested the whole path to you: browser, "
        f"graders, {judge}gate, journal, warehouse, outbox, Slack. This is not a fault of your application. The "
        "incident closes automatically."
    )


async def check_slack_accepted_message(answer: WrongAnswer) -> str:
    """Check that Slack accepted the message in the channel for alerts."""
    receipts = await asyncio.to_thread(list_receipts, _require_store(answer), answer.alert_id)
    last = receipts[-1]
    if last.status is DeliveryStatus.PRINTED:
        raise StationFailed(
            "messages are only printed, because Slack is not configured",
            f"set {TOKEN_VARIABLE} (or {WEBHOOK_VARIABLE}) in the environment of `lookout up`",
        )
    if last.status is not DeliveryStatus.SENT:
        raise StationFailed(
            last.detail or "Slack did not accept the message", "run `lookout doctor` to test all channels"
        )
    if last.detail.startswith(REFUSED_PREFIX):
        raise StationFailed(last.detail, "fix the first channel. Another channel accepted this message")
    if answer.answered_at is not None:
        answer.message_after_s = max(0.0, (last.at - answer.answered_at).total_seconds())
    return f"accepted {answer.message_after_s or 0.0:.1f} s after the wrong answer"


async def ping_heartbeat_service(drill: DrillContext) -> str:
    """Ping the external heartbeat service.

    If the service has a separate check for drills, send a success ping. If drills and targets share a check, send
    only a start ping.
    """
    address = drill.environment.get(HEARTBEAT_VARIABLE, "")
    beat = build_heartbeat_from_environment(drill.environment, DRILL_TARGET)
    if not beat.is_configured:
        raise NotSetUp("LOOKOUT_HEARTBEAT_URL is not set, so no one is notified if this whole machine fails")
    has_own_check = TARGET_PLACEHOLDER in address
    if not await beat.ping(
        Beat.PROVED if has_own_check else Beat.STARTED, run_id=drill.drill_id, note="drill passed"
    ):
        raise StationFailed(
            "the heartbeat service did not accept the ping",
            "check the address in LOOKOUT_HEARTBEAT_URL",
        )
    return (
        "Lookout pinged the heartbeat check for drills"
        if has_own_check
        else "Lookout sent a start ping to the shared heartbeat check"
    )


def build_drill_notifier(drill: DrillContext, store: Store) -> Notifier:
    """Build the notifier of a drill. The drill owns the incidents that it opens."""
    return build_notifier(
        drill.config,
        store,
        build_alert_sender(drill.config, drill.environment),
        target=DRILL_TARGET,
        run_id=drill.drill_id,
        owner=Capability.DRILL,
    )


def _require_store(answer: WrongAnswer) -> Store:
    if answer.store is None:
        raise AssertionError("internal error: the journal station did not run")
    return answer.store
