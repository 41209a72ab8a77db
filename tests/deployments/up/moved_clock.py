"""A clock that a test moves forward while Python processes use it."""

from __future__ import annotations

import os
import struct
import subprocess
from datetime import timedelta
from pathlib import Path

from tests.conftest import ROOT

MOVED_CLOCK = Path(__file__).with_name("moved_clock.c")
PRELOADING = """import os, sys

library = os.environ["PYTHON_MOVED_CLOCK_LIBRARY"]
if os.environ.get("LD_PRELOAD") != library:
    os.environ["LD_PRELOAD"] = library
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
"""
"""A `sitecustomize` that sets LD_PRELOAD in each Python process.

Other programs, such as Prefect's server, are started without LD_PRELOAD.
"""


class Clock:
    """A clock that a test moves forward while Python processes use it.

    A process uses this clock if its environment contains ``variables``.
    """

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "moved_clock.so"
        self.set(timedelta())
        compile_it = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(MOVED_CLOCK), "-ldl"]
        subprocess.run(compile_it, check=True, capture_output=True, timeout=120)
        preloading = folder / "preloading"
        preloading.mkdir()
        (preloading / "sitecustomize.py").write_text(PRELOADING, encoding="utf-8")
        self.variables = {
            "PYTHONPATH": f"{preloading}{os.pathsep}{ROOT}",
            "PYTHON_MOVED_CLOCK": str(self._file),
            "PYTHON_MOVED_CLOCK_LIBRARY": str(library),
        }

    def set(self, ahead: timedelta) -> None:
        """Set how far the clock is ahead of the real time. Running processes see the change at once."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("@l", round(ahead.total_seconds())))
