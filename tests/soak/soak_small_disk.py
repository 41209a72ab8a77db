"""Fill the disk during each command that writes: the command reports this, loses nothing, and can be repeated.

    python -m tests.soak.soak_small_disk --minutes 10 --seed 1 [--command rebuild]

The data folder is on a file system with a random number of spare kilobytes. The command must succeed, or end with
exit code 4 and a message that names the disk. Then it runs with enough space: it must succeed, the check must find
no fault in the warehouse, and no result may be lost. A disk that becomes full during a verification or a nightly
run is tested in `tests/flows/test_disk_faults.py`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deployments.cli.exit_codes import ExitCode
from tests.conftest import ROOT
from tests.soak.soak_files import RESULTS
from tests.soak.writing_commands import (
    COMMANDS,
    ENVIRONMENT,
    WAITING_RESULTS,
    build_arguments,
    parse_options,
    prepare_folder,
)

MAX_SPARE_KB = 6_000
"""The maximum free space in kB. A rebuild needs about this much; most commands need a few blocks.

Half of the disks have less than 80 kB to spare.
"""
DISK_WORDS = ("full", "space", "disk", "free")


def run_on_small_disk(name: str, folder: Path, spare_kb: int) -> list[dict[str, Any]]:
    """Run the command with ``spare_kb`` kilobytes of free space, then with much more.

    Return the list that `tests.soak.in_small_folder` prints: the records of both runs, of the check and of the
    results.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.in_small_folder", "data", str(spare_kb), *build_arguments(name)],
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{name}: a small file system cannot be mounted: {done.stderr[-500:]}")
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def find_faults(answers: list[dict[str, Any]]) -> Iterator[str]:
    """Return the faults in the records that `run_on_small_disk` returned."""
    first, again, check, counts = answers
    if first["code"] not in {0, int(ExitCode.MONITOR)} or "fault of Lookout itself" in first["errors"]:
        yield f"with little room it ends with {first['code']}: {first['errors']}"
    if first["code"] != 0 and not any(word in first["errors"] for word in DISK_WORDS):
        yield f"the disk is not named: {first['errors']}"
    if again["code"] != 0:
        yield f"with room again it ends with {again['code']}: {again['errors']}{again['output']}"
    if check["code"] != 0:
        yield f"the check ends with {check['code']}: {check['output']}"
    if json.loads(counts["output"] or "{}").get("results") != RESULTS + WAITING_RESULTS:
        yield f"results are lost: {counts['output']}{counts['errors']}"


def main() -> int:
    """Fill disks for ``--minutes`` minutes, and print the counts."""
    options = parse_options(__doc__)
    chance, end = random.Random(options.seed), time.monotonic() + options.minutes * 60
    names = [options.command] if options.command else [name for name in COMMANDS if name != "freeze"]
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    faults = 0
    print(f"seed {options.seed}, commands: {', '.join(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        prepare_folder(source)
        while time.monotonic() < end:
            name, spare_kb = names[done.total() % len(names)], int(MAX_SPARE_KB ** chance.random()) - 1
            place = Path(folder) / "place"
            shutil.copytree(source, place)
            answers = run_on_small_disk(name, place, spare_kb)
            shutil.rmtree(place)
            done[name] += 1
            refused[name] += answers[0]["code"] != 0
            for text in find_faults(answers):
                faults += 1
                print(f"WRONG {name}, {spare_kb} kB to spare: {text}", flush=True)
    shown = ", ".join(f"{name} {refused[name]} of {done[name]}" for name in names)
    print(f"{done.total()} small disks, {refused.total()} too small ({shown}), {faults} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
