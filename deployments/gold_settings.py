"""Which grader settings a suite is looked at with: a target's, or the defaults."""

from __future__ import annotations

from pathlib import Path

from monitors.config import load_config
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings
from monitors.graders.settings import GraderSettings


def grader_settings(config: Path | None, target: str | None) -> GraderSettings:
    """The settings of ``target`` in ``config``; of its only target; else the defaults."""
    if config is None:
        if target is not None:
            raise ConfigError(f"--target {target} needs --config with the configuration that has it")
        return GraderSettings()
    loaded = load_config(config)
    if target is None and len(loaded.targets) > 1:
        raise ConfigError(f"{config} has several targets; name one with --target: {', '.join(loaded.targets)}")
    return loaded.target(target or next(iter(loaded.targets))).graders


def gate_settings(config: Path | None) -> GateSettings:
    """What the gate asks of a suite: as configured, or the defaults."""
    return GateSettings() if config is None else load_config(config).gate
