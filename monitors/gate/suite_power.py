"""A suite's balance and power: whether it asks about what hurts, and what a run of it could have seen. Pure.

Cases by severity, type, language and theme are compared with what is wanted: a suite of four hundred harmless
questions and three severe ones measures manners, and its score hardly moves when somebody's account number leaks.

What a run could have seen is reckoned by severity, whatever it did see: a PASS proves no more than this. Cases are
grouped by the severity that they were written with, which nothing that comes back can change: a share of cases that
were put in a group because they failed says nothing about others.
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
from monitors.stats.intervals import binomial_limits
from monitors.stats.paired import smallest_drop

OTHER_THEME: Final = "other"
THEME_WORDS: Final = {
    "personal_data": "personal data",
    "destructive_action": "destructive actions",
    "financial_claim": "financial claims",
}


def balance_of(cases: Iterable[GoldCase], settings: GateSettings) -> Balance:
    """How ``cases`` are spread, and in words what is missing. Themes are counted over severity-3 cases alone."""
    suite = tuple(cases)
    severities = Counter(case.severity for case in suite)
    themes = Counter(theme_of(case.type, settings.themes) for case in suite if case.severity is Severity.PAGE)
    severe = severities[Severity.PAGE]
    ratio = severities[Severity.ANNOYING] / severe if severe else None
    groups = (
        *(_count("severity", str(severity.value), severities[severity]) for severity in Severity),
        *_counts("type", (case.type for case in suite)),
        *_counts("language", (case.language.value for case in suite)),
        *(_count("theme", theme, themes[theme]) for theme in (*THEME_WORDS, OTHER_THEME)),
    )
    return Balance(
        cases=len(suite),
        groups=groups,
        benign_per_severe=ratio,
        shortfalls=tuple(_shortfalls(severe, ratio, themes, settings)),
    )


def theme_of(case_type: str, themes: Themes) -> str:
    """What a case of this type is about: the first theme that names the type or a word of its name."""
    words = {case_type.lower(), *re.split(r"[^a-z0-9]+", case_type.lower())}
    for theme in THEME_WORDS:
        named: Sequence[str] = getattr(themes, theme)
        if words & {name.lower() for name in named}:
            return theme
    return OTHER_THEME


def _shortfalls(severe: int, ratio: float | None, themes: Counter[str], settings: GateSettings) -> Iterator[str]:
    wanted = settings.min_severity_3_cases
    if severe < wanted:
        yield f"the suite has {plural(severe, 'severity-3 case')}; at least {wanted} are wanted"
    limit = settings.max_benign_per_severe
    if ratio is not None and ratio > limit:
        yield f"{ratio:.3g} severity-1 cases for each severity-3 case; at most {limit:g} are wanted"
    missing = [
        words for theme, words in THEME_WORDS.items() if getattr(settings.themes, theme) and not themes[theme]
    ]
    if wanted and missing:
        yield f"no severity-3 case is about {' or '.join(missing)}, by its type"


def _counts(group: str, values: Iterable[str]) -> Iterator[GroupCount]:
    """Largest first."""
    ordered = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return (_count(group, key, cases) for key, cases in ordered)


def _count(group: str, key: str, cases: int) -> GroupCount:
    return GroupCount(group=group, key=key, cases=cases)


ONE_SIDED = 0.90
"""Two-sided limits at 90 % leave 5 % above: one-sided 95 %, which for no failure is the rule of three's 3/n."""


def sights_of(
    assessments: Sequence[Assessment], graded: frozenset[str], shared: frozenset[str] | None
) -> tuple[DetectableDrop, ...]:
    """One for each severity that the suite has, severest first.

    ``shared`` are the cases graded in the baseline too; without a baseline, one that graded the same is supposed.
    """
    severities = sorted({a.case_severity for a in assessments}, reverse=True)
    return tuple(_sight(severity, assessments, graded, shared) for severity in severities)


def _sight(
    severity: Severity, assessments: Sequence[Assessment], graded: frozenset[str], shared: frozenset[str] | None
) -> DetectableDrop:
    same = [a for a in assessments if a.case_severity is severity and a.case_id in graded]
    not_correct = sum(a.outcome is not CaseOutcome.CORRECT for a in same)
    pairs = sum(shared is None or a.case_id in shared for a in same)
    return DetectableDrop(
        severity=severity,
        cases=len(same),
        not_correct=not_correct,
        failing_at_most=binomial_limits(not_correct, len(same), confidence=ONE_SIDED)[1],
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


def blind_spots(sights: Sequence[DetectableDrop], settings: GateSettings) -> Mapping[Severity, DetectableDrop]:
    """The severities in which a drop that matters would have gone unnoticed."""
    return {
        sight.severity: sight
        for sight in sights
        if sight.smallest_drop is None or sight.smallest_drop > that_matters(sight.severity, settings)
    }


def format_limit(sight: DetectableDrop) -> str:
    """What the failures seen still allow: ``all 11 were correct, and up to 23.8 % may still fail (3/11)``."""
    if not sight.cases:
        return "none was graded"
    exact = f"up to {sight.failing_at_most:.1%} may still fail".replace("%", " %")
    if sight.not_correct:
        were = "was" if sight.not_correct == 1 else "were"
        return f"{sight.not_correct} of {sight.cases:,} {were} not correct, and {exact}"
    return f"all {sight.cases:,} were correct, and {exact} (3/{sight.cases:,})"


def format_drop(sight: DetectableDrop) -> str:
    """What a comparison would not have noticed: ``a drop below 61.6 %``."""
    if sight.smallest_drop is None:
        return "any drop"
    return f"a drop below {100 * sight.smallest_drop:.1f} %"
