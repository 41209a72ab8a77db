"""The doctor's checks of services: targets' APIs, the Hub, the judge, and the sources beside the page.

An API is asked one harmless question, as a run asks it. The Hub must take the token and know each target's Space.
The judge must be of another family, have a key, and tell right from wrong. Hallucination logs and sources of live
traffic must be readable.
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

import httpx

from monitors.config.file import Config, TargetConfig, target_record
from monitors.config.isolation import experiment_settings, refuse_production
from monitors.errors import (
    AccessDenied,
    AnswerTimeout,
    ConfigError,
    ProbeError,
    ReadinessUnknown,
    SourceUnavailable,
)
from monitors.platforms.langfuse.client import LangfuseClient, langfuse_keys
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.settings import LangSmithSettings
from monitors.probes.driver import Answer
from monitors.probes.inspect.findings import ADVICE, HARMLESS
from monitors.probes.readiness import HUB_SILENT, ReadinessChecker, ReadinessPoll, Stage, account_of
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame, Record
from monitors.records.exchanges import NoAnswerReason
from monitors.sources.logs.settings import HallucinationLogSettings

if TYPE_CHECKING:
    from flows.maintenance.self_test import JudgeOutcome
    from flows.runtime.judge import JudgePlan


class Health(IntEnum):
    """How healthy a part is, the worst last."""

    GOOD = 0
    DOUBTFUL = 1
    BROKEN = 2

    @property
    def word(self) -> str:
        """As it is printed."""
        return {Health.GOOD: "ok", Health.DOUBTFUL: "check", Health.BROKEN: "broken"}[self]


class HealthCheck(Record):
    """One thing that was checked; ``to_do`` is empty where nothing is to be done.

    ``optional``: no run needs what is doubtful.
    """

    name: str
    health: Health
    found: str
    to_do: str = ""
    optional: bool = False
    blame: Blame | None = None
    """Whose fault it is that an API gave no answer; the monitor's stands for the configuration."""

    @property
    def word(self) -> str:
        """As it is printed."""
        return "optional" if self.optional and self.health is Health.DOUBTFUL else self.health.word


@dataclass
class DoctorContext:
    """What the checks use. ``config`` is absent where there is none that can be read."""

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
        """The folder that stores everything."""
        return self.config.data_folder if self.config else Path(".lookout").absolute()


API_DEADLINE_S: Final = 60.0
"""For one answer: an agent may work longer on its job; then the job counts as started."""
SHOWN: Final = 120
_TO_DO: Final = {
    NoAnswerReason.UNREACHABLE: "open it from this machine: its spelling, network, proxy, or the app is down",
    NoAnswerReason.ACCESS_DENIED: "set what is named in the environment of whatever starts runs, and look again",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: "mend the path that is named: it leads from the response to the answer",
    **{
        reason: ADVICE[reason]
        for reason in (
            NoAnswerReason.OLD_JOB,
            NoAnswerReason.NO_SUCH_PATH,
            NoAnswerReason.END_NOT_FOUND,
            NoAnswerReason.ANSWER_NOT_FOUND,
        )
    },
}
_THE_APP: Final = "ask the app by hand; its own log knows more"


def apis(around: DoctorContext) -> list[HealthCheck]:
    """Check that each API takes a question, and that its answer is found."""
    targets = around.config.targets if around.config else {}
    known = {name: target for name, target in targets.items() if target.probe.driver != "browser"}
    return [
        _refused(around, name) or check_api(name, target, around.environment, ask=around.ask_apis)
        for name, target in known.items()
    ]


def _refused(around: DoctorContext, name: str) -> HealthCheck | None:
    """Why a target must not be asked anything: it would be production, where staging alone is meant."""
    try:
        if around.config is not None:
            refuse_production(around.config, name, around.environment)
    except ConfigError as error:
        return HealthCheck(name=f"API of {name}", health=Health.BROKEN, found=str(error), to_do="name staging's")
    return None


def check_api(name: str, target: TargetConfig, environment: Mapping[str, str], *, ask: bool) -> HealthCheck:
    """Check one target's API. Without ``ask`` it checks only what needs no question."""
    from flows.runtime.probe import probe_headers  # duckdb

    what, address = f"API of {name}", target_record(name, target).address
    try:
        probe_headers(target.probe, environment)
        if not ask:
            return HealthCheck(name=what, health=Health.GOOD, found=f"{address}: not asked (--no-ask)")
        started = monotonic()
        answer = asyncio.run(_answer(address, target.probe, environment))
    except ConfigError as error:
        to_do = "set it where runs are started"
        return HealthCheck(name=what, health=Health.BROKEN, found=str(error), to_do=to_do, blame=Blame.MONITOR)
    except AnswerTimeout as error:
        return _late(what, address, target, error)
    except ProbeError as error:
        to_do = _TO_DO.get(error.reason, _THE_APP if error.blame is Blame.APP else "mend what is named")
        to_do = to_do.replace("NAME", name)
        found = f"{address}: {error}"
        return HealthCheck(name=what, health=Health.BROKEN, found=found, to_do=to_do, blame=error.blame)
    said = " ".join(answer.visible_text.split())
    found = f"{address}: answered in {monotonic() - started:.2f} s: “{said[:SHOWN]}{'…' if said[SHOWN:] else ''}”"
    return HealthCheck(name=what, health=Health.GOOD, found=found)


