"""Loads lookout.toml as a `Config`. Every error contains the wrong key and the accepted values.

The file contains no secrets: tokens and keys come from the environment or from Prefect blocks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from monitors.alerts.settings import AlertSettings, SilenceSettings, WatchdogSettings
from monitors.config.sections import (
    DeploySettings,
    DrillSettings,
    RecheckSettings,
    RepeatabilitySettings,
    ScheduleSettings,
    SiteSettings,
    WarehouseSettings,
)
from monitors.domains.pack import DEFAULT_DOMAINS, Domain, load_domain
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings
from monitors.github.api import GitHubSettings
from monitors.graders.base import GraderSettings
from monitors.judge.settings import JudgeSettings, ReviewSettings
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.settings import LangSmithSettings, TargetLangSmith, TracingSettings, parse_dataset_address
from monitors.probes.evidence_age import EvidenceSettings
from monitors.probes.settings import LoginSettings, ProbeSettings
from monitors.problems import (
    URL_CREDENTIALS,
    explain_validation_error,
    find_new_name_of_key,
    format_did_you_mean_hint,
    format_key_path_as_written,
)
from monitors.records.base import Identifier
from monitors.records.self_checks import DRILL_TARGET
from monitors.records.targets import Environment, HttpUrl, SpaceId, Target
from monitors.reports.settings import ReportsSettings
from monitors.sources.logs.settings import HallucinationLogSettings
from monitors.sources.settings import NightlySettings

FILE_NAME = "lookout.toml"
RENAMED_KEYS: Final = Path(__file__).with_name("renamed_keys.toml")
"""The file that maps old names of keys in lookout.toml to their new names."""


class TargetConfig(BaseModel):
    """`[targets.NAME]`: one monitored application."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: HttpUrl | None = Field(default=None, description="the address of the chat page or of the API")
    space: SpaceId | None = Field(
        default=None, description="a Hugging Face Space in the form owner/name, instead of url or in addition to it"
    )
    previous_url: HttpUrl | None = Field(
        default=None,
        description="address of the previous build. Lookout also asks this build the failed cases of severity 2 "
        "and 3, to see whether they failed before. {commit} is replaced with the commit of the last accepted run",
    )
    environment: Environment = Field(
        default=Environment.STAGING,
        description=("staging, or production if the application has real users. Alerts show this value"),
    )
    model_family: str | None = Field(
        default=None,
        description="family of the model that answers (claude, gpt, llama, …). A judge must come from a different "
        "model family",
    )
    suite: Path = Field(description="the file with the gold questions (JSON Lines format), relative to this file")
    domains: tuple[str, ...] = Field(
        default=DEFAULT_DOMAINS,
        description="domain packs, which define the vocabulary of the app's business: names of built-in packs, or "
        "paths of your own folders relative to this file, such as ./my_domain. [] means no pack",
    )
    probe: ProbeSettings = Field(default=ProbeSettings(), description="how Lookout asks the application")
    login: LoginSettings | None = Field(
        default=None, description="how Lookout signs in to the page. Without this table, it does not sign in"
    )
    graders: GraderSettings = Field(default=GraderSettings(), description="how Lookout grades the answers")
    hallucination_log: HallucinationLogSettings | None = Field(
        default=None,
        description="the application's own log of replies that it blocked. Without this table, Lookout reads no "
        "log",
    )

    traffic: NightlySettings | None = Field(
        default=None,
        description="stored conversations of real users, which Lookout grades every night. Without this table, "
        "Lookout grades no live traffic",
    )

    repeatability: RepeatabilitySettings = Field(
        default=RepeatabilitySettings(),
        description="how many cases Lookout asks twice, to measure how often answers differ by chance",
    )
    langsmith: TargetLangSmith | None = Field(
        default=None,
        description="the LangSmith projects with the agent's traces in staging and in production. With this "
        "table, Lookout asks the agent only in staging",
    )
    experiments: str | None = Field(
        default=None,
        description="the dataset of LangSmith or Langfuse to which Lookout adds each run of the suite as an "
        "experiment: langsmith:DATASET or langfuse:DATASET. Without this key, Lookout creates no experiments",
    )

    @property
    def domain(self) -> Domain:
        """The vocabulary of the target: the merged vocabularies of its domain packs."""
        return load_domain(self.domains)

    @field_validator("previous_url")
    @classmethod
    def _require_valid_placeholders(cls, url: str | None) -> str | None:
        unknown = set(re.findall(r"\{[^{}]*\}", url or "")) - {"{commit}"}
        if unknown:
            raise ValueError(f"an address with only {{commit}} in braces, without {', '.join(sorted(unknown))}")
        if re.search(r":[^/@]*\{commit\}", (url or "").partition("://")[2].partition("/")[0]):
            raise ValueError("an address with a number as the port. Use {commit} only in the host or the path")
        return url

    @field_validator("url", "previous_url")
    @classmethod
    def _require_no_password(cls, url: str | None) -> str | None:
        if url is not None and URL_CREDENTIALS.search(url):
            raise ValueError(
                "an address without user name and password. Put the credentials in the environment "
                "([targets.NAME.login] or LOOKOUT_API_TOKEN), because other people can see this file and the "
                "parameters of a run"
            )
        return url

    @field_validator("experiments")
    @classmethod
    def _normalise_dataset_address(cls, written: str | None) -> str | None:
        try:
            return None if written is None else str(parse_dataset_address(written))
        except ConfigError as error:
            raise ValueError(f"the address of a dataset: {error}") from None

    def with_suite(self, suite: Path) -> Self:
        """Return a copy of the target with another suite."""
        return self.model_copy(update={"suite": suite})

    def with_probe(self, probe: ProbeSettings) -> Self:
        """Return a copy of the target with other probe settings."""
        return self.model_copy(update={"probe": probe})

    def with_address_instead_of_space(self, address: str) -> Self:
        """Return a copy of the target that has ``address`` instead of a Hugging Face Space."""
        return self.model_copy(update={"url": address, "space": None})

    @model_validator(mode="after")
    def _require_browser_for_login(self) -> Self:
        if self.login is not None and self.probe.driver != "browser":
            raise ValueError(
                "remove the login. Lookout can sign in only on a page (probe.driver = 'browser'), not with "
                f"probe.driver = {self.probe.driver!r}"
            )
        return self


