"""Fixtures for all tests: a clean environment, a Prefect server, demo Spaces, and the command as a process."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import httpx
import hypothesis
import pytest

from flows.server import prefect_server
from tests import fork_server
from tests.prefect_home import with_tables
from tests.tiers import (
    EXAMPLES,
    SLICES,
    WHOLE_ONLY,
    is_in_shard,
    order_for_workers,
    read_quarantine,
    rows_beyond_slice,
)

for profile, count in EXAMPLES.items():
    hypothesis.settings.register_profile(
        profile, max_examples=count, deadline=None
    )  # a busy machine is not an error

ROOT = Path(__file__).parent.parent
SPACE_START_S = 120
COMMAND_S = 240
LOAD_AT_START = pytest.StashKey[tuple[float, float, float]]()
read_quarantine_once = cache(read_quarantine)

OUTSIDE = ("PREFECT_", "SLACK_", "ANTHROPIC_", "LOOKOUT_", "GITHUB_")
for name in [n for n in os.environ if n.startswith(OUTSIDE) or n == "CI"]:  # in CI other rules hold, and are tested
    del os.environ[name]
# Where the tests run in the background SIGINT is ignored, and every process would inherit that: Prefect's own end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Where nothing may be compiled ahead (as in many images) each of a thousand processes compiles Prefect again: 1 s each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Reading the certificates of 140 authorities takes 20 ms, for each HTTP client of each test; nearly all speak to loopback.
read_authorities = cache(ssl.create_default_context)
ssl.create_default_context = read_authorities
os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=["quick", "whole"], default="whole", help="quick: what make test runs")
    parser.addoption("--shard", default="1/1", help="2/3 runs the second third of the files, by name")
    parser.addoption("--snapshots-only", action="store_true", help="only tests that compare with a snapshot")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("hypothesis_profile", None):
        hypothesis.settings.load_profile(config.getoption("tier"))
    config.stash[LOAD_AT_START] = os.getloadavg()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files that only the whole test tier runs, or that belong to another shard."""
    name = _name_below_tests(collection_path)
    is_skipped = config.getoption("tier") == "quick" and name in WHOLE_ONLY
    if collection_path.suffix == ".py":
        is_skipped |= not is_in_shard(name, config.getoption("shard"))
    return True if is_skipped else None


def pytest_itemcollected(item: pytest.Item) -> None:
    name = _name_below_tests(item.path)
    if name in SLICES and item.get_closest_marker("a_slice") is None:
        item.add_marker(pytest.mark.a_slice(SLICES[name], of="file"))
    reason = read_quarantine_once().get(item.nodeid)
    if reason is not None:
        item.add_marker(pytest.mark.xfail(strict=False, reason=f"quarantine: {reason}"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests outside the tier, and sort the remaining ones for the workers (see `order_for_workers`)."""
    skipped: set[pytest.Item] = set()
    if config.getoption("snapshots_only"):
        skipped |= {item for item in items if "snapshot" not in getattr(item, "fixturenames", ())}
    if config.getoption("tier") == "quick":
        seed = config.getoption("randomly_seed", 0)
        skipped |= {item for item in items if item.get_closest_marker("whole_only")}
        remaining = [item for item in items if item not in skipped]
        skipped |= set(rows_beyond_slice(remaining, seed, family=_family, limit=_slice_size))
    config.hook.pytest_deselected(items=[item for item in items if item in skipped])
    items[:] = order_for_workers(
        [item for item in items if item not in skipped],
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
        module=lambda item: item.path,
        slow=lambda item: any(item.get_closest_marker(name) for name in ("browser", "prefect")),
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the load of the machine, because the duration of the tests depends on it."""
    spent = os.times()
    terminalreporter.write_line(
        f"Tier {config.getoption('tier')}: load {config.stash[LOAD_AT_START][0]:.1f} at the start, "
        f"{os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} cores, "
        f"{spent.user + spent.system + spent.children_user + spent.children_system:.0f} s of CPU"
    )


def _name_below_tests(path: Path) -> str:
    return path.relative_to(ROOT / "tests").as_posix() if path.is_relative_to(ROOT / "tests") else ""


def _family(item: pytest.Item) -> str:
    """Return the group of a test: its test function, or its file if the quick tier runs a slice of that file."""
    marker = item.get_closest_marker("a_slice")
    return str(item.path) if marker and marker.kwargs else item.nodeid.partition("[")[0]


def _slice_size(item: pytest.Item) -> int | None:
    marker = item.get_closest_marker("a_slice")
    return marker.args[0] if marker else None


@pytest.fixture(scope="session")
def browser_path() -> str | None:
    """Return the value of CHROMIUM_PATH, or ``None`` if Lookout must search for a browser."""
    return os.environ.get("CHROMIUM_PATH")


@pytest.fixture(scope="session")
def prefect_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start one Prefect server for all tests, and yield environment variables that connect a process to it."""
    home = with_tables(tmp_path_factory.mktemp("prefect"))
    variables = dict(os.environ)
    prefect_server.connect_or_start(None, home, environment=variables, start_timeout_s=180, write_line=print)
    yield variables
    prefect_server.stop_server(home)


@pytest.fixture(scope="session")
def lookout(prefect_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the command as a user would, in a separate process (see `fork_server`)."""

    def run(
        *arguments: str, cwd: Path, stdin: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = prefect_environment | fork_server.WARM | variables
        return fork_server.run(*arguments, cwd=cwd, env=environment, given=stdin or "", timeout_s=COMMAND_S)

    return run


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Serve a demo Space in a separate process, and yield its address."""
    log = folder / "space.log"
    command = [sys.executable, "-m", "deployments.demo.space", "--port", "0", "--log-folder", str(folder)]
    with log.open("wb") as output:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=output, stderr=output)
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        process.wait(30)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the Space answers at the address that ``process`` printed to ``log``, and return the address."""
    deadline = time.monotonic() + SPACE_START_S
    while time.monotonic() < deadline and process.poll() is None:
        words = log.read_text(encoding="utf-8").split()
        address = next((word.rstrip("/.,") for word in words if word.startswith("http://127.0.0.1:")), None)
        if address and _answers(address):
            return address
        time.sleep(0.2)  # another process starts; there is nothing else to wait on
    raise AssertionError(f"the demo Space did not come up: {log.read_text(encoding='utf-8')}")


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/version", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="session")
def faulty_space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the demo Space with its faults, and yield its address."""
    with ExitStack() as stack:
        yield stack.enter_context(serving(tmp_path_factory.mktemp("faulty"), "--faults", "--delay-s", "0.05"))


@pytest.fixture(scope="session")
def clean_space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the demo Space without faults, and yield its address."""
    with ExitStack() as stack:
        yield stack.enter_context(serving(tmp_path_factory.mktemp("clean"), "--delay-s", "0.05"))
