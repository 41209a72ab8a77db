"""Alert settings: which alerts go where, and when they are repeated.

Tokens and webhook addresses are never settings. For the monitor itself: how long a run may take, how long a log may
be silent.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitors.records.base import Severity
from monitors.records.targets import HttpUrl


class WatchdogSettings(BaseModel):
    """The ``[watchdog]`` table of ``lookout.toml``. The heartbeat's address is a secret and never a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=4 * 3600.0,
        description="Longest time in seconds that a run may ask questions. Then Lookout stops the run, evaluates "
        "the answers so far, and sends one message to the monitor's owners.",
    )
    stop_grace_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=600.0,
        description="Seconds after the deadline for weighing, storing and telling. A process that is not done then "
        "hangs for good: it says so and ends itself.",
    )
    missing_run_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=26.0,
        description="Hours without a finished run of a scheduled deployment after which Prefect says so. Two more "
        "than a day, so that a nightly run may be late.",
    )
    log_silence_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=3.0,
        description="A hallucination log that is silent for this many times its longest known pause is reported.",
    )
    log_silence_entries: Annotated[int, Field(ge=2)] = Field(
        default=20,
        description="Entries that must be known before a log has a norm at all.",
    )
    log_silence_floor_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=6.0,
        description="Hours of silence that are never reported, however busy the log is otherwise.",
    )


class AlertSettings(BaseModel):
    """The ``[alerts]`` table of ``lookout.toml``.

    The bot token or the webhook address come from the environment and are handed to the sender as arguments, so
    that this table can be printed, stored and committed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slack_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel for alerts about the application: an id (C0123456789) or a name (#alerts). "
        "Needed with a bot token; an incoming webhook brings its own. With an id and the scope channels:history, "
        "a delivery whose reply was lost is found again instead of repeated.",
    )
    slack_monitor_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel for alerts about the monitor itself and its judge; `slack_channel` when left out.",
    )
    slack_fallback_channel: str | None = Field(
        default=None,
        min_length=1,
        description="Channel (same workspace, needs a bot token) for messages that the main channel permanently "
        "refuses: it is archived, or the bot is not a member. For another workspace set "
        "SLACK_FALLBACK_WEBHOOK_URL.",
    )
    slack_api_url: HttpUrl = Field(
        default="https://slack.com/api/",
        description="Base address of Slack's Web API; another one for a proxy or a test server.",
    )
    slack_buttons: bool = Field(
        default=False,
        description="Put Acknowledge, False alarm and Add to gold under each alert that a bot token sends. Needs "
        "the receiver of Slack's interactivity requests (lookout slack-actions) to be reachable from the internet.",
    )
    site_url: HttpUrl | None = Field(
        default=None,
        description='Where people reach the site from elsewhere, such as "https://lookout.example.com". Alerts '
        "on Slack then link to the incident and the run there; left out, they name files of this machine.",
    )
    alert_severity: Severity = Field(
        default=Severity.CRITICAL,
        description="Failures from this severity on are alerts of their own (1, 2 or 3). Milder ones appear "
        "only in the gate's summary.",
    )
    reminder_interval_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=23.0,
        description="Hours after which Lookout sends a reminder about a fault that is still there. The default is "
        "one hour less than a day, so that every night sends one.",
    )
    event_open_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=72.0,
        description="Hours after which an incident that is one event (an entry of the hallucination log) is "
        "closed without a word.",
    )
    false_alarm_quiet_h: Annotated[float, Field(gt=0, le=24 * 90, allow_inf_nan=False)] = Field(
        default=168.0,
        description="Hours for which Lookout stays quiet about a finding that a person called a false alarm, a "
        "week by default, 90 days at most: the time to fix the grader or the case. It ends like any silence.",
    )
    group_limit: Annotated[int, Field(ge=1, le=10)] = Field(
        default=3,
        description="Failures shown in full in one message, 1 to 10; the rest is counted by kind.",
    )
    excerpt_characters: Annotated[int, Field(ge=40, le=1000)] = Field(
        default=280,
        description="Longest excerpt of a question, an expectation or an answer, 40 to 1000 characters.",
    )
    send_timeout_s: Annotated[float, Field(gt=0, le=300)] = Field(
        default=20.0,
        description="Deadline in seconds for one delivery, waiting for rate limits and retries included.",
    )
    send_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        default=2,
        description="Tries after the first within one delivery when Slack limits the rate, answers 500 or 503, "
        "or cannot be connected to. What still fails is stored for the next delivery.",
    )

    def choose_monitor_channel(self) -> str | None:
        """The channel for faults of the monitor."""
        return self.slack_monitor_channel or self.slack_channel
