"""Writes the grades of a nightly run back to the sources of its conversations, as scores beside each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from flows.alerting.faults import Fault
from flows.nightly.alerts import SCORES_UNWRITTEN
from flows.nightly.estimate import NightlyEstimates
from monitors.errors import SourceUnavailable
from monitors.gate.assess import worst_first
from monitors.platforms.platform import Score
from monitors.records.base import Severity
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.traffic import SampledConversation
from monitors.sources.traffic.source import ScoreKeeper, TrafficSource

CORRECT: Final = "lookout_correct"
SEVERITY: Final = "lookout_severity"
PATIENCE: Final = 3
"""Conversations of one source in a row that would not take their scores; then the source is skipped."""


class FeedbackReport(NamedTuple):
    """How many conversations have their scores, and the first thing that went wrong with each source."""

    conversations: int
    troubles: tuple[str, ...]

    @property
    def fault(self) -> Fault | None:
        """The fault that people hear of."""
        if not self.troubles:
            return None
        said = "; ".join(self.troubles)
        return Fault(SCORES_UNWRITTEN, f"Not all scores of the night could be written back: {said}.")


async def write_scores(
    sources: Mapping[str, TrafficSource],
    sampled: Sequence[SampledConversation],
    source_of: Mapping[str, str],
    estimates: NightlyEstimates,
) -> FeedbackReport:
    """Give each sampled conversation its scores, where its source takes any. Twice is once.

    The original texts are no longer in memory, so the scores go to the stored id. A conversation whose original id
    identified a person has another stored id, and gets no scores. Never raises for a source.
    """
    written, troubles, misses = 0, dict[str, str](), dict[str, int]()
    for one in sampled:
        name = source_of[one.conversation.id]
        source = sources.get(name)
        if not isinstance(source, ScoreKeeper) or misses.get(name, 0) >= PATIENCE:
            continue
        try:
            await source.write_back(one.conversation, scores_of(one, estimates))
        except SourceUnavailable as error:
            troubles.setdefault(name, f"{name}: {error}")
            misses[name] = misses.get(name, 0) + 1
        else:
            written, misses[name] = written + 1, 0
    return FeedbackReport(written, tuple(troubles.values()))


def scores_of(sampled: SampledConversation, estimates: NightlyEstimates) -> tuple[Score, ...]:
    """``lookout_correct`` is 1 or 0, ``lookout_severity`` 1 (nothing found) to 0 (severity 3); none if ungraded."""
    key = sampled.conversation.id
    failed = [one for one in estimates.said(key) if one.outcome is CaseOutcome.FAILED]
    if not failed:
        if not estimates.is_graded(key):
            return ()
        return Score(key=CORRECT, value=1.0), Score(key=SEVERITY, value=1.0, comment="nothing found")
    severity = max(one.severity for one in failed)
    return (
        Score(key=CORRECT, value=0.0, comment=_kinds(failed)),
        Score(key=SEVERITY, value=1 - severity / Severity.PAGE, comment=f"severity {severity.value}"),
    )


def _kinds(failed: Sequence[Assessment]) -> str:
    """The kinds of failure alone: a reason may quote the reply."""
    return ", ".join(kind.value for kind in worst_first(kind for one in failed for kind in one.failure_kinds))
