"""A forked child process that exchanges lines of text with its parent."""

from __future__ import annotations

import json
import os
import select
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[str], None]


@dataclass
class Child:
    """A forked child process: its process id, and the pipe from which the parent reads its lines."""

    process: int
    pipe: int
    heard: bytes = b""
    ended: bool = False
    reaped: bool = field(default=False)

    def line(self, wait_s: float) -> str | None:
        """Return the next whole line from the child, or ``None`` if there are no more lines.

        Raises `TimeoutError` if no line arrives within ``wait_s`` seconds.
        """
        end = time.monotonic() + wait_s
        while b"\n" not in self.heard and not self.ended:
            left_s = max(0.0, end - time.monotonic())
            if not select.select([self.pipe], [], [], left_s)[0]:
                raise TimeoutError
            chunk = os.read(self.pipe, 65536)
            self.heard += chunk
            self.ended = not chunk
        line, newline, rest = self.heard.partition(b"\n")
        if not newline:
            return None  # a line that a killed child did not end was never said
        self.heard = rest
        return line.decode()

    def rest(self) -> list[str]:
        """Return all remaining lines, and wait for the end of the child."""
        lines: list[str] = []
        while (line := self.line(3600.0)) is not None:
            lines.append(line)
        if not self.reaped:
            os.close(self.pipe)
            os.waitpid(self.process, 0)
            self.reaped = True
        return lines


def forked(job: Callable[[Say], None]) -> Child:
    """Run ``job`` in a forked child process, and return the child.

    If the job fails, its last line is ``broken`` and the traceback as JSON.
    """
    out, into = os.pipe()
    process = os.fork()
    if process:
        os.close(into)
        return Child(process, out)
    os.close(out)
    try:
        job(lambda line: os.write(into, f"{line}\n".encode()) and None)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked child must never run on into its parent's code
        os.write(into, f"broken {json.dumps(traceback.format_exc())}\n".encode())
        os._exit(1)