PREFECT_TAG: Final = "lookout"


class PrefectSettings(BaseModel):
    """`[prefect]`: the Prefect server that records runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_url: HttpUrl | None = Field(
        default=None,
        description=(
            "address of a Prefect server's API (http://host:4200/api). Without an address, Lookout "
            "starts a local server"
        ),
    )
    start_timeout_s: float = Field(
        default=300,
        gt=0,
        description="maximum time in seconds for the start of a local server. On an idle machine, the start takes "
        "15 s",
    )
    prefix: str = Field(
        default="",
        max_length=30,
        description="prefix of the names that this installation uses on a shared Prefect server, such as "
        '"team-a". Only lowercase letters, digits and single dashes are accepted',
    )

    @field_validator("prefix")
    @classmethod
    def _require_valid_prefix(cls, prefix: str) -> str:
        if prefix and not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", prefix):
            raise ValueError(
                'lowercase letters, digits and single dashes, with a letter at the beginning, such as "team-a"'
            )
        return prefix

    @property
    def tag(self) -> str:
        """The tag of this installation's deployments, which is also the prefix of its other names in Prefect."""
        return f"{PREFECT_TAG}-{self.prefix}" if self.prefix else PREFECT_TAG

    def add_prefix(self, name: str) -> str:
        """Return ``name`` with the prefix of this installation."""
        return f"{self.prefix}-{name}" if self.prefix else name


