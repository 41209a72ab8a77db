"""Kill parts of Lookout while it follows a log: each line sends one alert within a minute.

    python -m tests.soak.soak_follow_schedule --kills 100 --side-by-side 3

Each installation is a real ``lookout up`` with Prefect's server and the runner with its schedules. A line is
appended to the log. At a random moment within the next seconds, SIGKILL ends one of three processes: the run that
should send its alert, the runner, or Prefect's server. The time until the line is in Slack is measured. At the end
every line must be stored once and be in exactly one message.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from deployments.demo.configuration import find_free_port
from deployments.up.guard import find_descendants
from flows.data_folder import open_store_in
from tests.flows.followed_logs import entry
from tests.process_tree import all_processes
from tests.servers.slack import TOKEN, SlackServer

WITHIN_S: Final = 60.0
LOST_S: Final = 300.0
"""A line without an alert after this time in seconds counts as lost."""
KILLED_WITHIN_S: Final = 16.0
"""The maximum delay of a kill in seconds.

The log is polled every 15 s, so kills occur before, during and just after the poll that sends the alert.
"""
VICTIMS: Final = {
    "run": "prefect.engine",
    "service": "deployments.up.service",
    "server": "flows.server.watch_server",
}
WEIGHTS: Final = (18, 1, 1)


class Delivery(NamedTuple):
    """The delivery of one line.

    ``killed`` is the kind of process that was killed after the line was appended, and ``took_s`` is the time in
    seconds until the alert about the line was in Slack.
    """

    killed: str
    took_s: float


class Installation:
    """One ``lookout up`` with a followed log and its own Slack server."""

    def __init__(self, folder: Path, slack: SlackServer) -> None:
        self.folder, self.slack = folder, slack
        self.written = 0
        folder.mkdir()
        (folder / "suite.jsonl").write_text(
            '{"id":"a","question":"?","gold":"!","severity":1,"language":"en","type":"t","provenance":{"pipeline":"template"}}\n',
            encoding="utf-8",
        )
        self.log = folder / "hallucinations.jsonl"
        self.log.write_text(entry(-1), encoding="utf-8")
        self.config = folder / "lookout.toml"
        self.config.write_text(
            f'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
            f'[targets.demo.hallucination_log]\nat = "hallucinations.jsonl"\ngroup_minutes = 0\n'
            f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n',
            encoding="utf-8",
        )

    def append(self) -> int:
        """Append a line, and return its number."""
        number = self.written
        with self.log.open("a", encoding="utf-8") as log:
            log.write(entry(number))
        self.written += 1
        return number

    def messages_with(self, number: int) -> int:
        """Return how many messages in Slack contain the line with this number."""
        return sum(f"Question {number}:" in str(message) for message in self.slack.messages)

    def wait_for_alert(self, number: int) -> float:
        """Wait until the line is in a message at Slack, and return that time on the monotonic clock.

        If the line does not arrive within ``LOST_S`` seconds, return the time at which the wait ended.
        """
        end = time.monotonic() + LOST_S
        while not self.messages_with(number) and time.monotonic() < end:
            time.sleep(0.05)
        return time.monotonic()

    def count_stored(self) -> int:
        """Return the number of log entries in the warehouse."""
        return int(str(open_store_in(self.folder / "data").query("select count(*) from hallucinations").rows[0][0]))


@contextmanager
def started(folder: Path) -> Iterator[tuple[Installation, int]]:
    """Yield an installation and the process id of its ``lookout up``, after the log was polled once."""
    with SlackServer() as slack:
        here = Installation(folder, slack)
        known = {k: v for k, v in os.environ.items() if not k.startswith(("LOOKOUT_", "PREFECT_API"))}
        command = (sys.executable, "-m", "deployments.cli.app", "up", "--config", str(here.config), "--port")
        with (folder / "up.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, str(find_free_port("127.0.0.1", 0))],
                env=known | {"SLACK_BOT_TOKEN": TOKEN},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            _wait(
                lambda: (folder / "data" / "warehouse.duckdb").exists() and here.count_stored() == 1,
                "the first look",
            )
            yield here, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LOST_S)


def play(folder: Path, kills: int, seed: int, say: Callable[[Delivery], None]) -> tuple[list[Delivery], bool]:
    """Append ``kills`` lines, and kill a process after each.

    Return the deliveries, and whether each line was stored once and alerted once.
    """
    chance = random.Random(seed)
    deliveries: list[Delivery] = []
    with started(folder) as (here, up):
        while len(deliveries) < kills:
            time.sleep(chance.uniform(0.0, 30.0))
            victim = chance.choices(list(VICTIMS), WEIGHTS)[0]
            number, appended = here.append(), time.monotonic()
            time.sleep(chance.uniform(0.0, KILLED_WITHIN_S))
            was = _killed(up, victim)
            deliveries.append(Delivery(victim if was else "nothing", here.wait_for_alert(number) - appended))
            say(deliveries[-1])
            kills += not was
        time.sleep(2 * KILLED_WITHIN_S)  # whatever would tell a second time has had its chance
        counts = Counter(here.messages_with(number) for number in range(here.written))
        return deliveries, counts == {1: here.written} and here.count_stored() == here.written + 1


def _killed(up: int, victim: str) -> bool:
    """Kill all processes of the kind ``victim``. Return whether a process was killed.

    A process that executes a run does not exist between two runs, so the function waits until there is one.
    """
    end = time.monotonic() + LOST_S
    while time.monotonic() < end:
        processes = all_processes()
        ours = [processes[pid] for pid in find_descendants(up) if pid in processes]
        found = [
            one for one in ours if VICTIMS[victim] in one.command and "deployments.up.guard" not in one.command
        ]
        for one in found:
            os.kill(one.pid, signal.SIGKILL)
        if found:
            return True
        time.sleep(0.02)
    return False


def _wait(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LOST_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {LOST_S:.0f} s: {what}")
        time.sleep(0.2)


def figures(deliveries: Sequence[Delivery]) -> Iterator[str]:
    """Yield a row for each kind of victim, with the number of kills and the number of late alerts.

    Each row also contains the median and the longest time until the alert.
    """
    for victim in (*VICTIMS, "nothing"):
        times = sorted(one.took_s for one in deliveries if one.killed == victim)
        if times:
            late = sum(took > WITHIN_S for took in times)
            yield (
                f"{victim:<8} killed {len(times):>3} times: to Slack in {times[len(times) // 2]:.1f} s (median), "
                f"{times[-1]:.1f} s at most, {late} above {WITHIN_S:.0f} s"
            )


def main() -> int:
    """Print the figures; return 1 if a line was late, lost or alerted twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--side-by-side", type=int, default=2, help="installations at once, each with its share")
    parser.add_argument("--seed", type=int, default=8)
    asked = parser.parse_args()
    each = -(-asked.kills // asked.side_by_side)
    lock = threading.Lock()

    def say(one: Delivery) -> None:
        with lock:
            print(f"  {one.killed} killed, alerted after {one.took_s:.1f} s", flush=True)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.side_by_side) as pool:
        parts = [
            pool.submit(play, Path(folder) / str(n), each, asked.seed + n, say) for n in range(asked.side_by_side)
        ]
        played = [part.result() for part in parts]
    deliveries = [one for part, _ in played for one in part]
    for line in figures(deliveries):
        print(line)
    once = all(right for _, right in played)
    print(f"{len(deliveries)} lines, each stored once and alerted once: {'yes' if once else 'NO'}")
    return int(not once or any(one.took_s > WITHIN_S for one in deliveries))


if __name__ == "__main__":
    sys.exit(main())
