"""Run every soak of this folder, one process after the other: `make soak`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run them all; the exit code is the number of those that failed."""
    failed = 0
    for path in sorted(Path(__file__).parent.glob("soak_*.py")):
        print(f"== {path.stem}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"tests.soak.{path.stem}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
