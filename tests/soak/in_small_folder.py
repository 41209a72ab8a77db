"""Run a command on a small file system that becomes full, then run it again with enough space.

python -m tests.soak.in_small_folder FOLDER SPARE_KB WORDS…

``FOLDER`` is the data folder. It is copied to a file system that has ``SPARE_KB`` kilobytes more than the folder
needs. The program prints a JSON list of four records, each with an exit code and the output: the first run of the
command, the second run, `warehouse check`, and a query that counts the results.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.deployments.cli.in_read_only import mount_small, resize

ROOM_KB = 400_000


def main() -> None:
    """Mount the file system, run the command, free space, and run the command again."""
    folder, spare_kb, words = Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        shutil.copytree(folder, whole)
        mount_small(folder, ROOM_KB)
        shutil.copytree(whole, folder, dirs_exist_ok=True)
        disk = os.statvfs(folder)
        resize(folder, (disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024 + spare_kb)
        os.chdir(folder.parent)
        answers = [run(words)]
        resize(folder, ROOM_KB)
        answers += [
            run(words),
            run(["warehouse", "check", "--data-folder", folder.name]),
            run(["sql", "select count(*) as results from results", "--json", "--data-folder", folder.name]),
        ]
        print(json.dumps(answers))


def run(words: list[str]) -> dict[str, object]:
    """Run a command and return its result."""
    done = subprocess.run(
        [sys.executable, "-m", "deployments.cli.app", *words], capture_output=True, text=True, check=False
    )
    return {"code": done.returncode, "output": done.stdout[-500:], "errors": done.stderr[-500:]}


if __name__ == "__main__":
    main()
