"""A run in which every field for external text contains a hostile text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from monitors.records.base import Blame, Finding
from monitors.records.exchanges import Attempt, Channel, Evidence, NoAnswerReason, Step, WirePayload
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, JudgeLineage, Span
from monitors.records.runs import Breakdown, CaseResult, ReasonKind, RunReport, VerdictReason
from monitors.records.triage import Issue, TriageReference, TriageTask
from tests.monitors.reports.example_run import report_of
from tests.monitors.reports.parts import STARTED, abstained, case_result, exchange, failed, gold_case, no_answer


def hostile_cases(rows: Sequence[str]) -> tuple[CaseResult, ...]:
    """Return four cases that contain the hostile text, for each text in ``rows``.

    They are a failure, a missing answer, an ungraded case and an agent's report on an issue.
    """
    return tuple(
        case for number, text in enumerate(rows) for case in (*_three(number, text), _report(number, text))
    )


def _report(number: int, text: str) -> CaseResult:
    """Return a case with the hostile ``text`` in the issue, its reference, the agent's report and the steps."""
    task = TriageTask(
        issue=Issue(url=text, title=text, body=text, repository_files=("a.py",)),
        reference=TriageReference(root_cause=text, relevant_files=(text, "a.py"), shortest_path=1, max_steps=2),
    )
    case = gold_case(f"r{number}", text, text, triage=task)
    fields = {"root_cause": text, "recommended_fix": text, "relevant_files": [text, f"{text}/x.py", "a.py"]}
    report = json.dumps(fields | {"severity": "high"}, ensure_ascii=False)
    steps = tuple(Step(name=text, detail=text, at_ms=1) for _ in range(15))
    where = Span(where=Channel.VISIBLE, start=len(report) // 3, end=len(report) // 2, label=text)
    rated = failed("judge", Aspect.USEFULNESS, FailureKind.POOR_TRIAGE, text, where, rubric=1)
    wasted = failed("steps", Aspect.EFFICIENCY, FailureKind.INEFFICIENT, text)
    came = exchange(case, report, evidence=Evidence(steps=steps))
    return case_result(case, came, CaseOutcome.FAILED, text, rated, wasted, policy_row=text)


def _three(number: int, text: str) -> tuple[CaseResult, CaseResult, CaseResult]:
    case = gold_case(f"h{number}", (text, text), text, alternatives=(text,), expected_citation=text)
    evidence = Evidence(screenshot=text, trace=text, console_errors=(text,))
    tries = (Attempt(started_at=STARTED, blame=Blame.APP, reason=text, detail=text),)
    where = Span(where=Channel.VISIBLE, start=0, end=len(text) // 2, label=text)
    lineage = JudgeLineage(model=text, prompt_sha256=text, rubric_version=text)
    grade = failed(
        "judge", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, text, where, lineage=lineage, version=text
    )
    came = exchange(
        case,
        text,
        earlier_answers=(text,),
        wire=WirePayload(url=text, text=text + " [sent]", citations=(text,), app_path=text),
        app_path=text,
        app_version=text,
        evidence=evidence,
        failed_attempts=tries,
    )
    wrong = case_result(case, came, CaseOutcome.FAILED, text, grade, policy_row=text)
    silent = gold_case(f"n{number}", text, text)
    nothing = no_answer(
        silent,
        NoAnswerReason.INCOMPLETE,
        Blame.APP,
        text,
        partial_text=text,
        evidence=evidence,
        failed_attempts=tries,
    )
    mute = case_result(silent, nothing, CaseOutcome.NO_ANSWER, text, policy_row=text)
    open_case = gold_case(f"u{number}", text, text)
    ungraded = case_result(
        open_case,
        exchange(open_case, text),
        CaseOutcome.UNGRADED,
        text,
        abstained("judge", Aspect.FACTUAL_MATCH, text),
        factual_match=Finding.UNGRADED,
    )
    return wrong, mute, ungraded


def hostile_report(rows: Sequence[str], cases: Sequence[CaseResult]) -> RunReport:
    """Return a run report whose reasons, breakdowns and target are also hostile."""
    reasons = tuple(
        VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=(f"h{number}",)) for number, text in enumerate(rows)
    )
    report = report_of(cases, reasons)
    keys = tuple(
        Breakdown(group="path", key=text, cases=1, correct=0, failed=1, no_answer=0, ungraded=0) for text in rows
    )
    target = report.target.model_copy(update={"url": 'http://user:pass@host/"><script>window.ran=99</script>'})
    scores = report.scores.model_copy(update={"weights_version": rows[0]})
    return report.model_copy(update={"breakdowns": keys, "target": target, "scores": scores})
