"""The composition root of following a log: a target's settings become a follower."""

from __future__ import annotations

from pathlib import Path

from flows.log_follower import LogFollower
from flows.log_reading import LogReader, Protect, masked
from flows.wiring import desk_without_run, environment, utc_now
from monitors.config import Config, TargetConfig
from monitors.errors import ConfigError
from monitors.sources.log_files import LocalLog, LogPlace
from monitors.sources.log_settings import HallucinationLogSettings
from monitors.sources.log_tail import Limits
from monitors.sources.remote_log import remote_log


def follower(config: Config, target: str) -> LogFollower:
    """What follows the log of ``target``. `ConfigError` where it has none."""
    configured = config.target(target)
    settings = configured.hallucination_log
    if settings is None:
        raise ConfigError(f"targets.{target}.hallucination_log is not configured: there is no log to follow")
    desk = desk_without_run(config, target)
    reader = LogReader(
        target=target,
        place=place_of(settings),
        store=desk.store,
        protect=_protection(settings, configured),
        limits=Limits(longest_bytes=settings.longest_line_kb * 1024),
        now=utc_now,
    )
    return LogFollower(
        desk=desk,
        reader=reader,
        settings=settings,
        watchdog=config.watchdog,
        account_patterns=configured.graders.account_patterns,
    )


def logs_to_follow(config: Config, target: str | None) -> tuple[str, ...]:
    """The targets whose log is looked at. `ConfigError` where there is none."""
    if target is not None:
        config.target(target)
        return (target,)
    names = tuple(name for name, one in config.targets.items() if one.hallucination_log is not None)
    if not names:
        raise ConfigError("no target has a hallucination_log: add [targets.NAME.hallucination_log] with at = …")
    return names


def look_s(config: Config, target: str) -> float:
    """Seconds between two looks at the log of ``target``."""
    settings = config.target(target).hallucination_log
    return settings.look_s if settings else 0.0


def place_of(settings: HallucinationLogSettings) -> LogPlace:
    """Where the log lies."""
    if settings.is_remote:
        return remote_log(settings.at, environment())
    return LocalLog(Path(settings.at), rotated=settings.rotated)


def _protection(settings: HallucinationLogSettings, configured: TargetConfig) -> Protect:
    if settings.store_raw:
        return lambda text: text
    return masked(configured.graders.account_patterns)
