"""Sections of lookout.toml: `[recheck]`, `[schedules]`, `[drill]`, `[deploys]`, `[warehouse]` and `[site]`."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from monitors.problems import URL_CREDENTIALS
from monitors.records.base import Identifier
from monitors.records.targets import EnvironmentName, RepositoryName

OFF: Final = ""
"""The value of a cron setting for a job that must never run."""

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""The smallest and largest value of each cron field: minute, hour, day, month and weekday (Sunday is 0)."""
_PART: Final = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?", re.ASCII)
_EVERY_DAY: Final = ["*", "*", "*"]


def _normalise_valid_cron_line(line: str) -> str:
    """Return a cron line with single spaces between its five fields, or `OFF`.

    Raises ``ValueError`` if the line is invalid.
    """
    fields = line.split()
    if fields and (
        len(fields) != len(_BOUNDS)
        or not all(_is_cron_field(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True))
    ):
        raise ValueError(
            'a cron line with numbers for minute, hour, day, month and weekday, such as "0 1 * * *", or "" for '
            "never"
        )
    return " ".join(fields)


def _is_cron_field(field: str, minimum: int, maximum: int) -> bool:
    return all(_is_cron_part(part, minimum, maximum) for part in field.split(","))


def _is_cron_part(part: str, minimum: int, maximum: int) -> bool:
    match = _PART.fullmatch(part)
    if match is None:
        return False
    first, last, step = (int(group) if group else None for group in match.groups())
    if step is not None and (not 1 <= step <= maximum or (first is not None and last is None)):
        return False
    values = [value for value in (first, last) if value is not None]
    return all(minimum <= value <= maximum for value in values) and values == sorted(values)


CronLine = Annotated[str, AfterValidator(_normalise_valid_cron_line)]


def is_due_every_day(cron: str) -> bool:
    """Return whether a job with this cron line runs every day."""
    return cron.split()[2:] == _EVERY_DAY


class MissedRuns(StrEnum):
    """The policy for scheduled runs that were missed, for example because no worker ran."""

    ONE_EACH = "newest"
    """Start only the newest missed run of each deployment."""
    SKIP = "skip"
    ALL = "all"


class ScheduleSettings(BaseModel):
    """The ``[schedules]`` table of ``lookout.toml``.

    The hour of each target's nightly traffic run is set in ``[targets.NAME.traffic]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    verify_cron: CronLine = Field(
        default="0 1 * * *",
        description="cron schedule (minute hour day month weekday) for a full run of every target's suite, even "
        'without a deploy. "" turns these runs off',
    )
    repeatability_cron: CronLine = Field(
        default="0 3 * * *",
        description="cron schedule for asking some cases of every target twice, to measure how often answers "
        'differ by chance. "" turns this off',
    )
    load_cron: CronLine = Field(
        default="30 4 * * *",
        description="cron schedule for the maintenance of the warehouse: load new results, export them, remove "
        'old personal data, and check the tables. "" turns it off',
    )
    digest_cron: CronLine = Field(
        default="0 7 * * *",
        description="cron schedule for the daily digest: one message for each target, also on days without "
        'faults. "" turns it off',
    )
    missed: MissedRuns = Field(
        default=MissedRuns.ONE_EACH,
        description="which missed runs Lookout starts when a worker is available again: newest (only the newest "
        "missed run of each deployment), skip (only runs that are at most one hour late) or all",
    )
    time_zone: str | None = Field(
        default=None,
        description="time zone of the cron schedules in this table, such as Asia/Kolkata. Default: UTC, but for "
        "`verify_cron` of a target with live traffic, the time zone of its traffic",
    )

    @field_validator("time_zone")
    @classmethod
    def _require_zone_name(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("a zone of the tz database, such as UTC or Asia/Kolkata") from error


class DrillSettings(BaseModel):
    """The ``[drill]`` table of ``lookout.toml``.

    A drill plants a wrong answer and checks that people get an alert about it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(
        default=True,
        description="whether Lookout runs drills on a schedule. Even with false, you can start a drill with "
        "`lookout drill`",
    )
    cron: CronLine = Field(
        default="30 9 * * 1",
        description="cron schedule for the drill, in the time zone of [schedules]. Default: Mondays at 09:30",
    )
    missing_after_days: float = Field(
        default=8,
        gt=0,
        description="number of days without a drill after which Lookout sends an alert, because the schedule or "
        "the worker may not be running",
    )
    receiver_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/]+$",
        description="address of the deploy receiver that the drill tests. Default: the deploy receiver of "
        "`lookout up` on this machine",
    )
    worker_wait_s: float = Field(
        default=120,
        gt=0,
        description="maximum time in seconds that `lookout drill` waits for a worker to start the drill",
    )


