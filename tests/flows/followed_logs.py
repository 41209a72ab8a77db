"""A hallucination log that is followed, with alerts to a local Slack server."""

from __future__ import annotations

import json
from pathlib import Path

from flows.alerting.send import send_outbox
from flows.hallucination_log.encoder_pool import EncoderPool
from flows.hallucination_log.follower import LogFollower, LogPoll, LogReader
from flows.hallucination_log.line_encoder import LineSettings
from monitors.alerts.settings import WatchdogSettings
from monitors.records.incidents import Capability
from monitors.sources.logs.files import LocalLog, LogPlace
from monitors.sources.logs.settings import HallucinationLogSettings
from monitors.sources.logs.tail import DEFAULT_LIMITS
from tests.flows.alerting_testbed import AlertingTestbed


def entry(number: int, **changes: object) -> str:
    """Return the log line of entry ``number``, with the fields ``changes``."""
    value = {
        "ts": "2026-03-01T01:59:00Z",
        "user_text": f"Question {number}: what is covered?",
        "blocked_reply": f"Reply {number}: up to ₹80,000.",
        "reasons": ["unsupported_amount"],
        "unsupported_claims": ["₹80,000"],
        "chunk_count": 6,
        "top_score": 0.41,
        "policy_ids": ["gold"],
        "number": number,
    }
    return json.dumps(value | changes, ensure_ascii=False) + "\n"


class Followed:
    """A followed log. Each poll uses a new follower, as each scheduled run does."""

    def __init__(
        self, folder: Path, testbed: AlertingTestbed, place: LogPlace | None = None, **settings: object
    ) -> None:
        self.path = folder / "hallucinations.jsonl"
        self.testbed = testbed
        self.settings = HallucinationLogSettings.model_validate({"at": str(self.path), **settings})
        self._place = place or LocalLog(self.path)
        self._looks = 0

    def begin_at(self, number: int) -> None:
        """Number the polls from ``number`` on. Run ids contain the number, so each process needs other numbers."""
        self._looks = number

    def append(self, *lines: str) -> None:
        with self.path.open("a", encoding="utf-8") as log:
            log.writelines(lines)

    def follower(self) -> LogFollower:
        notifier = self.testbed.notifier("follower", owner=Capability.HALLUCINATION_LOG)
        lines = LineSettings(target="demo", fields=self.settings.fields, store_raw=self.settings.store_raw)
        reader = LogReader(
            target="demo",
            place=self._place,
            store=self.testbed.store,
            pool=EncoderPool(lines, 1, self.testbed),
            limits=DEFAULT_LIMITS,
        )
        return LogFollower(notifier, reader, self.settings, WatchdogSettings(), (), self._new_run)

    def _new_run(self) -> str:
        self._looks += 1
        return f"look-{self._looks}"

    async def look(self) -> LogPoll:
        return await self.follower().poll()

    async def night_delivers(self) -> None:
        """Send the pending alerts as another run does."""
        await send_outbox(self.testbed.notifier("passer-by"))

    def stored(self) -> list[int]:
        """Return the numbers of all stored entries, in the order of the log."""
        rows = self.testbed.store.query(
            "select record->'reply'->'extra'->>'number' from hallucinations"
            " order by (record->>'generation')::int, (record->>'offset')::int"
        ).rows
        return [int(str(row[0])) for row in rows]
