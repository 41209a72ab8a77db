"""Measure Lookout's accuracy on labelled sets, and write the page with the figures.

    python -m tests.accuracy DATA_FOLDER OUT_FILE --date 2026-01-31 --commit abc1234 [--only set …]

Every module of ``tests/accuracy/sets/`` is found automatically. Each of these modules defines ``NAME`` and
``measure(data: Path) -> Measured``. The exit code is 0 if the page was written, and 2 if the data folder is
missing.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

from tests.accuracy.document import render_page
from tests.accuracy.figure import Measured

SETS = Path(__file__).parent / "sets"


def main(arguments: list[str]) -> int:
    """Measure every set, or the sets in ``--only``. Print the figures and write the page."""
    asked = _parse_arguments(arguments)
    if not asked.data.is_dir():
        print(f"{asked.data}: no such folder. The labelled data lies beside the project and is not part of it.")
        return 2
    measured = _measure_sets(asked.data, set(asked.only))
    page = render_page(measured, date=asked.date, commit=asked.commit)
    if str(asked.out) == "-":
        print(page)
        return 0
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(page, encoding="utf-8")
    print(f"written: {asked.out}")
    return 0


def _parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy")
    parser.add_argument("data", type=Path, help="the folder of labelled sets")
    parser.add_argument("out", type=Path, help="the page to write; - prints it")
    parser.add_argument("--date", required=True, help="the day of the measurement")
    parser.add_argument("--commit", required=True, help="the commit that was measured")
    parser.add_argument("--only", nargs="*", default=[], help="module names under tests/accuracy/sets/")
    return parser.parse_args(arguments)


def _measure_sets(data: Path, only: set[str]) -> dict[str, Measured]:
    measured: dict[str, Measured] = {}
    for module in sorted(pkgutil.iter_modules([str(SETS)]), key=lambda module: module.name):
        if only and module.name not in only:
            continue
        the_set = importlib.import_module(f"tests.accuracy.sets.{module.name}")
        measured[the_set.NAME] = the_set.measure(data)
        for figure in measured[the_set.NAME].figures:
            met = {None: "", True: "met", False: "MISSED"}[figure.met]
            print(f"{figure.set:24} {figure.what:60} {figure.value:.3f}  n={figure.count:<5} {met}")
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
