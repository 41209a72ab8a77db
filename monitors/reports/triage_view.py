"""One report on an issue as the page shows it: what it says beside what is right, and the agent's path.

Every text is masked, marked and cut as that of an answer (`monitors.reports.marked_text`). A part that a report or
a reference does not have is missing, and is shown as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from monitors.facts.source_files import FileAgreement, agreement
from monitors.facts.tool_calls import repeated_steps
from monitors.facts.triage_report import read_report
from monitors.plural import plural
from monitors.records.exchanges import Channel, Evidence, Exchange, NoAnswer, Step, StepKind
from monitors.records.grades import FAILURE_WORDS, Aspect, Assessment, CaseOutcome, Grade, Judged
from monitors.records.runs import CaseResult
from monitors.records.triage import IssueSeverity, TriageReference, TriageReport, TriageTask
from monitors.reports.figures import StepBox, StepLines, path_strip
from monitors.reports.format import percent, seconds, shortened
from monitors.reports.invisible import show_invisible
from monitors.reports.marked_text import Pieces, Redact, TextMarker, redaction_of

SHOWN_FILES: Final = 12
"""Files of one kind in sight; the next ones are folded away, up to `MOST_FILES`."""
MOST_FILES: Final = 200
SHOWN_STEPS: Final = 10
_PATH_CHARACTERS: Final = 300
_STEP_CHARACTERS: Final = 200
_CAUSE_CHARACTERS: Final = 1_200
_TITLE_CHARACTERS: Final = 100
_JSON_CHARACTERS: Final = 700


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the report beside what is right; empty pieces are a part that is not there.

    ``right`` is ``None`` for a part that no reference has.
    """

    name: str
    said: Pieces
    right: Pieces | None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of the report or the reference. ``unknown`` is true of one that the repository does not have."""

    path: Pieces
    unknown: bool


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files found, missed, or extra. ``folded`` come after ``shown``; ``more`` are only counted."""

    kind: str
    title: str
    shown: tuple[FileRow, ...]
    folded: tuple[FileRow, ...]
    more: int

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.shown) + len(self.folded) + self.more


@dataclass(frozen=True, slots=True)
class RatingView:
    """What the judge gave: 1 to 5, or why not (``rating`` is 0). ``quotes`` counts what it marked in the report."""

    rating: int
    text: str
    reason: Pieces
    quotes: int


@dataclass(frozen=True, slots=True)
class StepView:
    """One step. ``repeats`` is the number of the earlier step that it repeats, 0 for none."""

    number: int
    name: Pieces
    detail: Pieces
    facts: str
    repeats: int


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question for which the agent stopped, with its answer: from the suite (``scripted``), or by default."""

    question: Pieces
    answer: Pieces
    scripted: bool


@dataclass(frozen=True, slots=True)
class PathView:
    """The agent's path: a sentence, a drawing and each step; the sentence alone where no step was seen."""

    text: Pieces
    drawing: Markup | None
    steps: tuple[StepView, ...]
    folded: tuple[StepView, ...]
    legend: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriageView:
    """All that is shown of an issue and its report. ``glance`` is one line of it for a list."""

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
    """A report in one line of the list of all. Empty texts are not known; so is the place without ``anchor``."""

    id: str
    anchor: str
    title: str
    outcome: CaseOutcome
    result: str
    files: str
    severity: str
    rating: str
    steps: str
    repeats: int


def report_row(
    result: CaseResult, task: TriageTask, redact: Redact, *, anchor: str, counted: float | None = None
) -> ReportRow:
    """The line of one report; a rating in brackets is no judge's, but counts in the run's average."""
    found, came = result.assessment, result.result
    report = read_report(came.graded_text) if isinstance(came, Exchange) else TriageReport()
    right = task.reference.severity
    grade = rating_grade(found)
    return ReportRow(
        id=result.case.id,
        anchor=anchor,
        title=shortened(show_invisible(redaction_of(result, redact)(task.issue.title)), _TITLE_CHARACTERS),
        outcome=found.outcome,
        result=", ".join(FAILURE_WORDS[kind] for kind in found.failure_kinds) or OUTCOME_LABELS[found.outcome],
        files=_files_in_brief(report, task.reference) if isinstance(came, Exchange) else "",
        severity=_severity_in_brief(report.severity, right) if isinstance(came, Exchange) else "",
        rating=str(grade.rubric) if isinstance(grade, Judged) and grade.rubric else _in_brackets(counted),
        steps=_steps_in_brief(came.evidence, task.reference),
        repeats=len(repeated_steps(came.evidence.steps)),
    )


