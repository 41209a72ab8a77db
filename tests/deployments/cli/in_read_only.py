"""``lookout`` with a folder that is read-only for this process alone. Arguments: the folder, then the command's own."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from deployments.cli.app import main

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
FIXED = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
"""What a mount must keep when it is mounted anew by somebody who is not root outside."""


def protect(folder: Path) -> None:
    """As ``unshare --mount --map-root-user`` with a bind mount does. Raises `OSError` where nobody may."""
    system = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    _tell(system.unshare(NEW_USER | NEW_MOUNTS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    name = os.fsencode(folder)
    kept = os.statvfs(folder).f_flag & FIXED
    _tell(system.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))
    _tell(system.mount(name, name, None, BIND, None))
    _tell(system.mount(b"none", name, None, REMOUNT | BIND | READ_ONLY | kept, None))


def _tell(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    protect(Path(sys.argv.pop(1)))
    os.chdir(Path.cwd())  # through the new mount
    sys.exit(main())
