"""Run one benchmark in this process: ``python -m tests.bench.run_one_bench tests.bench.bench_help``.

A bench ends with its own exit code, which is 0 if every goal was met. If the bench raises an error, or exits with a
text instead of a code, the exit code is 70.
"""

from __future__ import annotations

import runpy
import sys
import traceback

CRASHED = 70
"""The exit code of a bench that crashed: EX_SOFTWARE of sysexits.h. No bench misses that many goals."""


def main(module: str) -> int:
    """Run ``module`` as ``python -m`` would, without options."""
    sys.argv = [module]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return CRASHED
        return ended.code or 0
    except Exception:  # noqa: BLE001 - whatever it was, it is named in the table
        traceback.print_exc()
        return CRASHED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
