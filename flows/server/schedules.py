"""Plans the Prefect deployments of a configuration: what runs when, and with which parameters.

    verify-deploy           when a deploy is reported     verify-deploy/verify-deploy
    scheduled-verify-TARGET every night                   verify-deploy/scheduled-verify-TARGET
    repeatability-TARGET    every night                   measure-repeatability/repeatability-TARGET
    grade-traffic-TARGET    every night, with traffic     grade-traffic/grade-traffic-TARGET
    follow-log              on new lines, and every hour   follow-log/follow-log
    watch-deploys           every hour (Space, GitHub)     watch-deploys/watch-deploys
    load-warehouse, digest  every day                     load-warehouse/load-warehouse, digest/digest
    fire-drill              every week                    fire-drill/fire-drill

Prefect shows parameters to everyone who can open its UI. Therefore the parameters contain names and paths, but no
secrets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from flows.deploys.github_deployments import select_triggers_polled_at_github
from flows.repeatability.targets import list_measured_targets
from monitors.config.file import Config
from monitors.config.sections import ScheduleSettings, is_due_every_day
from monitors.records.base import Record, UtcTime

SIGN_OF_LIFE_S: Final = 3600.0
"""Interval in seconds between the scheduled runs of each watcher job. These runs show that the job works.

The watcher (`flows.watching`) starts the job earlier if the watcher finds something new.
"""
SIGN_OF_LIFE_LATE_S: Final = 2 * SIGN_OF_LIFE_S
DAY_S: Final = 86_400.0
VERIFY: Final = "verify-deploy"
DRILL: Final = "fire-drill"
FOLLOW_LOG: Final = "follow-log"
WATCH_DEPLOYS: Final = "watch-deploys"
SCHEDULE_SLUG: Final = "lookout"
"""The name of each deployment's only schedule. Prefect and Lookout identify the schedule by this name."""
PAUSED_TAG: Final = "paused-since:"
UTC_ZONE: Final = "UTC"


class Cron(Record):
    """A schedule that runs at the times of a cron expression in a time zone."""

    line: str
    time_zone: str


class Every(Record):
    """A schedule that runs every ``seconds`` seconds."""

    seconds: float


class Pause(Record):
    """What a person paused in Prefect: the deployment, its schedule, or both.

    ``since`` is the time of the pause, or ``None`` if nothing is paused.
    """

    is_paused: bool = False
    is_schedule_active: bool = True
    since: UtcTime | None = None

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag with the time of the pause.

        The tag is needed, because the time that Prefect stores changes at the next registration.
        """
        return (f"{PAUSED_TAG}{self.since:%Y-%m-%dT%H:%M:%SZ}",) if self.since is not None else ()


NOT_PAUSED: Final = Pause()


_MODULES = {
    "verify_deploy": "flows.verify.flow",
    "measure_repeatability": "flows.repeatability.flow",
    "grade_traffic": "flows.nightly.flow",
    "follow_log": "flows.hallucination_log.flow",
    "watch_deploys": "flows.deploys.flow",
    "load_warehouse": "flows.maintenance.flow",
    "digest": "flows.digest.flow",
    "fire_drill": "flows.drill.flow",
}
"""The Python module of each flow, by the name of the flow's function."""

_PURPOSES: Final = {
    "verify-deploy": "asks {target} the whole suite; may send alerts",
    "measure-repeatability": (
        "asks {target} some cases twice to measure repeatability; sends an alert only if the run fails"
    ),
    "grade-traffic": "grades the conversations of {target}; asks no questions; may send alerts",
    "follow-log": "reads the hallucination logs; asks no questions; may send alerts",
    "watch-deploys": "polls the deployed commits; asks no questions; sends an alert only if the poll fails",
    "load-warehouse": (
        "loads and checks the warehouse and removes old personal data; asks no questions; sends an alert only "
        "on a fault"
    ),
    "digest": "sends one message for each target; asks no questions",
    "fire-drill": "asks only its own page, with a planted wrong answer; sends one message to test the alert path",
}
"""The purpose of each flow, for the owner of the application."""


