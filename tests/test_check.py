"""Test that `make check` finds the changed files: committed or not, new or edited, on a branch or on main."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools.check import folders_to_test, touched


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments], check=True
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    for folder in ("monitors/alerts", "monitors/gate", "tests/monitors/alerts", "tests/monitors"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for name in ("monitors/alerts/send.py", "monitors/gate/decide.py", "README.md"):
        (tmp_path / name).write_text("old\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "README.md").write_text("second\n")
    git(tmp_path, "commit", "-qam", "second")
    return tmp_path


def test_on_a_branch_all_that_it_changed_is_touched_committed_or_not(checkout):
    git(checkout, "checkout", "-qb", "mine")
    (checkout / "monitors/alerts/send.py").write_text("new\n")
    git(checkout, "commit", "-qam", "third")
    (checkout / "monitors/gate/decide.py").write_text("new\n")
    (checkout / "tests/monitors/alerts/test_send.py").write_text("")
    files = touched(checkout)
    assert files == ["monitors/alerts/send.py", "monitors/gate/decide.py", "tests/monitors/alerts/test_send.py"]
    assert folders_to_test(files, checkout) == ["tests/monitors"]
    assert folders_to_test(files[:1], checkout) == ["tests/monitors/alerts"]
    assert folders_to_test(files[2:], checkout) == ["tests/monitors/alerts/test_send.py"]


def test_on_main_it_is_what_is_not_committed_or_else_the_last_commit(checkout):
    assert touched(checkout) == ["README.md"]
    assert folders_to_test(["README.md"], checkout) == []
    (checkout / "monitors/gate/decide.py").write_text("new\n")
    assert touched(checkout) == ["monitors/gate/decide.py"]


def test_a_deleted_file_is_not_checked(checkout):
    (checkout / "monitors/gate/decide.py").unlink()
    assert touched(checkout) == []
