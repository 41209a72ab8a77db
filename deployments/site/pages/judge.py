"""Judge: whether it may be trusted (people, canaries, the graders without a model), and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.site.masking import mask_all
from deployments.site.page import Page, PageRequest, Paging, Site
from deployments.site.pages.now import TrendValue
from monitors.judge.calibration import FEW, Calibration, calibrate
from monitors.records.base import Record
from monitors.reports.format import moment
from warehouse.queries.site.judge import (
    NEWEST,
    JudgeCounts,
    JudgingRow,
    judge_counts,
    judging_page,
)
from warehouse.queries.site.standing import known_targets


class JudgeData(Record):
    """Each judge of the newest ``counted`` runs and nights against people and rules, and a page of its work.

    ``few``: with fewer answers reviewed no figure is to be taken at its word.
    """

    calibrations: tuple[Calibration, ...]
    agreement: tuple[JudgeCounts, ...]
    counted: int
    few: int
    cost: tuple[TrendValue, ...]
    rows: tuple[JudgingRow, ...]
    paging: Paging


def judge_page(request: PageRequest) -> Page:
    """What people, canaries and rules say of the judge, and what it was paid."""
    site, paging = request.site, request.paging()
    store = site.store
    target = request.choice("target", "Target", known_targets(store, request.site.targets))
    counts = site.figures.once(("judge counts", target), lambda: judge_counts(store, target))
    rows, total = judging_page(store, target, rows=paging.rows, offset=paging.offset)
    data = JudgeData(
        calibrations=site.figures.once(("calibrations", target), lambda: _calibrations(site, target, counts)),
        agreement=tuple(one for one in counts if one.both_graded),
        counted=NEWEST,
        few=FEW,
        cost=tuple(map(_cost, reversed(rows))),
        rows=tuple(_masked(request, row) for row in rows),
        paging=paging.of(total),
    )
    return Page("judge.html.j2", "Judge", data)


def _masked(request: PageRequest, row: JudgingRow) -> JudgingRow:
    judging = mask_all(row.judging, request.mask(row.target)) if row.judging else None
    return row.show(judging)


def _calibrations(site: Site, target: str | None, counts: Sequence[JudgeCounts]) -> tuple[Calibration, ...]:
    answers = site.reviews.answers(site.store, target, site.now()) if counts else ()
    return calibrate(answers, [one.verdicts for one in counts])


def _cost(row: JudgingRow) -> TrendValue:
    cost = row.judging.cost_usd if row.judging else None
    shown = "not recorded" if cost is None else f"${cost:.2f}"
    return TrendValue(
        at=row.finished_at,
        label=f"{moment(row.finished_at)}: {shown}",
        value=None if cost is None else float(cost),
        low=None,
        high=None,
        mark=row.judging is not None and row.judging.budget_reached,
    )
