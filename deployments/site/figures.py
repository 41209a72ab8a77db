"""Metrics for Prometheus, and a badge for each target.

A missing value is never shown as zero. A target without a score has no metric for the score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from starlette.responses import Response

from deployments.site.page import PageRequest, build_not_found_error
from deployments.site.pages.now import CardState, NowData, TargetCard, build_now_page
from monitors.reports.badge import NO_DATA, render_badge

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def serve_metrics(request: PageRequest) -> Response:
    """Serve the scores, rates and numbers of incidents of all targets in Prometheus' text format."""
    return Response(format_metrics(load_target_cards(request)), media_type=CONTENT_TYPE)


def serve_target_badge(request: PageRequest) -> Response:
    """Serve the badge of one target."""
    name = request.path["target"]
    card = next((card for card in load_target_cards(request) if card.target == name), None)
    if card is None:
        raise build_not_found_error(f"Target {name[:80]} is not configured and has no runs.")
    return Response(render_badge(name, format_badge_verdict(card)), media_type="image/svg+xml")


def load_target_cards(request: PageRequest) -> tuple[TargetCard, ...]:
    """Return the state of every target, in the form that the page Now shows."""
    data = build_now_page(request).data
    return data.cards if isinstance(data, NowData) else ()


def format_badge_verdict(card: TargetCard) -> str:
    """Return the last verdict for the badge, or `NO_DATA` if there is no verdict or the last verdict is too old."""
    is_known = card.last is not None and card.state not in (CardState.OLD, CardState.NONE)
    return card.last.verdict.value if is_known and card.last is not None else NO_DATA


def format_metrics(cards: Iterable[TargetCard]) -> bytes:
    """Format the metrics in Prometheus' text format."""
    figures = _Figures()
    for card in cards:
        figures.add(card)
    return generate_latest(figures.registry)


class _Figures:
    """The metrics of one response."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._weighted = self._build_gauge("weighted_score", "severity-weighted score of the last finished run")
        self._flat = self._build_gauge("flat_pass_rate", "flat pass rate of the last finished run")
        self._verdict = self._build_gauge("verdict", "1 for the verdict of the last finished run", "verdict")
        self._finished = self._build_gauge("last_run_timestamp_seconds", "time at which the last run finished")
        self._coverage = self._build_gauge("graded_ratio", "share of the last run's cases that were graded")
        self._open = self._build_gauge("open_incidents", "open incidents that are not acknowledged", "severity")
        self._acknowledged = self._build_gauge("acknowledged_incidents", "acknowledged incidents", "severity")
        self._severe = self._build_gauge(
            "severe_rate", "share of last night's conversations with a severity-3 failure"
        )
        self._bounds = self._build_gauge(
            "severe_rate_bound", "the limits of the 95 % interval of severe_rate", "end"
        )
        self._recent = self._build_gauge("is_recent", "1 if the last verdict is shown as current, else 0")

    def add(self, card: TargetCard) -> None:
        """Add the metrics of one target."""
        name, last = card.target, card.last
        self._recent.labels(name).set(last is not None and card.state not in (CardState.OLD, CardState.NONE))
        if last is not None:
            self._finished.labels(name).set(last.finished_at.timestamp())
            self._verdict.labels(name, last.verdict.value).set(1)
            if last.weighted_total:
                self._weighted.labels(name).set(float(last.weighted_earned / last.weighted_total))
            if last.flat_total:
                self._flat.labels(name).set(float(last.flat_earned / last.flat_total))
            if last.asked:
                self._coverage.labels(name).set(last.graded / last.asked)
        for level in (1, 2, 3):
            level_incidents = [incident for incident in card.incidents if incident.severity == level]
            self._open.labels(name, str(level)).set(sum(incident.open for incident in level_incidents))
            self._acknowledged.labels(name, str(level)).set(
                sum(incident.acknowledged for incident in level_incidents)
            )
        self._add_severe_rate(card)

    def _add_severe_rate(self, card: TargetCard) -> None:
        rate = card.nightly[-1] if card.nightly else None
        if rate is None or rate.value is None:
            return
        self._severe.labels(card.target).set(rate.value)
        for end, value in (("low", rate.low), ("high", rate.high)):
            if value is not None:
                self._bounds.labels(card.target, end).set(value)

    def _build_gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(f"lookout_{name}", description, ("target", *labels), registry=self.registry)
