"""``lookout sql`` at its limits: a user stops a query, and a result does not fit into memory."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.cli.exit_codes import ExitCode
from flows.data_folder import open_store_in
from tests.conftest import ROOT
from tests.polling import wait_until

ENDLESS = "select sum(x * y) from range(10000000) a(x), range(100000) b(y)"
"""A query that takes hours. DuckDB itself does not react to Ctrl-C in such a query."""
LARGE = "select x, repeat('abcdefgh', 20) as text from range(30000000) a(x)"
"""A query with a result of 6 GB."""
MEMORY_BYTES = 1_200_000 * 1024
QUERY_CPU_S = 4.0
"""CPU time in seconds. A command that has used more than this has finished its start and is running its query."""
INTERRUPTED = 130


def start_sql(folder: Path, query: str, memory_bytes: int = resource.RLIM_INFINITY) -> subprocess.Popen[str]:
    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    open_store_in(folder / "data").load_pending(5)
    return subprocess.Popen(
        [sys.executable, "-m", "deployments.cli.app", "sql", query, "--data-folder", "data"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,  # noqa: PLW1509 - no thread of this process holds a lock that it needs
    )


def read_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.whole_only
def test_ctrl_c_stops_a_query_quietly(tmp_path):
    with start_sql(tmp_path, ENDLESS) as process:
        wait_until(lambda: read_cpu_s(process.pid) > QUERY_CPU_S, timeout_s=120, what="the query works")
        process.send_signal(signal.SIGINT)
        try:
            printed = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, *printed) == (INTERRUPTED, "", "")


def test_a_result_larger_than_the_memory_is_one_sentence(tmp_path):
    for _ in range(10):  # try again if glibc ended the process: a thread, not a row, reached the limit
        with start_sql(tmp_path, LARGE, MEMORY_BYTES) as process:
            output, errors = process.communicate(timeout=240)
        if "thread-local data: ABORT" not in errors:
            break
    (line,) = errors.splitlines()
    assert (process.returncode, output) == (ExitCode.USAGE, "")
    assert "LIMIT" in line
