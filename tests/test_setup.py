"""Test the set-up of a new machine: the lock files are consistent, and an old Python is rejected with an error."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.stable_text import replace_volatile

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
    """All lock files contain the same version of a package, and this is the pinned version.

    The lock files of the zoo (the test applications) are excepted: each has its own environment.
    """
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


@pytest.mark.whole_only
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_prefects_server_builds_with_the_fastapi_that_is_pinned():
    """Prefect's server application can be created with the pinned version of FastAPI.

    Remove the pin when this also works with the newest version.
    """
    from prefect.server.api.server import create_app

    assert create_app(ignore_cache=True).routes


START = ROOT / "deployments" / "start.py"


@pytest.mark.parametrize(
    ("program", "to_do"),
    [
        ("exec(open({start!r}).read())", "make PYTHON="),
        ("from deployments.start import main; main()", "uv tool install"),
    ],
    ids=["make", "lookout"],
)
@pytest.mark.parametrize("version", ["2.7.18", "3.6.9", "3.10.14"])
def test_an_old_python_is_refused_in_plain_words(version, program, to_do, snapshot):
    """With a Python that is too old, the program exits with code 2.

    It prints the required version, the installed version and the next command, but no traceback.
    """
    numbers = tuple(int(part) for part in version.split("."))
    given = f"import sys; sys.version_info = {numbers!r}; {program.format(start=str(START))}"
    done = subprocess.run([sys.executable, "-c", given], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert to_do in done.stderr
    assert replace_volatile(done.stderr, python=sys.executable, version=version) == snapshot


def test_ctrl_c_during_the_imports_prints_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import deployments.start as start; start.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


@pytest.mark.whole_only
def test_the_check_of_python_runs_on_any_python():
    """The version check in `deployments/start.py` uses only syntax and imports that every Python supports.

    It has, for example, no annotations and no f-strings. It is also run with each old Python on this machine.
    """
    tree = ast.parse(START.read_text(encoding="utf-8"))
    newer = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.AsyncFunctionDef,
        ast.Match,
        ast.Starred,
        ast.Nonlocal,
    )
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, newer)] == []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    of_python_3 = [
        one.returns or one.args.kwonlyargs or any(arg.annotation for arg in one.args.args) for one in functions
    ]
    assert functions
    assert not any(of_python_3)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [name.name for node in imports for name in node.names] == ["os", "sys"]
    old = [f"python{version}" for version in ("2", "2.7", "3.6", "3.7", "3.8", "3.9", "3.10")]
    for python in filter(None, map(shutil.which, old)):  # whatever old ones this machine has
        known = subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0
        done = subprocess.run([python, START], capture_output=True, text=True, check=False)
        assert not known or (done.returncode, "Traceback" in done.stderr) == (2, False), python


def test_the_demos_library_is_the_same_as_an_extra_and_in_the_lock():
    """The extra `demo` and the lock file contain the same version of the demo's package.

    Therefore `lookout demo` works the same from an installed wheel and from a checkout.
    """
    (extra,) = PROJECT["project"]["optional-dependencies"]["demo"]
    assert extra in PROJECT["dependency-groups"]["demo"]
    assert f"\n{extra} " in (ROOT / "requirements" / "demo.lock").read_text(encoding="utf-8")
