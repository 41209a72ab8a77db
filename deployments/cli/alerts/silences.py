"""Create and end silences: what to match, until when, and who asked. Every silence has an end."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from deployments.cli.alerts.incidents import WAIT_S, IncidentSession, find_incidents
from flows.alerting.notifier import apply_actions
from monitors.alerts.message import format_utc
from monitors.alerts.redact import redact, remove_invisible
from monitors.errors import ConfigError, WarehouseBusy
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.operator_actions import Silence
from warehouse.queries.incidents import list_all_silences
from warehouse.queries.operator_actions import append_silence

MAX_SILENCE: Final = timedelta(days=90)
"""The longest silence. What is muted for longer is not monitored: then the case or the target should go."""
ID_CHARACTERS: Final = 8

_DURATION: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_NO_END_ERROR: Final = "a silence must have an end: give --for 90m, 4h or 2d, or --until 2026-03-02T08:00 (UTC)"


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
    session: IncidentSession, matchers: SilenceMatchers, *, lasting: str | None, until: str | None
) -> tuple[Silence, ...]:
    """Make one silence, or one for each incident of a message. Raises `ConfigError` without an end or a matcher."""
    now = session.actions.now()
    ends_at = compute_silence_end(now, lasting=lasting, until=until)
    about = (
        [incident.fingerprint for incident in find_incidents(session.store, matchers.incident)]
        if matchers.incident
        else [None]
    )
    silences = tuple(build_silence(matchers, fingerprint, now, ends_at) for fingerprint in about)
    for silence in silences:
        append_silence(session.store.journal, silence)
    _apply_actions_if_free(session)
    return silences


def end_silence(session: IncidentSession, silence_id: str, *, by: str) -> Silence:
    """End a silence now. Raises `ConfigError` for one that does not exist or is over."""
    now = session.actions.now()
    silences = {silence.id: silence for silence in list_all_silences(session.store)}
    silence = silences.get(silence_id)
    if silence is None or silence.ends_at <= now:
        running = ", ".join(silence.id for silence in silences.values() if silence.ends_at > now) or "there is none"
        raise ConfigError(f"no active silence has the id {silence_id}: {running}")
    ended = silence.end(now, by)
    append_silence(session.store.journal, ended)
    _apply_actions_if_free(session)
    return ended


def compute_silence_end(now: datetime, *, lasting: str | None, until: str | None) -> datetime:
    """Return a silence's end. Raises `ConfigError` for no end, one too far away, or one in the past."""
    if (lasting is None) == (until is None):
        raise ConfigError(_NO_END_ERROR)
    ends_at = now + _parse_duration(lasting) if lasting is not None else _parse_time(str(until))
    if ends_at <= now:
        raise ConfigError(f"the end of a silence must be in the future; {format_utc(ends_at)} is in the past")
    if ends_at - now > MAX_SILENCE:
        raise ConfigError(
            f"a silence of {(ends_at - now).days} days is too long; the maximum is {MAX_SILENCE.days} days"
        )
    return ends_at


def format_record(record: Record) -> str:
    """Format the message after a silence was made or ended."""
    if not isinstance(record, Silence):
        return str(record)
    about = ", ".join(f"{name} {wanted[:40]}" for name, wanted in record.list_matchers().items())
    if record.ended_by:
        ended_by = remove_invisible(record.ended_by)
        return f"{record.id} ended by {ended_by}: the next run that sees {about} sends an alert"
    return f"{record.id}: no alerts about {about} until {format_utc(record.ends_at)}"


def _parse_duration(lasting: str) -> timedelta:
    match = _DURATION.fullmatch(lasting.strip())
    if match is None:
        raise ConfigError(
            f"--for {lasting!r} is not a valid duration; accepted: a number with m, h or d, such as 90m, 4h, 2d"
        )
    return int(match[1]) * _UNITS[match[2]]


def _parse_time(until: str) -> datetime:
    try:
        time = datetime.fromisoformat(until.strip())
    except ValueError:
        raise ConfigError(
            f"--until {until!r} is not a valid time; accepted: a time in UTC such as 2026-03-02T08:00"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def build_silence(matchers: SilenceMatchers, fingerprint: str | None, now: datetime, ends_at: datetime) -> Silence:
    """A silence of what ``quiet`` matches and, where it is given, of one incident. Raises `ConfigError`."""
    canonical = f"{matchers.model_dump_json()}{fingerprint}{now.isoformat()}".encode()
    try:
        return Silence(
            id=f"S-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
            author=matchers.author,
            comment=redact(matchers.comment),
            starts_at=now,
            ends_at=ends_at,
            fingerprint=fingerprint,
            target=matchers.target,
            kind=matchers.kind,
            case_id=matchers.case_id,
            failure_kind=matchers.failure_kind,
        )
    except ValidationError as error:
        raise ConfigError(_format_validation_error(error)) from None


def _format_validation_error(error: ValidationError) -> str:
    first: Sequence[str] = [str(part) for part in error.errors(include_url=False)[0]["loc"]]
    message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    if "cannot silence everything" in message:
        return "a silence must name an id, --target, --case, --failure or --kind; it cannot silence everything"
    return f"{'.'.join(first)}: {message}"


def _apply_actions_if_free(session: IncidentSession) -> None:
    """Apply the journal's pending actions. If the warehouse is busy, the next run does it."""
    # The silence is in the journal; the next run loads it.
    with suppress(WarehouseBusy):
        apply_actions(session.actions, wait_s=WAIT_S)