def _in_brackets(counted: float | None) -> str:
    return "" if counted is None else f"({counted:g})"


def _files_in_brief(report: TriageReport, reference: TriageReference) -> str:
    found = agreement(report.files or (), reference.relevant_files)
    if not reference.relevant_files:
        return f"{len(found.extra):,} named"
    extra = f", {len(found.extra):,} extra" if found.extra else ""
    return f"{len(found.found):,} of {len(found.found) + len(found.missed):,}{extra}"


def _steps_in_brief(evidence: Evidence, reference: TriageReference) -> str:
    taken, shortest = evidence.hops or len(evidence.steps), reference.shortest_path
    if not taken:
        return ""
    return f"{taken:,} for {shortest:,}" if shortest else f"{taken:,}"


def _severity_in_brief(said: IssueSeverity | None, right: IssueSeverity | None) -> str:
    """``high``; ``low, is high`` where it is not right."""
    if right is None or said is right:
        return said or ""
    return f"{said or 'none'}, is {right}"


OUTCOME_LABELS: Final = {
    CaseOutcome.CORRECT: "correct",
    CaseOutcome.FAILED: "failed",
    CaseOutcome.NO_ANSWER: "no report",
    CaseOutcome.UNGRADED: "could not tell",
}


def asked_text(result: CaseResult) -> str:
    """What a list shows of a question: an issue's title, since its address says nothing to a reader."""
    task = result.case.triage
    return task.issue.title if task is not None else result.case.question


def replied_text(result: CaseResult) -> str:
    """What a list shows of a reply: the root cause that a report gives, else all of it; raw."""
    came = result.result
    text = came.graded_text if isinstance(came, Exchange) else came.partial_text
    return (read_report(text).root_cause or text) if result.case.triage is not None else text


@dataclass(frozen=True, slots=True)
class CaseLabels:
    """What cases are called: questions with answers, or issues with reports."""

    asked: str = "asked"
    answered: str = "answered"
    expected: str = "expected"
    transcripts: str = "transcripts"


ISSUE_LABELS: Final = CaseLabels("issue", "report", "reference", "reports")
_MIXED_LABELS: Final = CaseLabels("asked, or issue", "answered, or report", "expected", "transcripts and reports")


def labels_of(result: CaseResult) -> CaseLabels:
    """The words for one case."""
    return ISSUE_LABELS if result.case.triage is not None else CaseLabels()


def only_issues(cases: Iterable[CaseResult]) -> bool:
    """Whether a run asked no question at all: what is measured of answers alone has nothing to say then."""
    return {one.case.triage is not None for one in cases} == {True}


def case_labels(cases: Iterable[CaseResult]) -> CaseLabels:
    """The words for a list of cases; both where a suite has both."""
    kinds = {one.case.triage is not None for one in cases}
    return CaseLabels() if True not in kinds else _MIXED_LABELS if False in kinds else ISSUE_LABELS


def triage_view(result: CaseResult, marker: TextMarker, counted: float | None = None) -> TriageView | None:
    """The view; ``None`` for a case that is no issue. ``counted`` is its rating in the run's average."""
    task = result.case.triage
    if task is None:
        return None
    came, grades = result.result, result.assessment.grades
    text = came.graded_text if isinstance(came, Exchange) else ""
    report = read_report(text)
    found = agreement(report.files or (), task.reference.relevant_files)
    return TriageView(
        title=marker.plain(task.issue.title, _PATH_CHARACTERS),
        address=marker.plain(task.issue.url or "", _PATH_CHARACTERS),
        body=marker.plain(task.issue.body),
        report=_whole(text, came, grades, marker),
        parts=_parts(report, task.reference, _Quoting(text, came, grades, marker)),
        files=_files(found, task, report, marker),
        files_text=_files_text(found, report, task.reference),
        rating=_rating(result.assessment, marker, counted),
        path=path_view(result, task.reference, marker),
        questions=tuple(
            QuestionView(marker.plain(one.question), marker.plain(one.answer), one.scripted)
            for one in came.evidence.questions
        ),
    )


