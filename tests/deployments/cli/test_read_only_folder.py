"""A data folder on a read-only file system: writing commands fail and leave nothing, reading commands work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from tests.deployments.up_process import find_free_ports_of_installation
from tests.flows.chat import Chat, watched

SOURCES = """
[targets.demo.traffic.sources.turns]
kind = "file"
at = "turns.jsonl"
[targets.demo.hallucination_log]
at = "guard.jsonl"
"""


def in_mount(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``lookout`` in the parent folder of ``folder``. ``folder`` is read-only, but only for this process."""
    module = "tests.deployments.cli.in_read_only"
    return fork_server.run(str(folder), *command, module=module, cwd=folder.parent, env=environment)


@pytest.fixture(params=["data", "."], ids=["data folder", "working folder"])
def place(request, tmp_path, lookout) -> tuple[Path, Path]:
    """Return a working folder with a warehouse, and the folder that a test makes read-only.

    This is the data folder, or the working folder itself.
    """
    if in_mount(tmp_path, "--version", **os.environ | fork_server.WARM).returncode != 0:
        pytest.skip("this machine lets nobody mount a folder for one process (unshare --mount --map-root-user)")
    work = tmp_path / "work"
    work.mkdir()
    with Chat() as chat:
        watched(work, chat, cases=1, more=SOURCES)
    for log in ("turns.jsonl", "guard.jsonl"):
        (work / log).touch()
    assert lookout("warehouse", "load", cwd=work).returncode == 0
    return work, work / request.param


def files(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_command_that_writes_names_the_folder_and_leaves_nothing_and_one_that_reads_works(
    place, prefect_environment
):
    work, read_only = place
    before = files(work)
    config = ("--config", str(work / "lookout.toml"))

    def lookout(*command: str) -> subprocess.CompletedProcess[str]:
        return in_mount(read_only.resolve(), *command, *config, **prefect_environment | fork_server.WARM)

    others = (
        ("nightly",),
        ("watch", "--once"),
        ("up", "--port", str(find_free_ports_of_installation())),
        ("warehouse", "load"),
    )
    for command in (("verify", "demo"), *(others if read_only != work else ())):
        found = lookout(*command)
        if command == ("warehouse", "load") and found.returncode == 0:
            continue  # no segment is pending
        expected = 2 if command[0] == "up" else 4  # `up` lists it with everything else that is missing or wrong
        assert found.returncode == expected, (command, found.stdout, found.stderr)
        said = " ".join(found.stderr.split())
        assert f"cannot write {work / 'data'}" in said, (command, found.stderr)
        assert "is read-only" in said, (command, found.stderr)
    found = lookout("sql", "select 1 as one")
    assert found.returncode == 0, found.stderr
    ill = lookout("doctor")
    assert ill.returncode == 4
    assert f"{work / 'data'} is not writable" in " ".join(ill.stdout.split())
    assert files(work) == before
