"""The page of the judge: how often it agrees with people, with known answers and with rules, and its cost."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.site.masking import mask_all_texts
from deployments.site.page import Page, PageRequest, Paging, Site
from deployments.site.pages.now import TrendValue
from monitors.judge.calibration import MIN_REVIEWS, Calibration, compare_judges_with_people
from monitors.records.base import Record
from monitors.reports.format import format_moment
from warehouse.queries.site.judge import (
    RUNS_COUNTED,
    JudgeCounts,
    JudgingRow,
    count_judge_verdicts,
    load_judging_page,
)
from warehouse.queries.site.overview import list_known_targets


class JudgeData(Record):
    """The judges of the newest ``counted`` runs, compared with people and rules, and one page of the list of runs.

    The figures are not reliable if fewer than ``few`` answers were reviewed.
    """

    calibrations: tuple[Calibration, ...]
    agreement: tuple[JudgeCounts, ...]
    counted: int
    few: int
    cost: tuple[TrendValue, ...]
    rows: tuple[JudgingRow, ...]
    paging: Paging


def build_judge_page(request: PageRequest) -> Page:
    """Build the page that shows how often the judge agrees with people, known answers and rules, and its cost."""
    site, paging = request.site, request.read_paging()
    store = site.store
    target = request.read_and_show_choice_filter(
        "target", "Target", list_known_targets(store, request.site.targets)
    )
    counts = site.figures.get_or_compute(("judge counts", target), lambda: count_judge_verdicts(store, target))
    rows, total = load_judging_page(store, target, rows=paging.rows, offset=paging.offset)
    data = JudgeData(
        calibrations=site.figures.get_or_compute(
            ("calibrations", target), lambda: _compute_calibrations(site, target, counts)
        ),
        agreement=tuple(judge_count for judge_count in counts if judge_count.both_graded),
        counted=RUNS_COUNTED,
        few=MIN_REVIEWS,
        cost=tuple(map(_build_cost_point, reversed(rows))),
        rows=tuple(_mask_row(request, row) for row in rows),
        paging=paging.with_total(total),
    )
    return Page("judge.html.j2", "Judge", data)


def _mask_row(request: PageRequest, row: JudgingRow) -> JudgingRow:
    judging = mask_all_texts(row.judging, request.build_redactor(row.target)) if row.judging else None
    return row.with_judging(judging)


def _compute_calibrations(site: Site, target: str | None, counts: Sequence[JudgeCounts]) -> tuple[Calibration, ...]:
    answers = site.reviews.load_reviewed_judged_answers(site.store, target, site.now()) if counts else ()
    return compare_judges_with_people(answers, [judge_count.verdicts for judge_count in counts])


def _build_cost_point(row: JudgingRow) -> TrendValue:
    cost = row.judging.cost_usd if row.judging else None
    shown = "not recorded" if cost is None else f"${cost:.2f}"
    if row.judging is not None and row.judging.unpriced_models:
        cost, shown = None, row.judging.cost_text
    return TrendValue(
        at=row.finished_at,
        label=f"{format_moment(row.finished_at)}: {shown}",
        value=None if cost is None else float(cost),
        low=None,
        high=None,
        mark=row.judging is not None and row.judging.budget_reached,
    )
