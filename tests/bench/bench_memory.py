"""P8: peak memory with 10,000 cases is at most 1.3 times that with 100 cases.

    python -m tests.bench.bench_memory [--small 100] [--large 10000]

A real `lookout verify` runs with Prefect, journal, warehouse and reports, against a JSON API that answers
immediately. The peak is the kernel's own figure for the process, without its children. The baseline in the same run
is the smaller suite. The bench also reports the memory of a process that has only imported all modules.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flows.server import prefect_server
from tests.bench.measurements import Figure, report
from tests.bench.verify_measurements import KILOBYTES, Ended, run_verify, serve_app, write_configuration

MAX_GROWTH = 1.3
LIMIT = (
    "of 10,000 cases the step that loads the run into DuckDB adds 160 MB for a moment, suite and packed results 70 MB, "
    "the reports 10 MB; a limit of DuckDB's memory would be one of the warehouse's size, as its indexes must fit"
)


def main() -> int:
    """Print both peaks. Return exit code 1 if the goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", type=int, default=100)
    options.add_argument("--large", type=int, default=10_000)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = dict(os.environ)
        prefect_server.connect_or_start(
            None, folder / "prefect", environment=environment, start_timeout_s=180, write_line=print
        )
        try:
            imported = measure_import_mb(environment)
            small, large = (measure_run(folder, environment, count) for count in (arguments.small, arguments.large))
        finally:
            prefect_server.stop_server(folder / "prefect")
    return 0 if report(build_figure(small, large, arguments.small, arguments.large, imported)) else 1


def build_figure(small: Ended, large: Ended, few: int, many: int, imported_mb: float) -> Figure:
    """Build the figure from a single pair of runs.

    Only one pair is measured, because a pair takes minutes. The kernel's peak varies by some MB.
    """
    return Figure(
        id="P8",
        what=f"peak memory, {many:,} cases",
        unit="MB",
        values=(large.max_rss_mb,),
        baseline=f"{few:,} cases",
        baselines=(small.max_rss_mb,),
        of="ratio",
        goal=MAX_GROWTH,
        note=f"a process that has imported everything and asked nothing: {imported_mb:.0f} MB; {LIMIT}",
    )


def measure_run(folder: Path, environment: dict[str, str], cases: int) -> Ended:
    """Measure a run of ``cases`` cases in its own data folder."""
    place = folder / f"of-{cases}"
    with serve_app("tests.bench.fast_api") as address:
        write_configuration(place, address, cases, probe='driver = "json"')
        started = time.monotonic()
        ended = run_verify(place, environment)
    seconds = time.monotonic() - started
    if ended.code != 0:
        raise SystemExit(f"the run ended with {ended.code}: {(place / 'lookout.log').read_text('utf-8')[-2000:]}")
    print(f"{cases:,} cases: peak {ended.max_rss_mb:.0f} MB, {seconds:.0f} s", flush=True)
    return ended


def measure_import_mb(environment: dict[str, str]) -> float:
    """Return the peak memory of a process that imports the modules of a run, in MB."""
    script = "import flows.verify.flow, resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    return int(done.stdout) / KILOBYTES


if __name__ == "__main__":
    sys.exit(main())
