"""Replace the clock of a whole process, for example to simulate days in minutes or a wrong clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace

import flows.clock


def set_clock(now: Callable[[], datetime]) -> None:
    """Make this process use ``now`` in place of the real clock.

    The product reads the time in one function, `flows.clock.utc_now`.
    """
    flows.clock.datetime = SimpleNamespace(now=lambda _zone: now())
