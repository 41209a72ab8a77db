"""The checks of ``lookout doctor`` that call services: APIs, the Hugging Face Hub, the judge, logs and traffic.

Each API is asked one harmless question, as in a run. The Hub must accept the token and have each target's Space.
The judge must be a model of a different family than the application's model, have a key, and distinguish right
answers from wrong answers.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from monitors.config.file import Config, TargetConfig, build_target_record
from monitors.config.isolation import (
    find_langsmith_experiment_settings,
    iterate_judge_key_conflicts,
    iterate_production_conflicts,
    refuse_production_settings,
)
from monitors.errors import (
    AccessDenied,
    AnswerTimeout,
    ConfigError,
    ProbeError,
    ReadinessUnknown,
    SourceUnavailable,
)
from monitors.platforms.langfuse.client import LangfuseClient, load_langfuse_keys
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.settings import LangSmithSettings
from monitors.plural import plural
from monitors.probes.driver import Answer
from monitors.probes.inspect.findings import ADVICE, HARMLESS
from monitors.probes.readiness import (
    HUB_LIMITED,
    HUB_SILENT,
    ReadinessPoll,
    Stage,
    fetch_hub_account,
    open_readiness_checker,
)
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame, Record
from monitors.records.exchanges import NoAnswerReason
from monitors.sources.logs.settings import HallucinationLogSettings

if TYPE_CHECKING:
    from flows.maintenance.self_test import JudgeOutcome
    from flows.runtime.judge import JudgePlan


class Health(IntEnum):
    """The health of a checked part, in the order from good to broken."""

    GOOD = 0
    DOUBTFUL = 1
    BROKEN = 2

    @property
    def word(self) -> str:
        """Return the word that the terminal shows: ``ok``, ``check`` or ``broken``."""
        return {Health.GOOD: "ok", Health.DOUBTFUL: "check", Health.BROKEN: "broken"}[self]


class HealthCheck(Record):
    """The result of one check. ``to_do`` is empty if nothing must be done.

    ``optional`` is true if runs work without the checked part.
    """

    name: str
    health: Health
    found: str
    to_do: str = ""
    optional: bool = False
    blame: Blame | None = None
    """The cause of a missing API answer: the application, or Lookout and its settings."""

    @property
    def word(self) -> str:
        """Return the word that the terminal shows.

        The word is ``optional`` for an optional part in doubtful health, and otherwise ``health.word``.
        """
        return "optional" if self.optional and self.health is Health.DOUBTFUL else self.health.word


@dataclass
class DoctorContext:
    """The input of all checks. ``config`` is ``None`` if there is no valid configuration."""

    config_path: Path
    config: Config | None
    environment: Mapping[str, str]
    now: datetime
    send_alerts: bool = True
    ask_judges: bool = True
    ask_apis: bool = True
    dates: list[datetime] = field(default_factory=list[datetime])
    alert_now: bool = False

    @property
    def data_folder(self) -> Path:
        """Return the configured data folder. Without a configuration, return the default data folder."""
        return self.config.data_folder if self.config else Path(".lookout").absolute()


API_DEADLINE_S: Final = 60.0
"""Maximum wait for one answer in seconds.

