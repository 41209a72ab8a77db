"""A test that fails beside others and passes alone is named and lets the change pass; what fails alone does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.unsteady import main

FAILS_ONCE = """
from pathlib import Path

def test_once():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
FAILS = "def test_always():\n    assert False\n"
HOLDS = "def test_well():\n    assert True\n"


def run_in(folder: Path, **modules: str) -> None:
    """A folder with these test modules, run once as `make test` would."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, source in modules.items():
        (folder / f"test_{name}.py").write_text(source)
    subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=folder, check=False, capture_output=True)


def test_what_passes_alone_is_named(tmp_path, capfd):
    run_in(tmp_path, unsteady=FAILS_ONCE, sound=HOLDS)
    assert main(tmp_path) == 0
    assert "Mend these:\n  test_unsteady.py::test_once" in capfd.readouterr().out


@pytest.mark.parametrize(
    "modules",
    [
        {"broken": FAILS},
        {"broken": FAILS, "unsteady": FAILS_ONCE},
        {f"unsteady_{number}": FAILS_ONCE for number in range(9)},
        {"sound": HOLDS},
    ],
    ids=["alone too", "one of them alone too", "many at once", "nothing noted"],
)
def test_everything_else_is_a_failure(tmp_path, modules):
    run_in(tmp_path, **modules)
    assert main(tmp_path) == 1