class RepeatabilitySettings(BaseModel):
    """The ``[targets.NAME.repeatability]`` table: how many cases are asked twice each night.

    These answers do not change any score.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cases: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=24,
        description="number of cases that one session asks twice, most of them of severity 3. Successive sessions "
        "rotate through all cases. 0 turns the sessions off for the target",
    )
    limit_s: Annotated[float, Field(gt=0)] = Field(
        default=1800, description="maximum time in seconds for which one session asks cases"
    )


ANY_BRANCH: Final = "*"
MAIN: Final = "main"
STANDARD_EVENT: Final = "deploy.succeeded"
"""The default name of the event that reports a finished deploy, for Standard Webhooks senders."""

BranchName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x20\x7f]+$")]


class DeploySender(StrEnum):
    """The sender of a webhook. Its value is the last part of the URL to which the sender posts its webhooks."""

    GITHUB = "github"
    HUGGINGFACE = "huggingface"
    STANDARD = "standard"


class GitHubEvent(StrEnum):
    """The GitHub events that can report a deploy."""

    DEPLOYMENT_STATUS = "deployment_status"
    WORKFLOW_RUN = "workflow_run"
    PUSH = "push"


class FirstPoll(StrEnum):
    """What to do with the commit that the first poll of a target finds."""

    NOTE = "note"
    VERIFY = "verify"


class TriggerSettings(BaseModel):
    """A ``[[deploys.triggers]]`` table: a target, and the webhook reports that start its verification."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: DeploySender = Field(
        description="the sender of the webhooks: github, huggingface or standard (Standard Webhooks)"
    )
    repository: RepositoryName = Field(
        description="the name of the repository or Space at the sender, in the form owner/name"
    )
    target: Identifier = Field(description="the target to verify: a name from [targets]")
    event: Identifier | None = Field(
        default=None,
        description="the event that reports a deploy. For github: deployment_status (default), workflow_run or "
        f"push. For standard: the type of the event (default: {STANDARD_EVENT}). For huggingface, do not set "
        "this key",
    )
    branch: BranchName | None = Field(
        default=None,
        description='the branch whose deploys start a verification; "*" for any branch. Default: main; for '
        "deployment events, any branch",
    )
    environment: EnvironmentName | None = Field(
        default=None,
        description="verify only deploys to this environment, if the sender names an environment. Default: "
        "any environment",
    )
    workflow: str | None = Field(
        default=None,
        description="the name of the GitHub workflow that deploys; only for workflow_run events. Default: any "
        "workflow",
    )

    @property
    def event_name(self) -> str | None:
        """Return the name of the event that starts a verification.

        Return ``None`` if the sender has only one kind of event.
        """
        defaults = {DeploySender.GITHUB: GitHubEvent.DEPLOYMENT_STATUS.value, DeploySender.STANDARD: STANDARD_EVENT}
        return self.event or defaults.get(self.provider)

    @property
    def branch_filter(self) -> str | None:
        """Return the branch whose deploys are verified, or ``None`` for any branch."""
        if self.branch is not None:
            return None if self.branch == ANY_BRANCH else self.branch
        return None if self._is_triggered_by_deployments else MAIN

    @property
    def _is_triggered_by_deployments(self) -> bool:
        """Return whether the sender reports deployments to an environment.

        Otherwise, it reports pushes to a branch.
        """
        return self.provider is DeploySender.STANDARD or self.event_name == GitHubEvent.DEPLOYMENT_STATUS

    @model_validator(mode="after")
    def _require_consistent_trigger(self) -> Self:
        if self.provider is DeploySender.GITHUB and self.event not in (None, *GitHubEvent):
            raise ValueError(f"with github, `event` must be one of {', '.join(GitHubEvent)}")
        if self.provider is DeploySender.HUGGINGFACE and self.event is not None:
            raise ValueError("remove `event`: with huggingface the only event is a push to the Space")
        if self.environment is not None and not self._is_triggered_by_deployments:
            raise ValueError("remove `environment`: only deployment_status and standard report an environment")
        if self.workflow is not None and self.event_name != GitHubEvent.WORKFLOW_RUN:
            raise ValueError('remove `workflow`: it works only with event = "workflow_run"')
        if self.provider is not DeploySender.STANDARD and "/" not in self.repository:
            raise ValueError("`repository` must have the form owner/name")
        return self


