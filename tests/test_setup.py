"""What a fresh machine is given: hashed locks that name no host, and versions that work together."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_hashes_and_no_host_is_named(lock):
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert packages
    assert [p.splitlines()[0] for p in packages if "==" not in p or "--hash=sha256:" not in p] == []


def test_the_locks_agree_with_each_other_and_with_the_pins():
    """The zoo's frameworks clash with them, which is why each has an environment of its own."""
    locks = [lock for lock in LOCKS if not lock.name.startswith("zoo-")]
    versions = [dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock.read_text("utf-8"), re.MULTILINE)) for lock in locks]
    by_name: dict[str, set[str]] = {}
    for name, version in (pair for lock in versions for pair in lock.items()):
        by_name.setdefault(name, set()).add(version)
    assert {name for name, found in by_name.items() if len(found) > 1} <= {"scipy", "numpy"}  # by Python version
    pinned = [d.split("==") for d in PROJECT["project"]["dependencies"] if "==" in d]
    assert {name: by_name[name] for name, _ in pinned} == {name: {version} for name, version in pinned}


def test_the_demo_and_test_applications_are_no_run_time_dependency():
    runtime = (ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8")
    assert not re.search(r"^(gradio|streamlit|pytest|moto)==", runtime, re.MULTILINE)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_prefects_server_builds_with_the_fastapi_that_is_pinned():
    """The pin of FastAPI can go when this still holds with a newer one."""
    from prefect.server.api.server import create_app

    assert create_app(ignore_cache=True).routes


@pytest.mark.parametrize("version", ["2.7.18", "3.6.9", "3.10.14"])
def test_an_old_python_is_told_in_plain_words(version):
    """The check itself must run on any Python: its syntax is that of the oldest."""
    source = (ROOT / "deployments" / "start.py").read_text(encoding="utf-8")
    numbers = tuple(int(part) for part in version.split("."))
    program = f"import sys; sys.version_info = {numbers!r}; exec({source!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"needs Python 3.11 or newer, and {sys.executable} is {version}" in done.stderr
    assert "make PYTHON=" in done.stderr
