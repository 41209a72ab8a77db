"""Measure the branch coverage of the product by folder: ``make coverage`` runs the tests and prints the table.

The coverage data stays in ``.cache/coverage``. It contains the tests that ran each line, for ``make mutants``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("monitors", "flows", "warehouse", "deployments")
FOLDER = ROOT / ".cache" / "coverage"
DATA, JUNIT, BRANCHES = FOLDER / "data", FOLDER / "junit.xml", FOLDER / "branches.json"
NOTABLE_LOSS = 1.0
"""The decrease of a folder's coverage, in percentage points, above which `main` returns 1."""

# No patch=subprocess: it would hand the context of the first test on to every process. COVERAGE_PROCESS_START has each
# process read this file itself, with the test of its own start.
SETTINGS = """\
[run]
branch = true
parallel = true
source = {source}
context = ${{COVERAGE_TEST-}}
patch = fork, _exit
sigterm = true
data_file = {parts}/data
disable_warnings = no-data-collected, module-not-measured, module-not-imported, already-imported, couldnt-parse,
    trace-changed, no-sysmon, no-ctracer, dynamic-conflict
"""


def measure(arguments: Sequence[str], root: Path = ROOT, folder: Path = FOLDER) -> int:
    """Run pytest and measure the coverage, including child processes. Return pytest's exit code.

    The coverage data and the durations of the tests are stored in ``folder``, whose earlier content is deleted.
    """
    shutil.rmtree(folder, ignore_errors=True)
    parts = folder / "parts"
    parts.mkdir(parents=True)
    settings = folder / "coverage.ini"
    source = ",".join(str(root / name) for name in PRODUCT)
    settings.write_text(SETTINGS.format(source=source, parts=parts), encoding="utf-8")
    plugin = ["-p", "tests.tools.coverage_contexts", f"--junitxml={folder / 'junit.xml'}"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, *arguments]
    environment = os.environ | {"COVERAGE_PROCESS_START": str(settings)}
    code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    combined = coverage.Coverage(data_file=str(folder / "data"), config_file=False)
    combined.combine([str(parts)])
    combined.save()
    return code


def branches_by_folder(data: Path, root: Path = ROOT) -> dict[str, tuple[int, int]]:
    """Return two counts for each folder (two levels deep) and for ``total``: branches and covered branches.

    Files that no test imported are included.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy, report = Path(folder) / "data", Path(folder) / "report.json"
        shutil.copy(data, copy)
        stored = coverage.CoverageData(str(copy))
        stored.read()
        stored.touch_files([str(path) for name in PRODUCT for path in (root / name).rglob("*.py")])
        stored.close()
        measured = coverage.Coverage(data_file=str(copy), config_file=False, branch=True)
        measured.load()
        measured.json_report(outfile=str(report), ignore_errors=True)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    branches, covered = Counter[str](), Counter[str]()
    for name, file in files.items():
        path = Path(name)
        parts = (
            path.relative_to(root) if path.is_absolute() else Path(os.path.relpath(path.resolve(), root))
        ).parts
        for key in ("/".join(parts[:-1][:2]), "total"):
            branches[key] += file["summary"]["num_branches"]
            covered[key] += file["summary"]["covered_branches"]
    return {key: (branches[key], covered[key]) for key in sorted(branches, key=lambda key: (key == "total", key))}


def percent(counts: Sequence[int]) -> float:
    """Return the percentage of covered branches, or 100 if there are no branches."""
    branches, covered = counts
    return 100 * covered / branches if branches else 100.0


def format_table(now: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> str:
    """Return a table with one line per folder: branches, coverage in percent, and the change since ``before``."""
    lines = [f"{'folder':<34} {'branches':>8} {'covered':>8} {'percent':>8} {'before':>8} {'change':>7}"]
    for folder in dict.fromkeys([*now, *before]):
        counts, old = now.get(folder), before.get(folder)
        cells = [
            f"{folder:<34}",
            f"{counts[0]:>8} {counts[1]:>8} {percent(counts):>8.1f}" if counts else f"{'gone':>26}",
        ]
        if old is not None:
            cells.append(f"{percent(old):>8.1f}")
        if old is not None and counts is not None:
            cells.append(f"{percent(counts) - percent(old):>+7.1f}")
        lines.append(" ".join(cells))
    return "\n".join(lines) + "\n"


def losses(now: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the folders whose coverage fell by more than `NOTABLE_LOSS`."""
    return [key for key in now if key in before and percent(before[key]) - percent(now[key]) > NOTABLE_LOSS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests and print the table. With ``--data``, read existing data instead of running the tests.

    Returns 1 if tests failed, or if the coverage of a folder fell by more than `NOTABLE_LOSS`.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout that the data is about")
    parser.add_argument("--data", type=Path, help="data that was measured before, instead of a run of the tests")
    parser.add_argument("--against", type=Path, help="a branches.json of an earlier run")
    parser.add_argument("--write", type=Path, default=BRANCHES, help="where to write branches.json")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, behind --")
    options = parser.parse_args(arguments)
    code = 0 if options.data else measure(options.pytest)
    now = branches_by_folder(options.data or DATA, options.tree.resolve())
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.write.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    before = json.loads(options.against.read_text(encoding="utf-8")) if options.against else {}
    print(format_table(now, before))
    lost = losses(now, before)
    if lost:
        print(f"More than {NOTABLE_LOSS:g} point lost: {', '.join(lost)}")
    return 1 if code or lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
