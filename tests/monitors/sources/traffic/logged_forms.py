"""Logged conversations in the formats of many loggers, each with the result that reading it must give."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitors.records.traffic import UnusableReason

QUESTION: Final = "Do you deliver on Sundays?"
ENDED: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""The time at which all conversations ended, to within a minute."""


class LoggedForm(NamedTuple):
    """The rows of one conversation in the format of a logger, and the expected result."""

    form: str
    rows: list[dict[str, Any]]
    answer: str
    passages: list[str]
    reason: UnusableReason | None


def load_logged_forms() -> list[LoggedForm]:
    """Load the logged formats of ``forms.jsonl``."""
    lines = Path(__file__).with_name("forms.jsonl").read_text(encoding="utf-8").splitlines()
    forms = [LoggedForm(**json.loads(line)) for line in lines]
    return [form._replace(reason=form.reason and UnusableReason(form.reason)) for form in forms]


def is_end_time(time: datetime) -> bool:
    """Return whether ``time`` is within a minute of `ENDED`."""
    return ENDED - timedelta(minutes=1) <= time < ENDED + timedelta(minutes=1)
