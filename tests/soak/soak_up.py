"""Run `lookout up` with faults for hours: memory and open files do not grow, and nothing is lost.

    python -m tests.soak.soak_up --minutes 120

A real ``lookout up`` monitors an app behind a chat API, its hallucination log and Slack, each a local server or
file. Every schedule fires each minute, the log gets a line every 20 s, and a signed deploy report arrives every 5
minutes. For a sixth of the time Slack fails (429, 500 and no answer in turn). Prefect's server is killed, and the
app gives wrong answers for a while. In each tenth of the time, the number of processes, memory, open files, threads
and the size of the data folder are printed.

The soak fails if at the end there are more processes than before, if memory or files have grown without limit, if a
log entry was not alerted or was alerted twice, or if a process still runs afterwards.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from flows.server.prefect_server import read_last_started_server
from monitors.records.incidents import Alert, IncidentKind
from tests.deployments.up.test_guard import wait_until_gone
from tests.deployments.up_process import Up, up
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.followed_logs import entry
from tests.process_tree import descendants
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.temporary_stores import store_in

SCHEDULES = """
[schedules]
verify_cron = "* * * * *"
load_cron = "* * * * *"
digest_cron = "* * * * *"
[targets.demo.hallucination_log]
at = "hallucinations.jsonl"
[[deploys.triggers]]
provider = "github"
repository = "acme/helpdesk"
target = "demo"
[alerts]
slack_channel = "C0ALERTS"
slack_api_url = "{slack}"
"""
WRONG = "The waiting period is 99 months. [Source: Gold, clause 4.2]"
SAMPLE_S, ENTRY_S, DELIVERY_S = 10.0, 20.0, 300.0
GROWTH = 1.25
"""The maximum growth of memory, files and threads during the soak.

The growth is the use in the last quarter of the time, divided by the use in the second quarter. Some growth is
normal, because caches fill and pages are stored.
"""
QUIET_S = 180.0
"""How many seconds to wait after the last log entry.

