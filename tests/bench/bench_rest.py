"""Measure Lookout's memory and CPU at rest and with new log entries, compared with Prefect's server alone.

    python -m tests.bench.bench_rest [--window-s 60]

The bench first measures Prefect's own server and a process that serves an empty flow, and then `lookout up` with
one target and one log, each for the same number of seconds. Memory is the proportional set size of all processes,
which counts shared memory once. Processor time is that of all processes, including ended ones. Other load on the
machine does not increase either figure.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from deployments.demo.configuration import find_free_port
from flows.watching.polls import read_polls
from tests.bench.measurements import Figure, report
from tests.deployments.up_process import up
from tests.flows.few_cases import few_cases
from tests.flows.followed_logs import entry
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.process_tree import TICKS, descendants

GOAL = 1.5
ENTRIES_PER_MINUTE = (10, 100)
START_S = 180.0
SETTLE_S = 10.0
"""Time in seconds to wait after a start, so that the first polls and the registration of deployments end."""
SAMPLE_EVERY_S = 2.0
SERVED = "from prefect import flow\n\n@flow\ndef rest(): ...\n\nrest.serve('rest')\n"
PARTS = {
    "flows.server.watch_server": "server's keeper",
    "prefect server": "server",
    "prefect.server": "server",
    "deployments.up.guard": "guards",
    "deployments.up.supervise": "supervisor",
    "deployments.up.service": "service",
}
"""Kinds of processes, each with the words by which it is recognised in a command line.

A process without such words counts as a run.
"""


class Usage(NamedTuple):
    """Memory in megabytes and processor time in percent of one core, in total and by part.

    ``started`` is the number of new processes.
    """

    memory_mb: float
    cpu_percent: float
    memory_by_part: Mapping[str, float]
    cpu_by_part: Mapping[str, float]
    started: int


def main() -> int:
    """Print the figures. Return the number of missed goals as the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--window-s", type=float, default=60.0)
    window_s = options.parse_args().window_s
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "SLACK_", "LOOKOUT_"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as temporary:
        with serve_empty_flow(Path(temporary)) as pids:
            prefect = measure(pids, window_s)
        usages = measure_lookout(Path(temporary), window_s)
    rest, *busy = usages
    met = [
        report_beside(
            "memory at rest",
            "MB",
            rest.memory_mb,
            prefect.memory_mb,
            goal=GOAL,
            note=format_parts(rest.memory_by_part, ".0f"),
        ),
        report_beside(
            "processor at rest",
            "% of a core",
            rest.cpu_percent,
            prefect.cpu_percent,
            goal=GOAL,
            note=f"{format_parts(rest.cpu_by_part, '.2f')}; {rest.started} processes started in {window_s:g} s",
        ),
    ]
    for rate, usage in zip(ENTRIES_PER_MINUTE, busy, strict=True):
        note = f"{usage.started} processes started in {window_s:g} s"
        report_beside(f"memory, {rate} log entries a minute", "MB", usage.memory_mb, prefect.memory_mb, note=note)
        report_beside(
            f"processor, {rate} log entries a minute", "% of a core", usage.cpu_percent, prefect.cpu_percent
        )
    return met.count(False)


def format_parts(parts: Mapping[str, float], form: str) -> str:
    """Format the usage of each part, the largest first."""
    return ", ".join(f"{name} {value:{form}}" for name, value in sorted(parts.items(), key=lambda row: -row[1]))


def report_beside(
    what: str, unit: str, ours: float, theirs: float, *, goal: float | None = None, note: str = ""
) -> bool:
    """Report Lookout's usage compared with Prefect's usage."""
    return report(
        Figure(
            id="P13",
            what=what,
            unit=unit,
            values=(ours,),
            baseline="Prefect's server with one served flow",
            baselines=(theirs,),
            goal=goal,
            of="ratio",
            note=note,
        )
    )


@contextmanager
def serve_empty_flow(folder: Path) -> Iterator[Callable[[], set[int]]]:
    """Start Prefect's server and a process that serves a flow, with Prefect's own commands.

    Yield a function that returns the ids of these processes and of their descendants.
    """
    port = find_free_port("127.0.0.1", 0)
    api = f"http://127.0.0.1:{port}/api"
    home = with_tables(folder / "prefect")
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
    (folder / "served.py").write_text(SERVED, encoding="utf-8")
    commands = (["-m", "prefect", "server", "start", "--port", str(port)], ["served.py"])
    with ExitStack() as stack, (folder / "prefect.log").open("wb") as log:
        processes: list[subprocess.Popen[bytes]] = []
        for command in commands:
            processes.append(
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, *command], cwd=folder, env=environment, stdout=log, stderr=log
                    )
                )
            )
            stack.callback(processes[-1].terminate)
            wait_until(lambda: answers(f"{api}/health"), timeout_s=START_S, what="Prefect's server answers")
        wait_until(lambda: has_deployment(api), timeout_s=START_S, what="the flow is served")
        yield lambda: {pid for process in processes for pid in (process.pid, *list_descendants(process.pid))}


