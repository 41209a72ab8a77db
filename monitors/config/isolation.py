"""Refuse a run that would use production's project, address or key, so that a suite is asked of staging only.

A suite's questions in production's traces would count as its users'. So with `[targets.NAME.langsmith]` a run is
refused before its first request if project, address or key are production's. For a run that appears in LangSmith as
an experiment, project and key of `[langsmith]` are checked. Reading production's stored traffic at night is
allowed, because it does not ask the application.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, TracingSettings, parse_dataset_address
from monitors.records.targets import Environment
from monitors.sources.traffic.settings import LangSmithTraffic


def refuse_production(config: Config, target: str, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` with everything that a run of ``target`` would share with production.

    A target without a table ``langsmith`` and without ``experiments`` is not checked. Keys are compared by their
    values in ``environment``, which no message shows; a key that is not set cannot be used by mistake.
    """
    tracing, experiments = config.tracing(target), find_experiment_settings(config, target)
    conflicts = list(_explain_address_conflicts(config, target, tracing)) if tracing is not None else []
    for settings in (tracing, experiments):
        if settings is not None:
            conflicts += [
                *_explain_project_conflicts(config, settings),
                *_explain_key_conflicts(config, settings, environment),
            ]
    if conflicts:
        staging = "has a table `langsmith`, so Lookout may ask only staging,"
        why = staging if tracing else "writes experiments,"
        problems = "".join(f"\n  {line}" for line in dict.fromkeys(conflicts))
        raise ConfigError(
            f"targets.{target} {why}, and this run would use production's settings. Lookout asked nothing. "
            f"Problems:{problems}"
        )


def find_experiment_settings(config: Config, target: str) -> LangSmithSettings | None:
    """Find the LangSmith workspace for a target's experiments; ``None`` if it has none in LangSmith."""
    written = config.target(target).experiments
    if written is None or parse_dataset_address(written).scheme is not PlatformScheme.LANGSMITH:
        return None
    return config.langsmith or LangSmithSettings()


def refuse_production_at(config: Config, target: str, address: str) -> None:
    """Raise `ConfigError` if ``address``, at which another build of ``target`` answers, is production's.

    As with `refuse_production`, a target without a table ``langsmith`` is not checked.
    """
    tracing = config.tracing(target)
    conflicts = (
        [] if tracing is None else list(_explain_production_hosts(config, target, tracing, {_parse_host(address)}))
    )
    if conflicts:
        raise ConfigError(f"targets.{target}.previous_url: {'; '.join(conflicts)}")


def _explain_address_conflicts(config: Config, target: str, settings: TracingSettings) -> Iterator[str]:
    if config.target(target).environment is Environment.PRODUCTION:
        yield f'targets.{target}.environment is "production": choose a staging target'
    own = _parse_host(build_target_record(target, config.target(target)).address)
    other_addresses = (config.target(target).probe.job.url, config.target(target).previous_url)
    yield from _explain_production_hosts(
        config, target, settings, {own, *(_parse_host(address) for address in other_addresses if address)}
    )


def _explain_production_hosts(
    config: Config, target: str, settings: TracingSettings, own_hosts: set[str]
) -> Iterator[str]:
    if settings.production_url is not None and _parse_host(settings.production_url) in own_hosts:
        host = _parse_host(settings.production_url)
        yield f"{host} is langsmith.production_url: give the address of a staging deploy"
    for name in _list_production_targets(config):
        host = _parse_host(build_target_record(name, config.target(name)).address)
        if name != target and host in own_hosts:
            yield (
                f"{host} is the host of the production target targets.{name}: give the address of a staging deploy"
            )


def _explain_project_conflicts(config: Config, settings: LangSmithSettings) -> Iterator[str]:
    if settings.project is None:
        return
    own_project = (_parse_host(settings.api_url), settings.project)
    where = settings.production_api_url or settings.api_url
    if settings.production_project is not None and (_parse_host(where), settings.production_project) == own_project:
        yield f"langsmith.project {settings.project!r} is also production_project: set it to the staging project"
    for place, source in _list_production_sources(config):
        if (_parse_host(source.api_url), source.project) == own_project:
            yield f"langsmith.project {settings.project!r} is the production project that {place} reads"


def _explain_key_conflicts(
    config: Config, settings: LangSmithSettings, environment: Mapping[str, str]
) -> Iterator[str]:
    own_key = environment.get(settings.key_env)
    if not own_key:
        return
    named = settings.production_key_env
    if named is not None and environment.get(named) == own_key:
        yield f"the key in {settings.key_env} (langsmith.key_env) is the production key in {named}"
    for place, source in _list_production_sources(config):
        if environment.get(source.key_env) == own_key:
            yield (
                f"the key in {settings.key_env} (langsmith.key_env) is the key with which {place} reads production"
            )


def _list_production_targets(config: Config) -> list[str]:
    return sorted(
        name
        for name, target_config in config.targets.items()
        if target_config.environment is Environment.PRODUCTION
    )


def _list_production_sources(config: Config) -> Iterator[tuple[str, LangSmithTraffic]]:
    """Yield the LangSmith projects from which production targets' stored traffic is read."""
    for name in _list_production_targets(config):
        traffic = config.target(name).traffic
        for source_name, source in (traffic.sources if traffic else {}).items():
            if isinstance(source, LangSmithTraffic):
                yield f"targets.{name}.traffic.sources.{source_name}", source


def _parse_host(address: str) -> str:
    """Return host and port in lower case, because hosts ignore case."""
    parts = urlsplit(address)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{(parts.hostname or '').lower()}:{port}"
