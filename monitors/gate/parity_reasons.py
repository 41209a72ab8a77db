"""Reasons from questions asked in several languages: Hindi may not be far behind English."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitors.gate.weighing import Weighing
from monitors.records.base import Finding, Language
from monitors.records.grades import Assessment
from monitors.records.parity import ParityGap
from monitors.records.runs import ReasonKind, VerdictReason

_DECIDING = frozenset({Language.HINDI})
"""What the target is about; a gap of another language is said."""


def in_pairs(gaps: Iterable[ParityGap]) -> frozenset[Language]:
    """The languages of which pairs enough were told to hold them against English."""
    return frozenset(gap.language for gap in gaps if gap.met is not Finding.UNTOLD)


def parity_missed(run: Weighing) -> list[VerdictReason]:
    """One for each language that is further behind English than is allowed, with the cases that make the gap."""
    return [_missed(gap, run) for gap in run.parity if gap.met is Finding.NO]


def _missed(gap: ParityGap, run: Weighing) -> VerdictReason:
    behind = _behind(gap.language, run.assessments)
    spare = 1 if run.flaky_ids & {a.case_id for a in behind} else 0
    target = gap.target or 0.0
    holds = (gap.english_only - gap.other_only - spare) / gap.pairs > target
    text = (
        f"{gap.language} is {_points(gap.gap)} behind English over {gap.pairs} pairs "
        f"[{100 * gap.low:.1f}, {100 * gap.high:.1f}]; at most {_points(target)} are allowed"
    )
    return VerdictReason(
        kind=ReasonKind.METRIC_TARGET,
        text=text,
        case_ids=tuple(a.case_id for a in behind),
        decisive=run.enough_told and holds and gap.language in _DECIDING,
    )


def _behind(language: Language, assessments: Sequence[Assessment]) -> list[Assessment]:
    """The cases in ``language`` that were wrong where their English partner was right."""
    right = {a.pair for a in assessments if a.language is Language.ENGLISH and a.factual_match is Finding.YES}
    wrong = (a for a in assessments if a.language is language and a.factual_match is Finding.NO)
    return [a for a in wrong if a.pair is not None and a.pair in right]


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
