"""Tests of the supervisor with real processes.

It restarts parts, alerts if a part crashes repeatedly, and stops all parts in order.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from deployments.up.supervisor import RestartPolicy, SupervisedProcess, Supervisor, SupervisorLog
from tests.deployments.up.test_guard import wait_until_gone

WAIT_S = 60
HASTY = RestartPolicy(first_pause_s=0.05, max_pause_s=0.2, stable_after_s=300, deaths_before_alert=3)
LIVES = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)"
DIES = "import sys; sys.exit(5)"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")


def part(name: str, program: str, **values) -> SupervisedProcess:
    return SupervisedProcess(name, (sys.executable, "-c", program), **values)


class SupervisorListener:
    """Records the log lines and alerts of a supervisor, and waits for them."""

    def __init__(self):
        self.lines = []
        self.alerts = []
        self._news = asyncio.Event()

    def voice(self) -> SupervisorLog:
        async def send_crash_loop_alert(name, deaths, code):
            self._add(self.alerts, ("dies again", name, deaths, code))

        async def send_recovery_alert(name):
            self._add(self.alerts, ("stands again", name))

        return SupervisorLog(
            log=lambda *line: self._add(self.lines, line),
            send_crash_loop_alert=send_crash_loop_alert,
            send_recovery_alert=send_recovery_alert,
        )

    def _add(self, to, what):
        to.append(what)
        self._news.set()

    async def until(self, holds):
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self._news.wait()
                self._news.clear()

    def pids(self, name):
        return [int(line.split()[1]) for who, line in self.lines if who == name and line.startswith("pid ")]


@asynccontextmanager
async def supervised(*parts, patience=HASTY):
    listener = SupervisorListener()
    supervisor = Supervisor(parts, listener.voice(), patience)
    running = asyncio.create_task(supervisor.run())
    try:
        yield listener, supervisor, running
    finally:
        supervisor.stop()
        async with asyncio.timeout(WAIT_S):
            await running


async def test_a_killed_part_comes_back_and_the_others_are_left_alone():
    async with supervised(part("one", LIVES), part("two", LIVES)) as (listener, _, _):
        await listener.until(lambda: listener.pids("one") and listener.pids("two"))
        os.kill(listener.pids("one")[0], signal.SIGKILL)
        await listener.until(lambda: len(listener.pids("one")) == 2)
        (line,) = [text for part_name, text in listener.lines if part_name == "one" and not text.startswith("pid ")]
        assert re.findall(r"[\d.]+", line) == ["137", "0.05"], "the exit code and the pause"
        assert len(listener.pids("two")) == 1
    wait_until_gone(*listener.pids("one"), *listener.pids("two"))
    assert listener.alerts == []


async def test_a_killed_guard_leaves_nothing_running_beside_its_successor():
    async with supervised(part("one", LIVES), part("two", LIVES)) as (listener, supervisor, _):
        await listener.until(lambda: listener.pids("one") and listener.pids("two"))
        supervisor._running["one"].kill()
        await listener.until(lambda: len(listener.pids("one")) == 2)
        wait_until_gone(listener.pids("one")[0])
        assert len(listener.pids("two")) == 1
    wait_until_gone(*listener.pids("one"), *listener.pids("two"))


async def test_a_part_that_keeps_dying_is_reported_once_and_started_again():
    async with supervised(part("bad", DIES)) as (listener, _, _):
        await listener.until(lambda: len(listener.lines) >= 5)
        assert listener.alerts == [("dies again", "bad", 3, 5)]
    pauses = [line.rpartition(" in ")[2] for who, line in listener.lines if who == "bad"]
    assert pauses[:4] == ["0.05 s", "0.1 s", "0.2 s", "0.2 s"]


async def test_a_part_that_stays_up_again_is_reported(tmp_path):
    count = f"import pathlib; p = pathlib.Path({str(tmp_path / 'lives')!r}); p.open('a').write('x')\n"
    recovers = f"{count}if len(p.read_text()) < 3: raise SystemExit(1)\n{LIVES}"
    patient = RestartPolicy(first_pause_s=0.05, max_pause_s=0.05, stable_after_s=2.0, deaths_before_alert=2)
    async with supervised(part("bad", recovers), patience=patient) as (listener, _, _):
        await listener.until(lambda: len(listener.alerts) == 2)
        assert listener.alerts == [("dies again", "bad", 2, 1), ("stands again", "bad")]


async def test_the_one_that_stops_last_outlives_the_others():
    """The part that stops last outlives the others: it still runs while the first part stops slowly."""
    slow = (
        "import signal, sys, time\n"
        "def end(*_):\n    time.sleep(1); print('slow is done', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('pid', 1, flush=True); time.sleep(600)"
    )
    last = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('last is done', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('pid', 1, flush=True); time.sleep(600)"
    )
    async with supervised(part("last", last, stops_last=True), part("slow", slow)) as (listener, _, _):
        await listener.until(lambda: listener.pids("last") and listener.pids("slow"))
    assert [line for _, line in listener.lines if line.endswith("is done")] == ["slow is done", "last is done"]


async def test_a_line_without_end_is_cut_and_all_of_it_is_logged():
    endless = "import sys; sys.stdout.write('x' * 300_000 + '\\n')\n" + LIVES
    async with supervised(part("one", endless)) as (listener, _, _):
        await listener.until(lambda: listener.pids("one"))
    lines = [line for who, line in listener.lines if who == "one" and line.startswith("x")]
    assert sum(map(len, lines)) == 300_000
    assert max(map(len, lines)) <= 2 * 64 * 1024 + 1


@pytest.fixture
def bystander():
    """Start a process that exists before any supervisor."""
    with subprocess.Popen([sys.executable, "-c", LIVES], stdout=subprocess.DEVNULL) as process:
        yield process
        process.kill()


async def test_processes_from_before_the_supervisor_are_left_alone(bystander):
    """The supervisor ends only processes that its parts started.

    A bystander that the supervisor's parent process started is not ended.
    """
    async with supervised(part("one", LIVES)) as (listener, supervisor, _):
        await listener.until(lambda: listener.pids("one"))
        supervisor._running["one"].kill()
        await listener.until(lambda: len(listener.pids("one")) == 2)
    wait_until_gone(*listener.pids("one"))
    assert bystander.poll() is None
