"""Test the policies for runs that were missed during an outage, and the limit of one run at a time per target."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import prefect
import pytest

from tests.conftest import ROOT
from tests.prefect_home import with_tables

DAYS = 6


def live_through(folder, policy: str) -> list[tuple[str, str]]:
    """Simulate a worker outage of six days, and return the due time and the state of each due run."""
    command = [
        sys.executable,
        "-m",
        "tests.flows.server.outage_worker",
        str(with_tables(folder)),
        policy,
        str(DAYS),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(due_at, state) for due_at, state in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize(
    ("policy", "ran"),
    [
        ("newest", ["06 01:00"]),
        pytest.param("skip", [], marks=pytest.mark.whole_only),
        pytest.param("all", [f"{day:02} 01:00" for day in range(1, 7)], marks=pytest.mark.whole_only),
    ],
)
def test_after_an_outage_the_policy_decides_which_missed_runs_are_run(tmp_path, policy, ran):
    """After six days without a worker, the policy decides which of the six missed runs are executed."""
    assert prefect.__version__.startswith("3.8."), "the services' internals are called"
    runs = live_through(tmp_path / "home", policy)
    assert [due_at for due_at, state in runs if state == "Pass"] == ran
    assert Counter(state for _, state in runs) == Counter(Pass=len(ran), Skipped=DAYS - len(ran))


@contextmanager
def run_of(target: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process that reserves ``target``, as a deployment run does before it asks the target."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.flows.server.holding_worker", target],
        cwd=ROOT,
        env={**environment, "PREFECT__RUNTIME__DEPLOYMENT__ID": str(uuid.uuid4())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_target_is_asked_by_one_run_at_a_time_and_a_killed_run_frees_it(prefect_environment):
    """Only one run at a time asks a target. If that run is killed, another run can start.

    A run of another target does not wait.
    """
    target = f"bot-{uuid.uuid4().hex[:6]}"
    with ExitStack() as stack:
        first, second, third, neighbour = (
            stack.enter_context(run_of(name, prefect_environment))
            for name in (target, target, target, f"{target}-b")
        )
        assert neighbour.stdout.readline() == "holding\n"
        lines = {process: process.stdout.readline() for process in (first, second, third)}
        (holder,) = (process for process, line in lines.items() if line == "holding\n")
        waiting = [process for process in lines if process is not holder]
        assert {lines[process] for process in waiting} == {
            f"{target}: waiting until another run of this target ends\n"
        }
        print(file=holder.stdin, flush=True)
        assert holder.stdout.readline() == "over\n"
        with selectors.DefaultSelector() as selector:
            for process in waiting:
                selector.register(process.stdout, selectors.EVENT_READ, process)
            ((key, _), *_more) = selector.select(timeout=120)
        assert key.data.stdout.readline() == "holding\n"
        key.data.kill()
        (last,) = (process for process in waiting if process is not key.data)
        assert last.stdout.readline() == "holding\n", "after the lease of the killed run"
