"""Alert settings: where alerts go, and when they are repeated.

Tokens and webhook addresses are secrets, so they are not settings.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.records.base import Identifier, Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.operator_actions import NO_END, Silence
from monitors.records.recurrence import Recurrence, WeeklyWindowText, ZoneName
from monitors.records.targets import HttpUrl


class WatchdogSettings(BaseModel):
    """The ``[watchdog]`` table of ``lookout.toml``. The heartbeat's address is a secret and never a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=4 * 3600.0,
        description="Maximum time in seconds for which a run may ask questions. After that, Lookout stops the "
        "run, evaluates the answers so far, and sends one message to the monitor's owners.",
    )
    stop_grace_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=600.0,
        description="Maximum time in seconds after `run_deadline_s` for evaluating and storing the answers and "
        "sending alerts. If the process has not ended by then, it sends an alert and exits.",
    )
    missing_run_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=26.0,
        description="Prefect sends an alert if a daily deployment has no finished run for this number of hours. "
        "The default is two hours more than a day, so that a nightly run may be two hours late.",
    )
    log_silence_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0,
        description="Factor for the longest pause between two entries of a hallucination log. If no entry arrives "
        "for a longer time than the longest pause times this factor, Lookout reports the log as silent.",
    )
    log_silence_entries: Annotated[int, Field(ge=2)] = Field(
        default=20,
        description="Minimum number of entries in a hallucination log. Lookout does not report the silence of a "
        "log with fewer entries.",
    )
    log_silence_floor_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=6.0,
        description="Shortest silence of a log, in hours, that Lookout reports. Lookout never reports a shorter "
        "silence, even if the log is usually busy.",
    )


class AlertSettings(BaseModel):
    """The ``[alerts]`` table of ``lookout.toml``.

    The bot token and the webhook address are secrets. They come from the environment and are not in this table, so
    the table can be printed, stored and committed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slack_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel for alerts about the application: an id (C0123456789) or a name (#alerts). Required "
        "with a bot token. An incoming webhook always posts to its own channel. With an id and the scope "
        "channels:history, Lookout can find a message whose confirmation was lost, and does not send the message "
        "twice.",
    )
    slack_monitor_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel for alerts about Lookout itself and its judge. Default: `slack_channel`.",
    )
    slack_fallback_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel for messages that the main channel permanently refuses, for example because it is "
        "archived or the bot is not a member. This needs a bot token, and a channel in the same workspace. For a "
        "channel in another workspace, set the environment variable SLACK_FALLBACK_WEBHOOK_URL instead.",
    )
    slack_api_url: HttpUrl = Field(
        default="https://slack.com/api/",
        description="Base address of Slack's Web API. Change it only for a proxy or a test server.",
    )
    slack_buttons: bool = Field(
        default=False,
        description="Add the buttons Acknowledge, False alarm and Add to gold to each alert that a bot token "
        "sends. Slack must be able to reach the receiver of button clicks (`lookout slack-actions`) from the "
        "internet.",
    )
    site_url: HttpUrl | None = Field(
        default=None,
        description='Public address of the site, such as "https://lookout.example.com". Alerts on Slack then '
        "contain links to the incident and the run. Without this address, alerts contain paths of files on this "
        "machine.",
    )
    alert_severity: Severity = Field(
        default=Severity.CRITICAL,
        description="Minimum severity (1, 2 or 3) at which a failed case gets its own alert. Less severe failures "
        "appear only in the summary of the gate.",
    )
    reminder_interval_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=23.0,
        description="If a fault still exists this number of hours after its last alert, Lookout sends a reminder. "
        "The default is one hour less than a day, so that every nightly run sends a reminder.",
    )
    event_open_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=72.0,
        description="Number of hours after which Lookout closes the incident of a single event, such as an entry "
        "of the hallucination log. Lookout sends no message about this.",
    )
    false_alarm_quiet_h: Annotated[float, Field(gt=0, le=24 * 90, allow_inf_nan=False)] = Field(
        default=168.0,
        description="Number of hours for which Lookout sends no alerts about a finding that a person marked as a "
        "false alarm. The default is a week, the maximum 90 days. Use this time to fix the grader or the case.",
    )
    group_limit: Annotated[int, Field(ge=1, le=10)] = Field(
        default=3,
        description=(
            "Maximum number of failures (1 to 10) that one message shows in full. The message only counts "
            "all other failures."
        ),
    )
    excerpt_characters: Annotated[int, Field(ge=40, le=1000)] = Field(
        default=280,
        description="Maximum number of characters (40 to 1000) that a message shows of a question, an expected "
        "answer or an answer.",
    )
    send_timeout_s: Annotated[float, Field(gt=0, le=300)] = Field(
        default=20.0,
        description="Maximum time in seconds for one delivery. It includes all retries and the waiting times that "
        "Slack's rate limits require.",
    )
    send_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        default=2,
        description="Maximum number of retries within one delivery. Lookout retries if Slack rate-limits the "
        "request (HTTP 429), answers with HTTP 500 or 503, or cannot be reached. A message that still fails is "
        "stored for the next delivery.",
    )

    def choose_monitor_channel(self) -> str | None:
        """Return the channel for faults of the monitor."""
        return self.slack_monitor_channel or self.slack_channel


CONFIGURED_PREFIX: Final = "C-"
"""The beginning of the id of a configured silence."""
CONFIGURED_AUTHOR: Final = "lookout.toml"


class SilenceSettings(BaseModel):
    """A ``[[silences]]`` table of ``lookout.toml``: a recurring silence.

    A silence mutes an incident only if the incident matches every field of ``target``, ``case``, ``failure`` and
    ``kind`` that is set.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: WeeklyWindowText = Field(
        description='days and times of the silence in the time zone `zone`, such as "Sunday 02:00-04:00", '
        '"Mon-Fri, Sun 22:00-06:00" or, for every day, "day 01:00-01:30"'
    )
    zone: ZoneName = Field(description="the full name of the time zone of `every`, such as Europe/Berlin, or UTC")
    reason: str = Field(min_length=1, max_length=2_000, description="the reason for the silence")
    target: Identifier | None = Field(default=None, description="mute only incidents of this target")
    case: Identifier | None = Field(default=None, description="mute only incidents of this case")
    failure: FailureKind | None = Field(default=None, description="mute only failures of this kind")
    kind: IncidentKind | None = Field(default=None, description="mute only incidents of this kind")

    @model_validator(mode="after")
    def _require_matcher(self) -> Self:
        if not (self.target or self.case or self.failure or self.kind):
            raise ValueError("set target, case, failure or kind, because a silence cannot mute everything")
        return self

    def build_silence(self) -> Silence:
        """Build the silence. Its id depends on what the silence mutes and when, but not on the reason."""
        digest = hashlib.sha256(self.model_dump_json(exclude={"reason"}).encode()).hexdigest()
        return Silence(
            id=f"{CONFIGURED_PREFIX}{digest[:8]}",
            author=CONFIGURED_AUTHOR,
            comment=self.reason,
            starts_at=datetime(1970, 1, 1, tzinfo=UTC),
            ends_at=NO_END,
            recurrence=Recurrence(every=self.every, zone=self.zone),
            target=self.target,
            case_id=self.case,
            failure_kind=self.failure,
            kind=self.kind,
        )
