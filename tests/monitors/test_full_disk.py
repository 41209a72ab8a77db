"""Test that the advice for a disk without free bytes differs from the advice for a disk without free inodes."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest

from monitors.errors import WarehouseUnwritable
from monitors.storage import write_atomically


@contextmanager
def mount_disk(folder, options):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk, content):
    for number in range(100):
        write_atomically(disk / f"{number}.json", content)


@pytest.mark.parametrize(
    ("options", "content", "advice"),
    [("size=1m", "x" * 200_000, "free some space"), ("size=10m,nr_inodes=20", "x", "inodes")],
    ids=["bytes", "inodes"],
)
def test_f22_a_full_disk_says_what_it_has_none_of(tmp_path, options, content, advice):
    with mount_disk(tmp_path / "disk", options) as disk, pytest.raises(WarehouseUnwritable, match=advice):
        fill(disk, content)