If an API accepts a question as a job but does not finish the job in this time, the check still passes.
"""
MAX_SHOWN_CHARACTERS: Final = 120
_TO_DO: Final = {
    NoAnswerReason.UNREACHABLE: (
        "open the address from this machine. Check its spelling, the network, the proxy, and whether the "
        "application runs"
    ),
    NoAnswerReason.ACCESS_DENIED: (
        "set the variables named above in the environment of the process that starts runs. Then run this check "
        "again"
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: (
        "correct the path named above. The path must lead to the answer in the response"
    ),
    **{
        reason: ADVICE[reason]
        for reason in (
            NoAnswerReason.OLD_JOB,
            NoAnswerReason.RATE_LIMITED,
            NoAnswerReason.NO_SUCH_PATH,
            NoAnswerReason.END_NOT_FOUND,
            NoAnswerReason.ANSWER_NOT_FOUND,
        )
    },
}
_ASK_THE_APP: Final = "ask the application a question yourself, and read the log of the application"


def check_apis(context: DoctorContext) -> list[HealthCheck]:
    """Check that each API accepts a question, and that Lookout finds the answer in the response."""
    targets = context.config.targets if context.config else {}
    api_targets = {name: target for name, target in targets.items() if target.probe.driver != "browser"}
    return [
        _check_production_separation(context, name)
        or check_api(name, target, context.environment, ask=context.ask_apis)
        for name, target in api_targets.items()
    ]


def _check_production_separation(context: DoctorContext, name: str) -> HealthCheck | None:
    """Return a ``BROKEN`` check if runs of the target would share a project, address or key with production.

    Otherwise, returns ``None``.
    """
    try:
        if context.config is not None:
            refuse_production_settings(context.config, name, context.environment)
    except ConfigError as error:
        return HealthCheck(
            name=f"API of {name}",
            health=Health.BROKEN,
            found=str(error),
            to_do="use staging settings instead of the production settings named above",
        )
    return None


def check_api(name: str, target: TargetConfig, environment: Mapping[str, str], *, ask: bool) -> HealthCheck:
    """Check one target's API. If ``ask`` is false, only check that the variables for its headers are set."""
    from flows.runtime.probe import build_probe_headers  # slow: imports duckdb

    check_name, address = f"API of {name}", build_target_record(name, target).address
    try:
        build_probe_headers(target.probe, environment)
        if not ask:
            return HealthCheck(name=check_name, health=Health.GOOD, found=f"{address}: not asked (--no-ask)")
        started = monotonic()
        answer = asyncio.run(_ask_harmless_question(address, target.probe, environment))
    except ConfigError as error:
        to_do = "set the variable named above in the environment of the process that starts runs"
        return HealthCheck(
            name=check_name, health=Health.BROKEN, found=str(error), to_do=to_do, blame=Blame.MONITOR
        )
    except AnswerTimeout as error:
        return _build_late_answer_check(check_name, address, target, error)
    except ProbeError as error:
        to_do = _TO_DO.get(
            error.reason, _ASK_THE_APP if error.blame is Blame.APP else "correct the settings named above"
        )
        to_do = to_do.replace("NAME", name)
        description = f"{address}: {error}"
        return HealthCheck(name=check_name, health=Health.BROKEN, found=description, to_do=to_do, blame=error.blame)
    reply = " ".join(answer.visible_text.split())
    took_s = monotonic() - started
    shown = f"{reply[:MAX_SHOWN_CHARACTERS]}{'…' if reply[MAX_SHOWN_CHARACTERS:] else ''}"
    description = f"{address}: answered in {took_s:.2f} s: “{shown}”"
    return HealthCheck(name=check_name, health=Health.GOOD, found=description)


def _build_late_answer_check(
    check_name: str, address: str, target: TargetConfig, error: AnswerTimeout
) -> HealthCheck:
    if target.probe.driver == "job" and target.probe.job.deadline_s > API_DEADLINE_S:
        description = f"{address}: the API accepted the job, but did not finish the job within {API_DEADLINE_S:g} s"
        return HealthCheck(name=check_name, health=Health.GOOD, found=description)
    description = f"{address}: {error}"
    return HealthCheck(
        name=check_name, health=Health.BROKEN, found=description, to_do=_ASK_THE_APP, blame=Blame.APP
    )


async def _ask_harmless_question(address: str, settings: ProbeSettings, environment: Mapping[str, str]) -> Answer:
    from flows.runtime.probe import open_driver  # slow: imports duckdb

    with tempfile.TemporaryDirectory(prefix="lookout-doctor-") as folder:
        async with open_driver(
            address, settings.with_deadlines_up_to(API_DEADLINE_S), folder=Path(folder), environment=environment
        ) as driver:
            return await driver.ask((HARMLESS,))


TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - the name of a variable
HUB_DEADLINE_S = 15.0
LIMITED_TO_DO = f"wait a few minutes. The Hub allows more requests if {TOKEN_VARIABLE} contains a token"
SILENT_TO_DO = "check whether this machine can reach huggingface.co (proxy, firewall), and whether the Hub is down"


def check_tracing(context: DoctorContext) -> list[HealthCheck]:
    """Check that Lookout does not use the LangSmith key or project of production."""
    config = context.config
    if config is None:
        return []
    own = [
        (f"targets.{name}.langsmith", config.find_tracing_settings_with_defaults(name)) for name in config.targets
    ]
    written = [find_langsmith_experiment_settings(config, name) for name in config.targets]
    common = config.langsmith or next((settings for settings in written if settings is not None), None)
    checks = [
        _check_langsmith_key_and_project(context, place, settings)
        for place, settings in (("langsmith", common), *own)
        if settings is not None
    ]
    return [*_report_pages_tracing_to_production(context, config), *checks]


