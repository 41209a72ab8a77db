"""What Slack sends when a button is pressed: a form with one JSON field → the presses in it."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deployments.strict_json import read_strict_json
from monitors.alerts.slack_buttons import Press, pressed
from monitors.records.base import Record
from monitors.records.marks import ActionVia
from monitors.records.people import PersonAction

MOST_FIELDS: Final = 10
MOST_PRESSES: Final = 10
"""Slack sends one; a few more do no harm, a thousand would be no person."""
ID_CHARACTERS: Final = 24
"""Hexadecimal digits of a click's id: 96 bits."""


class Malformed(ValueError):
    """What was sent is no press of a button. The text never holds what was sent."""


class _User(BaseModel):
    id: Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]


class _Option(BaseModel):
    value: Annotated[str, Field(max_length=2_000)]


class _Pressed(BaseModel):
    action_id: Annotated[str, Field(max_length=255)]
    value: Annotated[str, Field(max_length=2_000)] = ""
    selected_option: _Option | None = None


class _Container(BaseModel):
    channel_id: Annotated[str, Field(pattern=r"^[CDG][A-Z0-9]{2,20}$")] | None = None
    message_ts: Annotated[str, Field(pattern=r"^[0-9]{1,12}\.[0-9]{1,8}$")] | None = None


class _Interaction(BaseModel):
    """The part of a ``block_actions`` payload that is read; everything else in it is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Annotated[str, Field(max_length=100)]
    user: _User
    actions: Annotated[list[_Pressed], Field(max_length=MOST_PRESSES)] = []
    container: _Container = _Container()
    response_url: Annotated[str, Field(max_length=2_000)] | None = None


class Click(Record):
    """A press as it is kept, and where to answer the one who pressed. The address is never kept."""

    action: PersonAction
    response_url: str | None


def clicks_in(body: bytes, *, at: datetime) -> tuple[Click, ...]:
    """The presses of our own buttons in ``body``; other apps' and other kinds of interaction give none.

    Raises `Malformed` for anything that Slack does not send.
    """
    try:
        interaction = _Interaction.model_validate(read_strict_json(_payload(body)))
        if interaction.type != "block_actions":
            return ()
        found = ((one, pressed(one.action_id, _value(one))) for one in interaction.actions)
        return tuple(_click(interaction, one, press, at) for one, press in found if press is not None)
    except ValidationError:
        raise Malformed("the payload has not the form of a press") from None
    except ValueError as error:
        raise Malformed(str(error)) from None


def _payload(body: bytes) -> str:
    try:
        fields = parse_qsl(
            body.decode("ascii"), strict_parsing=True, max_num_fields=MOST_FIELDS, errors="strict", separator="&"
        )
    except ValueError:
        raise Malformed("the body is not a form") from None
    payloads = [value for name, value in fields if name == "payload"]
    if len(payloads) != 1:
        raise Malformed("the form has not exactly one payload")
    return payloads[0]


def _value(one: _Pressed) -> str:
    return one.selected_option.value if one.selected_option else one.value


def _click(interaction: _Interaction, one: _Pressed, press: Press, at: datetime) -> Click:
    """The id follows from the button alone: pressed twice, or delivered twice, it is one action."""
    canonical = f"{one.action_id}\n{_value(one)}".encode()
    action = PersonAction(
        id=f"click-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
        kind=press.kind,
        at=at,
        by=interaction.user.id,
        via=ActionVia.SLACK,
        alert_id=press.alert_id,
        fingerprints=press.fingerprints,
        channel=interaction.container.channel_id,
        message_ts=interaction.container.message_ts,
    )
    return Click(action=action, response_url=interaction.response_url)
