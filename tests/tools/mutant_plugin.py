"""A pytest plugin for `mutants`: run selected tests in order until a time limit, and report each result.

The plugin is copied into the tree under test, so it imports nothing from the project.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

ORDER = {test: place for place, test in enumerate(json.loads(Path(os.environ["MUTANT_TESTS"]).read_text("utf-8")))}
REPORT = Path(os.environ["MUTANT_REPORT"])
SECONDS = float(os.environ["MUTANT_SECONDS"])
BEGUN: list[float] = []


def record(event: str, test: str) -> None:
    """Append an event to the report file. The file remains readable if this process is killed."""
    with REPORT.open("a", encoding="utf-8") as report:
        report.write(json.dumps({"event": event, "test": test}) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select and sort the tests as MUTANT_TESTS lists them. Runs after all other plugins."""
    wanted = [item for item in items if item.nodeid in ORDER]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ORDER])
    items[:] = sorted(wanted, key=lambda item: ORDER[item.nodeid])


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record the start of a test."""
    BEGUN.append(time.monotonic())
    record("begin", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the test as failed if its setup, call or teardown failed."""
    if report.failed:
        record("failed", report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid: str) -> None:
    """Record the end of a test."""
    record("end", nodeid)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the run after this test if MUTANT_SECONDS have passed."""
    if nextitem is not None and time.monotonic() - BEGUN[0] > SECONDS:
        item.session.shouldstop = "the time is over"