def _late(what: str, address: str, target: TargetConfig, error: AnswerTimeout) -> HealthCheck:
    if target.probe.driver == "job" and target.probe.job.deadline_s > API_DEADLINE_S:
        found = f"{address}: took the job and still works on it after {API_DEADLINE_S:g} s"
        return HealthCheck(name=what, health=Health.GOOD, found=found)
    found = f"{address}: {error}"
    return HealthCheck(name=what, health=Health.BROKEN, found=found, to_do=_THE_APP, blame=Blame.APP)


async def _answer(address: str, settings: ProbeSettings, environment: Mapping[str, str]) -> Answer:
    from flows.runtime.probe import driver_at  # duckdb

    with tempfile.TemporaryDirectory(prefix="lookout-doctor-") as folder:
        async with driver_at(address, _soon(settings), folder=Path(folder), environment=environment) as driver:
            return await driver.ask((HARMLESS,))


def _soon(settings: ProbeSettings) -> ProbeSettings:
    """The same settings, with no more patience than a person has."""
    job = settings.job.model_copy(update={"deadline_s": min(settings.job.deadline_s, API_DEADLINE_S)})
    return settings.model_copy(
        update={"answer_deadline_s": min(settings.answer_deadline_s, API_DEADLINE_S), "job": job}
    )


TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - the name of a variable
HUB_DEADLINE_S = 15.0
SILENT_TO_DO = "see whether this machine reaches huggingface.co (its proxy, its firewall); the Hub may also be down"


def tracing(around: DoctorContext) -> list[HealthCheck]:
    """Check that evaluations have a key and a project of their own in LangSmith, apart from production's."""
    config = around.config
    if config is None:
        return []
    own = [(f"targets.{name}.langsmith", config.tracing(name)) for name in config.targets]
    written = [experiment_settings(config, name) for name in config.targets]
    common = config.langsmith or next((one for one in written if one is not None), None)
    found = [_separate_keys(around, place, one) for place, one in (("langsmith", common), *own) if one is not None]
    return [*_shared(around, config), *found]


def _shared(around: DoctorContext, config: Config) -> Iterator[HealthCheck]:
    for name, target in config.targets.items():
        try:
            refuse_production(config, name, around.environment)
        except ConfigError as error:
            if target.probe.driver == "browser":  # else the check of its API says it
                to_do = "give evaluations a project and a key of their own"
                yield HealthCheck(name=f"LangSmith of {name}", health=Health.BROKEN, found=str(error), to_do=to_do)


def _separate_keys(around: DoctorContext, place: str, settings: LangSmithSettings) -> HealthCheck:
    what, key = f"LangSmith ({place})", settings.key_env
    if not around.environment.get(key):
        found = f"{place}.key_env: the environment has no {key}, or it is empty"
        return HealthCheck(name=what, health=Health.BROKEN, found=found, to_do="set it where runs are started")
    if settings.production_project is None:
        to_do = f"name it as {place}.production_project: a run that would write there is refused before it asks"
        return HealthCheck(
            name=what,
            health=Health.DOUBTFUL,
            found="production's project is not named",
            to_do=to_do,
            optional=True,
        )
    if settings.production_key_env is None:
        found = f"nothing says that {key} is another key than production's"
        to_do = f"make a key for each, and name production's variable as {place}.production_key_env"
        return HealthCheck(name=what, health=Health.DOUBTFUL, found=found, to_do=to_do, optional=True)
    there = bool(around.environment.get(settings.production_key_env))
    beside = "another than production's" if there else "production's is not on this machine"
    return HealthCheck(name=what, health=Health.GOOD, found=f"{key} is set; {beside}")


