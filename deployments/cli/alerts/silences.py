"""Silences by command: what to match, until when, in whose name. Every silence has an end."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from deployments.cli.alerts.incidents import WAIT_S, IncidentSession, meant
from flows.alerting.notifier import apply_actions
from monitors.alerts.message import utc
from monitors.alerts.redact import redact, visible
from monitors.errors import ConfigError, WarehouseBusy
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.operator_actions import Silence
from warehouse.queries.incidents import all_silences
from warehouse.queries.operator_actions import append_silence

LONGEST: Final = timedelta(days=90)
"""The longest silence. What is muted for longer is not monitored: then the case or the target should go."""
ID_CHARACTERS: Final = 8

_LASTING: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_ENDLESS: Final = (
    "a silence needs an end: --for 90m, 4h or 2d, or --until 2026-03-02T08:00 (UTC). Nothing is muted for ever"
)


class SilenceMatchers(Record):
    """What a silence matches: every field that is set must match, and something must be set."""

    author: str
    comment: str
    incident: str | None = None
    target: str | None = None
    case_id: str | None = None
    failure_kind: FailureKind | None = None
    kind: IncidentKind | None = None


def make_silences(
    session: IncidentSession, quiet: SilenceMatchers, *, lasting: str | None, until: str | None
) -> tuple[Silence, ...]:
    """Make one silence, or one for each incident of a message. Raises `ConfigError` without an end or a matcher."""
    now = session.people.now()
    ends_at = end_of(now, lasting=lasting, until=until)
    about = [one.fingerprint for one in meant(session.store, quiet.incident)] if quiet.incident else [None]
    made = tuple(new_silence(quiet, fingerprint, now, ends_at) for fingerprint in about)
    for one in made:
        append_silence(session.store.journal, one)
    _take_in(session)
    return made


def end_silence(session: IncidentSession, silence_id: str, *, by: str) -> Silence:
    """End a silence now. Raises `ConfigError` for one that does not exist or is over."""
    now = session.people.now()
    known = {one.id: one for one in all_silences(session.store)}
    silence = known.get(silence_id)
    if silence is None or silence.ends_at <= now:
        running = ", ".join(one.id for one in known.values() if one.ends_at > now) or "there is none"
        raise ConfigError(f"no silence {silence_id} is in force: {running}")
    ended = ended_silence(silence, now, by)
    append_silence(session.store.journal, ended)
    _take_in(session)
    return ended


def ended_silence(silence: Silence, now: datetime, by: str) -> Silence:
    """The silence as it is once somebody has ended it before its time."""
    ends_at = max(now, silence.starts_at + timedelta(milliseconds=1))
    return silence.model_copy(update={"ends_at": ends_at, "ended_by": by})


def end_of(now: datetime, *, lasting: str | None, until: str | None) -> datetime:
    """When a silence ends. Raises `ConfigError` where it has no end, one too far away, or one in the past."""
    if (lasting is None) == (until is None):
        raise ConfigError(_ENDLESS)
    ends_at = now + _span_of(lasting) if lasting is not None else _time_of(str(until))
    if ends_at <= now:
        raise ConfigError(f"a silence ends in the future; {utc(ends_at)} is over")
    if ends_at - now > LONGEST:
        raise ConfigError(f"a silence of {(ends_at - now).days} days is too long: {LONGEST.days} at most")
    return ends_at


def describe_record(record: Record) -> str:
    """What a person reads after a silence was made or ended."""
    if not isinstance(record, Silence):
        return str(record)
    about = ", ".join(f"{name} {wanted[:40]}" for name, wanted in record.matchers().items())
    if record.ended_by:
        return f"{record.id} ended by {visible(record.ended_by)}: the next run that sees {about} sends an alert"
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


def new_silence(quiet: SilenceMatchers, fingerprint: str | None, now: datetime, ends_at: datetime) -> Silence:
    """A silence of what ``quiet`` matches and, where it is given, of one incident. Raises `ConfigError`."""
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


def _take_in(session: IncidentSession) -> None:
    """Load what waits in the journal. If it must wait, the next run loads it."""
    # The silence is in the journal; the next run loads it.
    with suppress(WarehouseBusy):
        apply_actions(session.people, wait_s=WAIT_S)