class DeploySettings(BaseModel):
    """The ``[deploys]`` table of ``lookout.toml``. The senders' secrets come from the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deployment: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")] = Field(
        default="verify-deploy/verify-deploy",
        description="the Prefect deployment that verifies deploys, in the form flow/deployment. Each deploy "
        "starts one run of it",
    )
    triggers: tuple[TriggerSettings, ...] = Field(
        default=(), description="the webhooks that start a verification, each with its target"
    )
    first_poll: FirstPoll = Field(
        default=FirstPoll.NOTE,
        description="what Lookout does with the commit that its first poll of a target finds: note (only record "
        "the commit, because it was deployed before Lookout started) or verify",
    )
    failures_before_alert: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=5,
        description="number of consecutive failed polls of the Hugging Face Hub after which Lookout sends an "
        "alert to the monitor's owners",
    )

    @property
    def providers(self) -> frozenset[DeploySender]:
        """Return the senders of all triggers."""
        return frozenset(trigger.provider for trigger in self.triggers)


_PLACE: Final = r"^[a-z][a-z0-9+.-]*://\S+$"


def _require_no_credentials(place: str) -> str:
    if URL_CREDENTIALS.search(place) or "?" in place:
        raise ValueError(
            "an address without credentials and without a query (?…). Set the keys of an object store in the "
            "environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, …)"
        )
    return place


JournalPlace = Annotated[str, Field(pattern=_PLACE), AfterValidator(_require_no_credentials)]


class WarehouseSettings(BaseModel):
    """The ``[warehouse]`` table of ``lookout.toml``.

    The key for pseudonyms is a secret and therefore not a setting.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    journal: JournalPlace | None = Field(
        default=None,
        description="address of a journal that several machines share: an object store such as "
        "s3://bucket/lookout/journal (S3 needs the extra `s3`). Default: a folder next to the warehouse, in the "
        "data folder",
    )
    personal_data_days: int | None = Field(
        default=None,
        ge=1,
        description="number of days after which Lookout removes questions and answers, and replaces the ids of "
        "real conversations with pseudonyms (computed with LOOKOUT_AGE_KEY). Without this setting, Lookout removes "
        "nothing",
    )
    export_folder: Path | None = Field(
        default=None,
        description="folder to which Lookout exports the tables of each day as Parquet files, relative to this "
        "file. Without a folder, Lookout exports nothing",
    )
    export_days: int = Field(
        default=3,
        ge=1,
        description=(
            "number of days that Lookout exports each night. The last of these days is yesterday. With a "
            "number above 1, Lookout also exports rows that arrive late"
        ),
    )
    compact_after_days: int = Field(
        default=7,
        ge=0,
        description="number of days after which Lookout moves the journal files of finished runs into Parquet "
        "archives, which are smaller",
    )
    check: bool = Field(
        default=True,
        description="whether Lookout compares journal and tables row by row each night. This takes as long as a "
        "rebuild",
    )


class RecheckSettings(BaseModel):
    """The ``[recheck]`` table of ``lookout.toml``: how many times failed cases are rechecked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    times: Annotated[int, Field(ge=0, le=50)] = Field(
        default=5,
        description="number of times that Lookout asks each failed case of severity 2 or 3 again after the "
        "verdict and its alert, each time in a new session. 0 turns these rechecks off",
    )
    max_questions: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=40,
        description="maximum number of recheck questions in one run, including the questions to the previous build",
    )
    max_s: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=90,
        description="maximum time in seconds for the rechecks of a run. Lookout does not ask the questions "
        "that are left after this time",
    )


DEFAULT_SITE_PORT: Final = 8068
_PREFIX: Final = r"^$|^(?:/[A-Za-z0-9_.~-]+)+$"


def _require_ip_network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("an IP address, or a network as address/prefix length") from None
    return text


ProxyAddress = Annotated[str, AfterValidator(_require_ip_network)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+$|^\[[0-9A-Fa-f:]+\]$")]


class SiteSettings(BaseModel):
    """The ``[site]`` table of ``lookout.toml``. `lookout site token add` gives a person access."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=True, description="whether `lookout up` serves the site")
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="the address on which the site listens. If it is not a loopback address, each person needs a "
        "token (`lookout site token add`)",
    )
    port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        default=None,
        description=f"the port of the site. Default: {DEFAULT_SITE_PORT}, or N + 2 with `lookout up --port N`",
    )
    login: bool = Field(
        default=False,
        description="whether the site requires a token also on a loopback address. On any other address, and "
        "behind a proxy, it always requires a token",
    )
    host_names: tuple[HostName, ...] = Field(
        default=(),
        description="host names under which browsers reach the site, such as lookout.example.com. The site "
        "rejects requests for any other host name, except loopback names",
    )
    path_prefix: Annotated[str, Field(pattern=_PREFIX)] = Field(
        default="", description='path of the site behind a reverse proxy, such as "/lookout". "" is the root'
    )
    trusted_proxies: tuple[ProxyAddress, ...] = Field(
        default=(),
        description="addresses or networks of the reverse proxies whose headers X-Forwarded-For, "
        "X-Forwarded-Proto and X-Forwarded-Host the site trusts. Behind a proxy, each person needs a token",
    )
    session_h: Annotated[float, Field(gt=0, le=24 * 90)] = Field(
        default=12, description="number of hours after which a person must enter the token again"
    )
    refresh_s: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=10, description="minimum time in seconds between two updates of the data on the site"
    )
    recent_h: Annotated[float, Field(gt=0)] = Field(
        default=36,
        description="number of hours after which a verdict is too old. The site then no longer shows the target "
        "as right, and shows its runs as overdue",
    )

    def build_address(self, port: int, host: str | None = None) -> str:
        """Build the site's address for a browser on this machine."""
        host_name = host or self.host
        return f"http://{f'[{host_name}]' if ':' in host_name else host_name}:{port}{self.path_prefix}/"
