"""Record the product functions that a census worker calls, and name the functions of a profile.

In the census, rules check all conversations of a night. This module imports almost nothing, like the worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from flows.nightly.census_worker import run_census_worker

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("flows", "monitors", "warehouse", "deployments")
COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

WORKER: Final = "tests.tools.entered_functions"
RECORD_VARIABLE: Final = "LOOKOUT_TEST_ENTERED_FUNCTIONS"
"""The environment variable with the path of the file to which a worker appends each function that it enters.

Each function is written immediately, because the worker is killed at the end of the run.
"""

Function = tuple[str, str]
"""The path of a module relative to the root, and the qualified name of a function in it."""


def name_function(code: CodeType) -> Function | None:
    """Return the module path and the qualified name of a product function, or ``None`` for other code.

    Comprehensions and generator expressions also give ``None``: they count as part of their function.
    """
    path = code.co_filename.removeprefix(f"{ROOT}/")
    is_product = path.partition("/")[0] in PACKAGES and code.co_name not in COMPREHENSIONS
    return (path, code.co_qualname) if is_product else None


def _run_recorded_worker() -> None:
    functions: set[Function] = set()
    with Path(os.environ[RECORD_VARIABLE]).open("a", encoding="utf-8", buffering=1) as file:

        def note(frame: FrameType, event: str, _: object) -> None:
            function = name_function(frame.f_code) if event == "call" else None
            if function is not None and function not in functions:
                functions.add(function)
                file.write("\t".join(function) + "\n")

        sys.setprofile(note)
        run_census_worker(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _run_recorded_worker()
