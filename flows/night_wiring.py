"""The composition root of a night: a target's settings and the environment become sources, graders, a judge."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from flows.desk import Desk
from flows.judge_wiring import JudgePlan, plan_judge
from flows.keys import AGE_KEY_VARIABLE, age_key, fresh_key
from flows.night_kept import READING
from flows.night_reading import Reach
from flows.traffic_grading import TrafficGrader
from flows.wiring import BROWSER_VARIABLE, alert_sender, desk_of, environment, open_store, runs_folder
from monitors.config import Config, TargetConfig, target_record
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.graders.traffic_panel import TrafficPanel
from monitors.probes.page_reader import PageReader
from monitors.records.cases import GoldCase
from monitors.sources.conversation_privacy import PrivacyMode
from monitors.sources.night_settings import NightSettings
from monitors.sources.page_traffic import ScriptRunner
from monitors.sources.risk_strata import TargetFacts
from monitors.sources.sampling import Seed
from monitors.sources.traffic import ScoreKeeper, TrafficSource
from monitors.sources.traffic_settings import PageTraffic
from monitors.sources.traffic_sources import traffic_source

_STAMP: Final = "%Y%m%dT%H%MZ"
_NIGHT_OF: Final = "-night-"


@dataclass(frozen=True)
class WiredNight:
    """All that one night of one target needs, alive. ``key`` makes pseudonyms."""

    target: str
    night: datetime
    run_id: str
    settings: NightSettings
    configured: TargetConfig
    sources: Mapping[str, TrafficSource]
    grader: TrafficGrader
    judge: JudgePlan
    desk: Desk
    folder: Path
    key: bytes
    facts: TargetFacts

    @property
    def reach(self) -> Reach:
        """How far back it reads."""
        return Reach(late=timedelta(hours=self.settings.late_h), first=timedelta(hours=self.settings.first_h))

    @property
    def seed(self) -> Seed:
        """What the draw depends on."""
        return Seed(target=self.target, night=self.night.date())

    def gold(self) -> tuple[GoldCase, ...]:
        """Known cases, which canaries are made of."""
        return load_suite(self.configured.suite).cases


def wire_night(config: Config, target: str, now: datetime, *, night: datetime | None = None) -> WiredNight:
    """The night that is over at ``now``, or the one that ended at ``night``. `ConfigError` before it is read."""
    configured = config.target(target)
    settings = configured.traffic
    if settings is None:
        raise ConfigError(f"targets.{target}.traffic is not configured: there is no live traffic to read")
    ended = night or night_before(now, settings)
    run_id = f"{ended.astimezone(UTC):{_STAMP}}{_NIGHT_OF}{target}"
    graders, sender = configured.graders, alert_sender(config, environment())
    sources = {name: traffic_source(one, environment(), _lent_browser) for name, one in settings.sources.items()}
    if settings.write_back and not any(isinstance(one, ScoreKeeper) for one in sources.values()):
        raise ConfigError(f"targets.{target}.traffic.write_back: none of its sources takes scores; langsmith does")
    return WiredNight(
        target=target,
        night=ended,
        run_id=run_id,
        settings=settings,
        configured=configured,
        sources=sources,
        grader=TrafficGrader(TrafficPanel(graders), severity=settings.severity),
        judge=plan_judge(config.judge, target_record(target, configured), environment()),
        desk=desk_of(config, open_store(config), sender, target=target, run_id=run_id),
        folder=runs_folder(config) / run_id,
        key=_key(settings),
        facts=TargetFacts(settings.sampling, graders.account_patterns, graders.public_contacts),
    )


def nights_to_grade(config: Config, target: str | None) -> tuple[str, ...]:
    """The targets whose live traffic is graded. `ConfigError` where there is none."""
    if target is not None:
        config.target(target)
        return (target,)
    names = tuple(name for name, one in config.targets.items() if one.traffic is not None)
    if not names:
        raise ConfigError("no target has live traffic: add [targets.NAME.traffic.sources.NAME] with kind = …")
    return names


def unfinished_nights(config: Config, target: str) -> tuple[datetime, ...]:
    """When the nights of ``target`` ended that were killed and not gone on with since, the oldest first.

    What such a night took is taken: unless it goes on, its conversations are in no report.
    """
    found: list[datetime] = []
    for note in runs_folder(config).glob(f"*{_NIGHT_OF}*/{READING}"):
        stamp, _, name = note.parent.name.partition(_NIGHT_OF)
        if name == target:
            found.append(datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC))
    return tuple(sorted(found))


def night_before(now: datetime, settings: NightSettings) -> datetime:
    """The last time at or before ``now`` that it was ``settings.hour`` in their time zone, in UTC."""
    here = now.astimezone(ZoneInfo(settings.time_zone))
    ended = here.replace(hour=settings.hour, minute=0, second=0, microsecond=0)
    if ended > here:
        ended = (ended - timedelta(days=1)).replace(hour=settings.hour)
    return ended.astimezone(now.tzinfo)


def _key(settings: NightSettings) -> bytes:
    """The key for pseudonyms; without one, pseudonyms of users hold for one night only."""
    if environment().get(AGE_KEY_VARIABLE) or settings.privacy is PrivacyMode.PSEUDONYMISE:
        return age_key()
    return fresh_key()


def _lent_browser(settings: PageTraffic) -> AbstractAsyncContextManager[ScriptRunner]:
    return PageReader(deadline_s=settings.page_deadline_s, browser_path=environment().get(BROWSER_VARIABLE))
