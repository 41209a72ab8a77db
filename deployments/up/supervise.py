"""The process that supervises the parts of ``lookout up``: ``python -m deployments.up.supervise``.

This module imports only the standard library, because the process runs as long as the installation. After its
checks, ``lookout up`` calls `replace_process_with_supervisor`, which executes this module in the same process.
Therefore the process id and the open lock of the data folder stay the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from deployments.up.heartbeats import write_heartbeats
from deployments.up.supervisor import SupervisedProcess, Supervisor, SupervisorLog

BROKEN_EXIT_CODE: Final = 4


def replace_process_with_supervisor(
    parts: Sequence[SupervisedProcess], config_path: Path, lock: int, environment: Mapping[str, str]
) -> NoReturn:
    """Replace this process with the supervisor of ``parts``.

    ``lock`` is the file descriptor of the data folder's lock.
    """
    os.set_inheritable(lock, True)  # `subprocess` closes the lock in the supervisor's own children
    plan = json.dumps([[process.name, process.command, process.stops_last] for process in parts])
    command = (sys.executable, "-m", "deployments.up.supervise", str(config_path), str(lock), plan)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, dict(environment))  # noqa: S606 - our own interpreter


def main() -> int:
    """Keep the parts running until SIGTERM or SIGINT. Return exit code 0."""
    config_path, lock, plan = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    os.set_inheritable(lock, False)
    parts = [SupervisedProcess(name, tuple(command), stops_last=stops_last) for name, command, stops_last in plan]
    with write_heartbeats(lock, _read_clock):
        asyncio.run(_run(Supervisor(parts, _build_log(config_path))))
    return 0


async def _run(supervisor: Supervisor) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    await supervisor.run()


def _build_log(config_path: str) -> SupervisorLog:
    """Build the supervisor's log. Lines go to standard error, and a short-lived process sends each alert."""

    async def send_alert(*arguments: str) -> None:
        command = (sys.executable, "-m", "deployments.up.part_alerts", config_path, *arguments)
        process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
        await process.wait()

    async def send_crash_loop_alert(name: str, deaths: int, code: int) -> None:
        await send_alert("crash-loop", name, str(deaths), str(code))

    async def send_recovery_alert(name: str) -> None:
        await send_alert("recovery", name)

    return SupervisorLog(
        log=write_log_line,
        send_crash_loop_alert=send_crash_loop_alert,
        send_recovery_alert=send_recovery_alert,
    )


def write_log_line(name: str, line: str) -> None:
    """Write a line with UTC time and part to standard error. Control characters are shown as code points."""
    shown = "".join(
        character
        if character == "\t" or unicodedata.category(character) not in ("Cc", "Cs")
        else f"[U+{ord(character):04X}]"
        for character in line
    )
    try:
        sys.stderr.write(f"{_read_clock():%Y-%m-%dT%H:%M:%SZ} {name:<8} | {shown}\n")
        sys.stderr.flush()
    except OSError:  # the log's reader is gone, or its disk is full: continue anyway
        return


def _read_clock() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
