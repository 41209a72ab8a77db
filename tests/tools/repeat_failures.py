"""Repeat the tests that failed in the last run, without parallel workers. `.ci/run` calls this before it fails.

A test that fails because of the change fails again. A test that now passes is printed as flaky, and must be fixed.
`docs/decisions/two-test-tiers.md` explains why a flaky test does not block an unrelated change.

    python -m tests.tools.repeat_failures
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

MAX_REPEATED: Final = 10
"""The maximum number of tests to repeat. If more tests fail, the reason is not only a busy machine."""


def read_failed(cache: Path) -> list[str]:
    """Return the node ids of the tests that failed in the last run, or an empty list if no run has failed yet.

    ``cache`` is pytest's cache folder.
    """
    try:
        failed = json.loads((cache / "v" / "cache" / "lastfailed").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return sorted(test for test, is_failed in failed.items() if is_failed)


def repeat_failures(root: Path) -> int:
    """Repeat the failed tests in one process. If all pass, print them as flaky and return 0, else return 1.

    More than `MAX_REPEATED` failed tests are not repeated.
    """
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
