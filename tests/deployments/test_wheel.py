"""What is installed from a wheel works: nothing of the checkout is there, neither the tests nor a file left out."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.tools.shape import product_files

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pathlib, sys
site = pathlib.Path(sys.argv[1])
for path in sorted(site.rglob("*.py")):
    parts = path.relative_to(site).with_suffix("").parts
    if parts[-1] not in ("__init__", "__main__"):
        importlib.import_module(".".join(parts))
assert not [name for name in sys.modules if name.split(".")[0] == "tests"]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the built wheel puts into an environment."""
    built = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built / "site")
    return built / "site"


def test_every_file_of_the_product_is_there(installed: Path):
    """A domain pack, a prompt or a template that stays behind is missed only where it is installed."""
    assert [name for name in product_files() if not (installed / name).exists()] == []


def in_it(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the wheel and the libraries: those on the path are searched, their ``.pth`` files are not read."""
    return subprocess.run(
        [sys._base_executable, *arguments],  # type: ignore[attr-defined] - the one without our environment
        cwd=cwd,
        env={
            "PYTHONPATH": os.pathsep.join((str(installed), sysconfig.get_path("purelib"))),
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_module_can_be_imported(installed: Path, tmp_path: Path):
    done = in_it(installed, "-c", IMPORT_ALL, str(installed), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_commands_find_their_files(installed: Path, tmp_path: Path):
    for command in (
        ("init", "--target", "https://bot.example.com/", "--environment", "staging", "--no-ask", "--yes"),
        ("gold", "check", "suite.jsonl"),
        ("gold", "starter", "adversarial", "--out", "attacks.jsonl"),
        ("gold", "starter", "domain"),
    ):
        done = in_it(installed, "-m", "deployments.cli.app", *command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stdout + done.stderr)