class Config(BaseModel):
    """The content of lookout.toml. Paths are absolute after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_folder: Path = Field(
        default=Path(".lookout"),
        description="the folder in which Lookout stores journal, warehouse and runs, relative to this file",
    )
    targets: dict[Identifier, TargetConfig] = Field(min_length=1, description="the monitored applications, by name")
    gate: GateSettings = Field(default=GateSettings(), description="the requirements that a run must meet")
    judge: JudgeSettings | None = Field(
        default=None,
        description="the model that judges the answers that rules cannot grade. Without this table, there is no "
        "judge",
    )
    recheck: RecheckSettings = Field(
        default=RecheckSettings(), description="how Lookout asks failed cases again after the verdict"
    )
    review: ReviewSettings = Field(
        default=ReviewSettings(), description="the share of graded answers that people review"
    )
    reports: ReportsSettings = Field(default=ReportsSettings(), description="the size limits of the reports")
    alerts: AlertSettings = Field(default=AlertSettings(), description="where Lookout sends alerts, and how often")
    silences: tuple[SilenceSettings, ...] = Field(
        default=(), description="recurring silences: weekly periods without alerts about matching incidents"
    )
    watchdog: WatchdogSettings = Field(default=WatchdogSettings(), description="alerts about Lookout itself")
    warehouse: WarehouseSettings = Field(
        default=WarehouseSettings(), description="how long data is stored, and where it is exported"
    )
    evidence: EvidenceSettings = Field(
        default=EvidenceSettings(), description="how long screenshots and traces are stored"
    )
    deploys: DeploySettings = Field(
        default=DeploySettings(), description="which deploys start a verification, and who may report deploys"
    )
    github: GitHubSettings = Field(
        default=GitHubSettings(), description="how results are posted to the pull requests of deploys"
    )
    langsmith: LangSmithSettings | None = Field(
        default=None,
        description="access to LangSmith for datasets, experiments and traces of evaluations, and the production "
        "project, which evaluations must not use",
    )
    langfuse: LangfuseSettings | None = Field(
        default=None,
        description="the Langfuse project for datasets and experiments, and the production project, which "
        "Lookout must not use",
    )
    schedules: ScheduleSettings = Field(default=ScheduleSettings(), description="the schedules of the daily work")
    drill: DrillSettings = Field(
        default=DrillSettings(),
        description="the schedule of the drills, which test the alert path with a planted wrong answer",
    )
    prefect: PrefectSettings = Field(default=PrefectSettings(), description="the Prefect server that records runs")
    site: SiteSettings = Field(default=SiteSettings(), description="the address of the site")

    @model_validator(mode="after")
    def _require_langsmith_project(self) -> Self:
        for name, target in self.targets.items():
            try:
                if target.langsmith is not None:
                    target.langsmith.merge_defaults(self.langsmith)
            except ValueError as error:
                raise ValueError(f"targets.{name}.langsmith.{error}") from None
        return self

    @model_validator(mode="after")
    def _require_prefixed_deployment(self) -> Self:
        flow, _, name = self.deploys.deployment.partition("/")
        start = self.prefect.add_prefix("")
        is_own = flow == "verify-deploy" and "deployment" in self.deploys.model_fields_set
        if is_own and not name.startswith(start):
            raise ValueError(
                f"deploys.deployment: with prefect.prefix = {self.prefect.prefix!r}, the name of a verify-deploy "
                f"deployment must begin with {start!r}: set verify-deploy/{start}{name}, or remove the key"
            )
        return self

    @model_validator(mode="after")
    def _require_known_silence_targets(self) -> Self:
        for number, silence in enumerate(self.silences):
            if silence.target is not None and silence.target not in self.targets:
                raise ValueError(
                    f"silences.{number}.target: target {silence.target!r} does not exist"
                    f"{format_did_you_mean_hint(silence.target, self.targets)}; accepted: {', '.join(self.targets)}"
                )
        return self

    @field_validator("targets")
    @classmethod
    def _refuse_drill_target(cls, targets: dict[str, TargetConfig]) -> dict[str, TargetConfig]:
        if DRILL_TARGET in targets:
            raise ValueError(f"choose another target name: {DRILL_TARGET} is reserved for the drills of Lookout")
        return targets

    def find_tracing_settings_with_defaults(self, target: str) -> TracingSettings | None:
        """Return a target's tracing settings, or ``None`` if the target has no table ``langsmith``.

        Values that are missing in this table come from the table `[langsmith]`.
        """
        own = self.require_target(target).langsmith
        return None if own is None else own.merge_defaults(self.langsmith)

    def with_target(self, name: str, target: TargetConfig) -> Self:
        """Return a copy of the configuration that contains ``target`` under the name ``name``."""
        return self.model_copy(update={"targets": {**self.targets, name: target}})

    def with_gate_without_github_posts(self, gate: GateSettings) -> Self:
        """Return a copy of the configuration for a CI job, whose gate settings are ``gate``.

        With this configuration, the run posts nothing to GitHub, because the CI job posts the results.
        """
        silent = self.github.model_copy(update={"post_results": False})
        return self.model_copy(update={"gate": gate, "github": silent})

    def with_main_channel_only(self) -> Self:
        """Return a copy of the configuration without the separate Slack channel for faults of Lookout.

        The application's channel then gets all alerts.
        """
        return self.model_copy(update={"alerts": self.alerts.model_copy(update={"slack_monitor_channel": None})})

    def require_target(self, name: str) -> TargetConfig:
        """Return the target with this name.

        If the target does not exist, raise a `ConfigError` that lists the existing names.
        """
        target_config = self.targets.get(name)
        if target_config is None:
            raise ConfigError(
                f"target {name!r} does not exist{format_did_you_mean_hint(name, self.targets)}; accepted: "
                f"{', '.join(self.targets)}"
            )
        return target_config


def build_target_record(name: str, configured: TargetConfig) -> Target:
    """Build the target's record, which is part of the record of each run."""
    return Target(
        name=name,
        url=configured.url,
        space=configured.space,
        environment=configured.environment,
        model_family=configured.model_family,
    )


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises a `ConfigError` that contains the file, the key, the value and the accepted values.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors on Windows put a byte-order mark before it
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist. Run `lookout init`, or use --config for another file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}; {_format_toml_advice(text)}") from error
    config = _resolve_paths(parse_config(values, str(path)), path.resolve().parent)
    if config.prefect.prefix and "deployment" not in config.deploys.model_fields_set:
        name = f"verify-deploy/{config.prefect.add_prefix('verify-deploy')}"
        config = config.model_copy(update={"deploys": config.deploys.model_copy(update={"deployment": name})})
    for name, target in config.targets.items():
        _check_domain_packs(target, f"{path}: targets.{name}.domains")
    return config


