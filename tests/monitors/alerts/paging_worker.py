"""A process that observes one leak, stores the alert about it in a real warehouse, and sends it to Slack.

Tests start this process and kill it. ``python -m tests.monitors.alerts.paging_worker FOLDER SLACK_API_URL LEASE_S``
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack import TOKEN
from tests.warehouse.temporary_stores import REAL_PATIENCE
from warehouse.database.store import Store
from warehouse.queries.outbox import claim_alerts, open_incident_transaction, record_receipt

WAIT_S = 30.0


def now() -> datetime:
    return datetime.now(UTC)


async def work(folder: Path, api_url: str, lease_s: float) -> None:
    """Observe the leak, decide on alerts once, and send the pending alerts once."""
    settings = AlertSettings(slack_channel="C0ALERTS", slack_api_url=api_url, send_timeout_s=120.0)
    store = Store(folder, clock=now, entropy=os.urandom, patience=REAL_PATIENCE)

    journal = store.journal
    with open_incident_transaction(store, journal, "demo", wait_s=WAIT_S) as decider:
        made = decide_alerts(
            decider.incidents, [observation(seen_at=now(), run_id="run-1")], now=now(), settings=settings
        )
        decider.record(made.changed, group_items_into_alerts(made.items, target="demo", run_id="run-1", now=now()))
    claim = claim_alerts(store, owner=f"w{os.getpid()}", lease_s=lease_s, limit=9, wait_s=WAIT_S)
    for alert in claim.alerts:
        receipt = await SlackBot(settings, token=TOKEN, now=now).send(alert, again=True)
        record_receipt(store, journal, receipt, wait_s=WAIT_S)


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