def _report_pages_tracing_to_production(context: DoctorContext, config: Config) -> Iterator[HealthCheck]:
    """Yield a ``BROKEN`` check for each page whose runs would share a project, address or key with production."""
    for name, target in config.targets.items():
        try:
            refuse_production_settings(config, name, context.environment)
        except ConfigError as error:
            if target.probe.driver == "browser":  # otherwise the check of the target's API reports it
                to_do = "use staging settings instead of the production settings named above"
                yield HealthCheck(name=f"LangSmith of {name}", health=Health.BROKEN, found=str(error), to_do=to_do)


def _check_langsmith_key_and_project(
    context: DoctorContext, place: str, settings: LangSmithSettings
) -> HealthCheck:
    check_name, key = f"LangSmith ({place})", settings.key_env
    if shared := "; ".join(iterate_production_conflicts(settings, context.environment)):
        to_do = "use a project and key that production does not use. Until then, Lookout refuses every run"
        return HealthCheck(name=check_name, health=Health.BROKEN, found=shared, to_do=to_do)
    if not context.environment.get(key):
        problem = f"{place}.key_env names the variable {key}, which is not set or is empty"
        return HealthCheck(
            name=check_name,
            health=Health.BROKEN,
            found=problem,
            to_do="set the variable named above in the environment of the process that starts runs",
        )
    if settings.production_project is None:
        to_do = f"set {place}.production_project. Lookout then refuses runs that would write to this project"
        return HealthCheck(
            name=check_name,
            health=Health.DOUBTFUL,
            found="the production project is not set",
            to_do=to_do,
            optional=True,
        )
    if settings.production_key_env is None:
        problem = f"Lookout cannot check whether {key} is the production key"
        to_do = (
            f"use two keys, and set {place}.production_key_env to the name of the variable with the production key"
        )
        return HealthCheck(name=check_name, health=Health.DOUBTFUL, found=problem, to_do=to_do, optional=True)
    has_production_key = bool(context.environment.get(settings.production_key_env))
    note = (
        "and differs from the production key"
        if has_production_key
        else "but Lookout cannot compare the key with the production key, which is not set here"
    )
    return HealthCheck(name=check_name, health=Health.GOOD, found=f"{key} is set, {note}")


def check_langfuse(context: DoctorContext) -> list[HealthCheck]:
    """Check that the Langfuse keys do not belong to the production project."""
    settings = context.config.langfuse if context.config else None
    if settings is None:
        return []
    check_name, to_do = f"Langfuse ({settings.host})", "correct the settings named above"
    try:
        name = asyncio.run(_load_langfuse_project_name(settings, context.environment))
    except (ConfigError, SourceUnavailable) as error:
        return [HealthCheck(name=check_name, health=Health.BROKEN, found=str(error), to_do=to_do)]
    if settings.production_project is None:
        to_do = "set langfuse.production_project. Lookout then refuses the keys of this project"
        state = f"the keys belong to the project {name!r}. The production project is not set"
        return [HealthCheck(name=check_name, health=Health.DOUBTFUL, found=state, to_do=to_do)]
    return [
        HealthCheck(
            name=check_name,
            health=Health.GOOD,
            found=f"the keys belong to the project {name!r}, which is not production",
        )
    ]


async def _load_langfuse_project_name(settings: LangfuseSettings, environment: Mapping[str, str]) -> str:
    async def sleep_briefly(seconds: float) -> None:
        # A check waits less than a run does before it tries again.
        await asyncio.sleep(min(seconds, 0.5))

    async with LangfuseClient.connect(settings, load_langfuse_keys(settings, environment), sleep_briefly) as client:
        return client.project.name


def _choose_hub_advice(detail: str) -> str:
    return LIMITED_TO_DO if detail == HUB_LIMITED else SILENT_TO_DO


def check_hub(context: DoctorContext) -> list[HealthCheck]:
    """Check the Hub's token, if one is set, and the state of every Space. Sleeping Spaces are not woken."""
    targets = context.config.targets if context.config else {}
    spaces = {name: target for name, target in targets.items() if target.space is not None}
    return [
        *_check_tokens(context, spaces),
        *(_check_space(context, name, target) for name, target in spaces.items()),
    ]


