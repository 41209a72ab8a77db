"""Which targets' cases are asked twice, and why the others' are not."""

from __future__ import annotations

from monitors.config.file import Config
from monitors.errors import ConfigError


def list_measured_targets(config: Config, target: str | None) -> list[str]:
    """The targets whose cases are asked twice. `ConfigError` for one that is named and is not."""
    if target is None:
        return [name for name in config.targets if not explain_not_measured(config, name)]
    if why := explain_not_measured(config, target):
        raise ConfigError(why)
    return [target]


def explain_not_measured(config: Config, target: str) -> str:
    """Why a target's cases are not asked twice; empty where they are."""
    configured = config.target(target)
    if configured.probe.driver == "job":
        return f"targets.{target} is asked by jobs (probe.driver): an agent's work is not done twice for a figure"
    if not configured.repeatability.cases:
        return f"targets.{target}.repeatability.cases is 0: no case of this target is asked twice"
    return ""
