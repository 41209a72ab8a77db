"""Nightly runs over live traffic from a file, with a real warehouse and a local Slack server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from flows.nightly.context import NightlyContext, build_traffic_grader
from flows.nightly.format import format_nightly_report
from flows.nightly.run import NightlyRun
from flows.runtime.judge import NOT_CONFIGURED, JudgePlan, build_judge_plan
from flows.runtime.secrets import generate_nonce
from monitors.alerts.settings import AlertSettings
from monitors.config.file import TargetConfig
from monitors.judge.judge import FamilyPolicy
from monitors.judge.settings import JudgeSettings
from monitors.records.incidents import Capability
from monitors.records.nightly import NightlyReport
from monitors.records.targets import Target
from monitors.reports.settings import ReportsSettings
from monitors.sources.sampling.strata import TargetFacts
from monitors.sources.settings import NightlySettings
from monitors.sources.traffic.files import FileTrafficSource
from monitors.sources.traffic.settings import FileTraffic
from monitors.sources.traffic.source import TrafficSource
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.judged_run import KEY_VARIABLE, home, teeth
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.anthropic import KEY
from warehouse.database.parquet import iterate_parquet_batches

PLAIN_REPLY = "You have thirty days to renew the policy."
LEAK = "Write to asha.verma.1987@gmail.com about her claim."
LEAKED = "asha.verma.1987"
SITE = "https://lookout.example.com"
KEY_OF_NAMES = b"sixteen bytes or more"


def stable_report(report: NightlyReport) -> str:
    """Return the report as printed, with placeholders for lineage and cost, which depend on the judge's prompt."""
    text = "\n".join(format_nightly_report(report))
    return re.sub(r"\$\d+\.\d+", "$COST", re.sub(r":[0-9a-f]{12}:", ":LINEAGE:", text))


def talk(number: int, *replies: str, hours: float = 2.0, **changes: Any) -> str:
    """Return a log line with the conversation ``number``, which ended ``hours`` hours before `NIGHT`."""
    return talk_at(number, NIGHT - timedelta(hours=hours) + timedelta(seconds=number), *replies, **changes)


def talk_at(number: int, ended: datetime, *replies: str, **changes: Any) -> str:
    """Return a log line with the conversation ``number``, which ended at the time ``ended``."""
    turns = [
        {"question": f"How long do I have, once more {number}?", "answer": reply}
        for reply in replies or (PLAIN_REPLY,)
    ]
    value = {"id": f"talk-{number}", "completed_at": ended.isoformat(), "turns": turns}
    return json.dumps(value | changes, ensure_ascii=False) + "\n"


class Nights:
    """A target with a log of its traffic, and its nightly runs."""

    def __init__(self, folder: Path, testbed: AlertingTestbed, **settings: Any) -> None:
        self.folder, self.testbed = folder, testbed
        at_site = testbed.settings.model_dump() | {"site_url": SITE}
        testbed.settings = AlertSettings.model_validate(at_site)
        self.log = folder / "talks.jsonl"
        self.sources: dict[str, TrafficSource] = {"log": file_source(self.log)}
        given = {"sources": {"log": {"kind": "file", "at": str(self.log)}}, "sampling": {"number": 100}}
        self.settings = NightlySettings.model_validate(given | settings)
        self.judge: dict[str, Any] = {}
        self.key = KEY

    def append(self, *lines: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.writelines(lines)

    def wired(self, number: int = 0) -> NightlyContext:
        """Return the context of the nightly run for the night that ended ``number`` days after the first."""
        return self.wire_at(NIGHT + timedelta(days=number))

    def wire_at(self, ended: datetime) -> NightlyContext:
        """Return the context of the nightly run for the night that ended at ``ended``."""
        self.testbed.now = max(self.testbed.now, ended + timedelta(minutes=5))
        run_id = f"{ended:%Y%m%dT%H%MZ}-night-demo"
        configured = TargetConfig.model_validate(
            {
                "url": "http://127.0.0.1:9",
                "suite": str(self._suite()),
                "model_family": "gpt",
                "graders": {"citation_required": True},
            }
        )
        return NightlyContext(
            target="demo",
            due_at=ended,
            run_id=run_id,
            settings=self.settings,
            configured=configured,
            sources=self.sources,
            grader=build_traffic_grader(configured, self.settings),
            judge=self._judge(),
            notifier=replace(self.testbed.notifier(run_id), owner=Capability.NIGHTLY),
            folder=self.folder / "data" / "runs" / run_id,
            reports=ReportsSettings(),
            key=KEY_OF_NAMES,
            facts=TargetFacts(self.settings.sampling),
            environment=os.environ,
            nonce=generate_nonce,
        )

    async def grade(self, number: int = 0) -> NightlyReport:
        return await NightlyRun(self.wired(number)).run()

    def loaded(self, question: str) -> list[Sequence[object]]:
        """Load all journal segments into the warehouse, and return the rows of a query."""
        self.testbed.store.load_pending(5)
        return list(self.testbed.store.query(question).rows)

    def stored_conversations(self) -> tuple[int, int]:
        """Return the number of conversations in the warehouse, and how many of them are stored with their text."""
        records = self.loaded("select record from conversations")
        return len(records), sum(record is not None for (record,) in records)

    def stored_bytes(self) -> bytes:
        """Return the content of all files of the data folder."""
        return b"\n".join(file.read_bytes() for file in (self.folder / "data").rglob("*") if file.is_file())

    def _suite(self) -> Path:
        suite = self.folder / "suite.jsonl"
        if not suite.exists():
            suite.write_text("".join(case.model_dump_json() + "\n" for case in (home(), teeth())), encoding="utf-8")
        return suite

    def _judge(self) -> JudgePlan:
        if not self.judge:
            return JudgePlan(family_policy=FamilyPolicy(target="demo"), why_off=NOT_CONFIGURED)
        target = Target.model_validate({"name": "demo", "url": "http://127.0.0.1:9", "model_family": "gpt"})
        environment = {KEY_VARIABLE: self.key} if self.key else {}
        return build_judge_plan(JudgeSettings.model_validate(self.judge), target, environment)


def file_source(path: Path) -> FileTrafficSource:
    return FileTrafficSource(FileTraffic.model_validate({"kind": "file", "at": str(path)}), iterate_parquet_batches)