class PlannedDeployment(Record):
    """A planned deployment: the ``flow``, its schedule and its parameters.

    The flow's function has the flow's name with ``_`` instead of ``-``. People are notified if no run completes for
    ``late_after_s`` seconds. ``late_after_s`` is ``None`` without a schedule, and for a cron expression that is not
    daily.
    """

    name: str
    flow: str
    when: Cron | Every | None = None
    parameters: Mapping[str, Any] = {}
    tags: tuple[str, ...] = ()
    late_after_s: float | None = None
    tag: str
    """The tag of this installation's deployments (`PrefectSettings.tag`).

    A shared server also has other deployments.
    """

    @property
    def module(self) -> str:
        """The Python module that contains the flow."""
        return _MODULES[self.function]

    @property
    def function(self) -> str:
        """The function of the flow."""
        return self.flow.replace("-", "_")

    @property
    def run_limit(self) -> int | None:
        """Maximum number of concurrent runs, or ``None`` without a limit.

        If several scheduled runs of a target are late, only one run starts, and this run skips all other late runs.
        """
        is_of_target = any(tag.startswith("target:") for tag in self.tags)
        return 1 if is_of_target and isinstance(self.when, Cron) else None

    def is_about(self, target: str) -> bool:
        """Return whether the deployment works for ``target``, alone or together with all other targets."""
        return is_about(self.tags, target)

    @property
    def purpose(self) -> str:
        """The purpose of the deployment. It says whether the deployment asks the bot and may send alerts."""
        request = self.parameters.get("request", self.parameters)
        return _PURPOSES[self.flow].format(target=request.get("target", "the deployed target"))

    @property
    def full_name(self) -> str:
        """The name in the form ``flow/name``, which Prefect and the setting ``deploys.deployment`` use."""
        return f"{self.flow}/{self.name}"


def is_about(tags: Collection[str], target: str) -> bool:
    """Return whether a deployment with these tags works for ``target``, alone or with all other targets."""
    return f"target:{target}" in tags or not any(tag.startswith("target:") for tag in tags)


def plan_deployments(
    config: Config, config_path: Path, settings: ScheduleSettings
) -> tuple[PlannedDeployment, ...]:
    """Plan all deployments of a configuration, in a fixed order.

    Runs load the configuration from the absolute ``config_path``. Each name occurs only once. If
    ``deploys.deployment`` is the name of a nightly deployment, this deployment also verifies deploys.
    """
    config_parameter = {"config_path": str(config_path)}
    planned = (
        _plan_after_deploys(config),
        *_plan_scheduled_verifications(config, config_parameter, settings),
        *_plan_repeatability(config, config_parameter, settings),
        *_plan_traffic_grading(config, config_parameter),
        *_plan_jobs_of_watcher(config, config_parameter),
        *_plan_maintenance_and_digest(config, config_parameter, settings),
        _plan_drill(config, config_parameter, settings),
    )
    return tuple({deployment.full_name: deployment for deployment in planned}.values())


def _plan_after_deploys(config: Config) -> PlannedDeployment:
    """Plan the verification that a deploy starts.

    The deployment has the name in ``deploys.deployment``, unless this setting refers to a deployment of another
    flow.
    """
    flow, _, name = config.deploys.deployment.partition("/")
    own = config.prefect.add_prefix(VERIFY)
    return PlannedDeployment(
        name=name if flow == VERIFY else own, flow=VERIFY, tags=("deploy",), tag=config.prefect.tag
    )


def _plan_scheduled_verifications(
    config: Config, where: Mapping[str, str], settings: ScheduleSettings
) -> Iterator[PlannedDeployment]:
    if not settings.verify_cron:
        return
    for target, configured in config.targets.items():
        of_traffic = configured.traffic.time_zone if configured.traffic else UTC_ZONE
        yield PlannedDeployment(
            name=config.prefect.add_prefix(f"scheduled-verify-{target}"),
            flow=VERIFY,
            when=Cron(line=settings.verify_cron, time_zone=settings.time_zone or of_traffic),
            parameters={"request": {"target": target, **where}},
            tags=("nightly", f"target:{target}"),
            tag=config.prefect.tag,
            late_after_s=_compute_late_after_s(config, settings.verify_cron),
        )


