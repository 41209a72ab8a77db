"""Home folders for Prefect servers. Each contains a database, which saves 3 s of CPU time at the first start."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
MADE = ROOT / ".cache" / "prefect"


def with_tables(home: Path) -> Path:
    """Copy an empty, migrated Prefect database into the folder ``home``, and return ``home``.

    The database is created once for each version of Prefect and cached in ``.cache``.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(_database(), home / "prefect.db")
    return home


def _database() -> Path:
    MADE.mkdir(parents=True, exist_ok=True)
    file = MADE / f"{version('prefect')}.db"
    with (MADE / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=MADE) as folder:
                _make(Path(folder) / "whole.db", Path(folder))
                (Path(folder) / "whole.db").replace(file)
    return file


def _make(whole: Path, home: Path) -> None:
    """Create a database in ``home`` with Prefect's command, and copy it to the file ``whole``.

    The copy is a single file, without a write-ahead log.
    """
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    variables = os.environ | {"PREFECT_HOME": str(home)}
    subprocess.run(command, env=variables, check=True, capture_output=True)
    with closing(sqlite3.connect(home / "prefect.db")) as made, closing(sqlite3.connect(whole)) as copy:
        made.backup(copy)
