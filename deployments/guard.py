"""One part of ``lookout up`` with everything that descends from it: ``python -m deployments.guard COMMAND …``.

Standard input is the line to whoever started this. When it closes, because he wants it or because he is dead, the
command gets SIGTERM, and what is left after a grace time is killed. When the command ends by itself, what it left
behind is ended too, so that a successor never meets it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import Final

from deployments.family import adopt_orphans, end_family, send

GRACE_S: Final = 20.0
"""For an orderly end: Prefect's runner pauses its schedules, a receiver finishes its answers."""
LEFT_GRACE_S: Final = 5.0
"""For what the command left behind."""


def main() -> int:
    """The exit code of the command; 128 and the signal's number when a signal ended it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _unheard)
    adopt_orphans()
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - ours
    ended = threading.Event()
    threading.Thread(target=_end_with_the_line, args=(command.pid, ended), name="line", daemon=True).start()
    code = _reap_until(command)
    ended.set()
    end_family(os.getpid(), grace_s=LEFT_GRACE_S)
    return code if code >= 0 else 128 - code


def _reap_until(command: subprocess.Popen[bytes]) -> int:
    """The command's exit code once it ended; adopted orphans that end before are let go."""
    while command.returncode is None:
        pid, status = os.waitpid(-1, 0)
        if pid == command.pid:
            command.returncode = os.waitstatus_to_exitcode(status)
    return command.returncode


def _unheard(_number: int, _frame: FrameType | None) -> None:
    """The line alone tells. A handler and not ``SIG_IGN``, which the command would inherit and then never stop."""


def _end_with_the_line(command: int, ended: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    send([command], signal.SIGTERM)
    if not ended.wait(GRACE_S):
        send([command], signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
