"""A pytest plugin that stores which tests ran each line, so that the tests of a line can be found.

Load it with ``-p tests.tools.coverage_contexts``. If a test starts a process, the process finds the name of the
test in COVERAGE_TEST. The coverage configuration uses this variable as the static context (see `branch_coverage`).
A process of the fork server calls `name_context`.
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
    """Measure the whole test, including its fixtures, in the coverage context of the test."""
    name_context(item.nodeid)
    os.environ["COVERAGE_TEST"] = item.nodeid
    try:
        return (yield)
    finally:
        del os.environ["COVERAGE_TEST"]
        name_context("")


def name_context(test: str) -> None:
    """If coverage is measured, set ``test`` as the context of all lines that this process runs from now on."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(test)


def named_test(context: str) -> str:
    """Return the test id in a coverage context. Return an empty text if the line ran outside of all tests."""
    test = _PHASE.sub("", context)
    _, inner, rest = test.rpartition("|tests/")
    return f"tests/{rest}" if inner else test.rstrip("|")
