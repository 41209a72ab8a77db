"""Ensure that a copied data folder does not send the messages that the original installation also sends."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from monitors.records.incidents import Alert, DeliveryStatus, Incident, Receipt
from warehouse.database.connection import transaction
from warehouse.database.store import Store
from warehouse.journal.journal import OUTBOX, Journal
from warehouse.journal.rows import IncidentRow, IncidentVersion, OutboxRow, ReceiptRow
from warehouse.queries.outbox import append_and_insert_rows, compute_next_sequence

LEFT_DETAIL: Final = "left to the installation from which this data folder was copied"


def leave_alerting_to_original(store: Store, journal: Journal, at: datetime, *, wait_s: float) -> None:
    """Leave all unsent messages of a copied data folder to the original installation.

    Afterwards, the copy sends a message about an open incident only if the incident gets worse. A second call does
    not change anything. Raises `WarehouseBusy` after ``wait_s`` seconds, without any change.
    """
    with store.database.open_for_writing(wait_s) as connection:
        store.load_pending_segments_into(connection, OUTBOX)
        with transaction(connection):
            waiting = connection.execute("select record from alerts where id in (select id from unsent_alerts)")
            alerts = [Alert.model_validate_json(str(record)) for (record,) in waiting.fetchall()]
            current = connection.execute("select record from incidents where state <> 'resolved'").fetchall()
            incidents = [
                Incident.model_validate_json(str(record)).mute_in_copied_data_folder() for (record,) in current
            ]
            versions = enumerate(incidents, start=compute_next_sequence(connection))
            rows: list[OutboxRow] = [
                *(IncidentRow(row=IncidentVersion(sequence=n, incident=incident)) for n, incident in versions),
                *(
                    ReceiptRow(
                        row=Receipt(alert_id=alert.id, status=DeliveryStatus.LEFT, at=at, detail=LEFT_DETAIL)
                    )
                    for alert in alerts
                ),
            ]
            if rows:
                append_and_insert_rows(connection, journal, rows)
        store.save_ledger_if_complete(connection)
