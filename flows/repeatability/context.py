"""Builds the context of a repeatability session, which asks cases twice and compares the answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from flows.clock import utc_now
from flows.data_folder import open_store
from flows.runtime.judge import build_judge_plan
from flows.runtime.run import TargetContext
from flows.runtime.secrets import generate_nonce, generate_run_id, get_environment, get_hub_token
from flows.verify.snapshot import hash_grading_settings
from monitors.config.file import Config, build_target_record
from monitors.config.isolation import refuse_production_settings
from monitors.goldset.load import load_suite
from monitors.graders.panel import build_rule_panel
from warehouse.queries.repeatability import RepeatScope, hash_graders_and_settings

COUNTED_FOR: Final = timedelta(days=90)
"""Repeats that are older than this do not count, because the application has probably changed since then."""


@dataclass(frozen=True)
class RepeatabilityContext(TargetContext):
    """The live objects and settings of one repeatability session."""

    run_id: str
    rng: Random
    hub_token: str | None

    @property
    def scope(self) -> RepeatScope:
        """The filter that selects the stored repeats of earlier sessions.

        The selected repeats count together with this session's repeats.
        """
        panel = build_rule_panel(self.configured.graders, self.configured.domain)
        hashes = hash_grading_settings(self.configured, self.judge)
        return RepeatScope(
            target=self.target.name,
            environment=self.target.environment,
            suite_sha256=self.suite.sha256,
            graded_by=hash_graders_and_settings({grader.name: grader.version for grader in panel}, hashes),
            since=self.now() - COUNTED_FOR,
        )


def build_repeatability_context(config: Config, target: str) -> RepeatabilityContext:
    """Build the context of one session. Raises `ConfigError` before any question is asked."""
    configured = config.require_target(target)
    refuse_production_settings(config, target, get_environment())
    record = build_target_record(target, configured)
    return RepeatabilityContext(
        config=config,
        target=record,
        configured=configured,
        suite=load_suite(configured.suite),
        judge=build_judge_plan(config.judge, record, get_environment()),
        store=open_store(config),
        run_id=generate_run_id(target),
        now=utc_now,
        rng=Random(generate_nonce()),  # noqa: S311 - a sample and a simulation, no secret
        environment=get_environment(),
        nonce=generate_nonce,
        hub_token=get_hub_token(),
    )
