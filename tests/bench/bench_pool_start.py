"""Measure how long a run on a process pool takes to start while the cores are busy, part by part.

    python -m tests.bench.bench_pool_start [--runs 3] [--burners 2]

The bench starts a real server, a pool with one worker, and `burners` processes that each use a core. Each run is a
run of `load-warehouse`, created as a schedule or a deploy creates it. Prefect's states mark the end of each part:
Pending when a worker has claimed the run, Running when the run's process has imported Prefect and the flow. The
baseline is a worker with Prefect's default settings.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import httpx

from flows.server import prefect_server
from tests.bench.measurements import Figure, report
from tests.bench.verify_measurements import ROOT
from tests.flows.few_cases import few_cases
from tests.polling import wait_until
from tests.prefect_home import with_tables

GOAL_S = 15.0
START_TIMEOUT_S = 300.0
POOL = "lookout"
PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")
LOOKOUT = (sys.executable, "-m", "deployments.cli.app")
ADVISED = {"PREFECT_WORKER_QUERY_SECONDS": "2"}
"""The worker settings that docs/existing-prefect.md recommends."""


def main() -> int:
    """Print the figures. Return the number of missed goals as the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--burners", type=int, default=os.cpu_count() or 1)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        few_cases(folder, severe=1, others=1)
        text = 'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
        (folder / "lookout.toml").write_text(text, encoding="utf-8")
        home, variables = with_tables(folder / "prefect"), dict(os.environ) | {"PYTHONPATH": str(ROOT)}
        prefect_server.connect_or_start(
            None, home, environment=variables, start_timeout_s=START_TIMEOUT_S, write_line=print
        )
        stack.callback(prefect_server.stop_server, home)
        for command in (
            (*PREFECT, "work-pool", "create", POOL, "--type", "process"),
            (*LOOKOUT, "prefect-yaml", "--deploy"),
        ):
            subprocess.run(command, cwd=folder, env=variables, check=True, stdout=subprocess.DEVNULL)
        for _ in range(arguments.burners):
            stack.enter_context(start_process((sys.executable, "-c", "while True: pass"), folder, variables))
        parts = {
            name: measure(folder, variables | settings, arguments.runs)
            for name, settings in (("default", {}), ("advised", ADVISED))
        }
    ours, theirs = parts["advised"], parts["default"]
    busy = f"{arguments.burners} busy processes on {os.cpu_count()} cores"
    for number, leg in enumerate(("a worker claims a run", "its process runs the flow")):
        values, baselines = (tuple(row[number] for row in rows) for rows in (ours, theirs))
        report(Figure(id="pool", what=leg, unit="s", values=values, baseline="default", baselines=baselines))
    return not report(
        Figure(
            id="pool",
            what=f"a run on a process pool starts, {busy}",
            unit="s",
            values=tuple(map(sum, ours)),
            baseline="default",
            baselines=tuple(map(sum, theirs)),
            goal=GOAL_S,
        )
    )


def measure(folder: Path, variables: dict[str, str], runs: int) -> list[tuple[float, float]]:
    """Return two waiting times for each of ``runs`` runs, in seconds.

    The first is the time until a worker claimed the run. The second is the time from the claim to the start.
    """
    command = (*PREFECT, "worker", "start", "--pool", POOL, "--name", "bench")
    parts: list[tuple[float, float]] = []
    api = httpx.Client(base_url=variables["PREFECT_API_URL"], timeout=60, trust_env=False)
    with api, start_process(command, folder, variables):
        name = "load-warehouse/load-warehouse"
        deployment = api.get(f"/deployments/name/{name}").raise_for_status().json()["id"]
        for _ in range(runs + 1):
            run = api.post(f"/deployments/{deployment}/create_flow_run", json={}).raise_for_status().json()["id"]
            wait_until(
                lambda run=run: api.get(f"/flow_runs/{run}").json()["state_type"] == "COMPLETED",
                timeout_s=START_TIMEOUT_S,
                what="the run ends",
            )
            states = api.get("/flow_run_states/", params={"flow_run_id": run}).raise_for_status().json()
            at = {state["type"]: datetime.fromisoformat(state["timestamp"]) for state in states}
            begin, claim, start = at["SCHEDULED"], at["PENDING"], at["RUNNING"]
            parts.append(((claim - begin).total_seconds(), (start - claim).total_seconds()))
    return parts[1:]  # the first waits for the start of the worker itself


@contextmanager
def start_process(command: tuple[str, ...], folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Run ``command`` in a process that ends with the ``with`` block."""
    with subprocess.Popen(
        command, cwd=folder, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
