"""The twenty parts of an installation that tests break, with what the drill then reports and who is notified.

The table in ``docs/operations.md`` is generated from them: ``python -m tests.flows.drill.broken_parts``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "operations.md"
BEGIN: Final = "<!-- from here on made of tests/flows/drill/broken_parts.py -->\n"
END: Final = "<!-- up to here -->\n"

SLACK: Final = "Slack"
OTHER_WAY: Final = "Slack, by another channel"
OUTSIDE: Final = "the external check, by a failure ping"
SILENCE: Final = "the external check, by a missing ping; `lookout drill` and the log report it"


class BrokenPart(NamedTuple):
    """A part of an installation that a test breaks.

    ``how`` describes how the test breaks it. ``station`` is the station at which the drill fails, ``says`` is an
    excerpt of the drill's message, and ``heard_by`` states who is notified.
    """

    part: str
    how: str
    station: str
    says: str
    heard_by: str


PARTS: Final = (
    BrokenPart("browser missing", "`CHROMIUM_PATH` names a file that does not exist", "browser", "CHROMIUM_PATH", SLACK),
    BrokenPart("wrong Chromium", "`CHROMIUM_PATH` is a program that is not a browser", "browser", "", SLACK),
    BrokenPart("worker dead", "the runner of `lookout up` is stopped", "worker", "", SLACK),
    BrokenPart("schedule paused", "the nightly verification is paused at Prefect", "schedule", "/", SLACK),
    BrokenPart("Slack token revoked", "Slack answers `token_revoked`", "Slack", "token_revoked", OTHER_WAY),
    BrokenPart("channel archived", "Slack answers `is_archived` for the channel", "Slack", "is_archived", SLACK),
    BrokenPart("judge key dead", "the provider answers 401", "judge", "claude", SLACK),
    BrokenPart("disk full", "the data folder's file system is filled", "data folder", "No space left on device", SLACK),
    BrokenPart("warehouse locked", "another process holds the DuckDB file", "warehouse", "warehouse.duckdb", SLACK),
    BrokenPart("clock a day off", "Slack's clock differs by a day", "clock", "24 h ahead", SLACK),
    BrokenPart(
        "outbox stuck", "sending two more severe messages fails repeatedly", "outbox", "2 ", SLACK
    ),
    BrokenPart("receiver port taken", "another program uses the port", "receiver", "HTTP ", SLACK),
    BrokenPart("log unreadable", "the path of the log is a folder", "hallucination log", "log.jsonl", SLACK),
    BrokenPart("DNS dead", "Slack's name does not resolve", "network", "DNS: the name slack.invalid", OUTSIDE),
    BrokenPart("Prefect server dead", "no server runs", "Prefect server", "", SLACK),
    BrokenPart(
        "data folder read-only", "its file system is mounted read-only", "data folder", "Read-only file system", SLACK
    ),
    BrokenPart("suite file gone", "the target's suite is deleted", "suite", "suite.jsonl", SLACK),
    BrokenPart("proxy in the way", "`HTTP_PROXY` answers 403 to every request", "network", "the proxy in HTTP_PROXY", SILENCE),
    BrokenPart("heartbeat address wrong", "the check answers 404", "heartbeat", "LOOKOUT_HEARTBEAT_URL", SLACK),
    BrokenPart("journal bucket gone", "`warehouse.journal` names a bucket that does not exist", "journal", "s3://nowhere/journal", SLACK),
)  # fmt: skip


def table() -> str:
    """Format the rows as a Markdown table."""
    lines = ["| part | how a test breaks it | the drill fails at | who is notified |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.part} | {row.how} | {row.station} | {row.heard_by} |" for row in PARTS]
    return "\n".join(lines) + "\n"


def parts_of_page() -> tuple[str, str, str]:
    """Return the text of the page before the table, the table, and the text after it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside, after


if __name__ == "__main__":
    before, _, after = parts_of_page()
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")
    sys.exit(0)
