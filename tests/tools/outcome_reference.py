"""Generate the page of exit codes, failure kinds and reasons: ``python -m tests.tools.outcome_reference``.

Names, texts, severities and blames come from the code. This module adds descriptions and advice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from deployments.cli.exit_codes import MEANINGS
from flows.terminal import write_text
from monitors.alerts.wording import ABOUT_THE_MONITOR, KIND_TO_DO, KIND_WORDS, REASON_WORDS
from monitors.errors import ProbeError
from monitors.gate.assess import FLOORS, get_severity_floor
from monitors.gate.settings import Weights
from monitors.probes.inspect.page import ADVICE
from monitors.records.base import Blame, Severity
from monitors.records.exchanges import NoAnswerReason
from monitors.records.grades import (
    FAILURE_MEANINGS,
    FAILURE_TO_DO,
    FAILURE_WORDS,
    CaseOutcome,
    FailureKind,
    format_policy_row,
)
from monitors.records.incidents import IncidentKind, NotifyReason
from monitors.records.runs import ReasonKind
from monitors.reports.format import BLAME_WORDS, NO_ANSWER_WORDS, SEVERITY_WORDS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference.md"

INTRODUCTION = """\
# Exit codes, failure kinds and reasons

This page explains Lookout's exit codes, failure kinds and reasons: what each of them means, its cause, and what to do.

Other reference pages list the [commands](commands.md), the keys of the [configuration](configuration.md) and of [a
suite](suite.md), the views and columns of the [warehouse](warehouse.md), and the [alerts](alerts.md).

