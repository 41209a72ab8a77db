"""Create and end silences. A silence stops alerts about matching incidents until its end."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from deployments.cli.alerts.incidents import (
    WAIT_S,
    IncidentSession,
    find_by_incident_or_message_id,
    format_silence_matchers,
    format_silence_time,
)
from flows.alerting.notifier import apply_waiting_actions
from monitors.alerts.message import format_utc
from monitors.alerts.redact import redact, remove_invisible_characters
from monitors.alerts.settings import CONFIGURED_PREFIX
from monitors.errors import ConfigError, WarehouseBusy
from monitors.problems import explain_validation_error
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.operator_actions import NO_END, Silence
from monitors.records.recurrence import Recurrence, WeeklyWindowText, ZoneName
from warehouse.queries.operator_actions import append_silence

MAX_SILENCE: Final = timedelta(days=90)
"""Maximum duration of a silence. To silence a case or a target for longer, remove the case or the target."""
ID_CHARACTERS: Final = 8

_DURATION: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_CLOCK_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_NO_END_ERROR: Final = (
    "a silence must have exactly one end. Give a duration (--for 90m, 4h or 2d) or a time "
    "(--until 2026-03-02T08:00, UTC)"
)


# Repeats the fields of `Silence`, because these values are user input that is not validated yet.
class SilenceMatchers(Record):
    """The author and reason of a silence, and its matchers: the fields that select incidents.

    An incident must match all matchers that are set. At least one matcher must be set.
    """

    author: str
    comment: str
    incident: str | None = None
    target: str | None = None
    case_id: str | None = None
    failure_kind: FailureKind | None = None
    kind: IncidentKind | None = None


class SilenceTimes(Record):
    """The start and end of a silence, as a person entered them. Without ``zone``, the times are in UTC."""

    lasting: str | None = None
    until: str | None = None
    begins: str | None = None
    every: WeeklyWindowText | None = None
    zone: ZoneName | None = None


def parse_silence_times(**options: str | None) -> SilenceTimes:
    """Parse the command-line options that set the times of a silence.

    Raises a `ConfigError` that names the invalid option.
    """
    try:
        times = SilenceTimes.model_validate(options)
    except ValidationError as error:
        lines = (f"--{explain_validation_error(SilenceTimes, dict(detail))}" for detail in error.errors())
        raise ConfigError("\n".join(lines)) from None
    if times.every and not times.zone:
        raise ConfigError("--every needs a time zone. Add --zone, such as --zone Europe/Berlin")
    if times.zone and not (times.every or times.begins or times.until):
        raise ConfigError(
            "--zone has no effect without --every, --from or --until. Add one of these options, or remove --zone"
        )
    return times


def store_silences_and_apply_actions(
    session: IncidentSession, matchers: SilenceMatchers, times: SilenceTimes
) -> tuple[Silence, ...]:
    """Create and store a silence. If the warehouse is not busy, also apply all pending actions.

    If ``matchers`` contains the id of a message, one silence is created for each incident of this message.
    Returns the silences. Raises `ConfigError`.
    """
    now = session.actions.now()
    about = (
        [incident.fingerprint for incident in find_by_incident_or_message_id(session.store, matchers.incident)]
        if matchers.incident
        else [None]
    )
    silences = tuple(build_silence(matchers, times, fingerprint, now) for fingerprint in about)
    for silence in silences:
        append_silence(session.store.journal, silence)
    _apply_pending_actions_if_free(session)
    return silences


def end_silence_and_apply_pending_actions(session: IncidentSession, silence_id: str, *, by: str) -> Silence:
    """End a silence now and return it. If the warehouse is not busy, also apply all pending actions.

    Raises `ConfigError` if the silence does not exist, has already ended or is configured in lookout.toml.
    """
    now = session.actions.now()
    silences = {silence.id: silence for silence in session.actions.list_silences()}
    silence = silences.get(silence_id)
    if silence is None or silence.is_over(now):
        running = ", ".join(silence.id for silence in silences.values() if not silence.is_over(now)) or "none"
        raise ConfigError(
            f"no active or planned silence has the id {silence_id}. Active and planned silences: {running}"
        )
    if silence_id.startswith(CONFIGURED_PREFIX):
        raise ConfigError(
            f"{silence_id} is configured in lookout.toml. To end this silence, remove its [[silences]] table from "
            "that file"
        )
    ended = silence.end_early(now, by)
    append_silence(session.store.journal, ended)
    _apply_pending_actions_if_free(session)
    return ended


def compute_silence_end(
    starts_at: datetime, *, lasting: str | None, until: str | None, zone: str | None = None
) -> datetime:
    """Return the end of a silence: the start plus the duration ``lasting``, or the time ``until``.

    Raises `ConfigError` if neither or both of them are given, if the value is invalid, or if the end is not after
    the start.
    """
    if (lasting is None) == (until is None):
        raise ConfigError(_NO_END_ERROR)
    ends_at = (
        starts_at + _parse_silence_duration(lasting)
        if lasting is not None
        else _parse_silence_time("--until", str(until), starts_at, zone)
    )
    if ends_at <= starts_at:
        raise ConfigError(
            f"a silence must end after it starts. The end is {format_utc(ends_at)}, but the start is "
            f"{format_utc(starts_at)}. Give a later end"
        )
    return ends_at


def format_silence_confirmation(silence: Silence, now: datetime) -> str:
    """Format the message that confirms that a silence was created or ended."""
    about = format_silence_matchers(silence)
    if silence.ended_by:
        ended_by = remove_invisible_characters(silence.ended_by)
        return (
            f"{ended_by} ended the silence {silence.id}. The next run that finds a matching fault ({about}) sends "
            "an alert."
        )
    return f"{silence.id}: no alerts about {about} {format_silence_time(silence, now)}"


def _parse_silence_duration(lasting: str) -> timedelta:
    match = _DURATION.fullmatch(lasting.strip())
    if match is None:
        raise ConfigError(
            f"--for {lasting!r} is not a valid duration. Accepted: a number and the unit m, h or d, such as 90m, "
            "4h or 2d"
        )
    return int(match[1]) * _UNITS[match[2]]


def _parse_silence_time(option: str, text: str, after: datetime, zone: str | None) -> datetime:
    """Parse the time ``text`` of the option ``option``. Without ``zone``, the time is in UTC.

    A clock time such as ``08:00`` means the next time after ``after`` at which clocks in ``zone`` show it. Raises
    `ConfigError` for an invalid time.
    """
    tz = ZoneInfo(zone) if zone else UTC
    if clock := _CLOCK_TIME.fullmatch(text.strip()):
        today = after.astimezone(tz).replace(
            hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0, fold=0
        )
        # Compared in UTC, because Python compares two times of one zone by their local time.
        days = ((today + timedelta(days=more)).astimezone(UTC) for more in range(3))
        return next(time for time in days if time > after)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} is not a valid time. Accepted: a time such as 2026-03-02T08:00 or 08:00, in UTC "
            "unless --zone is given"
        ) from None
    return (time if time.tzinfo else time.replace(tzinfo=tz)).astimezone(UTC)


def build_silence(
    matchers: SilenceMatchers, times: SilenceTimes, fingerprint: str | None, now: datetime
) -> Silence:
    """Build a silence from the matchers and times.

    If ``fingerprint`` is given, the silence matches only the incident with this fingerprint. Raises `ConfigError`.
    """
    starts_at = now if times.begins is None else _parse_silence_time("--from", times.begins, now, times.zone)
    if starts_at < now:
        raise ConfigError(f"a silence cannot start in the past. The given start is {format_utc(starts_at)}")
    recurrence = Recurrence(every=times.every, zone=times.zone) if times.every and times.zone else None
    if recurrence and times.lasting is None and times.until is None:
        ends_at = NO_END
    else:
        ends_at = compute_silence_end(starts_at, lasting=times.lasting, until=times.until, zone=times.zone)
    if recurrence is None and ends_at - starts_at > MAX_SILENCE:
        raise ConfigError(
            f"a silence of {(ends_at - starts_at).days} days is too long. The maximum is {MAX_SILENCE.days} days"
        )
    canonical = f"{matchers.model_dump_json()}{fingerprint}{now.isoformat()}{recurrence}".encode()
    try:
        return Silence(
            id=f"S-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
            author=matchers.author,
            comment=redact(matchers.comment),
            starts_at=starts_at,
            ends_at=ends_at,
            fingerprint=fingerprint,
            target=matchers.target,
            kind=matchers.kind,
            case_id=matchers.case_id,
            failure_kind=matchers.failure_kind,
            recurrence=recurrence,
            scheduled=times.begins is not None,
        )
    except ValidationError as error:
        raise ConfigError(_explain_invalid_silence(error)) from None


def _explain_invalid_silence(error: ValidationError) -> str:
    first: Sequence[str] = [str(part) for part in error.errors(include_url=False)[0]["loc"]]
    message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    if "cannot silence everything" in message:
        return (
            "Lookout cannot silence everything. Give the id of an incident, --target, --case, --failure or --kind"
        )
    return f"{'.'.join(first)}: {message}"


def _apply_pending_actions_if_free(session: IncidentSession) -> None:
    """Apply all pending actions. If the warehouse is busy, the next run applies them."""
    # The silence is in the journal, so the next run loads it.
    with suppress(WarehouseBusy):
        apply_waiting_actions(session.actions, wait_s=WAIT_S)