def answers(url: str) -> bool:
    """Return whether a server answers."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def has_deployment(api: str) -> bool:
    """Return whether a deployment is registered."""
    return bool(httpx.post(f"{api}/deployments/count", json={}, timeout=30, trust_env=False).json())


def measure_lookout(folder: Path, window_s: float) -> list[Usage]:
    """Measure `lookout up` at rest, and then with each rate of new log entries."""
    few_cases(folder, severe=1, others=1)
    file, log = folder / "lookout.toml", folder / "log.jsonl"
    log.write_text(entry(0), encoding="utf-8")
    file.write_text(
        'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
        '[targets.bot.hallucination_log]\nat = "log.jsonl"\n',
        encoding="utf-8",
    )
    with_tables(folder / "data" / "prefect")
    with up(file) as monitor:

        def list_pids() -> set[int]:
            return {monitor.process.pid, *list_descendants(monitor.process.pid)}

        monitor.until(lambda: bool(read_polls(folder / "data")), "the log is watched")
        monitor.until(lambda: not has_runs(monitor.process.pid), "the first run has ended")
        return [
            measure(list_pids, window_s),
            *(measure(list_pids, window_s, lambda: append(log), every_s=60 / rate) for rate in ENTRIES_PER_MINUTE),
        ]


def append(log: Path) -> None:
    """Append an entry with a unique number to ``log``."""
    with log.open("a", encoding="utf-8") as file:
        file.write(entry(time.monotonic_ns()))


def has_runs(pid: int) -> bool:
    """Return whether the processes below ``pid`` include one that executes a run."""
    return any(name_part(process.command) == "runs" for process in descendants(pid))


def list_descendants(pid: int) -> set[int]:
    """Return the ids of all descendants of a process."""
    return {process.pid for process in descendants(pid)}


def measure(
    list_pids: Callable[[], set[int]],
    window_s: float,
    act: Callable[[], None] | None = None,
    *,
    every_s: float = SAMPLE_EVERY_S,
) -> Usage:
    """Wait `SETTLE_S` seconds, then measure the processes of ``list_pids`` over a time of ``window_s`` seconds.

    While waiting and while measuring, call ``act`` every ``every_s`` seconds.
    """
    samples: list[dict[str, float]] = []
    cpu_s: dict[int, float] = {}
    pids_at_start: set[int] = set()
    started: set[int] = set()
    began, next_action, next_sample = time.monotonic(), 0.0, SETTLE_S
    while (elapsed := time.monotonic() - began) < SETTLE_S + window_s:
        if act is not None and elapsed >= next_action:
            act()
            next_action += every_s
        if elapsed >= next_sample:
            pids = list_pids()
            if not pids_at_start:
                pids_at_start, cpu_s = pids, {pid: read_cpu_s(pid) for pid in pids}
            started |= pids - pids_at_start
            samples.append(read_parts(pids))
            next_sample += SAMPLE_EVERY_S
        # Processes are sampled and entries written at fixed times.
        time.sleep(0.05)
    used_percent: dict[str, float] = {}
    for pid in list_pids():
        name = name_part(read_command(pid))
        used_s = read_cpu_s(pid) - cpu_s.get(pid, 0.0)
        used_percent[name] = used_percent.get(name, 0.0) + 100 * used_s / window_s
    parts = {name: statistics.median(row.get(name, 0.0) for row in samples) for row in samples for name in row}
    return Usage(
        memory_mb=statistics.median(sum(row.values()) for row in samples),
        cpu_percent=sum(used_percent.values()),
        memory_by_part=parts,
        cpu_by_part=used_percent,
        started=len(started),
    )


def read_parts(pids: set[int]) -> dict[str, float]:
    """Return the memory of the processes in megabytes, by kind of process."""
    parts: dict[str, float] = {}
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue  # it has ended
        name = name_part(read_command(pid))
        size = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        parts[name] = parts.get(name, 0.0) + size * 1024 / 1e6
    return parts


def read_command(pid: int) -> str:
    """Return the command line of a process, or an empty text if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def name_part(command: str) -> str:
    """Return the kind of a process from its command line."""
    if "deployments.up.guard" in command:
        return "guards"
    return next((name for words, name in PARTS.items() if words in command), "runs")


def read_cpu_s(pid: int) -> float:
    """Return the processor time of a process and of its ended children, in seconds.

    Return 0 if the process has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
