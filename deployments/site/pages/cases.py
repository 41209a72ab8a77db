"""The page Cases × runs, which shows the results of all cases in the newest runs, and the page of one case."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRequest, Paging, build_not_found_error
from deployments.site.pages.runs import OUTCOMES
from monitors.plural import plural
from monitors.records.base import Record
from monitors.reports.charts import StripCell
from monitors.reports.format import format_moment
from warehouse.queries.site.cases import (
    CaseAnswer,
    CaseCourse,
    CaseText,
    GridFilter,
    GridRow,
    GridRun,
    find_target_of_newest_run,
    list_grid_runs,
    load_case_answers_page,
    load_case_text,
    load_grid_filter_values,
    load_grid_page,
)
from warehouse.queries.site.overview import list_known_targets
from warehouse.queries.site.runs import list_suites

MAX_RUNS: Final = 20
DEFAULT_ANSWERS: Final = 12
OUTCOME_LABELS: Final = {
    "correct": "correct",
    "failed": "failed",
    "no_answer": "no answer",
    "ungraded": "not graded",
    "missing": "not asked",
}
COURSE_LABELS: Final = {
    CaseCourse.BROKE: ("Broke", "Correct before the marked run, and wrong since then"),
    CaseCourse.FAILING: ("Failing", "Wrong in every shown run that graded it"),
    CaseCourse.UNSTEADY: ("Unsteady", "Flipped more than once, each time with another deploy or suite"),
    CaseCourse.FIXED: ("Fixed", "Wrong before the marked run, and right since then"),
    CaseCourse.FLAKY: ("Flaky", "Flipped more than once with the same suite and commit, or within one run"),
    CaseCourse.UNGRADED: ("Not graded", "Not graded in any shown run"),
    CaseCourse.RIGHT: ("Right", "Right in every shown run that graded it"),
}


class CasesData(Record):
    """The data of a page of cases: their results in the newest ``runs`` of a target.

    ``courses`` contains the number of cases for each `CaseCourse`, which describes how the results of a case
    changed.
    """

    target: str | None
    runs: tuple[GridRun, ...]
    cases: tuple[GridRow, ...]
    courses: dict[str, int]
    paging: Paging


class ShownAnswer(Record):
    """One answer to a case, with masked personal data.

    ``as_before`` is true if the previous run received the same text.
    """

    row: CaseAnswer
    as_before: bool | None


class CaseData(Record):
    """A case and one page of its answers, newest first."""

    case_id: str
    target: str
    case: CaseText | None
    answers: tuple[ShownAnswer, ...]
    paging: Paging


def build_cases_page(request: PageRequest) -> Page:
    """Build the page with a row for each case and a cell for each of the newest runs."""
    paging, target = request.read_paging(), read_or_choose_target_filter(request)
    grid_filter = _read_grid_filter(request, target or "")
    runs = list_grid_runs(request.site.store, grid_filter) if target else ()
    rows, courses = (
        load_grid_page(request.site.store, grid_filter, rows=paging.rows, offset=paging.offset)
        if runs
        else ((), {})
    )
    total = courses.get(grid_filter.course, 0) if grid_filter.course else sum(courses.values())
    data = CasesData(target=target, runs=runs, cases=rows, courses=courses, paging=paging.with_total(total))
    return Page("cases.html.j2", "Cases × runs", data, view=CaseStrips(runs))


def read_or_choose_target_filter(request: PageRequest) -> str | None:
    """Return the requested target. If no target is requested, return the target of the newest run."""
    store = request.site.store
    requested = request.read_and_show_choice_filter(
        "target", "Target", list_known_targets(store, request.site.targets)
    )
    target = requested or find_target_of_newest_run(store)
    request.fields[-1] = request.fields[-1].with_value(target)
    return target


def _read_grid_filter(request: PageRequest, target: str) -> GridFilter:
    store = request.site.store
    suite = request.read_and_show_choice_filter("suite", "Suite", list_suites(store))
    options = load_grid_filter_values(store, GridFilter(target=target, suite=suite, runs=MAX_RUNS))
    severity = request.read_and_show_choice_filter("severity", "Severity", ("3", "2", "1"))
    return GridFilter(
        target=target,
        suite=suite,
        severity=int(severity) if severity else None,
        type=request.read_and_show_choice_filter("type", "Type", options.types),
        language=request.read_and_show_choice_filter("language", "Language", options.languages),
        outcome=request.read_and_show_choice_filter("outcome", "Newest outcome", OUTCOMES),
        course=request.read_and_show_choice_filter("course", "Course", tuple(CaseCourse)),
        runs=MAX_RUNS,
    )


class CaseStrips:
    """Formats the results of a case for the template, with one cell for each run, oldest first."""

    labels = COURSE_LABELS
    outcomes = OUTCOME_LABELS

    def __init__(self, runs: tuple[GridRun, ...]) -> None:
        self.runs = runs

    def group_by_course(self, rows: tuple[GridRow, ...]) -> list[tuple[CaseCourse, list[GridRow]]]:
        """Group the cases by `CaseCourse`. The cases must already be sorted by course."""
        return [(course, list(same)) for course, same in groupby(rows, key=lambda row: row.course)]

    def build_cells(self, row: GridRow) -> list[StripCell]:
        """Return one cell for each shown run. A run that did not ask the case has an empty cell."""
        cells_by_place = {cell.place: cell for cell in row.cells}
        shown: list[StripCell] = []
        for run in reversed(self.runs):
            cell = cells_by_place.get(run.place)
            kind = cell.outcome.value if cell else "missing"
            flipped = cell is not None and cell.flipped
            label = f"{format_moment(run.finished_at)}: {OUTCOME_LABELS[kind]}{', flipped' if flipped else ''}"
            shown.append(StripCell(kind, label, flipped))
        return shown

    def format_summary(self, row: GridRow) -> str:
        """Format the results of a case as one sentence."""
        counts = [
            f"{OUTCOME_LABELS[kind]} {count}"
            for kind in OUTCOME_LABELS
            if (count := sum(cell.outcome == kind for cell in row.cells))
        ]
        flips = f", flipped {row.flips} times" if row.flips > 1 else ", flipped once" if row.flips else ""
        return f"{row.case_id} over {plural(len(self.runs), 'run')}: {', '.join(counts)}{flips}"

    def find_newest_flip(self, row: GridRow) -> GridRun | None:
        """Return the newest run in which the result of the case changed."""
        place = next((cell.place for cell in row.cells if cell.flipped), None)
        return next((run for run in self.runs if run.place == place), None)


def build_case_page(request: PageRequest) -> Page:
    """Build the page of a case with its right answer and the application's answers, newest first."""
    case_id, paging, target = request.path["case"], request.read_paging(), read_or_choose_target_filter(request)
    if "rows" not in request.query:
        paging = paging.model_copy(update={"rows": DEFAULT_ANSWERS})
    outcome = request.read_and_show_choice_filter("outcome", "Outcome", OUTCOMES)
    store = request.site.store
    answers, total = load_case_answers_page(
        store, target or "", case_id, outcome, rows=paging.rows, offset=paging.offset
    )
    if not answers and outcome is None and not paging.offset:
        raise build_not_found_error(
            f"No run of {target or 'any target'} has asked {case_id[:80]}. The case may belong to another target."
        )
    case = load_case_text(store, answers[0].suite_sha256, case_id) if answers else None
    data = CaseData(
        case_id=case_id,
        target=target or "",
        case=mask_fields(case, request.build_redactor(target), "turns", "gold") if case else None,
        answers=tuple(
            ShownAnswer(
                row=mask_fields(answer, request.build_redactor(target), "reason", "answer", "detail", "app_path"),
                as_before=_is_same_as_older(answer, older),
            )
            for answer, older in zip(answers, (*answers[1:], None), strict=True)
        ),
        paging=paging.with_total(total),
    )
    return Page("case.html.j2", case_id, data, view=OUTCOME_LABELS)


def _is_same_as_older(answer: CaseAnswer, older: CaseAnswer | None) -> bool | None:
    """Return whether the older answer has the same text. Return ``None`` if one of the two answers has no text."""
    if older is None or answer.answer is None or older.answer is None:
        return None
    return answer.answer == older.answer
