"""Refuses a run that would use the project, the address or a key of production.

In such a run, the questions of the suite would count as questions of production's users.

- For a target with `[targets.NAME.langsmith]`, the project, the address and the key are checked before the first
  request.
- For a run that writes an experiment, the project and the key of `[langsmith]` are checked.
- A nightly run may read production's stored traffic, because a nightly run sends no questions to the application.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from monitors.config.file import Config, build_target_record
from monitors.errors import ConfigError
from monitors.judge.settings import JudgeSettings
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, TracingSettings, parse_dataset_address
from monitors.records.targets import Environment
from monitors.sources.traffic.settings import LangSmithTraffic


def refuse_production_settings(config: Config, target: str, environment: Mapping[str, str]) -> None:
    """Raise a `ConfigError` if a run of ``target`` would share a project, an address or a key with production.

    The error lists all of these conflicts. Keys are compared by their values in ``environment``. The error does not
    contain these values.
    """
    tracing, experiments = (
        config.find_tracing_settings_with_defaults(target),
        find_langsmith_experiment_settings(config, target),
    )
    conflicts = list(_iterate_address_conflicts(config, target, tracing)) if tracing is not None else []
    for settings in (tracing, experiments):
        if settings is not None:
            conflicts += [
                *iterate_production_conflicts(settings, environment),
                *_iterate_traffic_source_conflicts(config, settings, environment),
            ]
    if config.langsmith is not None:
        conflicts += iterate_production_conflicts(config.langsmith, environment)
    conflicts += iterate_judge_key_conflicts(config.judge, environment)
    if conflicts:
        why = " The run writes experiments." if experiments else ""
        why = " A target with a table `langsmith` may run only against staging." if tracing else why
        problems = "".join(f"\n  {line}" for line in dict.fromkeys(conflicts))
        raise ConfigError(
            f"targets.{target}: a run would use production's settings, so Lookout does not start it.{why}{problems}"
        )


def iterate_production_conflicts(settings: LangSmithSettings, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a message for each LangSmith project or key that staging shares with production.

    ``settings`` contains the names of the two projects and of the two key variables. ``environment`` contains the
    keys.
    """
    own_project = (_normalise_host_and_port(settings.api_url), settings.project)
    where = settings.production_api_url or settings.api_url
    if (
        settings.project is not None
        and (_normalise_host_and_port(where), settings.production_project) == own_project
    ):
        yield f"langsmith.project and production_project are both {settings.project!r}: set the staging project"
    own_key, named = environment.get(settings.key_env), settings.production_key_env
    if named == settings.key_env:
        yield f"langsmith.key_env and langsmith.production_key_env are both {named}: set a variable for each key"
    elif named is not None and own_key and environment.get(named) == own_key:
        yield (
            f"{settings.key_env} (langsmith.key_env) has the same value as {named}, the production key: "
            "set a separate key"
        )


def iterate_judge_key_conflicts(judge: JudgeSettings | None, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a message for each judge that uses a production key."""
    for model in judge.models if judge is not None else ():
        for named in judge.production_key_variables if judge is not None else ():
            variable = model.key_variable_or_default
            own_key = environment.get(variable)
            if named == variable or (own_key and environment.get(named) == own_key):
                same = "is" if named == variable else f"has the same value as {named},"
                yield f"{variable}, the key of judge {model.model}, {same} the production key: set a different key"


def find_langsmith_experiment_settings(config: Config, target: str) -> LangSmithSettings | None:
    """Return the settings of the LangSmith workspace for a target's experiments.

    Return ``None`` if the target writes no experiments to LangSmith.
    """
    written = config.require_target(target).experiments
    if written is None or parse_dataset_address(written).scheme is not PlatformScheme.LANGSMITH:
        return None
    return config.langsmith or LangSmithSettings()


def refuse_production_previous_url(config: Config, target: str, address: str) -> None:
    """Raise `ConfigError` if ``address``, the address of the previous build of ``target``, belongs to production.

    A target without a table ``langsmith`` is not checked.
    """
    tracing = config.find_tracing_settings_with_defaults(target)
    conflicts = (
        []
        if tracing is None
        else list(_iterate_production_host_conflicts(config, target, tracing, {_normalise_host_and_port(address)}))
    )
    if conflicts:
        raise ConfigError(f"targets.{target}.previous_url: {'; '.join(conflicts)}")


def _iterate_address_conflicts(config: Config, target: str, settings: TracingSettings) -> Iterator[str]:
    if config.require_target(target).environment is Environment.PRODUCTION:
        yield f'targets.{target}.environment is "production": choose a staging target'
    own = _normalise_host_and_port(build_target_record(target, config.require_target(target)).address)
    other_addresses = (config.require_target(target).probe.job.url, config.require_target(target).previous_url)
    yield from _iterate_production_host_conflicts(
        config,
        target,
        settings,
        {own, *(_normalise_host_and_port(address) for address in other_addresses if address)},
    )


def _iterate_production_host_conflicts(
    config: Config, target: str, settings: TracingSettings, own_hosts: set[str]
) -> Iterator[str]:
    if settings.production_url is not None and _normalise_host_and_port(settings.production_url) in own_hosts:
        host = _normalise_host_and_port(settings.production_url)
        yield f"{host} is langsmith.production_url: set the address of a staging deploy"
    for name in _list_production_targets(config):
        host = _normalise_host_and_port(build_target_record(name, config.require_target(name)).address)
        if name != target and host in own_hosts:
            yield (
                f"{host} is the host of the production target targets.{name}: set the address of a staging deploy"
            )


def _iterate_traffic_source_conflicts(
    config: Config, settings: LangSmithSettings, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield a message for each source of production traffic whose project or key is also in ``settings``.

    ``settings`` are the LangSmith settings of the target that the run asks.
    """
    own_project, own_key = (
        (_normalise_host_and_port(settings.api_url), settings.project),
        environment.get(settings.key_env),
    )
    for place, source in _iterate_production_langsmith_sources(config):
        if (
            settings.project is not None
            and (_normalise_host_and_port(source.api_url), source.project) == own_project
        ):
            yield (
                f"langsmith.project is {settings.project!r}, but {place} reads production from this project: "
                "set a different project"
            )
        if own_key and environment.get(source.key_env) == own_key:
            yield (
                f"{place} reads production with the key in {settings.key_env} (langsmith.key_env): set a different "
                "key"
            )


def _list_production_targets(config: Config) -> list[str]:
    return sorted(
        name
        for name, target_config in config.targets.items()
        if target_config.environment is Environment.PRODUCTION
    )


def _iterate_production_langsmith_sources(config: Config) -> Iterator[tuple[str, LangSmithTraffic]]:
    """Yield the settings of the LangSmith sources that contain the stored traffic of production targets."""
    for name in _list_production_targets(config):
        traffic = config.require_target(name).traffic
        for source_name, source in (traffic.sources if traffic else {}).items():
            if isinstance(source, LangSmithTraffic):
                yield f"targets.{name}.traffic.sources.{source_name}", source


def _normalise_host_and_port(address: str) -> str:
    """Return the ``host:port`` of an address in lower case, because case does not matter in host names."""
    parts = urlsplit(address)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{(parts.hostname or '').lower()}:{port}"
