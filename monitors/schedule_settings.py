"""`[schedules]`: when the work of every day is done."""

from __future__ import annotations

import re
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

OFF: Final = ""
"""In the place of a cron line: never."""

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""Of minute, hour, day, month, weekday. Sunday is 0: some readers of cron lines know no 7."""
_PART: Final = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?", re.ASCII)
_EVERY_DAY: Final = ["*", "*", "*"]


def _cron_or_off(line: str) -> str:
    """A cron line of five fields with single spaces, or `OFF`; ``ValueError`` says what is accepted."""
    fields = line.split()
    if fields and (
        len(fields) != len(_BOUNDS)
        or not all(_is_field(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True))
    ):
        raise ValueError(
            'a cron line of minute, hour, day, month, weekday in figures, such as "0 1 * * *", or "" for never'
        )
    return " ".join(fields)


def _is_field(field: str, lowest: int, highest: int) -> bool:
    return all(_is_part(part, lowest, highest) for part in field.split(","))


def _is_part(part: str, lowest: int, highest: int) -> bool:
    found = _PART.fullmatch(part)
    if found is None:
        return False
    first, last, step = (int(group) if group else None for group in found.groups())
    if step is not None and (not 1 <= step <= highest or (first is not None and last is None)):
        return False
    values = [value for value in (first, last) if value is not None]
    return all(lowest <= value <= highest for value in values) and values == sorted(values)


CronLine = Annotated[str, AfterValidator(_cron_or_off)]


def fires_daily(cron: str) -> bool:
    """Whether a cron line fires on every day of the year; one that is off does not."""
    return cron.split()[2:] == _EVERY_DAY


class ScheduleSettings(BaseModel):
    """The ``[schedules]`` table of ``lookout.toml``. Each target's traffic has its own hour."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verify_cron: CronLine = Field(
        default="0 1 * * *",
        description="when every target is asked its whole suite without a deploy, as a cron line (minute hour day "
        'month weekday); "" for never',
    )
    load_cron: CronLine = Field(
        default="30 4 * * *",
        description='when the warehouse is loaded, exported, aged and checked, as a cron line; "" for never',
    )
    digest_cron: CronLine = Field(
        default="0 7 * * *",
        description="when one message for each target says how it stands, also when all is well, as a cron line; "
        '"" for never',
    )
    time_zone: str | None = Field(
        default=None,
        description="zone of these cron lines, such as Asia/Kolkata; left out: UTC, and for a target with live "
        "traffic its traffic's",
    )

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("a zone of the tz database, such as UTC or Asia/Kolkata") from error
