"""Decide whether the grades of two runs may be compared, although different judges may have given them.

A judge with another model, a changed prompt or another rubric counts as another judge, with another pass rate. Such
a change alone can look like a regression of the application. Therefore, runs with different judges are not compared
until both judges have graded the same anchors. Anchors are stored answers that no deploy changes. They show the
shift between the two judges, which is reported with the comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from monitors.plural import plural
from monitors.records.base import Identifier, Record
from monitors.records.grades import JudgeLineage

MIN_ANCHORS = 30
"""Minimum number of anchors for a comparison. With fewer, a shift of ten percentage points may be chance."""

_HASH_CHARACTERS = 8


class AnchorGrade(Record):
    """The verdict of one judge on one anchor. If there are several verdicts, the last verdict counts."""

    anchor_id: Identifier
    lineage: JudgeLineage
    passed: bool


class Shift(Record):
    """The difference between two judges on the anchors that both judges graded."""

    anchors: Annotated[int, Field(ge=0)]
    passed_before: Annotated[int, Field(ge=0)]
    passed_now: Annotated[int, Field(ge=0)]
    disagreed: Annotated[int, Field(ge=0)]

    @property
    def text(self) -> str:
        """Return the shift in one sentence."""
        return (
            f"of {plural(self.anchors, 'anchor')}, the old judges passed {self.passed_before} and the new judges "
            f"{self.passed_now}; they disagree on {self.disagreed}"
        )


class LineageComparison(Record):
    """Whether the grades of two runs may be compared, and the reason.

    ``differences`` describes each difference between the judges. ``shift`` is ``None`` if it was not measured.
    """

    allowed: bool
    reason: str
    differences: tuple[str, ...] = ()
    shift: Shift | None = None


def describe_judge_differences(before: JudgeLineage, now: JudgeLineage) -> tuple[str, ...]:
    """Return a description of each difference between two judges.

    The result is empty if there are no differences.
    """
    pairs = (
        ("the model", before.model, now.model),
        ("the prompt", before.prompt_sha256[:_HASH_CHARACTERS], now.prompt_sha256[:_HASH_CHARACTERS]),
        ("the rubric", f"version {before.rubric_version}", f"version {now.rubric_version}"),
    )
    changed = tuple(f"{label} changed from {old} to {new}" for label, old, new in pairs if old != new)
    return changed or (() if before == now else ("the prompt changed",))


def decide_if_grades_are_comparable(
    before: Collection[JudgeLineage],
    now: Collection[JudgeLineage],
    anchors: Sequence[AnchorGrade] = (),
    *,
    min_anchors: int = MIN_ANCHORS,
) -> LineageComparison:
    """Decide whether the grades of two runs may be compared.

    ``before`` and ``now`` are the judges of the two runs. The grades may be compared in two cases:

    - Both runs have the same judges, or no judges.
    - Judges of both runs graded at least ``min_anchors`` of the same anchors.

    If only one run has judges, the reason says to compare only answers that both runs graded without a judge.
    """
    old, new = set(before), set(now)
    if old == new:
        return LineageComparison(
            allowed=True, reason="the same judges" if old else "both runs were graded without a judge"
        )
    if not old or not new:
        side = "the old run" if old else "the new run"
        return LineageComparison(
            allowed=False,
            reason=f"a judge graded only {side}. Compare only the answers that rules graded in both runs",
            differences=(f"{'the judge is off now' if old else 'there was no judge before'}",),
        )
    changed = _describe_judge_changes(old, new)
    shift = _compute_anchor_verdict_shift(old, new, anchors)
    if shift.anchors < min_anchors:
        return LineageComparison(
            allowed=False,
            reason=(
                f"the judge changed ({'; '.join(changed)}), so a difference may come from the judge. Both judges "
                f"graded only {shift.anchors} of the required {min_anchors} anchors. Grade the anchors again"
            ),
            differences=changed,
        )
    return LineageComparison(
        allowed=True, reason=f"the judge changed; {shift.text}", differences=changed, shift=shift
    )


def _describe_judge_changes(old: set[JudgeLineage], new: set[JudgeLineage]) -> tuple[str, ...]:
    removed, added = sorted(old - new, key=_build_lineage_sort_key), sorted(new - old, key=_build_lineage_sort_key)
    if len(removed) == len(added):
        return tuple(
            line
            for before, now in zip(removed, added, strict=True)
            for line in describe_judge_differences(before, now)
        )
    left = tuple(f"{judge.model} ({judge.prompt_sha256[:_HASH_CHARACTERS]}) no longer judges" for judge in removed)
    return left + tuple(f"{judge.model} ({judge.prompt_sha256[:_HASH_CHARACTERS]}) judges now" for judge in added)


def _compute_anchor_verdict_shift(
    old: set[JudgeLineage], new: set[JudgeLineage], anchors: Sequence[AnchorGrade]
) -> Shift:
    earlier, later = _map_anchors_to_majority_verdict(old, anchors), _map_anchors_to_majority_verdict(new, anchors)
    both = earlier.keys() & later.keys()
    return Shift(
        anchors=len(both),
        passed_before=sum(earlier[anchor] for anchor in both),
        passed_now=sum(later[anchor] for anchor in both),
        disagreed=sum(earlier[anchor] != later[anchor] for anchor in both),
    )


def _map_anchors_to_majority_verdict(
    judges: set[JudgeLineage], anchors: Sequence[AnchorGrade]
) -> Mapping[str, bool]:
    """Return the majority verdict of the judges on each anchor, keyed by the id of the anchor.

    A tie counts as a failure.
    """
    votes: dict[str, dict[JudgeLineage, bool]] = {}
    for grade in anchors:
        if grade.lineage in judges:
            votes.setdefault(grade.anchor_id, {})[grade.lineage] = grade.passed
    return {anchor: sum(verdicts.values()) * 2 > len(verdicts) for anchor, verdicts in votes.items()}


def _build_lineage_sort_key(lineage: JudgeLineage) -> tuple[str, str, str]:
    return lineage.model, lineage.rubric_version, lineage.prompt_sha256
