"""A dataset of 50,000 examples is pushed, compared and pulled in pages: time, and memory beside a small one.

    python -m tests.bench.bench_dataset [--small 1000] [--large 50000]

The real commands against a local server of LangSmith's API. A command holds its suite; what the platform's pages add
must not grow: reading alone is measured too, by the allocations that Python counts, and must stay within 1.5 times.
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

from tests.conftest import ROOT
from tests.monitors.platforms.langsmith.pushes import KEY, NAME, opened
from tests.servers.langsmith_datasets import LangSmithDatasetServer
from tests.soak.plans import write_suite

MOST = 1.5
CONFIG = """
[langsmith]
api_url = "{url}"

[targets.demo]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"
"""


def main() -> int:
    """Print times and peaks; exit code 1 when reading takes more memory for a larger dataset."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", type=int, default=1_000)
    options.add_argument("--large", type=int, default=50_000)
    given = options.parse_args()
    small, large = (one(count) for count in (given.small, given.large))
    print(
        f"reading alone: {large / 1e6:.1f} MB at most, {small / 1e6:.1f} MB for the small one; at most {MOST} times"
    )
    return 0 if large <= MOST * small else 1


def one(count: int) -> int:
    """All commands over so many cases; the most bytes that reading alone held."""
    with LangSmithDatasetServer(key=KEY) as server, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "lookout.toml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        write_suite(folder / "suite.jsonl", count)
        for words in (
            ("push", "--yes"),
            ("diff",),
            ("push", "--yes"),
            ("pull", "--yes", "--suite", "pulled.jsonl"),
        ):
            _command(folder, count, *words)
        assert len(server.examples(NAME)) == count
        return asyncio.run(_read(server))


def _command(folder: Path, count: int, name: str, *options: str) -> None:
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
        f"{count:6,} cases, gold {name:4}: {time.monotonic() - begun_s:6.1f} s, peak {_mb(used):5.0f} MB",
        flush=True,
    )


def _mb(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 1024


async def _read(server: LangSmithDatasetServer) -> int:
    """The most bytes beyond those before that reading a dataset held. The server's are of pages of the same size."""
    async with opened(server) as datasets:
        found = await datasets.find(NAME)
        assert found is not None
        tracemalloc.start()
        async for _ in datasets.pull(found):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


if __name__ == "__main__":
    sys.exit(main())