def langfuse(around: DoctorContext) -> list[HealthCheck]:
    """Check that Langfuse's keys are those of the evaluations' project, which it is asked; it stores nothing."""
    settings = around.config.langfuse if around.config else None
    if settings is None:
        return []
    what, to_do = f"Langfuse ({settings.host})", "mend what is named"
    try:
        name = asyncio.run(_langfuse_project(settings, around.environment))
    except (ConfigError, SourceUnavailable) as error:
        return [HealthCheck(name=what, health=Health.BROKEN, found=str(error), to_do=to_do)]
    if settings.production_project is None:
        to_do = "name it as langfuse.production_project: its keys are refused then"
        found = f"the keys belong to {name!r}; production's project is not named"
        return [HealthCheck(name=what, health=Health.DOUBTFUL, found=found, to_do=to_do)]
    return [
        HealthCheck(name=what, health=Health.GOOD, found=f"the keys belong to {name!r}, apart from production's")
    ]


async def _langfuse_project(settings: LangfuseSettings, environment: Mapping[str, str]) -> str:
    async def briefly(seconds: float) -> None:
        # A check does not wait as long as a run would before it tries again.
        await asyncio.sleep(min(seconds, 0.5))

    async with LangfuseClient.opened(settings, langfuse_keys(settings, environment), briefly) as client:
        return client.project.name


def hub(around: DoctorContext) -> list[HealthCheck]:
    """Check the token, where one is set, and the stage and commit of every Space. It wakes no Space."""
    targets = around.config.targets if around.config else {}
    spaces = {name: target for name, target in targets.items() if target.space is not None}
    return [*_tokens(around, spaces), *(_space(around, name, target) for name, target in spaces.items())]


def _tokens(around: DoctorContext, spaces: dict[str, TargetConfig]) -> Iterator[HealthCheck]:
    token = around.environment.get(TOKEN_VARIABLE)
    if not token:
        return
    for url in sorted({target.probe.readiness.hub_url or "" for target in spaces.values()} or {""}):
        yield _token(token, url or None)


def _token(token: str, url: str | None) -> HealthCheck:
    name = f"{TOKEN_VARIABLE} at {url}" if url else TOKEN_VARIABLE
    try:
        account = asyncio.run(account_of(token, hub_url=url, deadline_s=HUB_DEADLINE_S))
    except AccessDenied as error:
        to_do = "make a new one with the role read at huggingface.co/settings/tokens, or unset it"
        return HealthCheck(name=name, health=Health.BROKEN, found=str(error), to_do=to_do)
    except ReadinessUnknown as error:
        return HealthCheck(name=name, health=Health.DOUBTFUL, found=str(error), to_do=SILENT_TO_DO)
    return HealthCheck(name=name, health=Health.GOOD, found=f"belongs to {account.name}, may {account.role}")


def _space(around: DoctorContext, name: str, target: TargetConfig) -> HealthCheck:
    what = f"Space of {name}"
    try:
        seen = asyncio.run(_seen(around, name, target))
    except AccessDenied as error:
        to_do = f"mend targets.{name}.space, or set {TOKEN_VARIABLE} to a token that may read it"
        return HealthCheck(name=what, health=Health.BROKEN, found=str(error), to_do=to_do)
    if seen.stage == HUB_SILENT:
        return HealthCheck(name=what, health=Health.BROKEN, found=seen.detail, to_do=SILENT_TO_DO)
    found = f"{target.space}: {seen.stage}" + (f" ({seen.detail})" if seen.detail else "")
    health, to_do = _meaning(name, target, seen)
    commit = f", commit {seen.commit[:12]}" if seen.commit else ""
    return HealthCheck(name=what, health=health, found=found + commit, to_do=to_do)


async def _seen(around: DoctorContext, name: str, target: TargetConfig) -> ReadinessPoll:
    settings = target.probe.readiness
    async with httpx.AsyncClient(timeout=settings.request_deadline_s, follow_redirects=True) as client:
        token = around.environment.get(TOKEN_VARIABLE)
        return await ReadinessChecker(target_record(name, target), settings, client, token).at_target()


def _meaning(name: str, target: TargetConfig, seen: ReadinessPoll) -> tuple[Health, str]:
    match seen.meaning:
        case Stage.SERVING if seen.commit:
            return Health.GOOD, ""
        case Stage.SERVING:
            to_do = "nothing says which commit runs, so no deploy of it is verified: set "
            return Health.DOUBTFUL, f"{to_do}targets.{name}.probe.readiness.version_url"
        case Stage.ASLEEP:
            return Health.GOOD, ""
        case Stage.FAILED:
            return Health.DOUBTFUL, "look at its log on the Hub: a run now is a deploy failure, one alert"
        case Stage.UNDER_WAY:
            wait_s = target.probe.readiness.deadline_s
            return Health.DOUBTFUL, f"wait until it runs; a run waits for it itself, {wait_s:g} s"


