"""What a person did about a message, as the message shows it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record, Sha256, UtcTime

Name = Annotated[str, Field(min_length=1, max_length=200)]


class ActionKind(StrEnum):
    """What a person can do about an incident."""

    ACKNOWLEDGE = "acknowledge"
    """Seen: no reminder until it is worse."""
    FALSE_ALARM = "false_alarm"
    """The answer was right after all: a human label, and quiet about this finding for a while."""
    ADD_TO_GOLD = "add_to_gold"
    """Draft a gold case of it."""
    RESOLVE = "resolve"
    """It is over."""


class ActionVia(StrEnum):
    """How a person reached us."""

    SLACK = "slack"
    COMMAND = "command"


class Mark(Record):
    """Who did what about which incidents of a message. ``by`` is a Slack user id when it was done there."""

    kind: ActionKind
    by: Name
    via: ActionVia
    at: UtcTime
    fingerprints: tuple[Sha256, ...]
