"""Lists the targets whose cases are asked twice, and explains why other targets are not asked."""

from __future__ import annotations

from monitors.config.file import Config
from monitors.errors import ConfigError


def list_measured_targets(config: Config, target: str | None) -> list[str]:
    """List the targets whose cases are asked twice: all such targets, or only ``target``.

    Raises `ConfigError` if the cases of ``target`` are not asked twice.
    """
    if target is None:
        return [name for name in config.targets if not explain_why_not_measured(config, name)]
    if why := explain_why_not_measured(config, target):
        raise ConfigError(why)
    return [target]


def explain_why_not_measured(config: Config, target: str) -> str:
    """Explain why a target's cases are not asked twice. Return an empty string if they are asked twice."""
    configured = config.require_target(target)
    if configured.probe.driver == "job":
        return (
            f'targets.{target}.probe.driver is "job", and Lookout does not start the job of an agent twice for '
            "this measurement"
        )
    if not configured.repeatability.cases:
        return f"targets.{target}.repeatability.cases is 0, so Lookout does not ask cases of this target twice"
    return ""
