"""What failed beside other tests, once more and alone: ``make unsteady``, after ``make test``.

A browser or a server that starves on a busy machine fails a test that holds alone. Such a test is unsteady: it is named
here, and is to be mended, but a change is not held back by it. What fails alone too, or more than a few at once, is a
failure of the change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 8
"""So many may be unsteady in one run, as the tests of one server that starved are; of more the run itself is to blame."""


def failed(root: Path = ROOT) -> list[str]:
    """The node ids that the last run of pytest under ``root`` noted as failed; none where it noted nothing."""
    noted = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(noted.read_text(encoding="utf-8"))) if noted.is_file() else []


def again(tests: list[str], root: Path = ROOT) -> int:
    """Run these alone, one after the other; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-v", *tests]
    return subprocess.run(command, cwd=root, check=False).returncode


def main(root: Path = ROOT) -> int:
    """0 where all that failed holds alone and is little, else 1."""
    tests = failed(root)
    if not tests:
        print("No test is noted as failed: the run itself broke off.")
        return 1
    if len(tests) > MOST:
        print(f"{len(tests)} tests failed; {MOST} may be unsteady.")
        return 1
    if again(tests, root):
        return 1
    print("Unsteady, failed beside others and passed alone. Mend these:", *tests, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
