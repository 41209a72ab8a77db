"""The page about a target's suite: its balance, what its graders detect, and which drops a run cannot detect."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from deployments.site.page import Page, PageRequest
from deployments.site.pages.cases import read_or_choose_target_filter
from flows.repeatability.format import (
    format_chance_failure_rate,
    format_false_fail_rate,
    format_flip_rate,
    format_rate_name,
    format_repeat_advice,
)
from monitors.gate.suite_power import (
    find_undetectable_drops,
    format_possible_failure_share,
    format_undetectable_drop,
)
from monitors.records.base import Record, Severity, UtcTime
from monitors.records.comparisons import Balance, GroupCount
from monitors.records.runs import MutationScores, RunReport
from monitors.records.self_checks import RepeatabilityRun
from warehouse.queries.repeatability import find_newest_session
from warehouse.queries.site.compared import find_last_completed_run_id
from warehouse.queries.site.runs import list_suites

GROUP_LABELS: Final = {
    "severity": "Severity",
    "type": "Type",
    "language": "Language",
    "theme": "Severity-3 cases by theme",
}


class SeverityPower(Record):
    """What the newest run can detect for one severity.

    ``blind`` is true if the run cannot detect a drop that is large enough to matter.
    """

    severity: Severity
    cases: int
    allowed: str
    unnoticed: str
    blind: bool


class SuiteData(Record):
    """The suite of a target's newest run. A value that was not computed is ``None``.

    ``gaps`` contains sentences about what the suite lacks. ``repeatability`` is the last session that asked each
    case twice, which may have used another suite.
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


def build_suite_page(request: PageRequest) -> Page:
    """Build the page about the suite of the target's newest run."""
    store, target = request.site.store, read_or_choose_target_filter(request)
    suite = request.read_and_show_choice_filter("suite", "Suite", list_suites(store))
    run_id = find_last_completed_run_id(store, target, suite) if target else None
    report = store.find_report(run_id) if run_id else None
    data = _build_suite_data(request, report, target) if report else SuiteData(target=target)
    if target:
        data = data.model_copy(update={"repeatability": find_newest_session(store, target)})
    return Page("suite.html.j2", "Suite", data, view=SuiteGroups(data.balance))


def _build_suite_data(request: PageRequest, report: RunReport, target: str | None) -> SuiteData:
    blind = find_undetectable_drops(report.sights, request.site.config.gate)
    power = tuple(
        SeverityPower(
            severity=sight.severity,
            cases=sight.cases,
            allowed=format_possible_failure_share(sight),
            unnoticed=format_undetectable_drop(sight),
            blind=sight.severity in blind,
        )
        for sight in report.sights
    )
    unseen = (
        f"severity {severity_power.severity.value}: a run cannot detect {severity_power.unnoticed}"
        for severity_power in power
        if severity_power.blind
    )
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
    """Formats the counts of a suite for the template."""

    labels = GROUP_LABELS
    flip_text = staticmethod(format_flip_rate)
    false_fail_text = staticmethod(format_false_fail_rate)
    noise_text = staticmethod(format_chance_failure_rate)
    advice_text = staticmethod(format_repeat_advice)
    rate_name = staticmethod(format_rate_name)

    def __init__(self, balance: Balance | None) -> None:
        self.balance = balance

    def list_groups(self) -> list[tuple[str, list[GroupCount]]]:
        """Return the counts of cases by group, such as by severity or by language."""
        counts = self.balance.groups if self.balance else ()
        return [(name, list(same)) for name, same in groupby(counts, key=lambda count: count.group)]
