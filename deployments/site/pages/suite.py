"""Suite: whether it asks about what hurts, what its graders catch, and what a run of it cannot see."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from deployments.site.page import Page, PageRequest
from deployments.site.pages.cases import asked_target
from flows.repeatability.format import advice_text, false_fail_text, flip_text, noise_text, rate_name
from monitors.gate.suite_power import blind_spots, format_drop, format_limit
from monitors.records.base import Record, Severity, UtcTime
from monitors.records.comparisons import Balance, GroupCount
from monitors.records.runs import MutationScores, RunReport
from monitors.records.self_checks import RepeatabilityRun
from warehouse.queries.repeatability import last_repeatability
from warehouse.queries.site.compared import newest_run_of
from warehouse.queries.site.runs import suites

GROUP_LABELS: Final = {
    "severity": "Severity",
    "type": "Type",
    "language": "Language",
    "theme": "Severity-3 cases by theme",
}


class SeverityPower(Record):
    """What the newest run could have seen of one severity. ``blind``: a drop that matters would go unnoticed."""

    severity: Severity
    cases: int
    allowed: str
    unnoticed: str
    blind: bool


class SuiteData(Record):
    """A target's suite as its newest run had it. What was not reckoned is ``None``; ``gaps`` are in sentences.

    ``repeatability`` is the last session that asked cases twice, whatever the suite was then.
    """

    target: str | None
    run_id: str | None = None
    finished_at: UtcTime | None = None
    suite_name: str = ""
    suite_sha256: str = ""
    balance: Balance | None = None
    mutation_score: MutationScores | None = None
    power: tuple[SeverityPower, ...] = ()
    gaps: tuple[str, ...] = ()
    repeatability: RepeatabilityRun | None = None


def suite_page(request: PageRequest) -> Page:
    """The suite of the target's newest run."""
    store, target = request.site.store, asked_target(request)
    suite = request.choice("suite", "Suite", suites(store))
    run_id = newest_run_of(store, target, suite) if target else None
    report = store.report(run_id) if run_id else None
    data = _suite(request, report, target) if report else SuiteData(target=target)
    if target:
        data = data.model_copy(update={"repeatability": last_repeatability(store, target)})
    return Page("suite.html.j2", "Suite", data, view=SuiteGroups(data.balance))


def _suite(request: PageRequest, report: RunReport, target: str | None) -> SuiteData:
    blind = blind_spots(report.sights, request.site.config.gate)
    power = tuple(
        SeverityPower(
            severity=sight.severity,
            cases=sight.cases,
            allowed=format_limit(sight),
            unnoticed=format_drop(sight),
            blind=sight.severity in blind,
        )
        for sight in report.sights
    )
    unseen = (f"severity {one.severity.value}: a run does not notice {one.unnoticed}" for one in power if one.blind)
    return SuiteData(
        target=target,
        run_id=report.run_id,
        finished_at=report.finished_at,
        suite_name=report.suite_name,
        suite_sha256=report.suite_sha256,
        balance=report.balance,
        mutation_score=report.mutation_score,
        power=power,
        gaps=(*(report.balance.shortfalls if report.balance else ()), *unseen),
    )


class SuiteGroups:
    """The counts of a balance, group by group."""

    labels = GROUP_LABELS
    flip_text = staticmethod(flip_text)
    false_fail_text = staticmethod(false_fail_text)
    noise_text = staticmethod(noise_text)
    advice_text = staticmethod(advice_text)
    rate_name = staticmethod(rate_name)

    def __init__(self, balance: Balance | None) -> None:
        self.balance = balance

    def groups(self) -> list[tuple[str, list[GroupCount]]]:
        """Each group with its counts, as the balance has them."""
        counts = self.balance.groups if self.balance else ()
        return [(name, list(same)) for name, same in groupby(counts, key=lambda count: count.group)]
