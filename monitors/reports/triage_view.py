"""Builds the view of one report on an issue: each part beside the reference, and the agent's steps.

Texts are masked, marked and cut in the same way as answers. A missing part is shown as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from monitors.facts.source_files import FileAgreement, compute_agreement
from monitors.facts.tool_calls import map_repeated_steps_to_first
from monitors.facts.triage_report import read_report
from monitors.plural import plural
from monitors.records.exchanges import Channel, Evidence, Exchange, NoAnswer, Step, StepKind
from monitors.records.grades import (
    CRITERION_LABELS,
    FAILURE_WORDS,
    Aspect,
    Assessment,
    CaseOutcome,
    Criterion,
    Grade,
    Judged,
    UsefulnessCriterion,
)
from monitors.records.runs import CaseResult
from monitors.records.triage import IssueSeverity, TriageReference, TriageReport, TriageTask
from monitors.reports.figures import StepBox, StepLines, render_agent_step_strip
from monitors.reports.format import format_percent, format_seconds, shorten
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.reports.marked_text import Pieces, Redact, TextMarker, build_case_redactor

MAX_FILES_SHOWN: Final = 12
"""Maximum number of files that a file group shows. Further files, up to `MAX_FILES`, are folded."""
MAX_FILES: Final = 200
MAX_STEPS_SHOWN: Final = 10
_PATH_CHARACTERS: Final = 300
_STEP_CHARACTERS: Final = 200
_CAUSE_CHARACTERS: Final = 1_200
_TITLE_CHARACTERS: Final = 100
_JSON_CHARACTERS: Final = 700


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the report beside the reference.

    ``said`` is the text in the report, and ``right`` is the text in the reference. ``right`` is ``None`` if
    references do not contain this part.
    """

    name: str
    said: Pieces
    right: Pieces | None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file in the report or in the reference. ``unknown`` is true if the repository does not contain the file."""

    path: Pieces
    unknown: bool


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one kind: named correctly by the report, missing in the report, or named only by the report.

    The page shows ``shown``, then ``folded``. ``more`` is the number of all further files.
    """

    kind: str
    title: str
    shown: tuple[FileRow, ...]
    folded: tuple[FileRow, ...]
    more: int

    @property
    def total(self) -> int:
        """Return the number of files in the group."""
        return len(self.shown) + len(self.folded) + self.more


@dataclass(frozen=True, slots=True)
class CriterionView:
    """A criterion of usefulness, with the judge's reason, and the quote from the report that the judge used."""

    label: str
    met: bool
    quote: Pieces
    reason: Pieces


