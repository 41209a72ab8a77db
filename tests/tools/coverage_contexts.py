"""A pytest plugin that stores in the coverage data which tests ran each line.

Load it with ``-p tests.tools.coverage_contexts``. A process that a test starts gets the test's id in COVERAGE_TEST,
which the coverage configuration uses as the static context (see `branch_coverage`). A forked command calls
`name_context` instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import coverage
import pytest

_PHASE = re.compile(r"(\|(run|setup|teardown)| \((call|setup|teardown)\))$")
"""The suffix for the phase of a test, such as "setup", after a test id from pytest-cov or PYTEST_CURRENT_TEST."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the whole test, including its fixtures, in the coverage context of the test."""
    name_context(item.nodeid)
    os.environ["COVERAGE_TEST"] = item.nodeid
    try:
        return (yield)
    finally:
        del os.environ["COVERAGE_TEST"]
        name_context("")


def name_context(test: str) -> None:
    """Set the coverage context of this process to ``test``. Do nothing if coverage is not measured."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(test)


def named_test(context: str) -> str:
    """Return the test id in a coverage context, or an empty text if the context belongs to no test."""
    test = _PHASE.sub("", context)
    _, inner, rest = test.rpartition("|tests/")
    return f"tests/{rest}" if inner else test.rstrip("|")
