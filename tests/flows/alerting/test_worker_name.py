"""Test that each process has a unique worker name, which shows whether the process has ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flows.alerting.worker import get_worker_name, has_worker_ended
from tests.conftest import ROOT

SAY_NAME = "from flows.alerting.worker import get_worker_name; print(get_worker_name(), flush=True); input()"

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell")  # noqa: PTH110 - as the module does


def test_a_living_process_is_not_gone_and_a_dead_one_is():
    with subprocess.Popen(
        [sys.executable, "-c", SAY_NAME], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not has_worker_ended(name)
        assert name != get_worker_name()
        process.kill()
    assert has_worker_ended(name)


def test_a_number_that_is_used_again_is_another_process():
    machine, pid, _ = get_worker_name().split(":")
    assert has_worker_ended(f"{machine}:{pid}:1")


def test_nothing_is_known_of_other_machines_and_other_names():
    _, pid, began = get_worker_name().split(":")
    assert not has_worker_ended(f"{'0' * 16}:{pid}:{began}1")
    assert not has_worker_ended("run-1")