def _check_tokens(context: DoctorContext, spaces: dict[str, TargetConfig]) -> Iterator[HealthCheck]:
    token = context.environment.get(TOKEN_VARIABLE)
    if not token:
        return
    for url in sorted({target.probe.readiness.hub_url or "" for target in spaces.values()} or {""}):
        yield _check_token(token, url or None)


def _check_token(token: str, url: str | None) -> HealthCheck:
    name = f"{TOKEN_VARIABLE} at {url}" if url else TOKEN_VARIABLE
    try:
        account = asyncio.run(fetch_hub_account(token, hub_url=url, deadline_s=HUB_DEADLINE_S))
    except AccessDenied as error:
        to_do = "create a token with the role read at huggingface.co/settings/tokens, or unset the variable"
        return HealthCheck(name=name, health=Health.BROKEN, found=str(error), to_do=to_do)
    except ReadinessUnknown as error:
        return HealthCheck(
            name=name, health=Health.DOUBTFUL, found=str(error), to_do=_choose_hub_advice(str(error))
        )
    return HealthCheck(
        name=name, health=Health.GOOD, found=f"the token belongs to {account.name} and has the role {account.role}"
    )


def _check_space(context: DoctorContext, name: str, target: TargetConfig) -> HealthCheck:
    check_name = f"Space of {name}"
    try:
        poll = asyncio.run(_poll_space(context, name, target))
    except AccessDenied as error:
        to_do = f"correct targets.{name}.space, or set {TOKEN_VARIABLE} to a token that may read this Space"
        return HealthCheck(name=check_name, health=Health.BROKEN, found=str(error), to_do=to_do)
    if poll.stage == HUB_SILENT:
        to_do = _choose_hub_advice(poll.detail)
        return HealthCheck(name=check_name, health=Health.BROKEN, found=poll.detail, to_do=to_do)
    state = f"{target.space}: {poll.stage}" + (f" ({poll.detail})" if poll.detail else "")
    health, to_do = _rate_space_stage(name, target, poll)
    commit = f", commit {poll.commit[:12]}" if poll.commit else ""
    return HealthCheck(name=check_name, health=health, found=state + commit, to_do=to_do)


async def _poll_space(context: DoctorContext, name: str, target: TargetConfig) -> ReadinessPoll:
    token = context.environment.get(TOKEN_VARIABLE)
    async with open_readiness_checker(build_target_record(name, target), target.probe, token) as checker:
        return await checker.poll_target()


def _rate_space_stage(name: str, target: TargetConfig, poll: ReadinessPoll) -> tuple[Health, str]:
    match poll.meaning:
        case Stage.SERVING if poll.commit:
            return Health.GOOD, ""
        case Stage.SERVING:
            to_do = "the running commit is unknown, so Lookout cannot verify deploys. Set "
            return Health.DOUBTFUL, f"{to_do}targets.{name}.probe.readiness.version_url"
        case Stage.ASLEEP:
            return Health.GOOD, ""
        case Stage.FAILED:
            return (
                Health.DOUBTFUL,
                "read the Space's log on the Hub. A run that starts now sends an alert about a failed deploy",
            )
        case Stage.UNDER_WAY:
            wait_s = target.probe.readiness.deadline_s
            return (
                Health.DOUBTFUL,
                f"wait until the Space runs. A run waits up to {wait_s:g} s for the Space",
            )


def check_judge(context: DoctorContext) -> list[HealthCheck]:
    """Check the judge's family and key. If ``ask_judges`` is set, also let the judge grade two known answers."""
    config = context.config
    if config is None:
        return []
    if config.judge is None:
        state = "no judge is configured, so answers that rules cannot grade stay ungraded"
        return [HealthCheck(name="judge", health=Health.GOOD, found=state)]
    if shared := "; ".join(iterate_judge_key_conflicts(config.judge, context.environment)):
        to_do = "give the judge its own key. Until then, Lookout refuses every run"
        return [HealthCheck(name="judge", health=Health.BROKEN, found=shared, to_do=to_do)]
    return list(_check_judges(context, config))


def _check_judges(context: DoctorContext, config: Config) -> Iterator[HealthCheck]:
    from flows.runtime.judge import build_judge_plan  # slow: imports anthropic, 4 s

    plans: list[JudgePlan] = []
    for name, target in config.targets.items():
        try:
            plans.append(build_judge_plan(config.judge, build_target_record(name, target), context.environment))
        except ConfigError as error:
            to_do = (
                "correct the settings named above. The judge and the application must use different model families"
            )
            yield HealthCheck(name=f"judge of {name}", health=Health.BROKEN, found=str(error), to_do=to_do)
    if plans:
        yield from _check_judge_grading(context, plans[0])


