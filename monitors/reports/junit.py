"""``junit.xml``: a run as every CI server reads one.

Failed is ``failure``, no answer is ``error``, ungraded is ``skipped``: the three stay apart.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import assert_never

from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.grades import FAILURE_WORDS, CaseOutcome, format_policy_row
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.case_view import answer_text, with_outcome
from monitors.reports.format import NO_ANSWER_WORDS, score
from monitors.reports.invisible import show_invisible
from monitors.reports.marked_text import Redact, redaction_of
from monitors.reports.triage_view import asked_text, labels_of

_MOST_TEXT = 4_000


def junit_xml(report: RunReport, cases: Sequence[CaseResult], *, redact: Redact) -> str:
    """One suite with one test case per case and repeat, in the order they came; texts are redacted.

    Valid against the two schemas in use (Ant's, and Jenkins' xUnit plugin): ``package`` and ``id`` are there
    because Ant's asks for them. Characters that XML 1.0 forbids, and invisible ones, are written as code points.
    """
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", _suite_attributes(report, cases))
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", name=name, value=_safe(value))
    for result in cases:
        _add_case(suite, result, redact)
    ET.SubElement(suite, "system-out").text = _safe("\n".join(redact(reason.text) for reason in report.reasons))
    ET.SubElement(suite, "system-err")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite_attributes(report: RunReport, cases: Sequence[CaseResult]) -> dict[str, str]:
    def count(outcome: CaseOutcome) -> str:
        return str(len(with_outcome(cases, outcome)))

    return {
        "name": report.suite_name,
        "package": report.target.name,
        "id": "0",
        "timestamp": f"{report.started_at:%Y-%m-%dT%H:%M:%S}",
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": count(CaseOutcome.FAILED),
        "errors": count(CaseOutcome.NO_ANSWER),
        "skipped": count(CaseOutcome.UNGRADED),
        "time": f"{max(0.0, (report.finished_at - report.started_at).total_seconds()):.3f}",
    }


def _properties(report: RunReport) -> list[tuple[str, str]]:
    return [
        ("run_id", report.run_id),
        ("verdict", report.verdict),
        ("weighted", score(report.scores.weighted)),
        ("flat", score(report.scores.flat)),
        ("commit", report.commit or "unknown"),
        ("suite_sha256", report.suite_sha256),
    ]


def _add_case(suite: ET.Element, result: CaseResult, redact: Redact) -> None:
    found, came = result.assessment, result.result
    repeat = f" (repeat {came.repeat})" if came.repeat else ""
    seconds = came.timings.total_ms / 1000 if isinstance(came, Exchange) else 0.0
    element = ET.SubElement(
        suite, "testcase", name=f"{result.case.id}{repeat}", classname=found.type, time=f"{seconds:.3f}"
    )
    if found.outcome is CaseOutcome.CORRECT:
        return
    safe = redaction_of(result, redact)
    reason = _safe(safe(found.reason))
    match found.outcome:
        case CaseOutcome.FAILED:
            kinds = ", ".join(FAILURE_WORDS[kind] for kind in found.failure_kinds)
            message = f"severity {found.severity}, {kinds}: {reason}"
            failure = ET.SubElement(element, "failure", type=found.failure_kinds[0], message=message)
            failure.text = _body(result, safe)
        case CaseOutcome.NO_ANSWER:
            kind = came.reason if isinstance(came, NoAnswer) else "no_answer"
            text = NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "no answer"
            message = f"{text}, blame {found.blame or 'unknown'}: {reason}"
            error = ET.SubElement(element, "error", type=kind, message=message)
            error.text = _body(result, safe)
        case CaseOutcome.UNGRADED:
            ET.SubElement(element, "skipped", message=f"could not tell: {reason}")
        case _:
            assert_never(found.outcome)


def _body(result: CaseResult, safe: Redact) -> str:
    labels = labels_of(result)
    parts = [
        f"{labels.asked}: {safe(asked_text(result))}",
        f"{labels.expected}: {safe(result.case.gold)}",
        f"{labels.answered}: {safe(answer_text(result))}",
        f"severity {result.assessment.severity}: {format_policy_row(result.assessment.policy_row)}",
    ]
    return _safe("\n".join(part[:_MOST_TEXT] for part in parts))


def _safe(text: str) -> str:
    """Control characters are among the invisible ones; what XML forbids beyond them is made visible as well."""
    return "".join(
        character if character in "\t\n" or "\x20" <= character < "\ufffe" or character > "\uffff" else "\ufffd"
        for character in show_invisible(text)
    )
