"""An installation from a wheel works: it has every file of the product and nothing else from the checkout."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import NamedTuple

import pytest

from flows.server import prefect_server
from tests.deployments.up_process import plant_packages
from tests.flows.few_cases import few_cases
from tests.stable_text import replace_volatile
from tests.tools.shape import PACKAGES, product_files

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
COMMAND_S = 600
IMPORT_ALL = """
import importlib, pathlib, sys
site = pathlib.Path(sys.argv[1])
for package in sys.argv[2:]:
    for path in sorted((site / package).rglob("*.py")):
        parts = path.relative_to(site).with_suffix("").parts
        if parts[-1] not in ("__init__", "__main__"):
            module = importlib.import_module(".".join(parts))
            assert pathlib.Path(module.__file__).is_relative_to(site), module.__file__
assert not [name for name in sys.modules if name.split(".")[0] == "tests"]
"""


class Environment(NamedTuple):
    """A Python environment with the content of the wheel. A ``.pth`` file adds the libraries of the tests.

    The ``.pth`` files of those libraries are not read, so that no path leads to the checkout.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """Return the folder that contains the environment's Python and its scripts."""
        return self.folder / "bin"

    @property
    def site(self) -> Path:
        """Return the folder into which the wheel was unpacked."""
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found

    def run(self, *command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script of this environment in ``cwd``, as in a shell without Lookout's variables."""
        name, *arguments = command
        stay = {name: os.environ[name] for name in ("PATH", "CHROMIUM_PATH") if name in os.environ}
        return subprocess.run(
            [self.bin / name, *arguments],
            cwd=cwd,
            env=stay | {"HOME": str(cwd), "COLUMNS": "160"} | variables,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the built wheel with pip into an empty environment, without a download."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    made = Environment(folder / "own")
    base = sys._base_executable  # type: ignore[attr-defined] - the one without our environment
    subprocess.run([base, "-m", "venv", made.folder], check=True, capture_output=True)
    (made.site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    pip = made.run("python", "-m", "pip", "install", "--no-index", "--no-deps", str(wheel), cwd=folder)
    assert pip.returncode == 0, pip.stdout + pip.stderr
    return made


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a working folder in which another project has packages with the names of Lookout's packages.

    Prefect projects often have such packages.
    """
    plant_packages(tmp_path)
    return tmp_path


def test_every_file_of_the_product_is_there(installed: Environment):
    """The installed wheel contains every file of the product.

    A missing domain pack, prompt or template would otherwise be noticed only by users.
    """
    others = [name for name in product_files() if not name.endswith(".py")]
    assert len(others) > 100
    assert [name for name in product_files() if not (installed.site / name).exists()] == []


def test_the_wheel_brings_its_packages_and_nothing_else(installed: Environment):
    """The wheel has the project's version, and no tests, documents or other top-level names."""
    (info,) = installed.site.glob("lookout_monitor-*.dist-info")
    paths = [Path(one) for one in PathDistribution(info).files or ()]
    assert {path.parts[0] for path in paths} == {*PACKAGES, info.name, ".."}
    assert [str(path) for path in paths if path.parts[0] == ".."] == ["../../../bin/lookout"]
    assert PathDistribution(info).version == VERSION


@pytest.mark.whole_only
def test_every_module_can_be_imported(installed: Environment, tmp_path: Path):
    done = installed.run("python", "-c", IMPORT_ALL, installed.site, *PACKAGES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.whole_only
def test_the_first_commands_find_their_files(installed: Environment, elsewhere: Path):
    """The commands work in a folder in which another project has packages with the same names as Lookout's."""
    for command, said in (
        (("--version",), f"lookout {VERSION}"),
        (("--help",), "Monitor a deployed LLM application"),
        (("init", "--target", "https://bot.example.com/", "--environment", "staging", "--no-ask", "--yes"), ""),
        (("gold", "check", "suite.jsonl"), ""),
        (("gold", "starter", "adversarial", "--out", "attacks.jsonl"), ""),
        (("gold", "starter", "domain"), ""),
        (("prefect-yaml",), "verify-deploy"),
    ):
        done = installed.run("lookout", *command, cwd=elsewhere)
        assert done.returncode == 0, (command, done.stdout + done.stderr)
        assert said in done.stdout


@contextmanager
def without(installed: Environment, libraries: Path, *missing: str) -> Iterator[None]:
    """Hide the libraries ``missing``, or all libraries if none is given, during the ``with`` block."""
    listed = installed.site / "libraries.pth"
    here = listed.read_text(encoding="utf-8")
    libraries.mkdir()
    for path in Path(here.strip()).iterdir() if missing else ():
        if re.split(r"[.-]", path.name)[0] not in missing:
            (libraries / path.name).symlink_to(path)
    listed.write_text(f"{libraries}\n", encoding="utf-8")
    yield
    listed.write_text(here, encoding="utf-8")


@pytest.mark.whole_only
@pytest.mark.parametrize(
    ("missing", "command", "to_install"),
    [
        ((), ("--help",), ["typer>=0.15", "duckdb==2.0.0", "fastapi<0.151"]),
        (("duckdb",), ("sql", "from runs"), ["duckdb==2.0.0"]),
        (("gradio",), ("demo",), ["gradio==6.31.0"]),
        (("annotated_types",), ("facts",), ["pydantic>=2.12"]),
    ],
    ids=["all", "one", "one of an extra", "one of another library"],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    installed: Environment, tmp_path: Path, *, missing, command, to_install, snapshot
):
    """If a library is missing, two lines name it, the environment, and the command that installs the library.

    The command works as printed. The exit code is 2.
    """
    with without(installed, tmp_path / "libraries", *missing):
        done = installed.run("lookout", *command, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    explanation, typed = done.stderr.splitlines()
    assert replace_volatile(explanation, installed.folder) == snapshot
    python, *install = shlex.split(typed)
    assert Path(python).parent == installed.bin
    assert install[:3] == ["-m", "pip", "install"]
    assert set(to_install) <= set(install)
    assert (len(install) == 4) is (missing in {("duckdb",), ("gradio",)})


def test_a_library_of_another_version_is_named(installed: Environment, tmp_path: Path, snapshot):
    """If the version of a library lacks what Lookout needs, the printed command installs a suitable version."""
    with without(installed, tmp_path / "libraries", "rich"):
        (tmp_path / "libraries" / "rich").mkdir()
        (tmp_path / "libraries" / "rich" / "__init__.py").touch()
        (tmp_path / "libraries" / "rich-1.0.dist-info").mkdir()
        (tmp_path / "libraries" / "rich-1.0.dist-info" / "METADATA").write_text("Name: rich\nVersion: 1.0\n")
        done = installed.run("lookout", "--help", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    explanation, typed = done.stderr.splitlines()
    explanation = re.sub(r"'rich\.\w+'", "MODULE", explanation)  # the first module of rich that is imported
    assert replace_volatile(explanation, installed.folder) == snapshot
    assert shlex.split(typed)[-1] == "rich>=13"


def test_without_pip_the_printed_command_uses_uv(installed: Environment, tmp_path: Path):
    """Without pip, as in an environment of `uv tool install`, the printed command uses uv."""
    pip = installed.site / "pip"
    pip.rename(tmp_path / "pip")
    with without(installed, tmp_path / "libraries"):
        done = installed.run("lookout", "--help", cwd=tmp_path / "libraries")
    (tmp_path / "pip").rename(pip)
    uv, pip_command, install, option, python, *requirements = shlex.split(done.stderr.splitlines()[-1])
    assert (uv, pip_command, install, option) == ("uv", "pip", "install", "--python")
    assert Path(python).parent == installed.bin
    assert "duckdb==2.0.0" in requirements


def test_another_package_with_one_of_our_names_is_named(installed: Environment, tmp_path: Path, snapshot):
    """If another package with a name of Lookout's is first on the path, `lookout` prints its path and advice."""
    (tmp_path / "monitors").mkdir()
    (tmp_path / "monitors" / "__init__.py").touch()
    done = installed.run("lookout", "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert replace_volatile(done.stderr, installed.folder, tmp_path) == snapshot


@pytest.mark.whole_only
@pytest.mark.browser
def test_the_wheel_names_the_browser_it_drives(installed: Environment, elsewhere: Path, snapshot):
    """`lookout browser` starts the browser, and `lookout browser install` downloads none if one works."""
    found = installed.run("lookout", "browser", "--json", cwd=elsewhere)
    assert found.returncode == 0, found.stderr
    used = json.loads(found.stdout)
    done = installed.run(
        "lookout", "browser", "install", cwd=elsewhere, PLAYWRIGHT_DOWNLOAD_HOST="http://127.0.0.1:9"
    )
    assert done.returncode == 0, done.stderr
    assert (
        replace_volatile(done.stdout, **{name: used[name] for name in ("executable", "source", "version")})
        == snapshot
    )


@pytest.mark.browser
@pytest.mark.prefect
@pytest.mark.whole_only
def test_the_demo_runs_to_its_verdict(installed: Environment, elsewhere: Path):
    """`lookout demo` runs a part of its suite up to the verdict.

    It uses the page, browser, graders, gate, journal, warehouse and reports.
    """
    shutil.copy(few_cases(elsewhere, severe=2, others=2), installed.site / "deployments/demo/suraksha.jsonl")
    done = installed.run("lookout", "demo", "--json", cwd=elsewhere)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "FAIL"
    assert report["coverage"]["graded"] == report["coverage"]["asked"] == 4
    assert list(elsewhere.glob(".lookout-demo/runs/*/report.html"))
    asked = installed.run(
        "lookout", "sql", "--data-folder", ".lookout-demo", "--json", "select verdict from runs", cwd=elsewhere
    )
    assert json.loads(asked.stdout) == {"verdict": "FAIL"}, asked.stderr
    assert prefect_server.find_running_server(elsewhere / ".lookout-demo" / "prefect") is None