def judge(around: DoctorContext) -> list[HealthCheck]:
    """Check its family against each target's, and its key; unless unwanted, have it grade two known answers."""
    config = around.config
    if config is None:
        return []
    if config.judge is None:
        found = "none is configured: what the plain graders leave open stays open"
        return [HealthCheck(name="judge", health=Health.GOOD, found=found)]
    return list(_checks(around, config))


def _checks(around: DoctorContext, config: Config) -> Iterator[HealthCheck]:
    from flows.runtime.judge import plan_judge  # anthropic, 4 s

    plans: list[JudgePlan] = []
    for name, target in config.targets.items():
        try:
            plans.append(plan_judge(config.judge, target_record(name, target), around.environment))
        except ConfigError as error:
            to_do = "mend what is named: a judge that may be of the application's family is refused by every run"
            yield HealthCheck(name=f"judge of {name}", health=Health.BROKEN, found=str(error), to_do=to_do)
    if plans:
        yield from _at_work(around, plans[0])


def _at_work(around: DoctorContext, plan: JudgePlan) -> Iterator[HealthCheck]:
    models = ", ".join(plan.models)
    if plan.why_off:
        to_do = "set it where runs are started; until then what the plain graders leave open stays open"
        yield HealthCheck(
            name="judge",
            health=Health.DOUBTFUL,
            found=f"{models}: off, as {plan.why_off}",
            to_do=to_do,
            optional=True,
        )
    elif not around.ask_judges:
        yield HealthCheck(name="judge", health=Health.GOOD, found=f"{models}: has its key; not tried")
    else:
        from flows.maintenance.self_test import try_judges
        from flows.runtime.secrets import nonce  # as above

        for outcome in asyncio.run(try_judges(plan, around.environment, nonce=nonce)):
            yield _tried(outcome)


def _tried(one: JudgeOutcome) -> HealthCheck:
    name = f"judge {one.model}"
    found = f"{one.detail}, in {one.took_s:.1f} s, for ${one.cost_usd:.4f}"
    if one.distinguished:
        return HealthCheck(name=name, health=Health.GOOD, found=found)
    if one.distinguished is None:
        to_do = "see whether its key, its name and judge.models.base_url are right, and what its provider says"
        return HealthCheck(name=name, health=Health.BROKEN, found=found, to_do=to_do)
    to_do = "name another model: a judge that misses known answers has all its grades void"
    return HealthCheck(name=name, health=Health.BROKEN, found=found, to_do=to_do)


def hallucination_logs(around: DoctorContext) -> list[HealthCheck]:
    """Each log that is followed exists and can be read. Nothing of it is stored, and nobody is notified."""
    targets = around.config.targets if around.config else {}
    logs = {name: target.hallucination_log for name, target in targets.items()}
    return [_log(name, settings) for name, settings in logs.items() if settings is not None]


def _log(name: str, settings: HallucinationLogSettings) -> HealthCheck:
    from flows.hallucination_log.follower import place_of  # duckdb

    what = f"log of {name}"
    try:
        with place_of(settings).poll() as files:
            newest, rotated = files.newest, len(files.rotated)
    except (SourceUnavailable, ConfigError) as error:
        to_do = "see whether `at` is right, and whether this user may read it"
        return HealthCheck(name=what, health=Health.BROKEN, found=str(error), to_do=to_do)
    if newest is None:
        health = Health.GOOD if settings.may_be_missing else Health.DOUBTFUL
        to_do = "" if settings.may_be_missing else "mend `at`, or set may_be_missing where its first entry makes it"
        return HealthCheck(name=what, health=health, found=f"{settings.at}: there is no such file yet", to_do=to_do)
    beside = f", {rotated} rotated beside it" if rotated else ""
    return HealthCheck(name=what, health=Health.GOOD, found=f"{settings.at}: {newest.size:,} bytes{beside}")


def live_traffic(around: DoctorContext) -> list[HealthCheck]:
    """Check that each source of live traffic has its secret and its extra. `lookout nightly --plan` reads one."""
    targets = around.config.targets if around.config else {}
    return [_traffic(around, name) for name, target in targets.items() if target.traffic is not None]


def _traffic(around: DoctorContext, name: str) -> HealthCheck:
    from flows.nightly.context import build_nightly_context  # duckdb

    what = f"traffic of {name}"
    assert around.config is not None
    try:
        nightly = build_nightly_context(around.config, name, around.now)
    except ConfigError as error:
        return HealthCheck(name=what, health=Health.BROKEN, found=str(error), to_do="mend what is named")
    sources = ", ".join(f"{key} ({source.name})" for key, source in nightly.sources.items())
    return HealthCheck(
        name=what, health=Health.GOOD, found=f"{sources}; `lookout nightly {name} --plan` reads them"
    )