def _plan_repeatability(
    config: Config, where: Mapping[str, str], settings: ScheduleSettings
) -> Iterator[PlannedDeployment]:
    if not settings.repeatability_cron:
        return
    for target in list_measured_targets(config, None):
        yield PlannedDeployment(
            name=config.prefect.add_prefix(f"repeatability-{target}"),
            flow="measure-repeatability",
            when=Cron(line=settings.repeatability_cron, time_zone=settings.time_zone or UTC_ZONE),
            parameters={**where, "target": target},
            tags=("nightly", f"target:{target}"),
            tag=config.prefect.tag,
            late_after_s=_compute_late_after_s(config, settings.repeatability_cron),
        )


def _plan_traffic_grading(config: Config, where: Mapping[str, str]) -> Iterator[PlannedDeployment]:
    for target, configured in config.targets.items():
        if (traffic := configured.traffic) is not None:
            cron = f"0 {traffic.hour} * * *"
            yield PlannedDeployment(
                name=config.prefect.add_prefix(f"grade-traffic-{target}"),
                flow="grade-traffic",
                when=Cron(line=cron, time_zone=traffic.time_zone),
                parameters={**where, "target": target},
                tags=("traffic", f"target:{target}"),
                tag=config.prefect.tag,
                late_after_s=_compute_late_after_s(config, cron),
            )


def _plan_jobs_of_watcher(config: Config, where: Mapping[str, str]) -> Iterator[PlannedDeployment]:
    """Plan the jobs that the watcher starts. Each job is for all targets."""
    if any(target.hallucination_log is not None for target in config.targets.values()):
        yield PlannedDeployment(
            name=config.prefect.add_prefix(FOLLOW_LOG),
            flow=FOLLOW_LOG,
            when=Every(seconds=SIGN_OF_LIFE_S),
            parameters=where,
            tags=("log",),
            tag=config.prefect.tag,
            late_after_s=SIGN_OF_LIFE_LATE_S,
        )
    if any(target.space is not None for target in config.targets.values()) or select_triggers_polled_at_github(
        config
    ):
        yield PlannedDeployment(
            name=config.prefect.add_prefix(WATCH_DEPLOYS),
            flow=WATCH_DEPLOYS,
            when=Every(seconds=SIGN_OF_LIFE_S),
            parameters={**where, "settings": config.deploys.model_dump(mode="json", exclude_defaults=True)},
            tags=("deploy",),
            tag=config.prefect.tag,
            late_after_s=SIGN_OF_LIFE_LATE_S,
        )


def _plan_maintenance_and_digest(
    config: Config, where: Mapping[str, str], settings: ScheduleSettings
) -> Iterator[PlannedDeployment]:
    for flow, cron in (("load-warehouse", settings.load_cron), ("digest", settings.digest_cron)):
        if cron:
            yield PlannedDeployment(
                name=config.prefect.add_prefix(flow),
                flow=flow,
                when=Cron(line=cron, time_zone=settings.time_zone or UTC_ZONE),
                parameters=where,
                tags=("upkeep",),
                tag=config.prefect.tag,
                late_after_s=_compute_late_after_s(config, cron),
            )


def _plan_drill(config: Config, where: Mapping[str, str], settings: ScheduleSettings) -> PlannedDeployment:
    """Plan the drill. Without a schedule, only `lookout drill` starts the drill."""
    cron = config.drill.cron if config.drill.enabled else ""
    return PlannedDeployment(
        name=config.prefect.add_prefix(DRILL),
        flow=DRILL,
        when=Cron(line=cron, time_zone=settings.time_zone or UTC_ZONE) if cron else None,
        parameters=where,
        tags=("upkeep",),
        tag=config.prefect.tag,
        late_after_s=config.drill.missing_after_days * DAY_S if cron else None,
    )


def _compute_late_after_s(config: Config, cron: str) -> float | None:
    return config.watchdog.missing_run_h * 3600 if is_due_every_day(cron) else None
