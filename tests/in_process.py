"""Run ``lookout`` in the tests' own process, to test arguments, messages, files and exit codes.

This takes a tenth of the time of a forked command. Use `fork_server` for a command that needs Prefect, a browser,
signals, a terminal, or variables that modules read at import.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from deployments.cli.app import main


def run_in_process(
    *arguments: str, cwd: Path, env: Mapping[str, str], given: str | bytes = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``lookout`` in this process, and return its exit code, output and errors, like `fork_server.run`.

    ``env`` is the complete environment of the command.
    """
    typed = given.encode(errors="surrogateescape") if isinstance(given, str) else given
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"),
        "stdout": io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True),
        "stderr": io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["lookout", *arguments])
        patch.setitem(
            sys.modules, "__main__", ModuleType("__main__")
        )  # whose package would stand in the help's usage
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        for name in set(os.environ) - set(env):
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            code = main() or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    out, err = (streams[name].buffer.getvalue().decode(errors="surrogateescape") for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess([*arguments], code, out, err)
