"""A run's own results as a baseline: for those who keep a ``results.json`` instead of a warehouse."""

from __future__ import annotations

from collections.abc import Iterable

from monitors.records.baselines import Asked, Baseline
from monitors.records.runs import CaseResult, RunReport


def baseline_of(report: RunReport, results: Iterable[CaseResult]) -> Baseline:
    """What `evaluate` compares with, from a run as it was written. Whether it may be compared is decided there."""
    return Baseline(
        report=report,
        asked=tuple(
            Asked(
                case_id=one.assessment.case_id,
                repeat=one.assessment.repeat,
                outcome=one.assessment.outcome,
                blame=one.assessment.blame,
            )
            for one in results
        ),
    )