@dataclass(frozen=True, slots=True)
class RatingView:
    """The judge's rating from 1 to 5. If the report was not rated, ``rating`` is 0 and ``reason`` is the reason.

    If ``criteria`` is empty, ``problem`` states why.
    """

    rating: int
    text: str
    reason: Pieces
    quotes: int
    criteria: tuple[CriterionView, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of the agent. ``repeats`` is the position (from 1) of the step that this step repeats, or 0."""

    number: int
    name: Pieces
    detail: Pieces
    facts: str
    repeats: int


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question by the agent, and its answer. ``scripted`` is true if the suite contains the answer."""

    question: Pieces
    answer: Pieces
    scripted: bool


@dataclass(frozen=True, slots=True)
class PathView:
    """The agent's steps: a sentence, a graphic and a list. If the steps are unknown, there is only the sentence."""

    text: Pieces
    drawing: Markup | None
    steps: tuple[StepView, ...]
    folded: tuple[StepView, ...]
    legend: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriageView:
    """Everything that the page shows about an issue and its report."""

    title: Pieces
    address: Pieces
    body: Pieces
    report: Pieces
    parts: tuple[PartRow, ...]
    files: tuple[FileGroup, ...]
    files_text: str
    rating: RatingView
    path: PathView
    questions: tuple[QuestionView, ...]


@dataclass(frozen=True, slots=True)
class ReportRow:
    """An agent's report as one row of a table. A field is empty if its value is unknown."""

    id: str
    anchor: str
    title: str
    outcome: CaseOutcome
    result: str
    files: str
    severity: str
    rating: str
    criteria: Mapping[Criterion, str]
    steps: str
    repeats: int


def build_report_row(
    result: CaseResult, task: TriageTask, redact: Redact, *, anchor: str, counted: float | None = None
) -> ReportRow:
    """Build the table row of a report.

    ``counted`` is the rating that counts in the run's average. A rating that no judge gave is shown in brackets.
    """
    assessment, response = result.assessment, result.result
    report = read_report(response.graded_text) if isinstance(response, Exchange) else TriageReport()
    right = task.reference.severity
    grade = find_rating_grade(assessment)
    return ReportRow(
        id=result.case.id,
        anchor=anchor,
        title=shorten(
            replace_invisible_by_code_points(build_case_redactor(result, redact)(task.issue.title)),
            _TITLE_CHARACTERS,
        ),
        outcome=assessment.outcome,
        result=", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds)
        or OUTCOME_LABELS[assessment.outcome],
        files=_format_files_briefly(report, task.reference) if isinstance(response, Exchange) else "",
        severity=_format_severity_briefly(report.severity, right) if isinstance(response, Exchange) else "",
        rating=str(grade.rubric)
        if isinstance(grade, Judged) and grade.rubric
        else _format_rating_in_brackets(counted),
        criteria=_format_criteria_marks(grade, counted),
        steps=_format_steps_briefly(response.evidence, task.reference),
        repeats=len(map_repeated_steps_to_first(response.evidence.steps)),
    )


def _format_criteria_marks(grade: Grade | None, counted: float | None) -> Mapping[Criterion, str]:
    """Return ✓ or ✕ for each criterion. Signs that do not come from a judge are in brackets."""
    if isinstance(grade, Judged):
        return {criterion.name: "✓" if criterion.score else "✕" for criterion in grade.criteria}
    return {} if counted is None else dict.fromkeys(Criterion, "(✕)")


def list_criteria_answers(result: CaseResult, safe: Redact) -> Sequence[str]:
    """List the judge's answer to each criterion, with the quote and the reason. ``safe`` redacts texts."""
    grade = find_rating_grade(result.assessment)
    if not isinstance(grade, Judged):
        return ["✕ not a report"] * len(Criterion)
    return [
        f"{'✓' if criterion.score else '✕'} {describe_criterion(criterion, result.result, safe)}"
        for criterion in grade.criteria
    ] or [f"not rated: {grade.criteria_problem or 'the judge is an older version'}", "·", "·"]


def describe_criterion(criterion: UsefulnessCriterion, response: Exchange | NoAnswer, safe: Redact) -> str:
    """Describe a criterion by its redacted quote and reason: ``“Check it.”: names no file``."""
    quote = "".join(
        piece.text for piece in _build_quote_pieces(criterion, response, TextMarker(safe, (), _CAUSE_CHARACTERS))
    )
    return ": ".join(filter(None, (f"“{quote}”" if quote else "", safe(criterion.reason))))


def _build_quote_pieces(
    criterion: UsefulnessCriterion, response: Exchange | NoAnswer, marker: TextMarker
) -> Pieces:
    """Return the pieces of a quote, with personal data masked."""
    place = criterion.quote
    if place is None or not isinstance(response, Exchange):
        return ()
    return marker.build_part_pieces(response.graded_text, place.where, (), place.start, place.end)


def _format_rating_in_brackets(counted: float | None) -> str:
    return "" if counted is None else f"({counted:g})"


def _format_files_briefly(report: TriageReport, reference: TriageReference) -> str:
    agreed = compute_agreement(report.files or (), reference.relevant_files)
    if not reference.relevant_files:
        return f"{len(agreed.extra):,} named"
    extra = f", {len(agreed.extra):,} extra" if agreed.extra else ""
    return f"{len(agreed.found):,} of {len(agreed.found) + len(agreed.missed):,}{extra}"


def _format_steps_briefly(evidence: Evidence, reference: TriageReference) -> str:
    taken, shortest = evidence.hops or len(evidence.steps), reference.shortest_path
    if not taken:
        return ""
    return f"{taken:,} for {shortest:,}" if shortest else f"{taken:,}"


def _format_severity_briefly(reported: IssueSeverity | None, right: IssueSeverity | None) -> str:
    """Format a severity, such as ``high``, or ``low, is high`` if the severity in the report is wrong."""
    if right is None or reported is right:
        return reported or ""
    return f"{reported or 'none'}, is {right}"


OUTCOME_LABELS: Final = {
    CaseOutcome.CORRECT: "correct",
    CaseOutcome.FAILED: "failed",
    CaseOutcome.NO_ANSWER: "no report",
    CaseOutcome.UNGRADED: "not graded",
}


def extract_asked_text(result: CaseResult) -> str:
    """Return the question of the case or, for an issue, the title of the issue."""
    task = result.case.triage
    return task.issue.title if task is not None else result.case.question


def extract_reply_or_root_cause(result: CaseResult) -> str:
    """Return the reply of the app or, for a report, its root cause. The text is not redacted."""
    response = result.result
    text = response.graded_text if isinstance(response, Exchange) else response.partial_text
    return (read_report(text).root_cause or text) if result.case.triage is not None else text


@dataclass(frozen=True, slots=True)
class CaseLabels:
    """The words that describe a case: question and answer, or issue and report."""

    asked: str = "asked"
    answered: str = "answered"
    expected: str = "expected"
    transcripts: str = "transcripts"


ISSUE_LABELS: Final = CaseLabels("issue", "report", "reference", "reports")
_MIXED_LABELS: Final = CaseLabels("asked, or issue", "answered, or report", "expected", "transcripts and reports")


def choose_case_labels(result: CaseResult) -> CaseLabels:
    """Return the words that describe ``result``: question and answer, or issue and report."""
    return ISSUE_LABELS if result.case.triage is not None else CaseLabels()


def has_only_issues(cases: Iterable[CaseResult]) -> bool:
    """Return whether all cases are issues. In this case, metrics about answers do not apply."""
    return {case.case.triage is not None for case in cases} == {True}


def choose_labels_for_cases(cases: Iterable[CaseResult]) -> CaseLabels:
    """Return the words that describe all ``cases``. If there are both questions and issues, the words fit both."""
    kinds = {case.case.triage is not None for case in cases}
    return CaseLabels() if True not in kinds else _MIXED_LABELS if False in kinds else ISSUE_LABELS


def build_triage_view(result: CaseResult, marker: TextMarker, counted: float | None = None) -> TriageView | None:
    """Build the view of an issue and its report. Return ``None`` if the case is not an issue.

    ``counted`` is the rating of the report that counts in the run's average.
    """
    task = result.case.triage
    if task is None:
        return None
    response, grades = result.result, result.assessment.grades
    text = response.graded_text if isinstance(response, Exchange) else ""
    report = read_report(text)
    agreed = compute_agreement(report.files or (), task.reference.relevant_files)
    return TriageView(
        title=marker.build_pieces_without_evidence(task.issue.title, _PATH_CHARACTERS),
        address=marker.build_pieces_without_evidence(task.issue.url or "", _PATH_CHARACTERS),
        body=marker.build_pieces_without_evidence(task.issue.body),
        report=_build_report_pieces(text, response, grades, marker),
        parts=_build_report_comparison_rows(report, task.reference, _QuoteMarker(text, response, grades, marker)),
        files=_build_found_missed_extra_groups(agreed, task, report, marker),
        files_text=_format_file_agreement(agreed, report, task.reference),
        rating=_build_rating(result, marker, counted),
        path=build_agent_steps_view(result, task.reference, marker),
        questions=tuple(
            QuestionView(
                marker.build_pieces_without_evidence(question.question),
                marker.build_pieces_without_evidence(question.answer),
                question.scripted,
            )
            for question in response.evidence.questions
        ),
    )


def _build_report_pieces(
    text: str, response: Exchange | NoAnswer, grades: Sequence[Grade], marker: TextMarker
) -> Pieces:
    """Return the pieces of the raw report ``text``, with the evidence of ``grades``.

    A report in JSON is cut to a smaller length, because the page also shows its content as text.
    """
    if isinstance(response, NoAnswer):
        return marker.build_evidence_pieces(response.partial_text, Channel.VISIBLE, grades)
    short = TextMarker(marker.redact, marker.secrets, min(marker.limit, _JSON_CHARACTERS))
    return (short if text.lstrip().startswith("{") else marker).build_evidence_pieces(
        text, response.graded_channel, grades
    )


@dataclass(frozen=True, slots=True)
class _QuoteMarker:
    """Marks the judge's quotes in one part of an agent's report, such as its root cause."""

    text: str
    response: Exchange | NoAnswer
    grades: Sequence[Grade]
    marker: TextMarker

    def build_quoted_part(self, text: str | None) -> Pieces:
        """Return the pieces of ``text``, one part of the report.

        The judge's quotes are marked only if the graded text contains this part.
        """
        if not text:
            return ()
        start = self.text.find(text)
        where = self.response.graded_channel if isinstance(self.response, Exchange) else Channel.VISIBLE
        if start < 0:
            return self.marker.build_pieces_without_evidence(text, _CAUSE_CHARACTERS)
        rated = [grade for grade in self.grades if grade.aspect is Aspect.USEFULNESS]
        return self.marker.build_part_pieces(self.text, where, rated, start, start + len(text))


def _build_report_comparison_rows(
    report: TriageReport, reference: TriageReference, quoting: _QuoteMarker
) -> tuple[PartRow, ...]:
    plain = quoting.marker.build_pieces_without_evidence
    confidence = format_percent(report.confidence) if report.confidence is not None else ""
    mark = _compare_severity(report, reference)
    rows = (
        PartRow("severity", plain(report.severity or ""), plain(reference.severity or ""), mark),
        PartRow("root cause", quoting.build_quoted_part(report.root_cause), plain(reference.root_cause or "")),
        PartRow("recommended fix", quoting.build_quoted_part(report.recommended_fix), None),
        PartRow("confidence", plain(confidence), None),
    )
    return rows if report.confidence is not None else rows[:-1]


def _compare_severity(report: TriageReport, reference: TriageReference) -> str:
    """Compare the severity in the report with the reference. Return ``right``, ``one level off`` or ``wrong``.

    The result is empty if one of the severities is missing.
    """
    if report.severity is None or reference.severity is None:
        return ""
    order = list(IssueSeverity)
    off = abs(order.index(report.severity) - order.index(reference.severity))
    return ("right", "one level off")[off] if off <= 1 else "wrong"


def _build_found_missed_extra_groups(
    agreed: FileAgreement, task: TriageTask, report: TriageReport, marker: TextMarker
) -> tuple[FileGroup, ...]:
    repository_files = task.issue.repository_files
    made_up = (
        frozenset(compute_agreement(report.files or (), repository_files).extra)
        if repository_files
        else frozenset[str]()
    )
    groups = (
        ("found", "found", agreed.found),
        ("missed", "missed", agreed.missed),
        ("extra", "extra", agreed.extra),
    )
    if not task.reference.relevant_files:
        groups = (("named", "named", agreed.extra),)
    return tuple(_build_file_group(kind, title, paths, made_up, marker) for kind, title, paths in groups if paths)


def _build_file_group(
    kind: str, title: str, paths: Sequence[str], made_up: frozenset[str], marker: TextMarker
) -> FileGroup:
    rows = tuple(
        FileRow(marker.build_pieces_without_evidence(path, _PATH_CHARACTERS), path in made_up)
        for path in paths[:MAX_FILES]
    )
    return FileGroup(kind, title, rows[:MAX_FILES_SHOWN], rows[MAX_FILES_SHOWN:], max(0, len(paths) - MAX_FILES))


def _format_file_agreement(agreed: FileAgreement, report: TriageReport, reference: TriageReference) -> str:
    if not reference.relevant_files:
        return (
            "the reference names no file" if report.files else "neither the report nor the reference names a file"
        )
    if not report.files:
        return "the report names no file"
    return (
        f"precision {format_percent(agreed.precision)}, recall {format_percent(agreed.recall)}, F1 {agreed.f1:.2f}"
    )


def find_rating_grade(assessment: Assessment) -> Grade | None:
    """Return the judge's grade of usefulness, or the judge's abstention. Return ``None`` if no judge was asked."""
    grades = [grade for grade in assessment.grades if grade.aspect is Aspect.USEFULNESS]
    rated = [grade for grade in grades if isinstance(grade, Judged) and grade.rubric is not None]
    return rated[-1] if rated else grades[-1] if grades else None


def _build_rating(result: CaseResult, marker: TextMarker, counted: float | None) -> RatingView:
    grade = find_rating_grade(result.assessment)
    unrated = "not rated" if counted is None else f"not rated; counts as {counted:g} of 5"
    if grade is None:
        return RatingView(0, unrated, marker.build_pieces_without_evidence("the judge was not asked"), 0)
    reason = marker.build_pieces_without_evidence(grade.reason)
    if not isinstance(grade, Judged) or grade.rubric is None:
        return RatingView(0, unrated, reason, 0)
    criteria = tuple(_build_criterion(criterion, result.result, marker) for criterion in grade.criteria)
    problem = grade.criteria_problem
    return RatingView(grade.rubric, f"{grade.rubric} of 5", reason, len(grade.evidence), criteria, problem)


def _build_criterion(
    criterion: UsefulnessCriterion, response: Exchange | NoAnswer, marker: TextMarker
) -> CriterionView:
    quote = _build_quote_pieces(criterion, response, marker)
    label = CRITERION_LABELS[criterion.name]
    return CriterionView(
        label, bool(criterion.score), quote, marker.build_pieces_without_evidence(criterion.reason)
    )


def build_agent_steps_view(result: CaseResult, reference: TriageReference, marker: TextMarker) -> PathView:
    """Build the view of the steps. Each repeated step has the number of the step that it repeats."""
    evidence = result.result.evidence
    repeats = map_repeated_steps_to_first(evidence.steps)
    text = marker.build_pieces_without_evidence(
        ", ".join(_describe_agent_path(evidence, reference, result.assessment, len(repeats)))
    )
    if not evidence.steps:
        return PathView(text, None, (), (), ())
    lines = StepLines(
        *(_compute_step_place(evidence, after) for after in (reference.shortest_path, reference.max_steps))
    )
    boxes = tuple(StepBox(step.kind is StepKind.AGENT, repeats.get(at)) for at, step in enumerate(evidence.steps))
    views = tuple(_build_step_view(at, step, repeats.get(at), marker) for at, step in enumerate(evidence.steps))
    has_few_steps = len(views) <= MAX_STEPS_SHOWN + 2  # folding only two rows is not worth a click
    return PathView(
        text=text,
        drawing=render_agent_step_strip(boxes, lines),
        steps=views if has_few_steps else views[:MAX_STEPS_SHOWN],
        folded=() if has_few_steps else views[MAX_STEPS_SHOWN:],
        legend=tuple(_list_legend(boxes, lines)),
    )


def _compute_step_place(evidence: Evidence, after: int | None) -> int | None:
    """Return how many boxes of the graphic stand for the first ``after`` steps, or ``None`` if unknown.

    If the application counts hops instead of steps, ``after`` is a number of hops. A hop is a handoff to another
    agent.
    """
    if after is None or evidence.hops in {None, len(evidence.steps)}:
        return after
    agents = [at for at, step in enumerate(evidence.steps) if step.kind is StepKind.AGENT]
    if evidence.hops != len(agents) or after > len(agents):
        return None
    return agents[after] if after < len(agents) else len(evidence.steps)


def _list_legend(boxes: Sequence[StepBox], lines: StepLines) -> Iterator[str]:
    if any(box.hop for box in boxes):
        yield "hop"
    if any(not box.hop and box.repeats is None for box in boxes):
        yield "step"
    if any(box.repeats is not None for box in boxes):
        yield "again"
    if lines.shortest is not None:
        yield "shortest"
    if lines.limit is not None:
        yield "limit"


STEPS_GRADER: Final = "steps"
"""The name of the grader that grades the agent's steps. Another grader grades the agent's questions."""


def _describe_agent_path(
    evidence: Evidence, reference: TriageReference, assessment: Assessment, repeats: int
) -> Iterator[str]:
    """Yield texts about the agent's steps: the grader's verdict or, if there is none, the number of steps.

    Then yield the length of the shortest path. ``repeats`` is the number of steps that repeat an earlier step.
    """
    hops, step_count = evidence.hops, len(evidence.steps)
    if not hops and not step_count:
        yield "Lookout did not see the agent's steps"
        return
    graded = [grade for grade in assessment.grades if isinstance(grade, Judged) and grade.grader == STEPS_GRADER]
    if graded:
        yield from (grade.reason for grade in graded)
    else:
        yield from [plural(hops, "hop")] if hops else []
        yield from [plural(step_count, "step")] if step_count else []
        yield from [f"{repeats:,} of them repeat an earlier step"] if repeats else []
    yield f"shortest path {reference.shortest_path}" if reference.shortest_path else "the shortest path is unknown"
    if evidence.steps_cut:
        yield "there may be more steps: the agent's event stream ended early"


def _build_step_view(at: int, step: Step, first: int | None, marker: TextMarker) -> StepView:
    return StepView(
        number=at + 1,
        name=marker.build_pieces_without_evidence(step.name, _STEP_CHARACTERS),
        detail=marker.build_pieces_without_evidence(shorten(step.detail, _STEP_CHARACTERS)) if step.detail else (),
        facts=", ".join(_list_step_facts(step)),
        repeats=0 if first is None else first + 1,
    )


def _list_step_facts(step: Step) -> Iterator[str]:
    if step.at_ms is not None:
        yield f"at {format_seconds(step.at_ms)}"
    if step.duration_ms is not None:
        yield f"took {format_seconds(step.duration_ms)}"
    if step.tokens is not None:
        yield plural(step.tokens, "token")
