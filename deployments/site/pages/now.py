"""The page Now: a card for the current state of each target, and the health of the monitor itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from deployments.site.health import HealthLine, build_monitor_health_lines
from deployments.site.page import Page, PageRequest, Site
from deployments.site.pages.runs import compute_refresh_s, load_unfinished_runs
from flows.verify.run_watch import RunProgress, RunState
from monitors.records.base import Record, UtcTime
from monitors.records.runs import Verdict
from monitors.reports.format import format_moment, format_quantity
from monitors.stats.intervals import compute_wilson_interval
from warehouse.queries.site.overview import (
    LastEntry,
    NightlyPoint,
    OpenIncidents,
    RunPoint,
    count_open_incidents_by_severity,
    list_known_targets,
    list_last_log_entries,
    list_last_nightly_runs_of_each_target,
    list_last_runs_of_each_target,
)

RECENT_ENTRIES: Final = timedelta(days=7)
WORST_SEVERITY: Final = 3


class CardState(StrEnum):
    """The state of a target. RIGHT requires a recent PASS and no open incident of severity 3."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"
    OLD = "old"
    NONE = "none"


class TrendValue(Record):
    """A point of a trend chart, with its 95 % interval. The value is ``None`` if nothing was graded."""

    at: UtcTime
    label: str
    value: float | None
    low: float | None
    high: float | None
    mark: bool


class TargetCard(Record):
    """The summary of one target."""

    target: str
    environment: str | None
    state: CardState
    word: str
    why: str
    command: str
    last: RunPoint | None
    arithmetic: str
    unfinished: tuple[RunProgress, ...]
    incidents: tuple[OpenIncidents, ...]
    scores: tuple[TrendValue, ...]
    score_floor: float
    nightly: tuple[TrendValue, ...]
    last_entry: LastEntry | None
    follows_log: bool
    reads_traffic: bool
    health: tuple[HealthLine, ...]


class NowData(Record):
    """All targets, worst first, and the health of the monitor. A static export does not show this health."""

    cards: tuple[TargetCard, ...]
    monitor: tuple[HealthLine, ...]


_ORDER: Final = (CardState.WRONG, CardState.UNSURE, CardState.OLD, CardState.NONE, CardState.RIGHT)


def build_now_page(request: PageRequest) -> Page:
    """Build the page with a card for each target, worst first."""
    site = request.site
    now = site.now()
    stored = _StoredState(
        runs=_group_by_target(list_last_runs_of_each_target(site.store)),
        nightly=_group_by_target(list_last_nightly_runs_of_each_target(site.store)),
        opened=_group_by_target(count_open_incidents_by_severity(site.store)),
        entries={entry.target: entry for entry in list_last_log_entries(site.store, now - RECENT_ENTRIES)},
        unfinished=load_unfinished_runs(request),
    )
    cards = [_build_card(site, name, now, stored) for name in list_known_targets(site.store, site.targets)]
    cards.sort(key=lambda card: (_ORDER.index(card.state), card.target))
    data = NowData(cards=tuple(cards), monitor=build_monitor_health_lines(site) if request.static is None else ())
    return Page("now.html.j2", "Now", data, live_s=compute_refresh_s(stored.unfinished))


_Row = TypeVar("_Row", RunPoint, NightlyPoint, OpenIncidents)