def _whole(text: str, came: Exchange | NoAnswer, grades: Sequence[Grade], marker: TextMarker) -> Pieces:
    """The report as it came. Of JSON a part is enough: what it says stands below in words."""
    if isinstance(came, NoAnswer):
        return marker.marked(came.partial_text, Channel.VISIBLE, grades)
    short = TextMarker(marker.redact, marker.secrets, min(marker.limit, _JSON_CHARACTERS))
    return (short if text.lstrip().startswith("{") else marker).marked(text, came.graded_channel, grades)


@dataclass(frozen=True, slots=True)
class _Quoting:
    """Shows a part of the graded text with the judge's quotes that stand in it."""

    text: str
    came: Exchange | NoAnswer
    grades: Sequence[Grade]
    marker: TextMarker

    def part(self, said: str | None) -> Pieces:
        """The part; a quote is marked where the part stands in the text letter by letter."""
        if not said:
            return ()
        start = self.text.find(said)
        where = self.came.graded_channel if isinstance(self.came, Exchange) else Channel.VISIBLE
        if start < 0:
            return self.marker.plain(said, _CAUSE_CHARACTERS)
        rated = [grade for grade in self.grades if grade.aspect is Aspect.USEFULNESS]
        return self.marker.marked_part(self.text, where, rated, start, start + len(said))


def _parts(report: TriageReport, reference: TriageReference, quoting: _Quoting) -> tuple[PartRow, ...]:
    plain = quoting.marker.plain
    sure = percent(report.confidence) if report.confidence is not None else ""
    mark = _severity_mark(report, reference)
    rows = (
        PartRow("severity", plain(report.severity or ""), plain(reference.severity or ""), mark),
        PartRow("root cause", quoting.part(report.root_cause), plain(reference.root_cause or "")),
        PartRow("recommended fix", quoting.part(report.recommended_fix), None),
        PartRow("confidence", plain(sure), None),
    )
    return rows if report.confidence is not None else rows[:-1]


def _severity_mark(report: TriageReport, reference: TriageReference) -> str:
    """``right``, ``one step beside``, ``wrong``; empty where one of them is not known."""
    if report.severity is None or reference.severity is None:
        return ""
    order = list(IssueSeverity)
    off = abs(order.index(report.severity) - order.index(reference.severity))
    return ("right", "one step beside")[off] if off <= 1 else "wrong"


def _files(
    found: FileAgreement, task: TriageTask, report: TriageReport, marker: TextMarker
) -> tuple[FileGroup, ...]:
    known = task.issue.repository_files
    made_up = frozenset(agreement(report.files or (), known).extra) if known else frozenset[str]()
    groups = (
        ("found", "found", found.found),
        ("missed", "missed", found.missed),
        ("extra", "extra", found.extra),
    )
    if not task.reference.relevant_files:
        groups = (("named", "named", found.extra),)
    return tuple(_file_group(kind, title, paths, made_up, marker) for kind, title, paths in groups if paths)


def _file_group(
    kind: str, title: str, paths: Sequence[str], made_up: frozenset[str], marker: TextMarker
) -> FileGroup:
    rows = tuple(FileRow(marker.plain(path, _PATH_CHARACTERS), path in made_up) for path in paths[:MOST_FILES])
    return FileGroup(kind, title, rows[:SHOWN_FILES], rows[SHOWN_FILES:], max(0, len(paths) - MOST_FILES))


def _files_text(found: FileAgreement, report: TriageReport, reference: TriageReference) -> str:
    if not reference.relevant_files:
        return "the reference names none" if report.files else "neither the report nor the reference names one"
    if not report.files:
        return "the report names none"
    return f"precision {percent(found.precision)}, recall {percent(found.recall)}, F1 {found.f1:.2f}"