In this time the log is polled again, and an alert that waits for Slack is sent.
"""


@dataclass(frozen=True)
class Use:
    """The resource usage of all processes of Lookout at one moment."""

    processes: int
    memory_mb: float
    files: int
    threads: int
    disk_mb: float


def use_of(pid: int, data: Path) -> Use:
    family = descendants(pid)
    return Use(
        processes=len(family),
        memory_mb=sum(one.rss_mb for one in family),
        files=sum(_entries(one.pid, "fd") for one in family),
        threads=sum(_entries(one.pid, "task") for one in family),
        disk_mb=sum(file.stat().st_size for file in _files(data)) / 1e6,
    )


def _entries(pid: int, folder: str) -> int:
    try:
        return len([*Path(f"/proc/{pid}/{folder}").iterdir()])
    except OSError:  # ended meanwhile
        return 0


def _files(data: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(data):
        for name in names:
            file = Path(folder, name)
            if file.exists():
                yield file


class Course:
    """The schedule of this soak: when each event happens, as a share of the whole time, and which events repeat."""

    def __init__(self, running: Up, folder: Path, chat: Chat, slack: SlackServer, whole_s: float) -> None:
        self._running, self._folder, self._chat, self._slack = running, folder, chat, slack
        self._begun = time.monotonic()
        self._whole_s = whole_s
        self.entries = self.deliveries = 0
        self.uses: list[Use] = []
        self._due = dict.fromkeys((self._sample, self._enter, self._send_outbox_and_record_refusals), 0.0)
        self._left: list[tuple[float, Callable[[], None]]] = [
            (0.20, lambda: self._slack_says("429:5")),
            (0.25, lambda: self._slack_says("500")),
            (0.30, lambda: self._slack_says("hang")),
            (0.35, lambda: self._slack_says(None)),
            (0.50, self._kill_prefect),
            (0.60, lambda: self._app_says(WRONG)),
            (0.70, lambda: self._app_says(RIGHT)),
        ]

    def live_through(self) -> None:
        """Cause each event at its scheduled time, until the end of the soak."""
        while self._passed_s < self._whole_s:
            assert self._running.process.poll() is None, self._running.said()
            while self._left and self._passed_s >= self._left[0][0] * self._whole_s:
                self._left.pop(0)[1]()
            for happens, pause_s in zip(self._due, (SAMPLE_S, ENTRY_S, DELIVERY_S), strict=True):
                if self._passed_s >= self._due[happens]:
                    self._due[happens] = self._passed_s + pause_s
                    happens()
            time.sleep(0.5)  # the world's own time; there is nothing else to wait on

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._begun

    def _sample(self) -> None:
        self.uses.append(use_of(self._running.process.pid, self._folder / "data"))

    def _enter(self) -> None:
        with (self._folder / "hallucinations.jsonl").open("a", encoding="utf-8") as log:
            log.write(entry(self.entries))
        self.entries += 1

    def _send_outbox_and_record_refusals(self) -> None:
        self.deliveries += self._running.deliver(f"{self.deliveries:040x}").status_code == 202

    def _slack_says(self, fault: str | None) -> None:
        self._slack.always = fault

    def _app_says(self, answer: str) -> None:
        self._chat.answers = (answer,)

    def _kill_prefect(self) -> None:
        server = read_last_started_server(self._folder / "data" / "prefect")  # also one that is too busy to answer
        assert server is not None
        os.killpg(server.pid, signal.SIGKILL)


def faults_of(course: Course, folder: Path) -> Iterator[str]:
    """Return the faults that are found at the end of the soak."""
    quarter = max(1, len(course.uses) // 4)
    before, after = course.uses[quarter : 2 * quarter], course.uses[-quarter:]
    for name, most in (("processes", 1.0), ("memory_mb", GROWTH), ("files", GROWTH), ("threads", GROWTH)):
        was, came = (statistics.median(getattr(one, name) for one in uses) for uses in (before, after))
        if came > was * most:
            yield f"{name} grew from {was:,.0f} to {came:,.0f}"
    store = store_in(folder / "data")
    items = [
        item
        for (record,) in store.query("select record from alerts").rows
        for item in Alert.model_validate_json(str(record)).items
        if item.incident.kind is IncidentKind.HALLUCINATION
    ]
    alert_counts = Counter(item.incident.fingerprint for item in items)
    entries = dict(store.query("select fingerprint, notify from hallucinations").rows)
    if len(entries) != course.entries:
        yield f"{course.entries:,} entries came, {len(entries):,} are stored"
    if lost := [one for one, notify in entries.items() if notify and not alert_counts[str(one)]]:
        yield f"{len(lost):,} entries were not alerted"
    if twice := [one for one, times in alert_counts.items() if times > 1]:
        yield f"{len(twice):,} entries were alerted twice"
    runs = dict(store.query("select verdict, count(*) from runs group by verdict").rows)
    print(
        f"entries {course.entries:,}, alerted {len(alert_counts):,}, deliveries {course.deliveries:,}, runs {runs}"
    )


def tenths(uses: list[Use]) -> Iterator[str]:
    """Yield a line for each tenth of the time, with the median of each resource in ``uses``."""
    yield "  ".join(f"{one.name:>10}" for one in fields(Use))
    size = max(1, len(uses) // 10)
    for start in range(0, len(uses) - size + 1, size):
        columns = zip(*map(astuple, uses[start : start + size]), strict=True)
        yield "  ".join(f"{statistics.median(column):10,.0f}" for column in columns)


def main() -> int:
    """Run the soak; return 1 if there is a fault."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=120)
    options.add_argument(
        "--keep", type=Path, default=None, help="a folder that is not deleted, to see what happened"
    )
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary, Chat() as chat, SlackServer() as slack:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hallucinations.jsonl").touch()
        file = watched(folder, chat, more=SCHEDULES.format(slack=slack.api_url))
        with up(file, SLACK_BOT_TOKEN=TOKEN) as running:
            running.until(running.serves, "the runner serves")
            course = Course(running, folder, chat, slack, given.minutes * 60)
            course.live_through()
            time.sleep(QUIET_S)
            family = [one.pid for one in descendants(running.process.pid)]
            running.process.terminate()
            running.process.wait(180)
            wait_until_gone(*family)
        print(*tenths(course.uses), sep="\n")
        faults = [*faults_of(course, folder)]
        said = Counter(
            line.split(" | ", 1)[-1][:60] for line in running.said().splitlines() if "ended with" in line
        )
    print(f"Slack has {len(slack.messages):,} messages; parts that ended: {dict(said) or 'none'}")
    print(*(f"FAULT: {fault}" for fault in faults), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
