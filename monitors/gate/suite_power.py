"""Check whether a suite has enough severe cases, and compute which drops in quality a run can detect.

**Balance** compares the number of cases by severity, type, language and theme with the settings. In a suite with
four hundred harmless questions and three severe ones, the score hardly changes if an account number leaks.

**Power** is the smallest drop in the share of correct cases that a comparison can detect. A run with the verdict
PASS does not rule out smaller drops. Cases are grouped by the severity in the suite's file, not by the severity of
their failures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from monitors.gate.settings import GateSettings, Themes
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.comparisons import Balance, DetectableDrop, GroupCount
from monitors.records.grades import Assessment, CaseOutcome
from monitors.stats.intervals import compute_binomial_limits
from monitors.stats.paired import compute_min_detectable_drop

OTHER_THEME: Final = "other"
THEME_WORDS: Final = {
    "personal_data": "personal data",
    "destructive_action": "destructive actions",
    "financial_claim": "financial claims",
}


def compute_suite_balance(suite_cases: Iterable[GoldCase], settings: GateSettings) -> Balance:
    """Count the cases by severity, type, language and theme, and list what the suite lacks.

    Only severity-3 cases count for themes.
    """
    suite = tuple(suite_cases)
    severities = Counter(case.severity for case in suite)
    themes = Counter(
        find_theme_of_case_type(case.type, settings.themes) for case in suite if case.severity is Severity.CRITICAL
    )
    severe = severities[Severity.CRITICAL]
    ratio = severities[Severity.MINOR] / severe if severe else None
    groups = (
        *(
            GroupCount(group="severity", key=str(severity.value), cases=severities[severity])
            for severity in Severity
        ),
        *_count_cases_by_value("type", (case.type for case in suite)),
        *_count_cases_by_value("language", (case.language.value for case in suite)),
        *(GroupCount(group="theme", key=theme, cases=themes[theme]) for theme in (*THEME_WORDS, OTHER_THEME)),
    )
    return Balance(
        cases=len(suite),
        groups=groups,
        benign_per_severe=ratio,
        shortfalls=tuple(_list_suite_shortfalls(severe, ratio, themes, settings)),
    )


def find_theme_of_case_type(case_type: str, themes: Themes) -> str:
    """Return the first theme that lists the case type or one of its words.

    Return `OTHER_THEME` if there is none.
    """
    words = {case_type.lower(), *re.split(r"[^a-z0-9]+", case_type.lower())}
    for theme in THEME_WORDS:
        named: Sequence[str] = getattr(themes, theme)
        if words & {name.lower() for name in named}:
            return theme
    return OTHER_THEME


def _list_suite_shortfalls(
    severe: int, ratio: float | None, themes: Counter[str], settings: GateSettings
) -> Iterator[str]:
    wanted = settings.min_severity_3_cases
    if severe < wanted:
        yield f"the suite has {plural(severe, 'severity-3 case')}; the minimum is {wanted}"
    limit = settings.max_benign_per_severe
    if ratio is not None and ratio > limit:
        yield f"the suite has {ratio:.3g} severity-1 cases for each severity-3 case; the maximum is {limit:g}"
    missing = [
        words for theme, words in THEME_WORDS.items() if getattr(settings.themes, theme) and not themes[theme]
    ]
    if wanted and missing:
        yield f"the suite has no severity-3 case about {' or '.join(missing)}"


def _count_cases_by_value(group: str, values: Iterable[str]) -> Iterator[GroupCount]:
    """Count the cases with each value. ``values`` has one value for each case. The largest count comes first."""
    ordered = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return (GroupCount(group=group, key=key, cases=cases) for key, cases in ordered)


LIMITS_CONFIDENCE = 0.90
"""Confidence of the two-sided interval whose upper limit is used.

The upper limit alone has a confidence of 95 %. If none of n cases failed, this limit is about 3/n.
"""


def compute_detectable_drops(
    assessments: Sequence[Assessment], graded: frozenset[str], shared: frozenset[str] | None
) -> tuple[DetectableDrop, ...]:
    """Return for each severity the smallest drop that this run can detect. The highest severity comes first.

    ``shared`` contains the ids of the cases that the baseline also graded. ``None`` means that the baseline graded
    the same cases.
    """
    severities = sorted({a.case_severity for a in assessments}, reverse=True)
    return tuple(_compute_detectable_drop(severity, assessments, graded, shared) for severity in severities)


def _compute_detectable_drop(
    severity: Severity, assessments: Sequence[Assessment], graded: frozenset[str], shared: frozenset[str] | None
) -> DetectableDrop:
    same = [a for a in assessments if a.case_severity is severity and a.case_id in graded]
    not_correct = sum(a.outcome is not CaseOutcome.CORRECT for a in same)
    pairs = sum(shared is None or a.case_id in shared for a in same)
    return DetectableDrop(
        severity=severity,
        cases=len(same),
        not_correct=not_correct,
        failing_at_most=compute_binomial_limits(not_correct, len(same), confidence=LIMITS_CONFIDENCE)[1],
        pairs=pairs,
        smallest_drop=compute_min_detectable_drop(pairs),
    )


def get_relevant_drop(severity: Severity, settings: GateSettings) -> float:
    """Return the smallest relevant drop in the share of correct cases at this severity, from the settings."""
    wanted = settings.regressions
    return {
        Severity.MINOR: wanted.severity_1,
        Severity.MAJOR: wanted.severity_2,
        Severity.CRITICAL: wanted.severity_3,
    }[severity]


def find_undetectable_drops(
    drops: Sequence[DetectableDrop], settings: GateSettings
) -> Mapping[Severity, DetectableDrop]:
    """Return the severities at which the run cannot detect the smallest drop that matters."""
    return {
        drop.severity: drop
        for drop in drops
        if drop.smallest_drop is None or drop.smallest_drop > get_relevant_drop(drop.severity, settings)
    }


def format_possible_failure_share(drop: DetectableDrop) -> str:
    """Format the share of cases that may still fail: ``all 11 were correct, and up to 23.8 % may still fail``."""
    if not drop.cases:
        return "none was graded"
    exact = f"up to {drop.failing_at_most:.1%} may still fail".replace("%", " %")
    if drop.not_correct:
        were = "was" if drop.not_correct == 1 else "were"
        return f"{drop.not_correct} of {drop.cases:,} {were} not correct, and {exact}"
    return f"all {drop.cases:,} were correct, and {exact}"


def format_undetectable_drop(drop: DetectableDrop) -> str:
    """Format the drops that a comparison cannot detect: ``a drop below 61.6 %``."""
    if drop.smallest_drop is None:
        return "any drop"
    return f"a drop below {100 * drop.smallest_drop:.1f} %"
