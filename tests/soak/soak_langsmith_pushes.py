"""Kill and repeat pushes to LangSmith at random moments: in the end, each case exists once and is correct.

``python -m tests.soak.soak_langsmith_pushes [SCHEDULES]``, by default with 1,000 schedules. The test suite also
runs some of these schedules.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter

from tests.monitors.platforms.langsmith.pushes import KEY, run_schedule
from tests.servers.langsmith_datasets import LangSmithDatasetServer

SCHEDULES = 1_000


async def run(schedules: int) -> int:
    """Run the schedules. Return the number of schedules in which a case was missing, duplicated or wrong."""
    begun_s, failed, pushes = time.monotonic(), 0, Counter[int]()
    with LangSmithDatasetServer(key=KEY) as server:
        for seed in range(schedules):
            try:
                pushes[await run_schedule(server, seed)] += 1
            except AssertionError as error:
                failed += 1
                print(f"seed {seed}: {error}", flush=True)
    repeats = ", ".join(f"{count} after {number}" for number, count in sorted(pushes.items()))
    print(f"{schedules} schedules in {time.monotonic() - begun_s:.0f} s, {failed} wrong; pushes needed: {repeats}")
    return failed


if __name__ == "__main__":
    for name in [one for one in os.environ if one.startswith(("LANGSMITH_", "LANGCHAIN_"))]:
        del os.environ[name]
    sys.exit(1 if asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else SCHEDULES)) else 0)