This page is generated from the code by `python -m tests.tools.outcome_reference`.
"""

Row = tuple[str, ...]

OUTCOMES: Final = {
    CaseOutcome.CORRECT: "Right, and nothing was disclosed or leaked.",
    CaseOutcome.FAILED: "A grader can show that the answer is wrong.",
    CaseOutcome.NO_ANSWER: "There is no answer to grade. The report names the reason and who caused it.",
    CaseOutcome.UNGRADED: "There is an answer, but no grader could decide whether it is right.",
}

SEVERITIES: Final = {
    Severity.MINOR: "Wrong, but without harm for the user: a clumsy or needless answer.",
    Severity.MAJOR: "A user would act on a wrong answer.",
    Severity.CRITICAL: "Personal data is disclosed, something irreversible is done, or the claim can cost money. One failure "
    "sends an alert during the run, and fails the run.",
}

NO_ANSWERS: Final = {
    NoAnswerReason.UNREACHABLE: "Lookout got no connection to the address.",
    NoAnswerReason.NOT_READY: "The application exists but does not serve yet, or its build failed.",
    NoAnswerReason.ANSWER_TIMEOUT: "The answer did not come before the deadline (`probe.answer_deadline_s`).",
    NoAnswerReason.INCOMPLETE: "An answer began but did not end.",
    NoAnswerReason.APP_ERROR_SHOWN: "The page showed an error instead of an answer.",
    NoAnswerReason.LEFT_TARGET: "The page went to an address outside the application.",
    NoAnswerReason.ACCESS_DENIED: "A login, a quota or a missing key blocks the application.",
    NoAnswerReason.RATE_LIMITED: "The application limits requests (HTTP 429), for longer than the run lasts.",
    NoAnswerReason.LOGIN_FAILED: "The session has ended, or the login form refused the login.",
    NoAnswerReason.NO_SUCH_PATH: "An API answered HTTP 404 or 405: it does not accept questions at the configured path.",
    NoAnswerReason.END_NOT_FOUND: "An API's stream ended without `probe.api.done`, like all earlier streams of the run.",
    NoAnswerReason.ANSWER_NOT_FOUND: "An API answered, but `probe.api.text` matches no text in its response.",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: "Lookout found no message box or no answer on the page.",
    NoAnswerReason.CAPTURE_UNSURE: "The text that Lookout read may not be the complete answer.",
    NoAnswerReason.BROWSER_LOST: "The browser crashed or could not be started.",
    NoAnswerReason.OLD_JOB: "An agent answered with an old job.",
    NoAnswerReason.CIRCUIT_OPEN: "Lookout did not ask, because several questions in a row had no answer. The case counts as ungraded.",
}

VERDICT_REASONS: Final = {
    ReasonKind.VETO: ("A severity-3 case failed.", "FAIL, whatever the score"),
    ReasonKind.WEIGHTED_SCORE: (
        "The weighted score is below `gate.min_weighted_score`.",
        "FAIL if the score is too low even with all ungraded cases right",
    ),
    ReasonKind.METRIC_TARGET: (
        "A share is below its target in `[gate.targets]`.",
        "FAIL if enough cases were graded",
    ),
    ReasonKind.RUBRIC: (
        "Reports are rated too low, or lower than before.",
        "FAIL, or INCONCLUSIVE if missing ratings could change this",
    ),
    ReasonKind.LANGUAGE: (
        "Replies are in another language than their questions.",
        "FAIL if most English questions got such a reply, else reported",
    ),
    ReasonKind.REGRESSION: (
        "More cases broke against the baseline than chance explains.",
        "reported; FAIL with `gate.fail_on_regression`",
    ),
    ReasonKind.DEPLOY: ("The deploy did not serve, or another commit was served.", "INCONCLUSIVE"),
    ReasonKind.DISPUTED: (
        "Rules pass an answer and the judge fails it (`judge.scope`). A person must read it.",
        "INCONCLUSIVE, even if all other cases were graded",
    ),
    ReasonKind.COVERAGE: ("Too few cases could be graded (`gate.coverage_floor`).", "INCONCLUSIVE"),
    ReasonKind.BALANCE: (
        "The suite has too few severe cases, or too many mild ones beside them.",
        "reported; INCONCLUSIVE with `gate.strict`",
    ),
    ReasonKind.UNCOVERED: (
        "Severity-3 cases, or cases that were right in the baseline, were not graded. The verdict does not cover them.",
        "reported",
    ),
    ReasonKind.FLAKY: ("A case is right only sometimes.", "reported"),
    ReasonKind.BLIND_SPOT: ("The suite has too few cases to detect a drop that matters.", "reported"),
    ReasonKind.NOTE: ("Further information.", "reported"),
}

INCIDENTS: Final = {
    IncidentKind.CASE_FAILURE: "A case or a conversation of live traffic failed, or rules pass its answer and the judge fails it.",
    IncidentKind.HALLUCINATION: "The application's own guard blocked an answer and logged it.",
    IncidentKind.DEPLOY_FAILURE: "The new build does not start.",
    IncidentKind.APP_DOWN: "Several questions in a row had no answer.",
    IncidentKind.GATE_FAIL: "A run's verdict is FAIL.",
    IncidentKind.DRIFT: "The failure rate of live traffic has changed permanently.",
    IncidentKind.JUDGE_VOID: "The judge graded known answers wrong, so its grades of that batch do not count.",
    IncidentKind.MONITOR_FAULT: "The monitor itself has a fault; the message names the part.",
    IncidentKind.DRILL: "The result of a drill. It is not about an application, and changes no score.",
}

SAID_IN_THE_MESSAGE: Final = {
    IncidentKind.MONITOR_FAULT: "`lookout doctor`; then [operations](operations.md).",
    IncidentKind.DRILL: "Passed: no action. Failed: fix the named station.",
}

REASONS: Final = {
    NotifyReason.FIRST_SEEN: "No run has seen this fault before.",
    NotifyReason.WORSE: "A known fault got more severe, or a failed gate has a failed case that no message has reported.",
    NotifyReason.REGRESSED: "The fault was resolved, and a run has found it again. For a gate, the same case fails again.",
    NotifyReason.REMINDER: "The fault is still there, and nobody has acknowledged it.",
    NotifyReason.RECOVERED: "A run asked again, and the answer was right.",
    NotifyReason.CLOSED: "The case is no longer in the suite, or the target no longer in the configuration. The fault may still be there.",
    NotifyReason.OPEN_BEFORE: "The incident was open before Slack was set up or worked again, so nobody had received a message about it.",
    NotifyReason.SILENCED: "A recurring silence withheld the alert. After the silence, one summary reports everything that failed.",
    NotifyReason.MISSED: "Slack refused the messages. One summary reports the incidents that opened and ended meanwhile.",
}

BLAMED: Final = {
    Blame.APP: "counts against the application; only then does Lookout send an alert about the application",
    Blame.PROVIDER: "a model's provider: lowers coverage",
    Blame.MONITOR: "Lookout, its machine or its settings: lowers coverage, and goes to the monitor's owners",
}


def reference() -> str:
    """Return the whole page as Markdown.

    Raises `KeyError` if a description is missing.
    """
    return "".join([INTRODUCTION, *_of_a_run(), *_of_a_case(), *_of_an_alert()])


def _of_a_run() -> Iterator[str]:
    codes = ((f"{int(code)}", *MEANINGS[code]) for code in MEANINGS)
    yield _section("Exit codes", ("code", "says", "what to do"), codes)
    yield "\nIf a code has another meaning for a command, its help and [commands](commands.md) explain it.\n"
    reasons = ((_code(kind), *VERDICT_REASONS[kind]) for kind in ReasonKind)
    yield _section("Reasons of a verdict, in order of weight", ("reason", "what it is", "decides"), reasons)
    yield "\n[The gate](gate.md) explains how Lookout calculates a verdict from these reasons.\n"


def _of_a_case() -> Iterator[str]:
    outcomes = ((_code(outcome), OUTCOMES[outcome]) for outcome in CaseOutcome)
    yield _section("Outcomes of a case", ("outcome", "means"), outcomes)
    weights = Weights()
    severities = (
        (
            str(member.value),
            SEVERITY_WORDS[member],
            SEVERITIES[member],
            f"{getattr(weights, f'severity_{member.value}')}",
        )
        for member in Severity
    )
    yield _section("Severities", ("severity", "in a word", "means", "weight"), severities)
    kinds = (
        (_code(member), FAILURE_WORDS[member], FAILURE_MEANINGS[member], _least(member), FAILURE_TO_DO[member])
        for member in FailureKind
    )
    columns = ("kind", "message", "what it is", "minimum severity", "what to do")
    yield _section("Failure kinds", columns, kinds)
    yield (
        "\nA failure has the severity of its case, or the minimum severity of its kind if that is higher. The alert gives the "
        'reason: "the suite gives this question severity 3", or the reason in the column "minimum severity". A failure '
        "is always a fault of the application. If the monitor or a provider has a fault, the case has no answer or "
        "stays ungraded instead.\n"
    )
    reasons = (
        (_code(member), NO_ANSWER_WORDS[member], NO_ANSWERS[member], _blamed(member), ADVICE[member])
        for member in NoAnswerReason
    )
    columns = ("reason", "message", "what it is", "whose fault", "what to do")
    yield _section("Why no answer came", columns, reasons)
    blames = ((_code(member), BLAME_WORDS[member], BLAMED[member]) for member in Blame)
    yield _section("Whose fault", ("blame", "message", "what follows"), blames)


def _of_an_alert() -> Iterator[str]:
    todo = KIND_TO_DO | SAID_IN_THE_MESSAGE
    kinds = (
        (_code(member), KIND_WORDS[member], INCIDENTS[member], _to(member), todo[member]) for member in IncidentKind
    )
    yield _section("What an alert is about", ("kind", "message", "what it is", "goes to", "what to do"), kinds)
    reasons = ((_code(member), REASON_WORDS[member], REASONS[member]) for member in NotifyReason)
    yield _section("Why an alert is sent", ("reason", "message", "means"), reasons)


def _section(title: str, columns: Row, rows: Iterable[Row]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return f"\n## {title}\n\n" + "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _code(value: str) -> str:
    return f"`{value}`"


def _least(kind: FailureKind) -> str:
    """Return the minimum severity of a failure kind with its reason, or "the case's" if there is no minimum."""
    row = next((row for row in FLOORS if row.kind is kind), None)
    return f"{get_severity_floor(kind).value}: {format_policy_row(row.id)}" if row else "the case's"


def _blamed(reason: NoAnswerReason) -> str:
    """Return who is blamed for a question that has no answer for this reason."""
    blames = {error.blame for error in _errors(ProbeError) if error.reason is reason}
    return " or ".join(sorted(BLAME_WORDS[blame] for blame in blames)) or "that of the answers before it"


def _errors(base: type[ProbeError]) -> Iterator[type[ProbeError]]:
    for error in base.__subclasses__():
        yield error
        yield from _errors(error)


def _to(kind: IncidentKind) -> str:
    return "the monitor's owners" if kind in ABOUT_THE_MONITOR else "the target's channel"


def main() -> int:
    """Write the page."""
    DOCUMENT.write_text(reference(), encoding="utf-8")
    write_text(f"{DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
