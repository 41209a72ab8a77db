"""P10: check a night of 1,000,000 conversations of 400 bytes by rules with 1 GB of memory and 10 CPU minutes.

    python -m tests.bench.bench_night [--conversations 200000]

A real night without a judge runs in a separate process: conversations are read from a JSON Lines file, graded on
all cores, sampled and stored in the journal. The time is the processor time of the process and its workers. The
memory is the largest sum of their memory at any moment. The baseline in the same run parses the same file as JSON
and does nothing else.

By default, the bench runs a fifth of that night, because the whole night takes too long for `make bench`. First, it
runs a tenth of that fifth. The difference gives the time and memory for each conversation, from which the values
for a million conversations are extrapolated. ``--conversations 1000000`` measures the whole night.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.bench.measurements import Figure, report
from tests.process_tree import all_processes, descendants

WHOLE = 1_000_000
MAX_CPU_S = 600.0
MAX_MB = 1_000.0
LOOKS_EVERY_S = 0.5
SENTENCES = (
    "Pre-existing diseases are covered after a waiting period of 24 months of continuous cover.",
    "Room rent is paid up to ₹5,000 per day under the plan that you chose.",
    "A co-payment of 10% applies to every claim above the age of sixty years.",
    "Maternity ke liye do saal ka waiting period hai, uske baad cover milta hai.",
    "मोतियाबिंद के लिए चौबीस महीने की प्रतीक्षा अवधि है।",
    "The sum insured is restored once a year. [Source: Nova Gold, clause 4.2]",
    "You may choose any hospital; in those of the network the bill is settled directly.",
)
QUESTIONS = (
    "Is cataract covered, and what is its waiting period?",
    "How much is paid for a room?",
    "kya cover hai?",
)
ERROR = "Error code: 429 - {'error': {'message': 'Rate limit reached', 'type': 'requests'}}"
SUITE = Path(__file__).parents[2] / "deployments" / "demo" / "suraksha.jsonl"
UNTIL = datetime(2026, 11, 20, 2, tzinfo=UTC)
CONFIG = """
[targets.demo]
url = "http://127.0.0.1:9"
suite = "{suite}"
model_family = "gpt"
[targets.demo.traffic.sources.log]
kind = "file"
at = "{log}"
[targets.demo.traffic.sampling]
mode = "stratified"
number = 500
"""
NIGHT = """
import asyncio, resource, sys
from datetime import datetime
from pathlib import Path
from flows.nightly.run import NightlyRun as NightlyRun
from flows.nightly.context import build_nightly_context
from monitors.config.file import load_config
wired = build_nightly_context(load_config(Path(sys.argv[1])), "demo", datetime.fromisoformat(sys.argv[2]))
report = asyncio.run(NightlyRun(wired).run())
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(report.read, sum(one.ru_utime + one.ru_stime for one in used), [(one.kind.value, one.found) for one in report.census])
"""


def write(path: Path, count: int) -> None:
    """Write ``count`` conversations of about 400 bytes to ``path``. Every 500th conversation is an error."""
    chance = random.Random(count)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            reply = ERROR if number % 500 == 0 else " ".join(chance.sample(SENTENCES, 3))
            at = UNTIL - timedelta(hours=23) + timedelta(seconds=number * 80_000 / count)
            row = {"id": f"{chance.getrandbits(128):032x}", "completed_at": at.isoformat()}
            row |= {"question": chance.choice(QUESTIONS), "answer": reply}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def measure_parse_s(path: Path) -> float:
    """Return the processor time to parse the file as JSON, in seconds."""
    started = time.process_time()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return time.process_time() - started


class Watched:
    """Measures the largest total memory of a process and of all processes that it started."""

    def __init__(self, pid: int) -> None:
        self.most_mb = 0.0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(LOOKS_EVERY_S):
            here = all_processes().get(self._pid)
            there = descendants(self._pid)
            self.most_mb = max(self.most_mb, sum(process.rss_mb for process in [*([here] if here else []), *there]))

    def stop(self) -> float:
        """Stop measuring, and return the memory in megabytes."""
        self._over.set()
        self._thread.join()
        return self.most_mb


class Night(NamedTuple):
    """The measured time and memory of one nightly run, and the CPU seconds of its baseline."""

    cpu_s: float
    peak_mb: float
    baseline_s: float


def measure_night(count: int) -> Night:
    """Measure a nightly run over ``count`` conversations."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log, config = folder / "talks.jsonl", folder / "lookout.toml"
        write(log, count)
        config.write_text(CONFIG.format(log=log, suite=SUITE), encoding="utf-8")
        baseline_s = measure_parse_s(log)
        arguments = [sys.executable, "-c", NIGHT, str(config), (UNTIL + timedelta(minutes=5)).isoformat()]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=folder) as running:
            watched = Watched(running.pid)
            output = running.communicate()[0]
            peak_mb = watched.stop()
        if running.returncode:
            raise SystemExit(f"the night ended with {running.returncode}")
        read, cpu_s = output.split()[:2]
        if int(read) != count:
            raise SystemExit(f"{read} conversations were read of {count}")
        return Night(float(cpu_s), peak_mb, baseline_s)


def main() -> int:
    """Print the time and memory of a nightly run. Return exit code 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--conversations", type=int, default=200_000)
    count = options.parse_args().conversations
    few = measure_night(max(1, count // 10))
    whole = measure_night(count)
    more, rest = count - count // 10, max(0, WHOLE - count)
    each_s = (whole.cpu_s - few.cpu_s) / more
    each_bytes = (whole.peak_mb - few.peak_mb) * 1e6 / more
    note = f"{whole.cpu_s:.0f} s for {count:,}, the rest at the rate between a tenth and all of them; one pair: minutes each"
    met = [
        report(
            Figure(
                id="P10",
                what=f"a night of {WHOLE:,} conversations through every rule",
                unit="CPU s",
                values=(whole.cpu_s + each_s * rest,),
                goal=MAX_CPU_S,
                baseline="parsed as JSON",
                baselines=(whole.baseline_s * (count + rest) / count,),
                note=note,
            )
        ),
        report(
            Figure(
                id="P10 memory",
                what=f"the most that a night of {WHOLE:,} holds at one moment, workers included",
                unit="MB",
                values=(whole.peak_mb + each_bytes * rest / 1e6,),
                goal=MAX_MB,
                note=f"{whole.peak_mb:.0f} MB at {count:,}, {few.peak_mb:.0f} at {count // 10:,}: each conversation "
                f"is held in {each_bytes:.0f} bytes, its id, time, digest and what it shows, until the night is stored",
            )
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
