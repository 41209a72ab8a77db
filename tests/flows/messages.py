"""Read the messages of an installation, as users see them in Slack, and its alerts from the warehouse."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from flows.data_folder import open_store_in
from monitors.records.incidents import Alert
from tests.servers.slack import Posted
from tests.servers.slack_rules import texts
from tests.stable_text import replace_volatile
from warehouse.database.store import Store

DURATION = re.compile(r"\bafter \d+ (s|min|h|days?)\b")
RUN_ID = re.compile(r"\b\d{8}T\d{6}Z-[\w-]+-[0-9a-f]{6}\b")
ALERT_ID = re.compile(r"\bLK-[A-Z2-7]{6,}\b")
"""The pattern of an alert id. The id depends on the run id, which can differ from run to run."""


def format_message(message: Posted) -> str:
    """Return the channel, the notification text and the text of the blocks of a message, without alert ids."""
    place = f"{message.channel}, reply in a thread" if message.thread_ts else message.channel
    return ALERT_ID.sub("ALERT_ID", "\n".join([f"[{place}]", message.text, "--", *texts(message.blocks)])) + "\n"


def format_messages(messages: Iterable[Posted]) -> str:
    """Return all messages, oldest first, with an empty line between them."""
    return "\n".join(map(format_message, messages))


def format_stable_messages(messages: Iterable[Posted], *folders: Path, **values: str) -> str:
    """Return all messages without the parts that differ from run to run, such as times (see `replace_volatile`)."""
    text = replace_volatile(format_messages(messages), *folders, **values)
    return DURATION.sub("after SPAN", RUN_ID.sub("RUN_ID", text))


def load_alerts(store: Store) -> list[Alert]:
    """Return the stored alerts, oldest first."""
    store.load_pending(30)
    rows = store.query("select record from alerts order by created_at, id").rows
    return [Alert.model_validate_json(str(record)) for (record,) in rows]


def load_alerts_in(folder: Path) -> list[Alert]:
    """Return the stored alerts of an installation whose ``lookout.toml`` is in ``folder``, oldest first."""
    return load_alerts(open_store_in(folder / "data"))
