"""Run all soak tests of this folder one after the other: `make soak`. A soak test runs for minutes or hours.

    python -m tests.soak            all parts
    python -m tests.soak doors up   only these two parts

Each part prints its figures and the seed of its random choices.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = sorted(path.stem.removeprefix("soak_") for path in Path(__file__).parent.glob("soak_*.py"))


def main() -> int:
    """Run the parts, and return the number of failed parts as exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Parts: {', '.join(PARTS)}. Each has options of its own: python -m tests.soak.soak_doors --help",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="a part to run (default: all)")
    parts = parser.parse_args().parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; expected {', '.join(PARTS)}")
    failed = 0
    for name in parts:
        print(f"== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"tests.soak.soak_{name}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
