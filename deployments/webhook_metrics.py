"""The receiver's figures for Prometheus. Every label is one of ours: nothing that is sent can make a new series."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from deployments.triggers.delivery import Ignored, Refusal
from flows.deploy_runs import Started
from flows.kept_deploys import KeptDeploy
from monitors.trigger_settings import Provider

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0)
"""With a bound at the 0.2 s that 99 of 100 must be below, and one at the second that a sender is promised."""


class ReceiverMetrics:
    """Counted per application, so that two in one process do not share their figures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.accepted = self._counter("accepted", "deliveries with a deploy that was new", "provider")
        self.duplicate = self._counter("duplicate", "deliveries whose deploys were known", "provider")
        self._ignored = self._counter("ignored", "deliveries that start nothing, by why", "provider", "reason")
        self._refused = self._counter("refused", "deliveries refused, by why", "provider", "reason")
        self.runs = Counter("lookout_deploy_runs", "runs made for deploys", registry=self.registry)
        self._failures = Counter(
            "lookout_deploy_run_failures", "tries to make a run that failed", registry=self.registry
        )
        self._waiting = Gauge("lookout_deploys_waiting", "deploys that have no run yet", registry=self.registry)
        self._oldest = Gauge(
            "lookout_oldest_waiting_deploy_seconds",
            "how long the oldest of them has waited; 0 without any",
            registry=self.registry,
        )
        self.latency = Histogram(
            "lookout_webhook_acknowledgement_seconds",
            "from a delivery's headers to its answer",
            ["provider"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )

    def ignored(self, provider: Provider, why: Ignored) -> None:
        """Count a delivery that starts nothing."""
        self._ignored.labels(provider.value, why.value).inc()

    def refused(self, provider: Provider, why: Refusal) -> None:
        """Count a delivery that was refused."""
        self._refused.labels(provider.value, why.value).inc()

    def started(self, started: Started) -> None:
        """Count what became of the deploys that waited."""
        self.runs.inc(len(started.runs))
        self._failures.inc(len(started.failed))

    def text(self, waiting: tuple[KeptDeploy, ...], now: datetime) -> bytes:
        """All figures as Prometheus reads them; ``waiting`` has the oldest first."""
        self._waiting.set(len(waiting))
        self._oldest.set(max(0.0, (now - waiting[0].kept_at).total_seconds()) if waiting else 0.0)
        return generate_latest(self.registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"lookout_webhook_{name}", what, labels, registry=self.registry)
