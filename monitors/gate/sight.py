"""What a run could have seen, by severity, whatever it did see: a PASS proves no more than this. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitors.exact_limits import binomial_limits
from monitors.gate.settings import GateSettings
from monitors.paired import smallest_drop
from monitors.records.base import Severity
from monitors.records.comparisons import Sight
from monitors.records.grades import Assessment, CaseOutcome

ONE_SIDED = 0.90
"""Two-sided limits at 90 % leave 5 % above: one-sided 95 %, which for no failure is the rule of three's 3/n."""


def sights_of(
    assessments: Sequence[Assessment], told: frozenset[str], shared: frozenset[str] | None
) -> tuple[Sight, ...]:
    """One for each severity that the suite has, severest first.

    ``shared`` are the cases told in the baseline too; without a baseline, one that told the same is supposed.
    """
    severities = sorted({a.case_severity for a in assessments}, reverse=True)
    return tuple(_sight(severity, assessments, told, shared) for severity in severities)


def _sight(
    severity: Severity, assessments: Sequence[Assessment], told: frozenset[str], shared: frozenset[str] | None
) -> Sight:
    same = [a for a in assessments if a.case_severity is severity and a.case_id in told]
    lost = sum(a.outcome is not CaseOutcome.CORRECT for a in same)
    pairs = sum(shared is None or a.case_id in shared for a in same)
    return Sight(
        severity=severity,
        cases=len(same),
        lost=lost,
        failing_at_most=binomial_limits(lost, len(same), confidence=ONE_SIDED)[1],
        pairs=pairs,
        smallest_drop=smallest_drop(pairs),
    )


def that_matters(severity: Severity, settings: GateSettings) -> float:
    """The loss of this severity's cases that must not go unnoticed."""
    wanted = settings.regressions
    return {
        Severity.ANNOYING: wanted.severity_1,
        Severity.WRONG: wanted.severity_2,
        Severity.PAGE: wanted.severity_3,
    }[severity]


def blind_spots(sights: Sequence[Sight], settings: GateSettings) -> Mapping[Severity, Sight]:
    """Those severities of which a loss that matters would have gone unnoticed."""
    return {
        sight.severity: sight
        for sight in sights
        if sight.smallest_drop is None or sight.smallest_drop > that_matters(sight.severity, settings)
    }


def limit_words(sight: Sight) -> str:
    """What the failures seen still allow: ``none of 11 lost allows up to 3/11, exactly 23.8 %``."""
    if not sight.cases:
        return "nothing was told"
    exact = f"{sight.failing_at_most:.1%}".replace("%", " %")
    if sight.lost:
        return f"{sight.lost} of {sight.cases:,} lost allows up to {exact}"
    return f"none of {sight.cases:,} lost allows up to 3/{sight.cases:,}, exactly {exact}"


def drop_words(sight: Sight) -> str:
    """The smallest drop that a comparison would have noticed: ``a drop of 61.6 % or more``."""
    if sight.smallest_drop is None:
        return "no drop at all"
    return f"a drop of {100 * sight.smallest_drop:.1f} % or more"