def _check_judge_grading(context: DoctorContext, plan: JudgePlan) -> Iterator[HealthCheck]:
    models = ", ".join(plan.models)
    if plan.why_off:
        to_do = "set the key in the environment of runs. Until then, answers that rules cannot grade stay ungraded"
        yield HealthCheck(
            name="judge",
            health=Health.DOUBTFUL,
            found=f"{models}: off, because {plan.why_off}",
            to_do=to_do,
            optional=True,
        )
    elif not context.ask_judges:
        yield HealthCheck(name="judge", health=Health.GOOD, found=f"{models}: the key is set but was not tested")
    else:
        from flows.maintenance.self_test import check_judges_on_known_answers
        from flows.runtime.secrets import generate_nonce  # slow import

        for outcome in asyncio.run(check_judges_on_known_answers(plan, context.environment, nonce=generate_nonce)):
            yield _build_judge_check(outcome)


def _build_judge_check(outcome: JudgeOutcome) -> HealthCheck:
    name = f"judge {outcome.model}"
    description = f"{outcome.detail}, in {outcome.took_s:.1f} s, for ${outcome.cost_usd:.4f}"
    if outcome.distinguished:
        return HealthCheck(name=name, health=Health.GOOD, found=description)
    if outcome.distinguished is None:
        to_do = (
            "check the judge's key, the name of the model and judge.models.base_url. Then look at the provider's "
            "status page"
        )
        return HealthCheck(name=name, health=Health.BROKEN, found=description, to_do=to_do)
    to_do = "choose another model for the judge. Lookout discards the grades of a judge that fails this test"
    return HealthCheck(name=name, health=Health.BROKEN, found=description, to_do=to_do)


def check_hallucination_logs(context: DoctorContext) -> list[HealthCheck]:
    """Check that each hallucination log exists and can be read."""
    targets = context.config.targets if context.config else {}
    return [
        _check_hallucination_log(name, target.hallucination_log, target.probe)
        for name, target in targets.items()
        if target.hallucination_log is not None
    ]


def _check_hallucination_log(name: str, settings: HallucinationLogSettings, probe: ProbeSettings) -> HealthCheck:
    from flows.hallucination_log.follower import build_log_place  # slow: imports duckdb

    check_name = f"log of {name}"
    try:
        with build_log_place(settings, probe).poll() as files:
            newest, rotated = files.newest, len(files.rotated)
    except (SourceUnavailable, ConfigError) as error:
        to_do = "check the setting `at`, and whether the user who runs Lookout can read the file"
        return HealthCheck(name=check_name, health=Health.BROKEN, found=str(error), to_do=to_do)
    if newest is None:
        health = Health.GOOD if settings.may_be_missing else Health.DOUBTFUL
        to_do = (
            ""
            if settings.may_be_missing
            else "correct `at`. If the application creates the log only with its first entry, set may_be_missing"
        )
        return HealthCheck(name=check_name, health=health, found=f"{settings.at} does not exist", to_do=to_do)
    rotated_note = f", and {plural(rotated, 'rotated file')} next to it" if rotated else ""
    return HealthCheck(
        name=check_name, health=Health.GOOD, found=f"{settings.at}: {plural(newest.size, 'byte')}{rotated_note}"
    )


def check_traffic_settings(context: DoctorContext) -> list[HealthCheck]:
    """Check the settings, secrets and installed extras of each live-traffic source, without reading traffic."""
    targets = context.config.targets if context.config else {}
    return [_check_traffic_config(context, name) for name, target in targets.items() if target.traffic is not None]


def _check_traffic_config(context: DoctorContext, name: str) -> HealthCheck:
    from flows.nightly.context import build_nightly_context  # slow: imports duckdb

    check_name = f"traffic of {name}"
    assert context.config is not None
    try:
        nightly = build_nightly_context(context.config, name, context.now)
    except ConfigError as error:
        return HealthCheck(
            name=check_name, health=Health.BROKEN, found=str(error), to_do="correct the settings named above"
        )
    sources = ", ".join(f"{key} ({source.name})" for key, source in nightly.sources.items())
    return HealthCheck(
        name=check_name,
        health=Health.GOOD,
        found=f"{sources}. To read the traffic, run `lookout nightly {name} --plan`",
    )