def rating_grade(assessment: Assessment) -> Grade | None:
    """The judge's grade of usefulness, or its abstention; ``None`` where no judge was asked."""
    given = [grade for grade in assessment.grades if grade.aspect is Aspect.USEFULNESS]
    rated = [grade for grade in given if isinstance(grade, Judged) and grade.rubric is not None]
    return rated[-1] if rated else given[-1] if given else None


def _rating(assessment: Assessment, marker: TextMarker, counted: float | None) -> RatingView:
    grade = rating_grade(assessment)
    unrated = "not rated" if counted is None else f"not rated, counts as {counted:g} of 5"
    if grade is None:
        return RatingView(0, unrated, marker.plain("no judge was asked"), 0)
    reason = marker.plain(grade.reason)
    if not isinstance(grade, Judged) or grade.rubric is None:
        return RatingView(0, unrated, reason, 0)
    return RatingView(grade.rubric, f"{grade.rubric} of 5", reason, len(grade.evidence))


def path_view(result: CaseResult, reference: TriageReference, marker: TextMarker) -> PathView:
    """The steps that were seen, each repeat with the step that it repeats."""
    evidence = result.result.evidence
    again = repeated_steps(evidence.steps)
    text = marker.plain(", ".join(_path_facts(evidence, reference, result.assessment, len(again))))
    if not evidence.steps:
        return PathView(text, None, (), (), ())
    lines = StepLines(*(_place(evidence, after) for after in (reference.shortest_path, reference.max_steps)))
    boxes = tuple(StepBox(step.kind is StepKind.AGENT, again.get(at)) for at, step in enumerate(evidence.steps))
    views = tuple(_step(at, step, again.get(at), marker) for at, step in enumerate(evidence.steps))
    few = len(views) <= SHOWN_STEPS + 2  # nobody unfolds two
    return PathView(
        text=text,
        drawing=path_strip(boxes, lines),
        steps=views if few else views[:SHOWN_STEPS],
        folded=() if few else views[SHOWN_STEPS:],
        legend=tuple(_legend(boxes, lines)),
    )


def _place(evidence: Evidence, after: int | None) -> int | None:
    """Behind how many boxes so many steps end, or hops where those are counted; ``None`` where that is unknown."""
    if after is None or evidence.hops in {None, len(evidence.steps)}:
        return after
    agents = [at for at, step in enumerate(evidence.steps) if step.kind is StepKind.AGENT]
    if evidence.hops != len(agents) or after > len(agents):
        return None
    return agents[after] if after < len(agents) else len(evidence.steps)


def _legend(boxes: Sequence[StepBox], lines: StepLines) -> Iterator[str]:
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
"""The grader of the path; what the agent asked has another."""


def _path_facts(
    evidence: Evidence, reference: TriageReference, assessment: Assessment, again: int
) -> Iterator[str]:
    """What the grader says of the steps, or where it had no limit to go by, how many there were."""
    hops, seen = evidence.hops, len(evidence.steps)
    if not hops and not seen:
        yield "the agent's steps were not seen"
        return
    graded = [one for one in assessment.grades if isinstance(one, Judged) and one.grader == STEPS_GRADER]
    if graded:
        yield from (grade.reason for grade in graded)
    else:
        yield from [plural(hops, "hop")] if hops else []
        yield from [plural(seen, "step")] if seen else []
        yield from [f"{again:,} of them repeat an earlier one"] if again else []
    yield f"shortest path {reference.shortest_path}" if reference.shortest_path else "no shortest path is known"
    if evidence.steps_cut:
        yield "more steps may follow: the agent's events broke off"


def _step(at: int, step: Step, first: int | None, marker: TextMarker) -> StepView:
    return StepView(
        number=at + 1,
        name=marker.plain(step.name, _STEP_CHARACTERS),
        detail=marker.plain(shortened(step.detail, _STEP_CHARACTERS)) if step.detail else (),
        facts=", ".join(_step_facts(step)),
        repeats=0 if first is None else first + 1,
    )


def _step_facts(step: Step) -> Iterator[str]:
    if step.at_ms is not None:
        yield f"at {seconds(step.at_ms)}"
    if step.duration_ms is not None:
        yield f"took {seconds(step.duration_ms)}"
    if step.tokens is not None:
        yield plural(step.tokens, "token")
