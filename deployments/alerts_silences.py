"""Silences by command: what is meant, until when, in whose name. None without an end."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from deployments.alerts_desk import WAIT_S, AlertsDesk
from deployments.alerts_find import meant
from flows.people import catch_up
from monitors.alerts.inert import visible
from monitors.alerts.message import utc
from monitors.alerts.redact import redact
from monitors.errors import ConfigError, WarehouseBusy
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.silences import Silence
from warehouse.incident_story import silences_kept
from warehouse.people import append_silence

LONGEST: Final = timedelta(days=90)
"""What is muted for longer is not monitored: then the case or the target should go."""
ID_CHARACTERS: Final = 8

_LASTING: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_ENDLESS: Final = (
    "a silence needs an end: --for 90m, 4h or 2d, or --until 2026-03-02T08:00 (UTC). Nothing is muted for ever"
)


class Quiet(Record):
    """What nothing is to be said about: what is set must match, and something must be set."""

    author: str
    comment: str
    incident: str | None = None
    target: str | None = None
    case_id: str | None = None
    failure_kind: FailureKind | None = None
    kind: IncidentKind | None = None


def make_silences(desk: AlertsDesk, quiet: Quiet, *, lasting: str | None, until: str | None) -> tuple[Silence, ...]:
    """Keep one silence, or one for each incident of a message. Raises `ConfigError` without an end or a matcher."""
    now = desk.people.now()
    ends_at = end_of(now, lasting=lasting, until=until)
    about = [one.fingerprint for one in meant(desk.store, quiet.incident)] if quiet.incident else [None]
    made = tuple(_silence(quiet, fingerprint, now, ends_at) for fingerprint in about)
    for one in made:
        append_silence(desk.store.journal, one)
    _take_in(desk)
    return made


def end_silence(desk: AlertsDesk, silence_id: str, *, by: str) -> Silence:
    """End a silence now. Raises `ConfigError` for one that is not there or is over."""
    now = desk.people.now()
    known = {one.id: one for one in silences_kept(desk.store)}
    silence = known.get(silence_id)
    if silence is None or silence.ends_at <= now:
        running = ", ".join(one.id for one in known.values() if one.ends_at > now) or "there is none"
        raise ConfigError(f"no silence {silence_id} is in force: {running}")
    ended = silence.model_copy(
        update={"ends_at": max(now, silence.starts_at + timedelta(milliseconds=1)), "ended_by": by}
    )
    append_silence(desk.store.journal, ended)
    _take_in(desk)
    return ended


def end_of(now: datetime, *, lasting: str | None, until: str | None) -> datetime:
    """When a silence ends. Raises `ConfigError` where it would not, or not soon enough, or has."""
    if (lasting is None) == (until is None):
        raise ConfigError(_ENDLESS)
    ends_at = now + _span_of(lasting) if lasting is not None else _time_of(str(until))
    if ends_at <= now:
        raise ConfigError(f"a silence ends in the future; {utc(ends_at)} is over")
    if ends_at - now > LONGEST:
        raise ConfigError(f"a silence of {(ends_at - now).days} days is too long: {LONGEST.days} at most")
    return ends_at


def in_words(record: Record) -> str:
    """What a person reads after a silence was made or ended."""
    if not isinstance(record, Silence):
        return str(record)
    about = ", ".join(f"{name} {wanted[:40]}" for name, wanted in record.matchers().items())
    if record.ended_by:
        return (
            f"{record.id} ended by {visible(record.ended_by)}: {about} is told again by the next run that sees it"
        )
    return f"{record.id}: nothing is said about {about} until {utc(record.ends_at)}"


def _span_of(lasting: str) -> timedelta:
    found = _LASTING.fullmatch(lasting.strip())
    if found is None:
        raise ConfigError(f"--for {lasting!r}: a number with m, h or d is accepted, such as 90m, 4h, 2d")
    return int(found[1]) * _UNITS[found[2]]


def _time_of(until: str) -> datetime:
    try:
        time = datetime.fromisoformat(until.strip())
    except ValueError:
        raise ConfigError(f"--until {until!r}: a time such as 2026-03-02T08:00 is accepted, in UTC") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _silence(quiet: Quiet, fingerprint: str | None, now: datetime, ends_at: datetime) -> Silence:
    canonical = f"{quiet.model_dump_json()}{fingerprint}{now.isoformat()}".encode()
    try:
        return Silence(
            id=f"S-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
            author=quiet.author,
            comment=redact(quiet.comment),
            starts_at=now,
            ends_at=ends_at,
            fingerprint=fingerprint,
            target=quiet.target,
            kind=quiet.kind,
            case_id=quiet.case_id,
            failure_kind=quiet.failure_kind,
        )
    except ValidationError as error:
        raise ConfigError(_why(error)) from None


def _why(error: ValidationError) -> str:
    first: Sequence[str] = [str(part) for part in error.errors(include_url=False)[0]["loc"]]
    message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    if "never everything" in message:
        return (
            "a silence needs something to be about: an id, --target, --case, --failure or --kind; never everything"
        )
    return f"{'.'.join(first)}: {message}"


def _take_in(desk: AlertsDesk) -> None:
    """What waits in the journal is read by the next run in any case."""
    with suppress(WarehouseBusy):
        catch_up(desk.people, wait_s=WAIT_S)
