"""In CI nothing of production's is touched: a run whose settings point there stops before its first request.

Production's is a target that says so, an address on the host of one that does, the channel that production's alerts
go to, and the watchdog that must ring when production's monitor is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from flows.alert_wiring import FALLBACK_VARIABLE, TOKEN_VARIABLE, WEBHOOK_VARIABLE
from flows.wiring import HEARTBEAT_VARIABLE
from monitors.config import Config, target_record
from monitors.errors import ConfigError
from monitors.github.workflow import is_ci
from monitors.records.targets import Environment

FLAG = "--allow-production"
LEAST_REASON = 10
"""Characters: enough for a ticket and a word."""


def check_ci(config: Config, target: str, environment: Mapping[str, str], *, allowed: str | None) -> str | None:
    """Raises `ConfigError` naming everything of production's that a run of ``target`` in CI would touch.

    With ``allowed``, a reason, it goes on; what is to be said about that is returned. Outside CI all is well.
    """
    if allowed is not None and len(allowed.strip()) < LEAST_REASON:
        raise ConfigError(f"{FLAG}: give the reason, in at least {LEAST_REASON} characters")
    if not is_ci(environment):
        return None
    found = list(_of_production(config, target, environment))
    if not found:
        return None
    if allowed is not None:
        return f"Going on against production, because: {allowed.strip()}"
    told = "".join(f"\n  {line}" for line in found)
    raise ConfigError(
        f"this is a CI run, and its settings point at production; nothing was asked.{told}\n"
        f"If it must be, {FLAG} with a reason lets it."
    )


def _of_production(config: Config, target: str, environment: Mapping[str, str]) -> Iterator[str]:
    production = {name for name, one in config.targets.items() if one.environment is Environment.PRODUCTION}
    if target in production:
        yield (
            f'targets.{target}.environment is "production": name a staging target, or say environment = "staging" '
            "if it is one"
        )
    host = _host(config, target)
    for name in sorted(production - {target}):
        if _host(config, name) == host:
            yield f"{host} is where targets.{name} runs, which is production: give the address of a staging deploy"
    slack = [name for name in (TOKEN_VARIABLE, WEBHOOK_VARIABLE, FALLBACK_VARIABLE) if environment.get(name)]
    if slack and production:
        yield (
            f"{' and '.join(slack)} would send this run's alerts to where production's go: leave it out of the "
            "job, or use a configuration without production's targets"
        )
    if environment.get(HEARTBEAT_VARIABLE):
        yield f"{HEARTBEAT_VARIABLE} would tell the watchdog that the monitor lives: leave it out of the job"


def _host(config: Config, target: str) -> str:
    """Host and port in small letters: hosts ignore case."""
    return urlsplit(target_record(target, config.target(target)).address).netloc.lower()
