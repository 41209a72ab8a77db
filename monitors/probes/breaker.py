"""The circuit breaker (V10): when the app is down, the run stops early, with one alert and not one per case."""

from __future__ import annotations

from monitors.records.base import Blame
from monitors.records.exchanges import NoAnswer


class CircuitBreaker:
    """Opens after so many questions in a row without an answer. Once open it stays open for the run."""

    def __init__(self, failures: int) -> None:
        self._limit = failures
        self._row: list[NoAnswer] = []
        self._open = False

    def saw_answer(self) -> None:
        """An answer came back: the app is up."""
        self._row.clear()

    def saw_failure(self, failure: NoAnswer) -> None:
        """A question stayed without an answer after all its tries."""
        self._row.append(failure)
        self._open = self._open or len(self._row) >= self._limit

    def trip(self, failure: NoAnswer) -> None:
        """The app was waited for and does not come back: the rest need not try."""
        self._row.append(failure)
        self._open = True

    @property
    def is_open(self) -> bool:
        """Whether the rest is no longer asked."""
        return self._open

    @property
    def blame(self) -> Blame:
        """The app's as soon as one of the failures was; else what kept us from asking was our own."""
        return Blame.APP if any(failure.blame is Blame.APP for failure in self._row) else Blame.MONITOR

    @property
    def why(self) -> str:
        """One line: how many failed, and how the last one did."""
        last = self._row[-1]
        return (
            f"not asked: {len(self._row)} questions in a row had no answer, the last: {last.reason} ({last.detail})"
        )
