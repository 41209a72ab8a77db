"""Builds the context of a nightly run: creates the live objects from a target's settings and the environment.

These objects are the target's sources, its graders and its judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from flows.alerting.notifier import Notifier
from flows.data_folder import get_runs_folder, open_store
from flows.nightly.checkpoint import READING_FILE
from flows.nightly.grading import TrafficGrader
from flows.nightly.read import LookbackWindow
from flows.runtime.judge import JudgePlan, build_judge_plan
from flows.runtime.secrets import (
    AGE_KEY_VARIABLE,
    generate_nonce,
    generate_random_key,
    get_environment,
    load_pseudonym_key,
)
from flows.runtime.slack import build_alert_sender, build_notifier
from monitors.address_guard import AddressGuard
from monitors.config.file import Config, TargetConfig, build_target_record
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.graders.panel import build_rule_panel
from monitors.graders.traffic_panel import TrafficPanel
from monitors.probes.browser.page_reader import PageReader
from monitors.probes.evidence_age import NIGHT_MARK
from monitors.probes.settings import BROWSER_VARIABLE
from monitors.records.incidents import Capability
from monitors.reports.settings import ReportsSettings
from monitors.sources.privacy import PrivacyMode
from monitors.sources.sampling.sample import Seed
from monitors.sources.sampling.settings import SamplingSettings
from monitors.sources.sampling.strata import TargetFacts
from monitors.sources.settings import NightlySettings
from monitors.sources.traffic.factory import build_traffic_source
from monitors.sources.traffic.pages import ScriptRunner
from monitors.sources.traffic.settings import PageTraffic
from monitors.sources.traffic.source import ScoreKeeper, TrafficSource
from warehouse.database.parquet import iterate_parquet_batches

_STAMP: Final = "%Y%m%dT%H%MZ"


@dataclass(frozen=True)
class NightlyContext:
    """The live objects that a nightly run of one target needs. ``key`` is the key for pseudonyms."""

    target: str
    due_at: datetime
    run_id: str
    settings: NightlySettings
    configured: TargetConfig
    sources: Mapping[str, TrafficSource]
    grader: TrafficGrader
    judge: JudgePlan
    notifier: Notifier
    folder: Path
    reports: ReportsSettings
    key: bytes
    facts: TargetFacts
    environment: Mapping[str, str]
    nonce: Callable[[], str]
    min_rubric: float = 4.0

    @property
    def effective_sampling(self) -> SamplingSettings:
        """The sampling settings. Without a judge, the default is to sample every conversation."""
        return self.settings.sampling.with_number_without_judge() if self.judge.why_off else self.settings.sampling

    @property
    def lookback_window(self) -> LookbackWindow:
        """How far back in time the nightly run reads."""
        return LookbackWindow(
            late=timedelta(hours=self.settings.late_h), first=timedelta(hours=self.settings.first_h)
        )

    @property
    def seed(self) -> Seed:
        """The random seed of the sample. The seed depends only on the target and the day."""
        return Seed(target=self.target, day=self.due_at.date())


def build_nightly_context(
    config: Config, target: str, now: datetime, *, due_at: datetime | None = None
) -> NightlyContext:
    """Build the context of the nightly run that was due last before ``now``, or of the run due at ``due_at``.

    Reads the suite, but not the sources. Raises `ConfigError`.
    """
    configured = config.require_target(target)
    settings = configured.traffic
    if settings is None:
        raise ConfigError(
            f"target {target} has no live traffic: add [targets.{target}.traffic.sources.NAME] with kind = …"
        )
    ended = due_at or compute_previous_due_at(now, settings)
    run_id = f"{ended.astimezone(UTC):{_STAMP}}{NIGHT_MARK}{target}"
    graders, sender = configured.graders, build_alert_sender(config, get_environment())
    sources = build_traffic_sources(configured, settings)
    if settings.write_back and not any(isinstance(source, ScoreKeeper) for source in sources.values()):
        raise ConfigError(
            f"targets.{target}.traffic.write_back does not work, because none of the target's sources accepts "
            "scores. Only langsmith accepts scores"
        )
    return NightlyContext(
        target=target,
        due_at=ended,
        run_id=run_id,
        settings=settings,
        configured=configured,
        sources=sources,
        grader=build_traffic_grader(configured, settings),
        judge=build_judge_plan(config.judge, build_target_record(target, configured), get_environment()),
        notifier=build_notifier(
            config, open_store(config), sender, target=target, run_id=run_id, owner=Capability.NIGHTLY
        ),
        folder=get_runs_folder(config) / run_id,
        reports=config.reports,
        key=_load_or_generate_pseudonym_key(settings),
        facts=TargetFacts(settings.sampling, graders.account_patterns, graders.public_contacts),
        environment=get_environment(),
        nonce=generate_nonce,
        min_rubric=config.gate.min_rubric,
    )


def build_traffic_sources(configured: TargetConfig, settings: NightlySettings) -> dict[str, TrafficSource]:
    """Build the sources of a target's live traffic, by name. Nothing is read. Raises `ConfigError`."""
    return {
        name: build_traffic_source(
            source,
            get_environment(),
            _build_page_reader,
            iterate_parquet_batches,
            allowed_origins=configured.probe.allowed_origins,
            private_network=configured.probe.private_network,
        )
        for name, source in settings.sources.items()
    }


