"""A pytest plugin that stores which test ran each line, so that the tests of a line can be found.

``-p tests.tools.coverage_contexts``. Processes that a test starts find its name in COVERAGE_TEST, which is the static context
in the configuration (`branch_coverage`); one that the fork server forks calls `name_context`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import coverage
import pytest

_PHASE = re.compile(r"(\|(run|setup|teardown)| \((call|setup|teardown)\))$")
"""What pytest-cov, and pytest's own variable PYTEST_CURRENT_TEST, add to a test's id."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure all of a test, fixtures included, in the test's context."""
    name_context(item.nodeid)
    os.environ["COVERAGE_TEST"] = item.nodeid
    try:
        return (yield)
    finally:
        del os.environ["COVERAGE_TEST"]
        name_context("")


def name_context(test: str) -> None:
    """Count what this process runs from now on for ``test``; nothing where no coverage is measured."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(test)


def named_test(context: str) -> str:
    """The test's id in a context; an empty text for what ran outside of all tests."""
    test = _PHASE.sub("", context)
    _, inner, rest = test.rpartition("|tests/")
    return f"tests/{rest}" if inner else test.rstrip("|")
