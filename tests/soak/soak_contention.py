"""Five processes append to a warehouse for a minute while others load it, read it, or keep its file open.

    python -m tests.soak.soak_contention --seconds 60 [--write docs/warehouse.md]

No process may fail, no append may take longer than a second, and at the end every row must exist once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.figures import measured_where, write_section
from tests.warehouse.contention import run_together
from tests.warehouse.crash_worker import Plan, open_store, survivors

WRITERS = 5
MAX_WAIT_MS = 1000.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=None, help="where the warehouse is made; a real disk")
    parser.add_argument(
        "--write", type=Path, default=None, help="a document whose section figures:contention is renewed"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        good, lines = contend(Path(name), asked.seconds)
    if asked.write:
        write_section(asked.write, "contention", [measured_where(), "", *lines])
    return 0 if good else 1


def contend(folder: Path, seconds: int) -> tuple[bool, list[str]]:
    """Run all processes for ``seconds`` seconds. Return whether the result is correct, and the figures."""
    open_store(Plan(folder, 1)).load_pending(10)
    parts = [("write_for", seconds)] * WRITERS + [("load_for", seconds), ("read", 0), ("read", 0), ("hold", 0)]
    saw = run_together(folder, parts)
    lines = [f"- {role}: {', '.join(f'{key} {value}' for key, value in each.items())}" for role, each in saw]
    counts = [int(str(each["appended"])) for role, each in saw if role == "write_for"]
    longest_ms = max(float(str(each["longest_ms"])) for role, each in saw if role == "write_for")
    appended = {f"case p{process}-{number}" for process, count in enumerate(counts) for number in range(count)}
    wrong = survivors(Plan(folder, 2), appended)
    summary = (
        f"{WRITERS} processes appended for {seconds} s: {sum(counts)} appends, of which the longest took "
        f"{longest_ms:.0f} ms. No process failed. "
        f"{'Every row is stored once' if not wrong else 'ROWS ARE WRONG'}."
    )
    lines = [summary, "", *lines]
    print("\n".join([*lines, *wrong]), flush=True)
    return not wrong and longest_ms <= MAX_WAIT_MS, lines


if __name__ == "__main__":
    sys.exit(main())
