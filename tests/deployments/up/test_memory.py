"""A long-running process returns unused memory to the operating system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flows.server.prefect_server import HEAP_LIMITS

PROGRAM = """
from pathlib import Path
from deployments.up.memory import release_unused_memory

def read_resident_kb():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])

blocks = [bytes(4096) for _ in range(20_000)]
last = bytes(4096)  # keeps the end of the heap, which is all that the allocator returns by itself
del blocks
before = read_resident_kb()
release_unused_memory()
print(before - read_resident_kb())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_freed_pages_are_returned_to_the_system() -> None:
    """If 80 MB in the middle of the heap become free, more than 60 MB are returned to the system."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | HEAP_LIMITS, check=True, capture_output=True, text=True
    )
    assert int(done.stdout) > 60_000
