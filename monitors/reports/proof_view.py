"""What the verdict rests on, as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from monitors.records.comparisons import Comparison, FlakyCase
from monitors.records.runs import RunReport
from monitors.reports.case_links import CaseLink, links_to
from monitors.reports.proof_rows import (
    BalanceRow,
    ChangeRow,
    ScoreRow,
    SightRow,
    balance_rows,
    baseline_words,
    change_rows,
    no_baseline_words,
    outcome_words,
    parity_words,
    path_words,
    score_rows,
    sight_rows,
)

_MOST_LINKS: Final = 24


@dataclass(frozen=True, slots=True)
class Named:
    """Cases with links, of which ``more`` are not named. ``total`` counts all."""

    links: tuple[CaseLink, ...]
    more: int
    total: int


@dataclass(frozen=True, slots=True)
class ChangeView:
    """The shared cases of one severity, with links to those that came out differently."""

    row: ChangeRow
    failing: Named
    fixed: Named


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A run beside its baseline; ``refused`` says why it is not, and then the rest is empty."""

    baseline: str
    refused: tuple[str, ...]
    outcome: str
    scores: tuple[ScoreRow, ...]
    changes: tuple[ChangeView, ...]


@dataclass(frozen=True, slots=True)
class FlakyView:
    """A case that was right only sometimes."""

    link: CaseLink
    words: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The page's sections on the baseline, on what could have been seen, and on balance."""

    comparison: ComparisonView | None
    no_baseline: str
    sights: tuple[SightRow, ...]
    flaky: tuple[FlakyView, ...]
    flaky_more: int
    shortfalls: tuple[str, ...]
    balance: tuple[BalanceRow, ...]
    beside_metrics: tuple[str, ...]


def proof_of(report: RunReport, anchors: Mapping[str, str]) -> Proof:
    """``anchors`` says where a case is shown."""
    return Proof(
        comparison=_comparison(report.comparison, anchors) if report.comparison else None,
        no_baseline=no_baseline_words(report),
        sights=sight_rows(report.sights),
        flaky=tuple(_flaky(one, anchors) for one in report.flaky[:_MOST_LINKS]),
        flaky_more=max(0, len(report.flaky) - _MOST_LINKS),
        shortfalls=report.balance.shortfalls if report.balance else (),
        balance=balance_rows(report.balance) if report.balance else (),
        beside_metrics=_beside_metrics(report),
    )


def _beside_metrics(report: RunReport) -> tuple[str, ...]:
    said = [f"The same questions, {parity_words(gap)}." for gap in report.parity]
    best = path_words(report.metrics)
    return (*said, f"{best[0].upper()}{best[1:]}.") if best else tuple(said)


def _comparison(compared: Comparison, anchors: Mapping[str, str]) -> ComparisonView:
    rows = change_rows(compared)
    return ComparisonView(
        baseline=baseline_words(compared),
        refused=compared.refused,
        outcome=outcome_words(compared),
        scores=score_rows(compared),
        changes=tuple(ChangeView(row, _named(row.failing, anchors), _named(row.fixed, anchors)) for row in rows),
    )


def _named(case_ids: Sequence[str], anchors: Mapping[str, str]) -> Named:
    shown = links_to(case_ids[:_MOST_LINKS], anchors)
    return Named(shown, len(case_ids) - len(shown), len(case_ids))


def _flaky(one: FlakyCase, anchors: Mapping[str, str]) -> FlakyView:
    (link,) = links_to([one.case_id], anchors)
    return FlakyView(link, one.words)
