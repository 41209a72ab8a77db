"""Follows a hallucination log: reads it, stores new entries, and sends alerts about entries and about the log.

The log contains replies that the application blocked as hallucinations. New entries and the new read position are
written to the journal in one step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault, resolve_faults, resolve_other_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, notify_of_load_errors, send_waiting_alerts
from flows.clock import utc_now
from flows.hallucination_log.encoder_pool import EncoderPool
from flows.hallucination_log.line_encoder import MAX_ASIDE_SHOWN, EncodedLines, LineSettings
from flows.process_lock import hold_job_lock
from flows.runtime.probe import count_cores
from flows.runtime.secrets import generate_run_id, get_environment
from flows.runtime.slack import build_notifier_without_run
from monitors.alerts.liveness import (
    LOG_FAULTS,
    LOG_GAP,
    LOG_LINES_UNREADABLE,
    LOG_MISSING,
    LOG_SILENT,
    LOG_UNREADABLE,
    find_log_silence,
    name_and_describe_log_silence,
)
from monitors.alerts.observe import ObservationContext, build_hallucination_observation
from monitors.alerts.settings import WatchdogSettings
from monitors.config.file import Config, TargetConfig
from monitors.errors import ConfigError, SourceUnavailable, WarehouseDamaged, WarehouseError, WarehouseInUse
from monitors.plural import plural
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Record
from monitors.records.incidents import Alert, Capability, IncidentKind, Link, Observation, RunSummary
from monitors.records.logs import LoggedHallucination, LogWarning, LogWarningKind, QuarantinedLine
from monitors.sources.logs.entries import is_whole_entry
from monitors.sources.logs.files import LocalLog, LogPlace, build_remote_log
from monitors.sources.logs.settings import HallucinationLogSettings
from monitors.sources.logs.tail import BatchLimits, LogBatch, build_unread_cursor_with_history, read_new_batches
from warehouse.database.store import Store
from warehouse.journal.rows import CursorRow
from warehouse.journal.segments import encode_rows
from warehouse.queries.incidents import find_last_run_with_alert
from warehouse.queries.traffic import find_log_cursor, list_entry_times, list_log_entries_awaiting_alert

LOAD_WAIT_S: Final = 30.0
"""Maximum wait for the warehouse's lock, in seconds. Loading a nightly run holds the lock for several seconds."""


LOST_PLACE_TEXT: Final = "the read position in the log may be lost, so Lookout does not follow the log"


class LogRead(Record):
    """The result of reading a log once. ``history`` counts the entries that were written before the first poll."""

    entries: int = 0
    history: int = 0
    aside: tuple[QuarantinedLine, ...] = ()
    """The first few skipped invalid lines. ``aside_count`` is the number of all skipped invalid lines."""
    aside_count: int = 0
    issues: tuple[LogWarning, ...] = ()


@dataclass(frozen=True)
class LogReader:
    """Reads one target's log. ``pool`` encodes the lines for the journal and redacts personal data."""

    target: str
    place: LogPlace
    store: Store
    pool: EncoderPool
    limits: BatchLimits

    def poll(self) -> LogRead:
        """Read new lines, store them in the journal and load them into the warehouse.

        Raises `SourceUnavailable` if the log cannot be read, and `WarehouseBusy` if the read position cannot be
        read. Raises `WarehouseDamaged` if the read position may be lost, because a new position would skip entries.
        After an error, the next poll starts at the same position.
        """
        with hold_job_lock(self.store.database.file.parent, f"log {self.target}", wait_s=LOAD_WAIT_S):
            self.store.load_pending(LOAD_WAIT_S)
            log_read = LogRead()
            cursor = find_log_cursor(self.store, self.target, wait_s=LOAD_WAIT_S)
            if cursor is None and (losses := self.store.load_and_list_losses(LOAD_WAIT_S)):
                raise WarehouseDamaged(f"{LOST_PLACE_TEXT}: {losses[0]}")
            with self.place.poll() as files:
                batches = read_new_batches(files, self.target, cursor, is_whole=is_whole_entry, limits=self.limits)
                with closing(self.pool.encode_batches(batches)) as encoded:
                    for batch, lines in encoded:
                        log_read = self._store_batch(log_read, batch, lines)
            self.store.load_pending(LOAD_WAIT_S)
        return log_read

    def store_first_position(self) -> None:
        """Store the end of the log as the first read position, unless a position is already stored.

        Entries before this position cause no alerts. Raises `SourceUnavailable` or `WarehouseError` if the position
        cannot be stored. In this case, the first poll stores the position.
        """
        with hold_job_lock(self.store.database.file.parent, f"log {self.target}", wait_s=LOAD_WAIT_S):
            self.store.load_pending(LOAD_WAIT_S)
            if find_log_cursor(self.store, self.target, wait_s=LOAD_WAIT_S) or self.store.load_and_list_losses(
                LOAD_WAIT_S
            ):
                return
            with self.place.poll() as files:
                cursor = build_unread_cursor_with_history(files, self.target)
            self.store.journal.append_encoded_rows(encode_rows([CursorRow(row=cursor)]), run_id=None)

    def _store_batch(self, log_read: LogRead, batch: LogBatch, lines: EncodedLines) -> LogRead:
        """Write a batch and its read position to the journal in one step. Return the updated result."""
        self.store.journal.append_encoded_rows(lines.rows + encode_rows([CursorRow(row=batch.cursor)]), run_id=None)
        return LogRead(
            entries=log_read.entries + lines.entries,
            history=log_read.history + lines.history,
            aside=(*log_read.aside, *lines.aside)[:MAX_ASIDE_SHOWN],
            aside_count=log_read.aside_count + lines.aside_count,
            issues=(*log_read.issues, *batch.issues),
        )


