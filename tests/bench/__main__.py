"""Run all benchmarks of this folder one after the other, and print one table of their figures: `make bench`.

    python -m tests.bench [--only probe,help] [--minutes 40] [--write docs/performance.md]

Each bench reports its figures through `tests.bench.measurements`. The exit code is the number of benches that
missed a goal, did not report a figure, or crashed. It is 0 if every figure was measured and every goal was met. The
goals are for an idle machine. The table shows the load before each bench, because other work on the machine
increases the times.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measurements import FIGURES_VARIABLE, Figure
from tests.bench.summary import BENCHES, BenchRun, build_summary, count_failures
from tests.figures import measured_where, write_section

ROOT = Path(__file__).parents[2]
BUDGET_MIN = 40.0
"""Maximum time for all benches together on two idle cores, in minutes."""
END_S = 30
"""Maximum time for a stopped bench to end the processes that it started, in seconds."""


def main() -> int:
    """Run all benches, print the table, and write it to the file of ``--write`` if that option is given."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", type=_parse_names, default=tuple(BENCHES), help="such as probe,help")
    options.add_argument("--minutes", type=float, default=BUDGET_MIN, help="most that all of them may take")
    options.add_argument("--write", type=Path, help="a page with the section `bench`")
    chosen = options.parse_args()
    if chosen.write and set(chosen.only) != set(BENCHES):
        options.error("--write renews a table of all benches: leave --only out")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    where = f"{measured_where()} Commit {_read_commit()}."
    lines = [where, "", *build_summary(runs := run_all(chosen.only, chosen.minutes), budget_min=chosen.minutes)]
    print("\n" + "\n".join(lines))
    if chosen.write:
        write_section(chosen.write, "bench", lines)
    return count_failures(runs)


def run_all(names: Sequence[str], minutes: float) -> list[BenchRun]:
    """Run the benches one after the other.

    A bench that exceeds the remaining time is stopped, and the table says so.
    """
    until = time.monotonic() + minutes * 60
    runs: list[BenchRun] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(f"== {name}, load {os.getloadavg()[0]:.1f}", flush=True)
            runs.append(run_bench(name, Path(folder), until - time.monotonic()))
            print(f"== {name} took {runs[-1].took_s / 60:.1f} min, exit code {runs[-1].code}", flush=True)
    return runs


def run_bench(name: str, folder: Path, most_s: float, *, module: str = "") -> BenchRun:
    """Run one bench in its own process and process group, for at most ``most_s`` seconds."""
    load, began, file = os.getloadavg()[0], time.monotonic(), folder / f"{name}.jsonl"
    command = [sys.executable, "-m", "tests.bench.run_one_bench", module or f"tests.bench.{name}"]
    environment = os.environ | {FIGURES_VARIABLE: str(file)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as process:
        try:
            process.wait(max(0.0, most_s))
            stopped = False
        except subprocess.TimeoutExpired:
            _stop_process(process)
            stopped = True
        except KeyboardInterrupt:
            _stop_process(process)
            raise
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return BenchRun(
        name=name,
        ids=BENCHES.get(name, ()),
        code=process.returncode,
        took_s=time.monotonic() - began,
        load=load,
        figures=tuple(Figure.model_validate_json(line) for line in lines),
        stopped=stopped,
    )


def _stop_process(process: subprocess.Popen[bytes]) -> None:
    """Stop a bench as Ctrl-C would, so that it ends the processes that it started.

    After a grace time, the remaining processes of its group are killed.
    """
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def _parse_names(text: str) -> tuple[str, ...]:
    asked = {f"bench_{name.strip().removeprefix('bench_')}" for name in text.split(",")}
    if unknown := sorted(asked - set(BENCHES)):
        bench_names = ", ".join(name.removeprefix("bench_") for name in BENCHES)
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none; there are {bench_names}")
    return tuple(name for name in BENCHES if name in asked)


def _read_commit() -> str:
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty=, with changes", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
