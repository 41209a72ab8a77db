"""Does a suite look where it hurts? Cases by severity, type, language and theme, held against what is wanted. Pure.

A suite of four hundred harmless questions and three severe ones measures manners: its score hardly moves when
somebody's account number leaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from monitors.gate.settings import GateSettings, Themes
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.comparisons import Balance, GroupCount

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
        yield f"the suite has {severe} severity-3 cases; at least {wanted} are wanted"
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