MAX_ENTRIES_PER_MESSAGE: Final = 500
"""Maximum number of entries that one message covers.

The message shows only the first few of these entries, and their total number.
"""
NORM_DAYS: Final = 30
"""The number of days whose entries are used to compute the usual pauses between entries.

Pauses at night and at weekends are included.
"""
MAX_TRIES: Final = 3
RETRY_AFTER_S: Final = 5.0


class LogPoll(Record):
    """The result of one poll of a log. ``alerts`` are the ids of the sent alerts.

    ``unreadable`` is the error if nothing was read. ``skipped`` is true if another run of Lookout used the
    warehouse. ``broken`` is true if the poll failed for a reason other than the log itself.
    """

    target: str
    found: LogRead = LogRead()
    unreadable: str | None = None
    broken: bool = False
    skipped: bool = False
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogFollower:
    """Follows one target's log.

    ``account_patterns`` match the target's account numbers, which are redacted. ``new_run`` returns a new run id. A
    poll during a burst of entries uses the run id of the burst's first poll. Every other poll gets a new run id,
    and therefore sends a new message.
    """

    notifier: Notifier
    reader: LogReader
    settings: HallucinationLogSettings
    watchdog: WatchdogSettings
    account_patterns: tuple[str, ...]
    new_run: Callable[[], str]

    async def poll(self) -> LogPoll:
        """Send waiting alerts, read new entries, and send alerts about them.

        Lookout's owners are notified in these cases:

        - Three attempts to read the log have failed.
        - The log is missing, has lost lines or has invalid lines.
        - No new entry has arrived for too long.

        Raises `WarehouseError`. The next poll then repeats the work.
        """
        run = replace(self, notifier=replace(self.notifier, run_id=self.new_run()))
        return await run._poll_once()  # noqa: SLF001 - of the same class

    async def poll_and_report_errors(self) -> LogPoll:
        """Poll the log. An error of any type is reported to Lookout's owners instead of being raised.

        Therefore an error in one log does not stop the polls of other logs. The next poll tries again.
        """
        try:
            return await self.poll()
        except WarehouseInUse as error:
            return LogPoll(target=self.notifier.target, unreadable=str(error), skipped=True)
        except Exception as error:  # noqa: BLE001 - a server or a file can cause an error of any type
            fault = build_fault_from_error(error)
            await notify_fault(self.notifier, fault)
            return LogPoll(target=self.notifier.target, unreadable=fault.detail, broken=True)

    async def _poll_once(self) -> LogPoll:
        began_at = self.notifier.now()
        await send_waiting_alerts(self.notifier)
        try:
            read = await self._read_log_with_retries()
        except SourceUnavailable as error:
            await notify_fault(self.notifier, Fault(LOG_UNREADABLE, str(error)))
            return LogPoll(target=self.notifier.target, unreadable=str(error))
        alerts = await self._send_alerts_about_entries()
        await self._notify_and_resolve_log_faults(read, began_at)
        await notify_of_load_errors(self.notifier)
        return LogPoll(target=self.notifier.target, found=read, alerts=tuple(alert.id for alert in alerts))

    async def _read_log_with_retries(self) -> LogRead:
        for _ in range(MAX_TRIES - 1):
            try:
                return await asyncio.to_thread(self.reader.poll)
            except SourceUnavailable:
                # A source that is unavailable for a moment is not a fault.
                await asyncio.sleep(RETRY_AFTER_S)
        return await asyncio.to_thread(self.reader.poll)

    async def _send_alerts_about_entries(self) -> list[Alert]:
        """Send alerts about all entries without an alert, including entries of an earlier poll that was killed."""
        sent: list[Alert] = []
        while entries := await asyncio.to_thread(
            list_log_entries_awaiting_alert,
            self.notifier.store,
            self.notifier.target,
            limit=MAX_ENTRIES_PER_MESSAGE,
        ):
            notifier = await asyncio.to_thread(self._select_burst_notifier)
            observations = [self._build_observation(notifier, entry) for entry in entries]
            links = (Link(label="log", href=self.settings.at),)
            sent += await notify(notifier, observations, summary=RunSummary(links=links))
            if len(entries) < MAX_ENTRIES_PER_MESSAGE:
                break
        return sent

    def _select_burst_notifier(self) -> Notifier:
        """Return the notifier of this poll.

        During a burst of entries, the notifier has the run id of the burst's first poll. All entries of the burst
        are then added to the same message.
        """
        page = find_last_run_with_alert(self.notifier.store, self.notifier.target, IncidentKind.HALLUCINATION)
        group = timedelta(minutes=self.settings.group_minutes)
        if page is None or abs(self.notifier.now() - page.created_at) > group:
            return self.notifier
        return replace(self.notifier, run_id=page.run_id)

    def _build_observation(self, notifier: Notifier, logged: LoggedHallucination) -> Observation:
        entry, reply = logged.entry, logged.entry.reply
        context = ObservationContext(
            target=notifier.target,
            run_id=notifier.run_id,
            seen_at=min(reply.ts or logged.read_at, logged.read_at),
            account_patterns=self.account_patterns,
            owner=notifier.owner,
        )
        return build_hallucination_observation(
            context,
            entry_id=entry.id,
            user_text=reply.user_text or "",
            blocked_reply=reply.blocked_reply or "",
            reasons=reply.reasons,
            unsupported_claims=reply.unsupported_claims,
            chunk_count=reply.chunk_count,
            top_score=reply.top_score,
            policy_ids=reply.policy_ids,
            place=f"entry {entry.id}",
            settings=notifier.settings,
        )

    async def _notify_and_resolve_log_faults(self, log_read: LogRead, began_at: datetime) -> None:
        """Report faults of the log, such as a missing file, and resolve the faults that have ended."""
        silence_faults = await asyncio.to_thread(self._find_silent_log_faults)
        faults_by_name = {
            fault.name: fault for fault in [*_build_log_faults(log_read, self.settings), *silence_faults]
        }
        for fault in faults_by_name.values():
            await notify_fault(self.notifier, fault)
        resolved_texts = {name: text for name, text in _RESOLVED_TEXTS.items() if name not in faults_by_name}
        if not log_read.entries:
            resolved_texts.pop(
                LOG_LINES_UNREADABLE, None
            )  # without new entries it is unknown whether this fault is over
        await resolve_faults(self.notifier, resolved_texts, began_at=began_at)
        await resolve_other_faults(
            self.notifier, except_names=LOG_FAULTS, ending=FOLLOWED_AGAIN_TEXT, began_at=began_at
        )

    def _find_silent_log_faults(self) -> Sequence[Fault]:
        now = self.notifier.now()
        times = list_entry_times(self.notifier.store, self.notifier.target, now - timedelta(days=NORM_DAYS))
        silence = find_log_silence(times, now, self.watchdog)
        return [] if silence is None else [Fault(*name_and_describe_log_silence(silence))]


