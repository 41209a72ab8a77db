"""``lookout verify``: a configured target by its name, or any page by its address."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from deployments.ci_guard import check_ci
from deployments.exit_codes import ExitCode
from deployments.verify_run import verify_and_print
from flows.request import VerifyRequest
from monitors.config import Config, TargetConfig, load_config
from monitors.errors import ConfigError

LONGEST_NAME = 60


def verify_command(
    target: str,
    config_path: Path,
    *,
    suite: Path | None,
    commit: str | None,
    concurrency: int | None,
    fresh: bool,
    as_json: bool,
    environment: Mapping[str, str],
    allow_production: str | None = None,
) -> ExitCode:
    """Verify ``target``; see ``lookout verify --help``."""
    config = load_config(config_path) if config_path.exists() or not is_address(target) else None
    name, config = with_target(target, config, suite)
    note = check_ci(config, name, environment, allowed=allow_production)
    if note:
        sys.stderr.write(f"{note}\n")
    if concurrency is not None:
        config = _changed(config, name, concurrency=concurrency)
    request = VerifyRequest(target=name, config=config, commit=commit, fresh=fresh)
    return verify_and_print(request, as_json=as_json)


def with_target(target: str, config: Config | None, suite: Path | None) -> tuple[str, Config]:
    """The target's name and a configuration that has it, with the suite of the command line when one was given."""
    if not is_address(target):
        if config is None:
            raise ConfigError(f"no target {target!r}: there is no configuration")
        found = config.target(target)
        if suite is not None:
            found = found.model_copy(update={"suite": suite.absolute()})
        return target, config.model_copy(update={"targets": {**config.targets, target: found}})
    known = {name: t for name, t in (config.targets if config else {}).items() if t.url == target}
    if known and suite is None and config is not None:
        return next(iter(known)), config
    if suite is None:
        raise ConfigError("an address needs its gold questions too: --suite questions.jsonl")
    name = name_of(target)
    page = TargetConfig(url=target, suite=suite.absolute())
    if config is None:
        return name, Config(data_folder=Path(".lookout").absolute(), targets={name: page})
    return name, config.model_copy(update={"targets": {**config.targets, name: page}})


def is_address(target: str) -> bool:
    """Whether a page is meant, and not a target of the configuration."""
    return target.startswith(("http://", "https://"))


def name_of(address: str) -> str:
    """A target's name for a page that has none: its address in letters, digits and hyphens."""
    bare = re.sub(r"^https?://", "", address)
    return re.sub(r"[^a-z0-9]+", "-", bare.lower()).strip("-")[:LONGEST_NAME].rstrip("-") or "page"


def _changed(config: Config, name: str, *, concurrency: int) -> Config:
    target = config.targets[name]
    probe = target.probe.model_copy(update={"concurrency": concurrency})
    changed = target.model_copy(update={"probe": probe})
    return config.model_copy(update={"targets": {**config.targets, name: changed}})
