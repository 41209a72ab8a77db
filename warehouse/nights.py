"""What is remembered of live traffic: which conversations were taken, and what the nights came to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import ValidationError

from monitors.errors import WarehouseDamaged
from monitors.records.nights import NightReport, SeenConversation
from monitors.records.traffic import Conversation, Sampled
from warehouse.store import READ_WAIT_S, Store


def known_conversations(
    store: Store, target: str, source: str, since: datetime, *, wait_s: float = READ_WAIT_S
) -> frozenset[str]:
    """Ids of a source's conversations that a night has taken and that were completed at ``since`` or later."""
    found = store.query(
        "select id from conversations where target = ? and source = ? and completed_at >= ?::timestamptz",
        [target, source, since.isoformat()],
        wait_s=wait_s,
    )
    return frozenset(str(row[0]) for row in found.rows)


def last_night(
    store: Store, target: str, before_run: str | None, *, wait_s: float = READ_WAIT_S
) -> NightReport | None:
    """A target's newest night; with ``before_run``, the newest that is neither that run's nor later than it.

    So a night that is resumed after others goes on from where it went on the first time. Raises
    `WarehouseDamaged` for a report of another form.
    """
    nights = _nights(store, target, 1, before_run, wait_s)
    return nights[0] if nights else None


def recent_nights(store: Store, target: str, count: int, *, wait_s: float = READ_WAIT_S) -> tuple[NightReport, ...]:
    """A target's last ``count`` nights, newest first. Raises `WarehouseDamaged` for a report of another form."""
    return _nights(store, target, count, None, wait_s)


def night_of_run(store: Store, run_id: str, *, wait_s: float = READ_WAIT_S) -> NightReport | None:
    """What a night came to, by its run. Raises `WarehouseDamaged` for a report of another form."""
    found = store.query("select record from nights where run_id = ?", [run_id], wait_s=wait_s)
    return _report(str(found.rows[0][0])) if found.rows else None


def drawn_conversations(store: Store, run_id: str, *, wait_s: float = READ_WAIT_S) -> tuple[SeenConversation, ...]:
    """The conversations that a night drew, in the order they were completed, as far as their texts are kept."""
    found = store.query(
        "select target, source, run_id, id, completed_at, stratum, record, inclusion_probability from conversations"
        " where run_id = ? and record is not null order by completed_at, source, id",
        [run_id],
        wait_s=wait_s,
    )
    return tuple(_seen(row) for row in found.rows)


def _nights(store: Store, target: str, count: int, before: str | None, wait_s: float) -> tuple[NightReport, ...]:
    found = store.query(
        """
        select record from nights
        where target = $target and run_id is distinct from $before
          and coalesce(night <= (select night from nights where run_id = $before), true)
        order by night desc, finished_at desc, run_id desc limit $count
        """,
        {"target": target, "before": before, "count": count},
        wait_s=wait_s,
    )
    return tuple(_report(str(row[0])) for row in found.rows)


def _report(text: str) -> NightReport:
    try:
        return NightReport.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WarehouseDamaged(
            "a stored report of a night was written in another form "
            f"({'.'.join(map(str, first['loc']))}: {first['msg']}); its figures are still in `night_trend`"
        ) from error


def _seen(row: Sequence[object]) -> SeenConversation:
    target, source, run_id, key, completed_at, stratum, record, probability = row
    drawn = {
        "conversation": Conversation.model_validate_json(str(record)),
        "stratum": stratum,
        "inclusion_probability": probability,
    }
    return SeenConversation.model_validate(
        {
            "target": target,
            "source": source,
            "run_id": run_id,
            "id": key,
            "completed_at": completed_at,
            "stratum": stratum,
            "drawn": Sampled.model_validate(drawn),
        }
    )