def build_traffic_grader(configured: TargetConfig, settings: NightlySettings) -> TrafficGrader:
    """Build the grader for a target's live traffic. It uses the target's gold set."""
    return TrafficGrader(
        TrafficPanel(configured.graders),
        severity=settings.severity,
        gold_cases=load_suite(configured.suite).cases,
        gold_panel=build_rule_panel(configured.graders, configured.domain),
    )


def list_targets_to_grade(config: Config, target: str | None) -> tuple[str, ...]:
    """List the targets whose live traffic is graded: all targets with live traffic, or only ``target``.

    Raises `ConfigError` if no target has live traffic, or if ``target`` is not configured.
    """
    if target is not None:
        config.require_target(target)
        return (target,)
    names = tuple(name for name, configured in config.targets.items() if configured.traffic is not None)
    if not names:
        raise ConfigError("no target has live traffic: add [targets.NAME.traffic.sources.NAME] with kind = …")
    return names


def list_due_times_of_unfinished_runs(config: Config, target: str) -> tuple[datetime, ...]:
    """List the due times of killed nightly runs of ``target`` that were not resumed, oldest first.

    These runs must be resumed, because later runs skip their conversations.
    """
    due_times: list[datetime] = []
    for note in get_runs_folder(config).glob(f"*{NIGHT_MARK}*/{READING_FILE}"):
        stamp, _, name = note.parent.name.partition(NIGHT_MARK)
        if name == target:
            due_times.append(datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC))
    return tuple(sorted(due_times))


def compute_previous_due_at(now: datetime, settings: NightlySettings) -> datetime:
    """Compute the last time, at or before ``now``, at which a nightly run was due. The result is in UTC.

    A run is due each day at ``settings.hour`` in the configured time zone. If a clock change repeats this hour, the
    first occurrence counts. If a clock change skips this hour, the run is due as long after midnight as on other
    days.
    """
    zone = ZoneInfo(settings.time_zone)
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    due_times = (
        min(
            datetime.combine(tomorrow - timedelta(days=days), time(settings.hour), zone)
            .replace(fold=fold)
            .astimezone(UTC)
            for fold in (0, 1)
        )
        for days in range(4)
    )
    return next(due_at for due_at in due_times if due_at <= now)


def _load_or_generate_pseudonym_key(settings: NightlySettings) -> bytes:
    """Load the key for pseudonyms. If there is no key, generate a key for this nightly run only."""
    if get_environment().get(AGE_KEY_VARIABLE) or settings.privacy is PrivacyMode.PSEUDONYMISE:
        return load_pseudonym_key()
    return generate_random_key()


def _build_page_reader(settings: PageTraffic) -> AbstractAsyncContextManager[ScriptRunner]:
    guard = AddressGuard((settings.url,), private_network=settings.private_network)
    return PageReader(
        guard, deadline_s=settings.page_deadline_s, browser_path=get_environment().get(BROWSER_VARIABLE)
    )
