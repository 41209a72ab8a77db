"""Runs ``lookout`` while a folder is read-only or full, which only this process sees.

Arguments: the folder (``full:FOLDER`` for a full one), then the arguments of the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

from deployments.cli.app import main

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
FULL = "full:"
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
FIXED = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
"""Mount flags that only root outside of the namespace may remove. A remount must therefore set them again."""


def protect(folder: Path) -> None:
    """Make the folder read-only, as ``unshare --mount --map-root-user`` with a bind mount does.

    Raises `OSError` if the system does not permit it.
    """
    name, system = os.fsencode(folder), _enter_own_mounts()
    flags = os.statvfs(folder).f_flag & FIXED
    _raise_on_error(system.mount(name, name, None, BIND, None))
    _raise_on_error(system.mount(b"none", name, None, REMOUNT | BIND | READ_ONLY | flags, None))


def fill(folder: Path) -> None:
    """Give the folder its own file system without a free block. Raises `OSError` if the system does not permit it."""
    mount_small(folder, 64)
    with contextlib.suppress(OSError), (folder / "filled").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def mount_small(folder: Path, size_kb: int) -> None:
    """Give the folder its own empty file system of ``size_kb``. Raises `OSError` if the system does not permit it."""
    system, options = _enter_own_mounts(), f"size={size_kb}k,mode=700".encode()
    _raise_on_error(system.mount(b"none", os.fsencode(folder), b"tmpfs", 0, options))


def resize(folder: Path, size_kb: int) -> None:
    """Change the size of a file system that `mount_small` mounted in this process."""
    system, options = ctypes.CDLL(None, use_errno=True), f"size={size_kb}k".encode()
    _raise_on_error(system.mount(b"none", os.fsencode(folder), b"tmpfs", REMOUNT, options))


def _enter_own_mounts() -> ctypes.CDLL:
    """Move this process into its own mount namespace. Return the C library."""
    system = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    _raise_on_error(system.unshare(NEW_USER | NEW_MOUNTS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _raise_on_error(system.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))
    return system


def _raise_on_error(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    named = sys.argv.pop(1)
    if named.startswith(FULL):
        fill(Path(named.removeprefix(FULL)))
    else:
        protect(Path(named))
    os.chdir(Path.cwd())  # enter the folder again, now through the new mount
    sys.exit(main())
