"""Which target a suite belongs to, and so how its replies are read."""

from __future__ import annotations

from pathlib import Path

from monitors.config import Config, load_config
from monitors.graders.settings import GraderSettings


def graders_for(config: Path, suite: Path | None) -> GraderSettings:
    """The grader settings of the target whose suite this is; else of the only target; else the defaults.

    A file that is not there is no error: reviewing needs no configuration.
    """
    return graders_in(load_config(config), suite) if config.exists() else GraderSettings()


def graders_in(config: Config, suite: Path | None) -> GraderSettings:
    """The same of a configuration that is loaded."""
    if suite is not None:
        mine = [one.graders for one in config.targets.values() if one.suite.resolve() == suite.resolve()]
        if mine:
            return mine[0]
    if len(config.targets) == 1:
        return next(iter(config.targets.values())).graders
    return GraderSettings()