def _group_by_target(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    by_target: dict[str, list[_Row]] = {}
    for row in rows:
        by_target.setdefault(row.target, []).append(row)
    return by_target


@dataclass(frozen=True, slots=True)
class _StoredState:
    """The data about all targets that was read from the warehouse."""

    runs: Mapping[str, list[RunPoint]]
    nightly: Mapping[str, list[NightlyPoint]]
    opened: Mapping[str, list[OpenIncidents]]
    entries: Mapping[str, LastEntry]
    unfinished: tuple[RunProgress, ...]


def _build_card(site: Site, name: str, now: datetime, stored: _StoredState) -> TargetCard:
    runs, nightly, opened = stored.runs.get(name, []), stored.nightly.get(name, []), stored.opened.get(name, [])
    configured = site.config.targets.get(name)
    last = runs[-1] if runs else None
    state, word, why = _choose_card_state(last, opened, now - timedelta(hours=site.config.site.recent_h))
    return TargetCard(
        target=name,
        environment=configured.environment.value if configured else last.environment if last else None,
        state=state,
        word=word,
        why=why,
        command=f"lookout verify {name}" if state in {CardState.NONE, CardState.OLD} else "",
        last=last,
        arithmetic=_format_score_calculation(last) if last else "",
        unfinished=tuple(
            run
            for run in stored.unfinished
            if run.target == name
            and (run.state is not RunState.STOPPED or last is None or run.started_at > last.finished_at)
        ),
        incidents=tuple(opened),
        scores=tuple(map(_build_score_point, runs)),
        score_floor=site.config.gate.min_weighted_score,
        nightly=tuple(map(_build_nightly_point, nightly)),
        last_entry=stored.entries.get(name),
        follows_log=configured is not None and configured.hallucination_log is not None,
        reads_traffic=configured is not None and configured.traffic is not None,
        health=tuple(_build_health_lines(site, name, now, stored)),
    )


def _choose_card_state(
    last: RunPoint | None, opened: Iterable[OpenIncidents], since: datetime
) -> tuple[CardState, str, str]:
    """Return the state of a target, with its label and its reason.

    ``last`` is the target's newest run, and ``opened`` counts its open incidents. A run that finished before
    ``since`` is too old.
    """
    if last is None:
        return (
            CardState.NONE,
            "no data",
            "No run of this target has finished yet. To start the first run:",
        )
    severe = sum(incident_count.open for incident_count in opened if incident_count.severity == WORST_SEVERITY)
    if last.verdict is Verdict.FAIL:
        return CardState.WRONG, "FAIL", ""
    if severe:
        return CardState.WRONG, f"{last.verdict}, and open incidents", f"Open incidents of severity 3: {severe}."
    if last.finished_at < since:
        reason = f"The last verdict was {last.verdict}, but it is too old. To run the suite again:"
        return CardState.OLD, "no recent data", reason
    if last.verdict is Verdict.PASS and last.graded:
        return CardState.RIGHT, "PASS", ""
    return CardState.UNSURE, last.verdict.value, ""


def _format_score_calculation(run: RunPoint) -> str:
    """Format the calculation of a run's scores, for example ``744 / 904 = 0.823 weighted, …``."""
    weighted = _format_ratio(run.weighted_earned, run.weighted_total)
    flat = _format_ratio(run.flat_earned, run.flat_total)
    veto = f", {run.severe_not_correct} of severity 3 not correct" if run.severe_not_correct else ""
    return f"{weighted} weighted, {flat} flat, {run.graded:,} of {run.asked:,} graded{veto}"


def _format_ratio(earned: Decimal, total: Decimal) -> str:
    return f"{format_quantity(earned)} / {format_quantity(total)} = {earned / total:.3f}" if total else "nothing"


def _build_score_point(run: RunPoint) -> TrendValue:
    """Build the point for a weighted score, with Wilson's interval for the effective number of cases."""
    share = float(run.weighted_earned / run.weighted_total) if run.weighted_total else None
    low = high = None
    if share is not None and run.effective_cases:
        low, high = compute_wilson_interval(share * run.effective_cases, run.effective_cases)
    shown = "no score" if share is None else f"{share:.3f}"
    label = f"{format_moment(run.finished_at)}: {run.verdict}, {shown}"
    return TrendValue(
        at=run.finished_at, label=label, value=share, low=low, high=high, mark=run.verdict is Verdict.FAIL
    )


def _build_nightly_point(run: NightlyPoint) -> TrendValue:
    rate = run.severe_rate
    shown = "nothing graded" if rate is None else f"{100 * rate:.2f} % with a failure of severity 3"
    return TrendValue(
        at=run.due_at,
        label=f"{format_moment(run.due_at)}: {shown}",
        value=rate,
        low=run.severe_low,
        high=run.severe_high,
        mark=bool(run.drifted),
    )


def _build_health_lines(site: Site, name: str, now: datetime, stored: _StoredState) -> Iterator[HealthLine]:
    """Yield the lines about scheduled runs and about faults of the monitor."""
    runs, nightly = stored.runs.get(name, []), stored.nightly.get(name, [])
    late = timedelta(hours=site.config.site.recent_h)
    if site.config.schedules.verify_cron:
        yield _build_timeliness_line("run of the suite", runs[-1].finished_at if runs else None, now, late)
    configured = site.config.targets.get(name)
    if configured is not None and configured.traffic is not None:
        yield _build_timeliness_line("nightly run", nightly[-1].due_at if nightly else None, now, late)
    faults = sum(incident_count.of_the_monitor for incident_count in stored.opened.get(name, ()))
    yield HealthLine(what="faults of the monitor", ok=not faults, text=f"{faults} open" if faults else "none open")


def _build_timeliness_line(label: str, at: datetime | None, now: datetime, late: timedelta) -> HealthLine:
    if at is None:
        return HealthLine(what=label, ok=None, text="never yet")
    on_time = now - at <= late
    return HealthLine(what=label, ok=on_time, text="last" if on_time else "overdue, last", at=at)
