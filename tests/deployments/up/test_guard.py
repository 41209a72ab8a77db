"""Tests of the guard of a command: the command ends as without the guard, and none of its descendants is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from deployments.up.guard import find_descendants
from tests.conftest import ROOT
from tests.polling import wait_until

WAIT_S = 60
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")

FAMILY = """
import os, subprocess, sys, time
grandchild = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
one = subprocess.Popen([sys.executable, "-c", grandchild], start_new_session=True, stdout=subprocess.PIPE)
one.stdout.readline()
print(os.getpid(), one.pid, flush=True)
{then}
"""
STAYS = FAMILY.format(then="time.sleep(600)")
"""A program whose child has its own session and ignores SIGTERM."""
LEAVES = FAMILY.format(then="os._exit(7)")
"""A program like `STAYS`, except that it ends by itself and leaves its child running."""


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until_gone(*pids: int) -> None:
    wait_until(lambda: all(gone(pid) for pid in pids), timeout_s=WAIT_S, what=f"the processes {pids} end")


@contextmanager
def guarded(program: str):
    """Start the guard of a program. Yield the guard, and the process ids of the program and of its child."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "deployments.up.guard", sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with guard:
        pids = [int(word) for word in guard.stdout.readline().split()]
        try:
            yield guard, pids
        finally:
            for pid in pids:
                if not gone(pid):
                    os.kill(pid, signal.SIGKILL)
            guard.kill()


@pytest.mark.whole_only
def test_when_the_line_closes_the_whole_family_ends():
    with guarded(STAYS) as (guard, pids):
        assert find_descendants(guard.pid) == set(pids)
        guard.stdin.close()
        assert guard.wait(WAIT_S) == 128 + signal.SIGTERM
        wait_until_gone(*pids)


@pytest.mark.whole_only
def test_leftover_processes_end_before_their_guard():
    with guarded(LEAVES) as (guard, pids):
        assert guard.wait(WAIT_S) == 7
        assert all(gone(pid) for pid in pids)


@pytest.mark.whole_only
def test_leftover_processes_of_a_killed_command_are_ended():
    with guarded(STAYS) as (guard, pids):
        os.kill(pids[0], signal.SIGKILL)
        assert guard.wait(WAIT_S) == 128 + signal.SIGKILL
        assert all(gone(pid) for pid in pids)


@pytest.mark.whole_only
def test_signals_do_not_reach_past_the_line():
    """A signal to the guard does not end the guarded program.

    A service manager signals every process of a group. This must not change the order in which the parts stop.
    """
    with guarded(STAYS) as (guard, pids):
        guard.send_signal(signal.SIGTERM)
        guard.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            guard.wait(0.5)
        assert find_descendants(guard.pid) == set(pids)
        guard.stdin.close()
        guard.wait(WAIT_S)


def test_a_command_hears_signals_as_if_it_stood_alone():
    program = "import os, signal; print(*(int(signal.getsignal(n) == signal.SIG_IGN) for n in (2, 15)), flush=True)"
    with guarded(program) as (guard, ignored):
        assert guard.wait(WAIT_S) == 0
        ignored_now, ignored[:] = list(ignored), []
    assert ignored_now == [0, 0]
