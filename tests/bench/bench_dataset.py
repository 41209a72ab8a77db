"""Push, compare and pull a dataset of 10,000 examples: measure time, and memory compared with a small dataset.

    python -m tests.bench.bench_dataset [--small 1000] [--large 10000]

The real commands run against a local server with LangSmith's API. Each command runs on the large and on the small
dataset, and is measured in microseconds of CPU time per case. A command holds its whole suite in memory, but the
memory for the platform's pages must not grow. Therefore the memory for reading is also measured separately, by the
allocations that Python counts. For the large dataset, the memory for reading must stay within 1.5 times that for
the small one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from tests.bench.measurements import Figure, report
from tests.conftest import ROOT
from tests.monitors.platforms.langsmith.pushes import KEY, NAME, opened
from tests.servers.langsmith_datasets import LangSmithDatasetServer
from tests.soak.soak_plans import write_suite

MAX_RATIO = 1.5
CONFIG = """
[langsmith]
api_url = "{url}"

[targets.demo]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"
"""


def main() -> int:
    """Print times and memory peaks. Return exit code 1 if reading takes more memory for a larger dataset."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", type=int, default=1_000)
    options.add_argument("--large", type=int, default=10_000)
    arguments = options.parse_args()
    (small, small_costs), (large, large_costs) = (
        measure_size(count) for count in (arguments.small, arguments.large)
    )
    for step, cost in large_costs.items():
        report(
            Figure(
                id="dataset",
                what=f"gold {step} of {arguments.large:,} cases",
                unit="CPU µs per case",
                values=(cost,),
                baseline=f"of {arguments.small:,}, its start shared by fewer",
                baselines=(small_costs[step],),
                note="one pair: a command takes up to half a minute",
            )
        )
    reading = Figure(
        id="dataset memory",
        what=f"held while {arguments.large:,} examples are read",
        unit="MB",
        values=(large / 1e6,),
        goal=MAX_RATIO,
        baseline=f"{arguments.small:,} examples",
        baselines=(small / 1e6,),
        of="ratio",
        note="one pair: allocations are counted, which does not vary",
    )
    return 0 if report(reading) else 1


STEPS = {
    "push": ("push", "--yes"),
    "diff": ("diff",),
    "push again": ("push", "--yes"),
    "pull": ("pull", "--yes", "--suite", "pulled.jsonl"),
}


def measure_size(count: int) -> tuple[int, dict[str, float]]:
    """Return the peak memory of reading the dataset, in bytes, and the CPU time of each command, in µs per case."""
    with LangSmithDatasetServer(key=KEY) as server, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "lookout.toml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        write_suite(folder / "suite.jsonl", count)
        costs = {step: _run_command(folder, count, *typed) * 1e6 / count for step, typed in STEPS.items()}
        assert len(server.examples(NAME)) == count
        return asyncio.run(_read_dataset(server)), costs


def _run_command(folder: Path, count: int, name: str, *options: str) -> float:
    """Run a command and return its CPU time in seconds."""
    begun_s = time.monotonic()
    words = [
        sys.executable,
        "-m",
        "deployments.cli.app",
        "gold",
        name,
        f"langsmith:{NAME}",
        "--most",
        "1",
        *options,
    ]
    environment = os.environ | {"LANGSMITH_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    print(
        f"{count:6,} cases, gold {name:4}: {time.monotonic() - begun_s:6.1f} s, peak {_measure_mb(used):5.0f} MB",
        flush=True,
    )
    return used.ru_utime + used.ru_stime


def _measure_mb(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 1024


async def _read_dataset(server: LangSmithDatasetServer) -> int:
    """Return the peak memory that reading a dataset adds, in bytes.

    The peak includes memory of the local server. This memory does not grow with the dataset, because the server's
    pages always have the same size.
    """
    async with opened(server) as datasets:
        dataset = await datasets.find(NAME)
        assert dataset is not None
        tracemalloc.start()
        async for _ in datasets.pull(dataset):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


if __name__ == "__main__":
    sys.exit(main())
