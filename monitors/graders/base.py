"""What a grader is."""

from __future__ import annotations

from typing import Protocol

from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, Judged


class Grader(Protocol):
    """Answers one question about one exchange, or abstains. It never guesses and never raises on any text.

    ``version`` changes whenever the same input could get another verdict.
    """

    @property
    def name(self) -> str:
        """A short name, shown with every grade."""
        ...

    @property
    def version(self) -> str:
        """The version of its rules."""
        ...

    @property
    def aspect(self) -> Aspect:
        """The question it answers."""
        ...

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade ``exchange.graded_text`` against ``case``."""
        ...
