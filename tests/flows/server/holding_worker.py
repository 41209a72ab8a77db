"""A process that reserves a target, as a deployment run does, until it reads a line from its input.

It prints a line if it must wait for the target, and ``holding`` when it has reserved the target.
"""

from __future__ import annotations

import asyncio
import sys

from flows.server.missed_runs import hold_target_exclusively
from monitors.config.file import PREFECT_TAG


def write_line(line: str) -> None:
    print(line, flush=True)


async def main() -> None:
    async with hold_target_exclusively(sys.argv[1], PREFECT_TAG, write_line):
        write_line("holding")
        await asyncio.to_thread(sys.stdin.readline)
    write_line("over")


if __name__ == "__main__":
    asyncio.run(main())
