"""What a person waits for before anything is done: `lookout --help` takes under 0.5 s of processor time.

    python -m tests.bench.bench_help [--pairs 11]

Each pair also starts Python with the library that reads command lines, and nothing of ours: what lies between the two is
our own. Help of single commands stands beside it.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

LOOKOUT = ("-m", "deployments.cli.app")
LIBRARY = ("-c", "import typer.main, rich.console; typer.main.get_command(typer.Typer(callback=lambda: None))")
MOST_S = 0.5
COMMANDS = (("verify",), ("gate",), ("doctor",), ("gold", "check"), ("alerts", "list"))


def cpu_s(*arguments: str) -> float:
    """Processor time of one Python process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the medians; exit code 1 when the target is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=11)
    given = options.parse_args()
    pairs = [(cpu_s(*LIBRARY), cpu_s(*LOOKOUT, "--help")) for _ in range(given.pairs)]
    library, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"Python with typer: {library:.2f} s; lookout --help: {ours:.2f} s, at most {MOST_S:g} s")
    for command in COMMANDS:
        print(f"lookout {' '.join(command)} --help: {cpu_s(*LOOKOUT, *command, '--help'):.2f} s")
    return 0 if ours <= MOST_S else 1


if __name__ == "__main__":
    sys.exit(main())
