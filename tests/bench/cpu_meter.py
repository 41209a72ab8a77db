"""Measure the CPU seconds of this process and of all processes that it started, by kind."""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Mapping

from tests.process_tree import Seen, all_processes, descendants

LOOKS_EVERY_S = 0.25


class CpuMeter:
    """Measures the CPU seconds that are used after the meter was created.

    The meter samples often, because processes start and end during a measurement. Processes named in ``apart`` are
    not counted.
    """

    def __init__(self, *apart: str) -> None:
        self._apart = apart
        self._first: dict[int, float] = {}
        self._last: dict[int, Seen] = {}
        self._look()
        self._first = {pid: process.cpu_s for pid, process in self._last.items()}

    async def watch(self) -> None:
        """Sample the processes repeatedly until the task is cancelled."""
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            self._look()

    def seconds(self) -> float:
        """Return the CPU seconds of all measured processes together."""
        return sum(self.parts().values())

    def parts(self) -> Mapping[str, float]:
        """Return the CPU seconds by kind of process, the largest first."""
        self._look()
        used: defaultdict[str, float] = defaultdict(float)
        for pid, process in self._last.items():
            used[classify_process(process)] += process.cpu_s - self._first.get(pid, 0.0)
        return dict(sorted(used.items(), key=lambda part: -part[1]))

    def _look(self) -> None:
        me = all_processes()[os.getpid()]
        for process in [me, *descendants(me.pid)]:
            if not any(word in process.command for word in self._apart):
                self._last[process.pid] = process


def classify_process(process: Seen) -> str:
    """Return the kind of a process: a page, the browser, one of its services, the driver, or Python."""
    if process.is_browser:
        kind = re.search(r"--type=([\w-]+)", process.command)
        return kind.group(1) if kind else "browser"
    return "driver" if "node" in process.command.partition(" ")[0] else "Python"
