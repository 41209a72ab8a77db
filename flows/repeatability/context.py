"""What one session needs, from configuration and environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from flows.clock import Clock, utc_now
from flows.data_folder import open_store
from flows.runtime.judge import JudgePlan, plan_judge
from flows.runtime.secrets import environment, hub_token, nonce, run_id_of_now
from flows.verify.snapshot import grading_hashes
from monitors.config.file import Config, TargetConfig, target_record
from monitors.config.isolation import refuse_production
from monitors.goldset.load import load_suite
from monitors.graders.panel import default_panel
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.database.store import Store
from warehouse.queries.repeatability import RepeatScope, graded_by

RECENT: Final = timedelta(days=90)
"""Repeats of before say little of today's application."""


@dataclass(frozen=True)
class RepeatabilityContext:
    """All that one session needs, alive. ``rng`` is seeded once; ``now`` is its clock."""

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    judge: JudgePlan
    store: Store
    run_id: str
    now: Clock
    rng: Random
    environment: Mapping[str, str]
    nonce: Callable[[], str]
    hub_token: str | None

    @property
    def scope(self) -> RepeatScope:
        """Which recorded repeats count beside this session's."""
        panel = default_panel(self.configured.graders, self.configured.domain)
        hashes = grading_hashes(self.configured, self.judge)
        return RepeatScope(
            target=self.target.name,
            environment=self.target.environment,
            suite_sha256=self.suite.sha256,
            graded_by=graded_by({grader.name: grader.version for grader in panel}, hashes),
            since=self.now() - RECENT,
        )


def build_repeatability_context(config: Config, target: str) -> RepeatabilityContext:
    """Everything for one session. `ConfigError` before anything is asked."""
    configured = config.target(target)
    refuse_production(config, target, environment())
    record = target_record(target, configured)
    return RepeatabilityContext(
        config=config,
        target=record,
        configured=configured,
        suite=load_suite(configured.suite),
        judge=plan_judge(config.judge, record, environment()),
        store=open_store(config),
        run_id=run_id_of_now(target),
        now=utc_now,
        rng=Random(nonce()),  # noqa: S311 - a sample and a simulation, no secret
        environment=environment(),
        nonce=nonce,
        hub_token=hub_token(),
    )
