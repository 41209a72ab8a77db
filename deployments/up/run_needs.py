"""Checks of the variables and settings that runs need. ``lookout up`` runs these checks before it starts.

Without the checks, a missing variable would be noticed only when the first nightly run fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from flows.runtime.judge import build_judge_plan, refuse_rating_without_judge
from flows.runtime.run import open_experiment_platform
from flows.runtime.secrets import AGE_KEY_VARIABLE
from monitors.config.file import Config, TargetConfig, build_target_record
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, parse_dataset_address
from monitors.probes.browser.login import read_login_secret
from monitors.records.targets import Target
from monitors.request_headers import HeaderTable, build_request_headers
from monitors.sources.privacy import PrivacyMode
from monitors.sources.traffic.settings import FileTraffic, HttpTraffic, LangSmithTraffic, TrafficSettings

Check = Callable[[], object]
"""A function that raises a `MonitorError` with the name of the target, key or variable that is missing or wrong."""


def list_verify_checks(config: Config, name: str, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yield the checks for everything that a verification run of a target needs.

    Each variable has its own check, so that all missing variables are reported.
    """
    target, place = config.targets[name], f"targets.{name}"
    yield partial(_check_judge, config, build_target_record(name, target), environment)
    if target.probe.driver != "browser":
        yield from _list_header_checks(target.probe.headers, environment, f"{place}.probe.headers")
    if target.login is not None:
        for key, named in target.login.secrets():
            yield partial(read_login_secret, f"{place}.login.{key}", named, environment)
    tracing = config.find_tracing_settings_with_defaults(name)
    if tracing is not None:
        yield partial(
            require_variable_is_set,
            tracing.key_env,
            environment,
            f"{place}.langsmith (key_env) needs it to read traces",
        )
    if target.experiments is not None:
        yield from _list_platform_checks(config, target.experiments, environment, f"{place}.experiments")
    yield partial(refuse_production_settings, config, name, environment)


def list_traffic_checks(name: str, target: TargetConfig, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yield the checks for everything that a nightly run of a target's live traffic needs."""
    if target.traffic is None:
        return
    place = f"targets.{name}.traffic"
    if target.traffic.privacy is PrivacyMode.PSEUDONYMISE:
        yield partial(
            require_variable_is_set, AGE_KEY_VARIABLE, environment, f"{place}.privacy = pseudonymise needs it"
        )
    for source_name, source in target.traffic.sources.items():
        yield from _list_source_checks(source, environment, f"{place}.sources.{source_name}")


def require_variable_is_set(variable: str, environment: Mapping[str, str], why: str) -> None:
    """Raise a `ConfigError` with the text ``why`` if a variable is missing or empty."""
    if not environment.get(variable):
        raise ConfigError(f"{variable} is not set: {why}")


def _check_judge(config: Config, target: Target, environment: Mapping[str, str]) -> None:
    refuse_rating_without_judge(config, build_judge_plan(config.judge, target, environment))


def _list_header_checks(table: HeaderTable, environment: Mapping[str, str], key: str) -> Iterator[Check]:
    for name, header in table.items():
        yield partial(build_request_headers, {name: header}, environment, key=key)


def _list_platform_checks(
    config: Config, written: str, environment: Mapping[str, str], place: str
) -> Iterator[Check]:
    scheme = parse_dataset_address(written).scheme
    if scheme is PlatformScheme.LANGSMITH:
        variables = ((config.langsmith or LangSmithSettings()).key_env,)
    elif config.langfuse is not None:
        variables = (config.langfuse.public_key_env, config.langfuse.secret_key_env)
    else:  # the driver's table is missing
        variables = ()
        yield partial(open_experiment_platform, config, scheme, environment)
    for variable in variables:
        yield partial(require_variable_is_set, variable, environment, f"{place} = {written!r} needs it")


def _list_source_checks(source: TrafficSettings, environment: Mapping[str, str], place: str) -> Iterator[Check]:
    match source:
        case LangSmithTraffic():
            yield partial(require_variable_is_set, source.key_env, environment, f"{place}.key_env requires it")
        case FileTraffic() | HttpTraffic():
            if source.token_env is not None:
                yield partial(
                    require_variable_is_set, source.token_env, environment, f"{place}.token_env requires it"
                )
            if isinstance(source, HttpTraffic):
                yield from _list_header_checks(source.headers, environment, f"{place}.headers")
        case _:  # a page needs no variable
            pass