FOLLOWED_AGAIN_TEXT: Final = "Lookout follows the log again."

_RESOLVED_TEXTS: Final = {
    LOG_UNREADABLE: "Lookout can read the log again.",
    LOG_MISSING: "The log exists again.",
    LOG_SILENT: "The log has new entries again.",
    LOG_LINES_UNREADABLE: "Lookout can read new entries of the log again.",
    LOG_GAP: None,
}
"""Maps the name of a fault to the message that is sent when the fault has ended.

The end of a gap in the log has no message, because the entries in the gap stay lost.
"""


def _build_log_faults(log_read: LogRead, settings: HallucinationLogSettings) -> list[Fault]:
    faults: list[Fault] = []
    for issue in log_read.issues:
        missing = issue.kind is LogWarningKind.MISSING
        if missing and issue.offset == 0 and settings.may_be_missing:
            continue
        name = LOG_MISSING if missing else LOG_GAP
        faults.append(Fault(name, f"The hallucination log {settings.at}: {issue.detail}."))
    if log_read.aside:
        faults.append(Fault(LOG_LINES_UNREADABLE, _format_unreadable_lines(log_read, settings)))
    return faults


def _format_unreadable_lines(log_read: LogRead, settings: HallucinationLogSettings) -> str:
    first = log_read.aside[0]
    return (
        f"The hallucination log {settings.at} has {plural(log_read.aside_count, 'line')} that Lookout could not "
        f"read. The first is at byte {first.offset:,}: {first.detail}. Lookout read all other lines. To list the "
        "skipped lines, run `lookout sql 'from quarantined_lines'`."
    )


