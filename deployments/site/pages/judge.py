"""Judge: whether it may be trusted (people, canaries, the graders without a model), and what it costs."""

from __future__ import annotations

from deployments.site.page import Page, PageRequest, Paging
from deployments.site.pages.now import TrendValue
from monitors.judge.calibration import FEW, Calibration, calibrate
from monitors.records.base import Record
from monitors.reports.format import moment
from warehouse.queries.reviews import reviewed
from warehouse.queries.site.judge import (
    NEWEST,
    JudgingRow,
    PlainAgreement,
    judging_page,
    newest_verdicts,
    plain_agreement,
)
from warehouse.queries.site.standing import known_targets


class JudgeData(Record):
    """Each judge of the newest ``counted`` runs and nights against people and rules, and a page of its work.

    ``few``: with fewer answers reviewed no figure is to be taken at its word.
    """

    calibrations: tuple[Calibration, ...]
    agreement: tuple[PlainAgreement, ...]
    counted: int
    few: int
    cost: tuple[TrendValue, ...]
    rows: tuple[JudgingRow, ...]
    paging: Paging


def judge_page(request: PageRequest) -> Page:
    """What people, canaries and rules say of the judge, and what it was paid."""
    store, paging = request.site.store, request.paging()
    target = request.choice("target", "Target", known_targets(store, request.site.targets))
    given = newest_verdicts(store, target)
    rows, total = judging_page(store, target, rows=paging.rows, offset=paging.offset)
    data = JudgeData(
        calibrations=calibrate(reviewed(store, target=target) if given else (), given),
        agreement=plain_agreement(store, target) if given else (),
        counted=NEWEST,
        few=FEW,
        cost=tuple(map(_cost, reversed(rows))),
        rows=rows,
        paging=paging.of(total),
    )
    return Page("judge.html.j2", "Judge", data)


def _cost(row: JudgingRow) -> TrendValue:
    cost = row.judging.cost_usd
    label = f"{moment(row.finished_at)}: ${cost:.2f}"
    return TrendValue(at=row.finished_at, label=label, value=float(cost), low=None, high=None, mark=False)
