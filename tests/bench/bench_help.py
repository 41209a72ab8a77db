"""Measure how long short commands take: `lookout --help`, `lookout sql`, `lookout alerts list`.

    python -m tests.bench.bench_help [--pairs 7]

The unit is CPU seconds of the whole process, which equal wall seconds on an idle machine. Each pair also starts
Python with only the libraries that the command requires. The difference is the time of Lookout's own code. The
notes list the packages whose import takes longest, as Python counts it in one more start.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows.data_folder import open_store_in
from tests.bench.measurements import Figure, report
from tests.bench.verify_measurements import ROOT, write_configuration

LOOKOUT = ("-m", "deployments.cli.app")
TYPER = "import typer.main, rich.console; typer.main.get_command(typer.Typer(callback=lambda: None))"
DUCKDB = f"{TYPER}; import duckdb, pydantic; duckdb.connect().execute('select 1')"
HELP_MOST_S = 0.3
WAIT_S = 30.0
COMMAND_MOST_S = 1.0
MAX_NAMED = 6
COMMANDS = (("verify",), ("gate",), ("doctor",), ("gold", "check"), ("alerts", "list"))
"""Commands whose ``--help`` is also measured. No goal applies to them."""


def main() -> int:
    """Print the figures. Return the number of missed goals as the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=7)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_configuration(folder, "http://127.0.0.1:9", 4)
        open_store_in(folder / "data").load_pending(WAIT_S)
        met = [
            measure_start(folder, ("--help",), given.pairs, id_="help", library=TYPER, most_s=HELP_MOST_S),
            measure_start(folder, ("sql", "select 1"), given.pairs, id_="sql"),
            measure_start(folder, ("alerts", "list"), given.pairs, id_="alerts list"),
        ]
        for command in COMMANDS:
            seconds = measure_cpu_s(folder, *LOOKOUT, *command, "--help")
            report(Figure(id="help", what=f"lookout {' '.join(command)} --help", unit="CPU s", values=(seconds,)))
    return met.count(False)


def measure_start(
    folder: Path,
    command: Sequence[str],
    pairs: int,
    *,
    id_: str,
    library: str = DUCKDB,
    most_s: float = COMMAND_MOST_S,
) -> bool:
    """Measure one command and a Python process with only the command's libraries."""
    theirs: list[float] = []
    ours: list[float] = []
    for number in range(pairs):
        sides = [(theirs, ("-c", library)), (ours, (*LOOKOUT, *command))]
        for samples, arguments in sides if number % 2 else reversed(sides):
            samples.append(measure_cpu_s(folder, *arguments))
    return report(
        Figure(
            id=id_,
            what=f"lookout {' '.join(command)}",
            unit="CPU s",
            values=tuple(ours),
            baseline="its libraries alone",
            baselines=tuple(theirs),
            goal=most_s,
            note=f"imports: {find_heaviest_imports(folder, *LOOKOUT, *command)}",
        )
    )


def measure_cpu_s(folder: Path, *arguments: str) -> float:
    """Return the processor time of one Python process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _start(folder, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def find_heaviest_imports(folder: Path, *arguments: str) -> str:
    """Return the packages whose own import takes longest, with their import times in milliseconds.

    A package's time does not include the packages that it imports.
    """
    own_us: Counter[str] = Counter()
    for line in _start(folder, "-X", "importtime", *arguments).stderr.splitlines():
        match = re.match(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)", line)
        if match:
            own_us[match[2].partition(".")[0]] += int(match[1])
    return ", ".join(f"{package} {us / 1000:.0f} ms" for package, us in own_us.most_common(MAX_NAMED))


def _start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=True,
        cwd=folder,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        capture_output=True,
        text=True,
    )


if __name__ == "__main__":
    sys.exit(main())