def _format_toml_advice(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if re.match(r"\s*(?:---|[\w-]+:(?:\s|$))", first):
        return "this looks like YAML. TOML needs [targets.bot] and key = value. `lookout init` writes a valid file"
    return "fix this line (see docs/configuration.md)"


def _check_domain_packs(target: TargetConfig, place: str) -> None:
    try:
        load_domain(target.domains)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def parse_config(values: Mapping[str, Any], source: str, *, renamed_keys: Path = RENAMED_KEYS) -> Config:
    """Parse the values of a configuration. Raises `ConfigError` with all wrong keys at once.

    ``source`` is the file name to show in errors. ``renamed_keys`` is the path of the file that maps the old names
    of keys to their new names.
    """
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        renamed = tomllib.loads(renamed_keys.read_text(encoding="utf-8"))
        lines = dict.fromkeys(
            explain_validation_error(Config, dict(detail), renamed)
            for detail in _list_errors_without_followups(error, renamed)
        )
        raise ConfigError("\n".join(f"{source}: {line}" for line in lines)) from None


def _list_errors_without_followups(error: ValidationError, renamed: Mapping[str, str]) -> list[ErrorDetails]:
    """List the errors, but omit an error that only follows from another error. Each mistake then gives one line.

    - A missing key is not listed if a misspelled or renamed key explains why the key is missing.
    - A list that is too short is not listed if its items have errors.
    """
    errors = error.errors()
    unknown = [detail["loc"] for detail in errors if detail["type"] == "extra_forbidden"]
    new_names = {find_new_name_of_key(format_key_path_as_written(Config, place), renamed) for place in unknown}

    def follows(detail: ErrorDetails) -> bool:
        place = detail["loc"]
        if detail["type"] == "too_short":
            return any(
                unknown_place["loc"][: len(place)] == place
                for unknown_place in errors
                if unknown_place is not detail
            )
        beside = (str(unknown_place[-1]) for unknown_place in unknown if unknown_place[:-1] == place[:-1])
        is_renamed = format_key_path_as_written(Config, place) in new_names
        return detail["type"] == "missing" and (
            is_renamed or any(format_did_you_mean_hint(name, [str(place[-1])]) for name in beside)
        )

    return [detail for detail in errors if not follows(detail)]


def _resolve_paths(config: Config, folder: Path) -> Config:
    targets = {name: _resolve_target_paths(folder, target) for name, target in config.targets.items()}
    settings = config.warehouse
    if settings.export_folder is not None:
        settings = settings.model_copy(update={"export_folder": folder / settings.export_folder})
    return config.model_copy(
        update={"data_folder": folder / config.data_folder, "targets": targets, "warehouse": settings}
    )


def _resolve_target_paths(folder: Path, target: TargetConfig) -> TargetConfig:
    log = target.hallucination_log
    if log is not None and not log.is_remote:
        log = log.model_copy(update={"at": str(folder / log.at)})
    traffic = target.traffic.resolve_paths(folder) if target.traffic is not None else None
    domains = tuple(str(folder / name) if "/" in name else name for name in target.domains)
    return target.model_copy(
        update={"suite": folder / target.suite, "domains": domains, "hallucination_log": log, "traffic": traffic}
    )
