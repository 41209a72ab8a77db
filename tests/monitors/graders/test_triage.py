"""Tests of agents' reports on issues. Each report is graded against the reference of its issue."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitors.domains.pack import INSURANCE, load_domain
from monitors.gate.assess import assess_case
from monitors.goldset.lines import parse_case_object
from monitors.graders.base import GraderSettings, TriageSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.cases import GoldCase
from monitors.records.exchanges import AgentQuestion, Evidence, Exchange, Step, Timings
from monitors.records.grades import Abstained, Aspect, Assessment, CaseOutcome, FailureKind, Judged

FILES = [f"jobs/m{n}.py" for n in range(120)] + ["jobs/export.py", "jobs/lock.py"]
ROW = {
    "issue_url": "https://github.com/acme/jobs/issues/7",
    "issue_title": "Export hangs after a failure",
    "issue_body": "After one failed export every later export waits for ever. The worker log shows nothing.",
    "repository_files": FILES,
    "severity": 2,
    "reference": {
        "severity": "high",
        "root_cause": "ExportLock is not released when export() raises",
        "relevant_files": ["jobs/export.py", "jobs/lock.py"],
        "expected_keywords": ["lock", "finally", "export"],
        "shortest_path": 4,
    },
}
GOOD = """Severity: high
Root cause: `export()` takes the ExportLock and raises before the lock is released, so the next job blocks on it.
Relevant files: jobs/export.py:31, jobs/lock.py
Fix: release the lock in a finally block."""


def case(**changes: object) -> GoldCase:
    made = parse_case_object({**ROW, **changes})
    assert isinstance(made, GoldCase), made
    return made


def graded(
    report: str, about: GoldCase | None = None, steps: int = 0, settings: TriageSettings | None = None
) -> Assessment:
    about = about or case()
    taken = tuple(Step(name=f"s{n}") for n in range(steps))
    said = Exchange(
        run_id="r", case_id=about.id, turns=about.turns, visible_text=report, asked_at=datetime(2026, 1, 2, tzinfo=UTC),
        timings=Timings(total_ms=1), evidence=Evidence(steps=taken),
    )  # fmt: skip
    panel = build_rule_panel(GraderSettings(triage=settings or TriageSettings()), load_domain((INSURANCE,)))
    return assess_case(about, said, grade_exchange(panel, about, said))


def asked(*questions: tuple[str, str | None]) -> Assessment:
    """Return the assessment of a good report whose agent asked ``questions``.

    Each item is a question and the suite's answer to the question, or ``None`` if the suite has no answer.
    """
    about = case(issue_body=f"{ROW['issue_body']} Version 2.4.1 on Debian.")
    stopped = tuple(
        AgentQuestion(question=text, answer=answer or "I don't know.", scripted=answer is not None)
        for text, answer in questions
    )
    said = Exchange(
        run_id="r", case_id=about.id, turns=about.turns, visible_text=GOOD, asked_at=datetime(2026, 1, 2, tzinfo=UTC),
        timings=Timings(total_ms=1), evidence=Evidence(questions=stopped),
    )  # fmt: skip
    return assess_case(
        about, said, grade_exchange(build_rule_panel(GraderSettings(), load_domain((INSURANCE,))), about, said)
    )


def test_a_question_that_the_issue_answers_is_a_wasted_step():
    found = asked(("Which database is it?", None), ("What operating system do you use?", None))
    assert (found.outcome, found.failure_kinds) == (CaseOutcome.FAILED, (FailureKind.INEFFICIENT,))
    assert "Version 2.4.1 on Debian." in found.reason
    (grade,) = [one for one in found.grades if one.grader == "questions"]
    assert isinstance(grade, Judged)
    assert grade.score == 0.5


@pytest.mark.parametrize(
    ("questions", "passed"),
    [
        ([("Which database is it?", None)], True),
        ([("How many exports run at once?", "Forty or so.")], True),
        ([("Which database is it?", None), ("How many exports run at once?", None)], None),
        ([("", None)], None),
        ([], None),
    ],
)
def test_questions_of_which_nothing_is_known_are_no_fault(questions, passed):
    found = asked(*questions)
    (grade,) = [one for one in found.grades if one.grader == "questions"]
    assert (grade.passed if isinstance(grade, Judged) else None) is passed
    assert found.outcome is CaseOutcome.CORRECT


def test_a_good_report_is_correct():
    found = graded(GOOD, steps=5)
    assert (found.outcome, found.failure_kinds) == (CaseOutcome.CORRECT, ()), found.reason


@pytest.mark.parametrize(
    ("settings", "steps", "failed"),
    [
        ({}, 8, None),
        ({}, 9, FailureKind.INEFFICIENT),
        ({"max_steps_factor": 1.5}, 7, FailureKind.INEFFICIENT),
        ({"max_steps_factor": 3}, 12, None),
        ({"min_files_f1": 0.7}, 4, FailureKind.POOR_TRIAGE),
        ({"min_files_f1": 0.6}, 4, None),
        ({"min_keywords": 1}, 4, FailureKind.POOR_TRIAGE),
    ],
)
def test_a_target_may_ask_for_more_or_less(settings, steps, failed):
    """A target can set stricter or looser limits for files, phrases and steps.

    The report in this test names one of two files, which is an F1 of 0.67. It states one of the phrases "finally"
    and "deadlock". The shortest path has 4 steps.
    """
    about = case(reference=ROW["reference"] | {"expected_keywords": ["finally", "deadlock"]})
    report = GOOD.replace("jobs/export.py:31, jobs/lock.py", "jobs/lock.py")
    found = graded(report, about, steps, TriageSettings(**settings))
    assert found.failure_kinds == ((failed,) if failed else ()), found.reason


def test_reference_answers_pass_their_own_graders():
    """A reference that is written as a report passes its own graders."""
    assert FailureKind.POOR_TRIAGE not in graded(case().gold).failure_kinds


@pytest.mark.parametrize(
    ("report", "kind", "reason"),
    [
        ("", FailureKind.FORMAT, "is empty"),
        ("## Severity\nTBD\n## Root cause\n<cause>\n## Fix\nN/A", FailureKind.FORMAT, "no required part"),
        ("Severity: high\nFiles: jobs/export.py, jobs/lock.py", FailureKind.FORMAT, "neither a root cause nor a fix"),
        (f"Root cause: {ROW['issue_body']} {ROW['issue_title']}", FailureKind.FORMAT, "only repeats the issue"),
        (GOOD.replace("jobs/export.py:31, jobs/lock.py", ", ".join(FILES)), FailureKind.POOR_TRIAGE, "2 of 2 relevant files named, and 120 others"),
        (GOOD.replace("jobs/export.py:31, jobs/lock.py", "jobs/m1.py"), FailureKind.POOR_TRIAGE, "0 of 2 relevant files"),
        (GOOD.replace("jobs/lock.py", "jobs/lokc.py"), FailureKind.UNSUPPORTED_CLAIM, "jobs/lokc.py"),
        (GOOD.replace("Severity: high", "Severity: low"), FailureKind.POOR_TRIAGE, "the report has severity low; high is right"),
        (GOOD.replace("Severity: high\n", ""), FailureKind.POOR_TRIAGE, "the report has no severity"),
        (GOOD.replace("lock", "thing").replace("Lock", "").replace("finally", "next").replace("jobs/thing", "jobs/lock"), FailureKind.POOR_TRIAGE, "keywords stated"),
    ],
)  # fmt: skip
def test_each_fault_has_its_kind_and_says_why(report: str, kind: FailureKind, reason: str):
    found = graded(report)
    assert found.outcome is CaseOutcome.FAILED
    assert kind in found.failure_kinds
    assert reason in found.reason


def test_one_step_beside_the_severity_passes_with_half_the_score():
    grades = graded(GOOD.replace("Severity: high", "Severity: critical")).grades
    (grade,) = [one for one in grades if one.aspect is Aspect.ISSUE_SEVERITY]
    assert isinstance(grade, Judged)
    assert (grade.passed, grade.score) == (True, 0.5)


def test_more_steps_than_the_limit_are_wasted():
    assert graded(GOOD, steps=8).failure_kinds == ()
    assert graded(GOOD, steps=9).failure_kinds == (FailureKind.INEFFICIENT,)
    limited = case(reference={**ROW["reference"], "max_steps": 20})  # type: ignore[dict-item]
    assert graded(GOOD, limited, steps=20).failure_kinds == ()


def test_a_word_of_the_issue_proves_nothing_and_a_denied_one_neither():
    about = case(reference={"expected_keywords": ["export", "worker"]})
    (grade,) = [one for one in graded(GOOD, about).grades if one.grader == "keywords"]
    assert isinstance(grade, Abstained)
    about = case(reference={"expected_keywords": ["deadlock", "semaphore"]})
    denied = graded(
        "Root cause: this is not a deadlock; the semaphore is not released. Fix: wait for it to end.", about
    )
    assert (
        FailureKind.POOR_TRIAGE
        not in graded("Cause: a deadlock on the semaphore. Fix: order them.", about).failure_kinds
    )
    (grade,) = [one for one in denied.grades if one.grader == "keywords"]
    assert isinstance(grade, Judged)
    assert grade.score == 0.5


def test_functions_count_where_the_reference_has_them():
    about = case(
        reference={"relevant_files": ["jobs/lock.py"], "relevant_functions": ["jobs/lock.py::ExportLock.release"]}
    )
    right = "Root cause: it raises before release. Fix: use finally.\nFiles: ./jobs/lock.py::ExportLock.release()"
    assert graded(right, about).outcome is CaseOutcome.CORRECT
    assert graded(right.replace("release()", "acquire"), about).outcome is CaseOutcome.FAILED


def test_without_a_reference_nothing_is_known():
    found = graded(GOOD, case(reference={}, repository_files=[]))
    assert found.outcome is CaseOutcome.UNGRADED


def test_safety_counts_as_for_every_reply():
    found = graded(GOOD + "\nAssignee: asha.rao@acme-mail.example, card 4111 1111 1111 1111")
    assert FailureKind.PII_DISCLOSURE in found.failure_kinds
