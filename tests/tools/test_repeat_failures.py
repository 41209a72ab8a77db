"""Test that a few failed tests are repeated, and that many failed tests are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.repeat_failures import MAX_REPEATED, read_failed, repeat_failures

STEADY = "def test_counts():\n    assert 1 + 1 == 2\n"
BROKEN = "def test_counts():\n    assert 1 + 1 == 3\n"


def write_checkout(root: Path, source: str, *failed: str) -> Path:
    """Write a checkout with one test file, and with ``failed`` as the failed tests in pytest's cache."""
    (root / "conftest.py").write_text('def pytest_addoption(parser):\n    parser.addoption("--tier")\n')
    (root / "test_count.py").write_text(source)
    cache = root / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    return root


@pytest.mark.whole_only
@pytest.mark.parametrize(("source", "code"), [(STEADY, 0), (BROKEN, 1)])
def test_a_test_that_passes_alone_is_named_and_one_that_fails_again_fails(tmp_path, source, code, capfd):
    root = write_checkout(tmp_path, source, "test_count.py::test_counts")
    assert repeat_failures(root) == code
    assert ("Not steady" in capfd.readouterr().out) == (code == 0)


def test_more_failures_than_that_are_not_repeated(tmp_path):
    root = write_checkout(
        tmp_path, STEADY, *(f"test_count.py::test_{number}" for number in range(MAX_REPEATED + 1))
    )
    assert repeat_failures(root) == 1


def test_a_run_that_broke_before_its_first_test_is_not_repeated(tmp_path):
    assert read_failed(tmp_path / ".pytest_cache") == []
    assert repeat_failures(write_checkout(tmp_path, STEADY)) == 1