def build_log_follower(config: Config, target: str) -> LogFollower:
    """Build the follower of the log of ``target``. Raises `ConfigError` if the target has no log."""
    configured = config.require_target(target)
    settings = configured.hallucination_log
    if settings is None:
        raise ConfigError(
            f"target {target} has no log: add [targets.{target}.hallucination_log] with at = … to lookout.toml"
        )
    notifier = build_notifier_without_run(config, target, Capability.HALLUCINATION_LOG)
    reader = LogReader(
        target=target,
        place=build_log_place(settings, configured.probe),
        store=notifier.store,
        pool=EncoderPool(_build_line_settings(target, settings, configured), count_cores(), utc_now),
        limits=BatchLimits(max_line_bytes=settings.longest_line_kb * 1024),
    )
    return LogFollower(
        notifier=notifier,
        reader=reader,
        settings=settings,
        watchdog=config.watchdog,
        account_patterns=configured.graders.account_patterns,
        new_run=lambda: generate_run_id(target),
    )


def store_first_read_positions(config: Config) -> None:
    """Store the first read position of each configured log.

    If a log cannot be read, the first poll of this log stores the position.
    """
    for name, configured in config.targets.items():
        if configured.hallucination_log is not None:
            with suppress(SourceUnavailable, WarehouseError):  # the first poll gets the same error and reports it
                build_log_follower(config, name).reader.store_first_position()


def select_targets_to_follow(config: Config, target: str | None) -> tuple[str, ...]:
    """List the names of the targets whose logs are followed: all targets with a log, or only ``target``.

    Raises `ConfigError` if no target has a log, or if ``target`` is not configured.
    """
    if target is not None:
        config.require_target(target)
        return (target,)
    names = tuple(name for name, configured in config.targets.items() if configured.hallucination_log is not None)
    if not names:
        raise ConfigError("no target has a log: add [targets.NAME.hallucination_log] with at = … to lookout.toml")
    return names


def build_log_place(settings: HallucinationLogSettings, probe: ProbeSettings) -> LogPlace:
    """Build the reader of a local or remote log.

    The settings in ``probe`` decide if a remote log may have a private address.
    """
    if settings.is_remote:
        return build_remote_log(
            settings.at,
            get_environment(),
            allowed_origins=probe.allowed_origins,
            private_network=probe.private_network,
        )
    return LocalLog(Path(settings.at), rotated=settings.rotated)


def _build_line_settings(target: str, settings: HallucinationLogSettings, configured: TargetConfig) -> LineSettings:
    return LineSettings(
        target=target,
        fields=settings.fields,
        account_patterns=configured.graders.account_patterns,
        store_raw=settings.store_raw,
    )


UNREADABLE: Final = "Unreadable"
"""The name of the flow's state if a log could not be read."""


def select_poll_state_name(polls: Sequence[LogPoll]) -> str:
    """Select the name of the flow's state: the first of Unreadable, Notified and Quiet that applies."""
    if any(poll.unreadable for poll in polls):
        return UNREADABLE
    return "Notified" if any(poll.alerts for poll in polls) else "Quiet"


def format_polls(polls: Sequence[LogPoll]) -> list[str]:
    """Format one line for each log, with the totals of its polls."""
    logs: dict[str, LogPoll] = {}
    for poll in polls:
        merged = logs.get(poll.target)
        logs[poll.target] = poll if merged is None else _merge_polls(merged, poll)
    return [format_poll(poll) for poll in logs.values()]


def _merge_polls(first: LogPoll, second: LogPoll) -> LogPoll:
    merged_read = LogRead(
        entries=first.found.entries + second.found.entries,
        history=first.found.history + second.found.history,
        aside_count=first.found.aside_count + second.found.aside_count,
    )
    return LogPoll(
        target=second.target,
        found=merged_read,
        unreadable=second.unreadable,
        alerts=(*first.alerts, *second.alerts),
    )


def format_poll(poll: LogPoll) -> str:
    """Format the result of a poll as one line."""
    if poll.unreadable:
        return f"{poll.target}: {poll.unreadable}"
    log_read = poll.found
    parts = [f"{log_read.entries:,} new"]
    if log_read.history:
        parts.append(f"{log_read.history:,} older than the first poll")
    if log_read.aside_count:
        parts.append(f"{plural(log_read.aside_count, 'unreadable line')} skipped")
    if poll.alerts:
        parts.append(f"alerts sent: {', '.join(poll.alerts)}")
    return f"{poll.target}: {', '.join(parts)}"
