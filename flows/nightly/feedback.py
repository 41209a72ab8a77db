"""Writes the grades of a nightly run as scores to the platforms from which the conversations came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from flows.alerting.faults import Fault
from flows.nightly.alerts import SCORES_UNWRITTEN
from flows.nightly.estimate import NightlyEstimates
from monitors.errors import SourceUnavailable
from monitors.gate.assess import list_distinct_kinds_worst_first
from monitors.gate.ratings import MAX_RATING, MIN_RATING, find_rating_grade
from monitors.platforms.platform import Score
from monitors.records.base import Severity
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.traffic import SampledConversation
from monitors.sources.traffic.source import ScoreKeeper, TrafficSource

CORRECT: Final = "lookout_correct"
SEVERITY: Final = "lookout_severity"
USEFULNESS: Final = "lookout_usefulness"
"""The name of the score for the usefulness of an issue report. A rating from 1 to 5 becomes a score from 0 to 1."""
MAX_FAILURES_IN_A_ROW: Final = 3
"""After this number of consecutive failures, a source is skipped."""


class FeedbackReport(NamedTuple):
    """The number of conversations whose scores were written, and the first error of each source."""

    conversations: int
    errors: tuple[str, ...]

    @property
    def fault(self) -> Fault | None:
        """The fault to report, or ``None`` if there was no error."""
        if not self.errors:
            return None
        errors = "; ".join(self.errors)
        return Fault(
            SCORES_UNWRITTEN, f"Lookout could not write all scores of the night back to the platform: {errors}."
        )


async def write_scores_to_sources(
    sources: Mapping[str, TrafficSource],
    sampled: Sequence[SampledConversation],
    source_by_conversation: Mapping[str, str],
    estimates: NightlyEstimates,
) -> FeedbackReport:
    """Write the scores of each sampled conversation to its source, if the source accepts scores.

    A repeated call overwrites the scores that an earlier call wrote. If the id of a conversation identifies a
    person, the conversation is stored under another id and gets no scores. The error of a source is returned, not
    raised.
    """
    written, errors, failures_in_a_row = 0, dict[str, str](), dict[str, int]()
    for sampled_conversation in sampled:
        name = source_by_conversation[sampled_conversation.conversation.id]
        source = sources.get(name)
        if not isinstance(source, ScoreKeeper) or failures_in_a_row.get(name, 0) >= MAX_FAILURES_IN_A_ROW:
            continue
        try:
            await source.write_back(
                sampled_conversation.conversation, build_scores(sampled_conversation, estimates)
            )
        except SourceUnavailable as error:
            errors.setdefault(name, f"{name}: {error}")
            failures_in_a_row[name] = failures_in_a_row.get(name, 0) + 1
        else:
            written, failures_in_a_row[name] = written + 1, 0
    return FeedbackReport(written, tuple(errors.values()))


def build_scores(sampled: SampledConversation, estimates: NightlyEstimates) -> tuple[Score, ...]:
    """Build the scores of a conversation.

    ``lookout_correct`` is 1 without a failure, and 0 with a failure. ``lookout_severity`` is 1 without a failure,
    lower for a higher severity, and 0 for severity 3. An ungraded conversation has neither score.
    ``lookout_usefulness`` is missing if the conversation is not rated.
    """
    key = sampled.conversation.id
    usefulness = tuple(_build_usefulness_scores(estimates.get_assessments(key)))
    failed = [
        assessment for assessment in estimates.get_assessments(key) if assessment.outcome is CaseOutcome.FAILED
    ]
    if not failed:
        if not estimates.is_fully_graded(key):
            return usefulness
        return (
            Score(key=CORRECT, value=1.0),
            Score(key=SEVERITY, value=1.0, comment="nothing found"),
            *usefulness,
        )
    severity = max(assessment.severity for assessment in failed)
    return (
        Score(key=CORRECT, value=0.0, comment=_format_failure_kinds(failed)),
        Score(key=SEVERITY, value=1 - severity / Severity.CRITICAL, comment=f"severity {severity.value}"),
        *usefulness,
    )


def _build_usefulness_scores(assessments: Sequence[Assessment]) -> Iterator[Score]:
    """Yield the scores of the reply with the lowest rating in a conversation.

    The rating comes first, followed by a score of 1 or 0 for each criterion of the rating. Yield nothing if no
    reply is rated.
    """
    rated = [(grade.rubric, grade) for a in assessments if (grade := find_rating_grade(a)) and grade.rubric]
    if not rated:
        return
    rating, grade = min(rated, key=lambda pair: pair[0])
    value = (rating - MIN_RATING) / (MAX_RATING - MIN_RATING)
    yield Score(key=USEFULNESS, value=value, comment=f"rated {rating} of {MAX_RATING}")
    for criterion in grade.criteria:
        yield Score(key=f"{USEFULNESS}_{criterion.name}", value=float(criterion.score))


def _format_failure_kinds(failed: Sequence[Assessment]) -> str:
    """Format the failure kinds without their reasons, because a reason can quote the reply."""
    return ", ".join(
        kind.value
        for kind in list_distinct_kinds_worst_first(
            kind for assessment in failed for kind in assessment.failure_kinds
        )
    )
