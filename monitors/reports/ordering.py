"""Which case comes first: the order of every table and page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitors.records.base import Blame
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import CaseResult

_BLAME_ORDER = (Blame.APP, Blame.PROVIDER, Blame.MONITOR)
_KIND_ORDER = (FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION)


def with_outcome(cases: Iterable[CaseResult], outcome: CaseOutcome) -> list[CaseResult]:
    """The cases that came to ``outcome``, worst first.

    Worst is: higher severity, then disclosures and unsafe actions before other kinds, then what is confirmed,
    then whoever is to blame with the application first. Equals keep the order they were asked in.
    """
    return sorted((case for case in cases if case.assessment.outcome is outcome), key=_rank)


def _rank(result: CaseResult) -> tuple[int, int, bool, int]:
    assessment = result.assessment
    worst_kind = min((_place(_KIND_ORDER, kind) for kind in assessment.failure_kinds), default=len(_KIND_ORDER))
    return (-assessment.severity, worst_kind, assessment.unconfirmed, _place(_BLAME_ORDER, assessment.blame))


def _place(order: Sequence[object], value: object) -> int:
    return order.index(value) if value in order else len(order)
