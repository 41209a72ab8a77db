"""Run the tests that failed in the last run once more, one by one, as `.ci/run` does before it fails.

If a change has a fault, its test also fails alone. A test that fails only beside others is printed as flaky and
must be fixed. `docs/decisions/two-test-tiers.md` says why it does not block an unrelated change.

    python -m tests.tools.repeat_failures
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

MAX_REPEATED: Final = 10
"""The maximum number of tests that are repeated. A busy machine alone does not make more tests fail."""


def read_failed(cache: Path) -> list[str]:
    """Return the node ids of the tests that failed in the last run, from pytest's cache.

    Return an empty list before the first run.
    """
    try:
        failed = json.loads((cache / "v" / "cache" / "lastfailed").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return sorted(test for test, is_failed in failed.items() if is_failed)


def repeat_failures(root: Path) -> int:
    """Run each failed test alone, and print the flaky ones. Returns 0 if all passed, else 1."""
    failed = read_failed(root / ".pytest_cache")
    if not 0 < len(failed) <= MAX_REPEATED:
        print(f"{len(failed)} tests failed; one to {MAX_REPEATED} of them would be run once more, alone.")
        return 1
    command = [sys.executable, "-m", "pytest", "-n", "0", "--tier", "whole", *failed]
    if subprocess.run(command, cwd=root, check=False).returncode != 0:
        return 1
    print("Not steady, to be fixed: failed beside other tests, passed alone:", *failed, sep="\n  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(repeat_failures(Path(__file__).resolve().parents[2]))
