"""A clock and a sleep function for tests. They record each pause and do not wait."""

from __future__ import annotations

from monitors.github.api import GitHubRetryPolicy


class Waits:
    """A clock that stays at ``now``, and a sleep that returns at once and records its duration."""

    def __init__(self, now: float = 1000.0, *, deadline_s: float = 20.0) -> None:
        self.slept: list[float] = []
        self.patience = GitHubRetryPolicy(now=lambda: now, sleep=self._sleep, deadline_s=deadline_s)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
