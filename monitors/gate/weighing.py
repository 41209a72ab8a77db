"""All that a verdict is made of, reckoned once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitors.gate.compare import Compared
from monitors.gate.metrics import Measured
from monitors.gate.ratings import Ratings
from monitors.gate.settings import GateSettings
from monitors.records.comparisons import Balance, FlakyCase, Sight
from monitors.records.grades import Assessment
from monitors.records.parity import ParityGap
from monitors.records.runs import Coverage, Scores


@dataclass(frozen=True, slots=True)
class Weighing:
    """A run before its verdict: one assessment for each case, and what was reckoned from all of them.

    ``told`` are the ids of the cases that say something about the application. ``outage`` is what was said of an
    app that was down. ``compared`` is ``None`` without a baseline.
    """

    assessments: Sequence[Assessment]
    told: frozenset[str]
    flaky: Sequence[FlakyCase]
    scores: Scores
    measured: Sequence[Measured]
    parity: Sequence[ParityGap]
    coverage: Coverage
    ratings: Ratings
    compared: Compared | None
    sights: Sequence[Sight]
    balance: Balance
    outage: str | None
    interrupted: bool
    settings: GateSettings

    @property
    def flaky_ids(self) -> frozenset[str]:
        """Cases that were right only sometimes."""
        return frozenset(one.case_id for one in self.flaky)

    @property
    def enough_told(self) -> bool:
        """Whether shares over the told cases speak for the suite."""
        return self.coverage.told >= self.coverage.floor * self.coverage.asked
