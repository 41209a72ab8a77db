"""A pytest plugin that stores which test ran each line, so that the tests of a line can be found.

Load it with ``-p tests.tools.coverage_contexts``. A process that a test starts finds the test's name in
COVERAGE_TEST, which is the static context in the configuration (`branch_coverage`); a process of the fork server
calls `name_context`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import coverage
import pytest

_PHASE = re.compile(r"(\|(run|setup|teardown)| \((call|setup|teardown)\))$")
"""The suffix that pytest-cov and pytest's variable PYTEST_CURRENT_TEST append to a test id."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the whole test, fixtures included, in the test's context."""
    name_context(item.nodeid)
    os.environ["COVERAGE_TEST"] = item.nodeid
    try:
        return (yield)
    finally:
        del os.environ["COVERAGE_TEST"]
        name_context("")


def name_context(test: str) -> None:
    """Set ``test`` as the context of all following lines of this process, if coverage is measured."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(test)


def named_test(context: str) -> str:
    """Return the test id of a context, or an empty text outside of all tests."""
    test = _PHASE.sub("", context)
    _, inner, rest = test.rpartition("|tests/")
    return f"tests/{rest}" if inner else test.rstrip("|")
