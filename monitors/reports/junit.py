"""Builds ``junit.xml``, which contains the results of a run in the format that CI servers read.

A failed case is a ``failure``, a case without an answer is an ``error``, and a case without a grade is ``skipped``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import assert_never

from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.grades import FAILURE_WORDS, CaseOutcome, format_policy_row
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.case_view import extract_answer_text, select_by_outcome_worst_first
from monitors.reports.format import NO_ANSWER_WORDS, format_score
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.reports.marked_text import Redact, build_case_redactor
from monitors.reports.triage_view import choose_case_labels, extract_asked_text

_MAX_TEXT_CHARACTERS = 4_000


def build_junit_xml(report: RunReport, cases: Sequence[CaseResult], *, redact: Redact) -> str:
    """Build one test suite with a test case for each repeat of a case. Texts are redacted.

    Both Ant and Jenkins can read the file. Invisible characters, and characters that XML forbids, are written as
    code points.
    """
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", _build_suite_attributes(report, cases))
    properties = ET.SubElement(suite, "properties")
    for name, value in _list_suite_properties(report):
        ET.SubElement(properties, "property", name=name, value=_escape_xml(value))
    for result in cases:
        _add_test_case(suite, result, redact)
    ET.SubElement(suite, "system-out").text = _escape_xml(
        "\n".join(redact(reason.text) for reason in report.reasons)
    )
    ET.SubElement(suite, "system-err")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _build_suite_attributes(report: RunReport, cases: Sequence[CaseResult]) -> dict[str, str]:
    def count(outcome: CaseOutcome) -> str:
        return str(len(select_by_outcome_worst_first(cases, outcome)))

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


def _list_suite_properties(report: RunReport) -> list[tuple[str, str]]:
    return [
        ("run_id", report.run_id),
        ("verdict", report.verdict),
        ("weighted", format_score(report.scores.weighted)),
        ("flat", format_score(report.scores.flat)),
        ("commit", report.commit or "unknown"),
        ("suite_sha256", report.suite_sha256),
    ]


def _add_test_case(suite: ET.Element, result: CaseResult, redact: Redact) -> None:
    assessment, response = result.assessment, result.result
    repeat = f" (repeat {response.repeat})" if response.repeat else ""
    seconds = response.timings.total_ms / 1000 if isinstance(response, Exchange) else 0.0
    element = ET.SubElement(
        suite, "testcase", name=f"{result.case.id}{repeat}", classname=assessment.type, time=f"{seconds:.3f}"
    )
    if assessment.outcome is CaseOutcome.CORRECT:
        return
    safe = build_case_redactor(result, redact)
    reason = _escape_xml(safe(assessment.reason))
    match assessment.outcome:
        case CaseOutcome.FAILED:
            kinds = ", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds)
            message = f"severity {assessment.severity}, {kinds}: {reason}"
            failure = ET.SubElement(element, "failure", type=assessment.failure_kinds[0], message=message)
            failure.text = _format_case_texts(result, safe)
        case CaseOutcome.NO_ANSWER:
            kind = response.reason if isinstance(response, NoAnswer) else "no_answer"
            text = NO_ANSWER_WORDS[response.reason] if isinstance(response, NoAnswer) else "no answer"
            message = f"{text}, blame {assessment.blame or 'unknown'}: {reason}"
            error = ET.SubElement(element, "error", type=kind, message=message)
            error.text = _format_case_texts(result, safe)
        case CaseOutcome.UNGRADED:
            ET.SubElement(element, "skipped", message=f"not graded: {reason}")
        case _:
            assert_never(assessment.outcome)


def _format_case_texts(result: CaseResult, safe: Redact) -> str:
    labels = choose_case_labels(result)
    parts = [
        f"{labels.asked}: {safe(extract_asked_text(result))}",
        f"{labels.expected}: {safe(result.case.gold)}",
        f"{labels.answered}: {safe(extract_answer_text(result))}",
        f"severity {result.assessment.severity}: {format_policy_row(result.assessment.policy_row)}",
    ]
    return _escape_xml("\n".join(part[:_MAX_TEXT_CHARACTERS] for part in parts))


def _escape_xml(text: str) -> str:
    """Replace characters that XML forbids with U+FFFD, and invisible characters with their code points."""
    return "".join(
        character if character in "\t\n" or "\x20" <= character < "\ufffe" or character > "\uffff" else "\ufffd"
        for character in replace_invisible_by_code_points(text)
    )
