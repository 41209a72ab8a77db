"""Builds the context of one repeatability session from configuration and environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from flows.clock import Clock, utc_now
from flows.data_folder import open_store
from flows.runtime.judge import JudgePlan, plan_judge
from flows.runtime.secrets import generate_nonce, generate_run_id, get_environment, get_hub_token
from flows.verify.snapshot import hash_grading_settings
from monitors.config.file import Config, TargetConfig, build_target_record
from monitors.config.isolation import refuse_production
from monitors.goldset.load import load_suite
from monitors.graders.panel import build_default_panel
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.database.store import Store
from warehouse.queries.repeatability import RepeatScope, hash_grading

COUNTED_FOR: Final = timedelta(days=90)
"""Older repeats are not counted, since the application has changed."""


@dataclass(frozen=True)
class RepeatabilityContext:
    """The live objects that one session needs. ``rng`` is seeded once; ``now`` is its clock."""

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
        """Which recorded repeats count in addition to this session's."""
        panel = build_default_panel(self.configured.graders, self.configured.domain)
        hashes = hash_grading_settings(self.configured, self.judge)
        return RepeatScope(
            target=self.target.name,
            environment=self.target.environment,
            suite_sha256=self.suite.sha256,
            graded_by=hash_grading({grader.name: grader.version for grader in panel}, hashes),
            since=self.now() - COUNTED_FOR,
        )


def build_repeatability_context(config: Config, target: str) -> RepeatabilityContext:
    """Build the context of one session. Raises `ConfigError` before anything is asked."""
    configured = config.target(target)
    refuse_production(config, target, get_environment())
    record = build_target_record(target, configured)
    return RepeatabilityContext(
        config=config,
        target=record,
        configured=configured,
        suite=load_suite(configured.suite),
        judge=plan_judge(config.judge, record, get_environment()),
        store=open_store(config),
        run_id=generate_run_id(target),
        now=utc_now,
        rng=Random(generate_nonce()),  # noqa: S311 - a sample and a simulation, no secret
        environment=get_environment(),
        nonce=generate_nonce,
        hub_token=get_hub_token(),
    )
