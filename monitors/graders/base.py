"""What a grader is, and the two things it can say."""

from __future__ import annotations

from typing import Protocol

from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


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


def judged(by: Grader, kind: FailureKind | None, reason: str, evidence: tuple[Span, ...] = ()) -> Judged:
    """The verdict of a grader: passed when there is no failure kind."""
    return Judged(
        grader=by.name,
        version=by.version,
        aspect=by.aspect,
        passed=kind is None,
        failure_kind=kind,
        reason=reason,
        evidence=evidence,
    )


def abstained(by: Grader, reason: str, blame: Blame = Blame.MONITOR) -> Abstained:
    """A grader that had nothing to go on, and whose fault that is."""
    return Abstained(grader=by.name, version=by.version, aspect=by.aspect, reason=reason, blame=blame)
