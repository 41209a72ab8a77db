"""Named shares of a run with their intervals and targets, and how each group of cases did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from monitors.gate.settings import GateSettings
from monitors.records.base import Finding, Language
from monitors.records.grades import Aspect, Assessment, CaseOutcome, Judged
from monitors.records.runs import Breakdown, Metric
from monitors.stats import wilson

UNKNOWN_PATH = "not said"
"""The path of an answer whose application does not say which one it took."""


def metrics(assessments: Sequence[Assessment], settings: GateSettings) -> tuple[Metric, ...]:
    """Factual and citation accuracy, refusal precision, accuracy by language, the share in the right language.

    Each is over the assessments that have the finding; what could not be told is in neither number.
    """
    targets = settings.targets
    answers = [a for a in assessments if not a.expected_refusal]
    refusals = [a for a in assessments if a.expected_refusal]
    return (
        _share("factual_accuracy", (a.factual_match for a in assessments), targets.factual_accuracy),
        _share("citation_accuracy", (a.citation_present for a in answers), targets.citation_accuracy),
        _share("refusal_precision", (a.refused for a in refusals), targets.refusal_precision),
        *_by_language(assessments, settings),
        _share("right_language", (_language_finding(a) for a in assessments), None),
    )


def _share(name: str, findings: Iterable[Finding], target: float | None) -> Metric:
    told = [finding for finding in findings if finding is not Finding.UNTOLD]
    passed = sum(finding is Finding.YES for finding in told)
    low, high = wilson(passed, len(told))
    met = Finding.UNTOLD
    if target is not None and told:
        met = Finding.YES if passed / len(told) >= target else Finding.NO
    return Metric(name=name, passed=passed, total=len(told), low=low, high=high, target=target, met=met)


def _by_language(assessments: Sequence[Assessment], settings: GateSettings) -> list[Metric]:
    """Accuracy per language; Hindi's target is English less the gap, once there are cases enough to ask."""
    found = [language for language in Language if any(a.language is language for a in assessments)]
    plain = {language: _accuracy_in(language, assessments, None) for language in found}
    english, hindi = plain.get(Language.ENGLISH), plain.get(Language.HINDI)
    if english and hindi and english.total and hindi.total >= settings.min_language_cases:
        target = max(0.0, english.passed / english.total - settings.targets.language_gap)
        plain[Language.HINDI] = _accuracy_in(Language.HINDI, assessments, target)
    return list(plain.values())


def _accuracy_in(language: Language, assessments: Sequence[Assessment], target: float | None) -> Metric:
    findings = (a.factual_match for a in assessments if a.language is language)
    return _share(f"factual_accuracy:{language}", findings, target)


def _language_finding(assessment: Assessment) -> Finding:
    verdicts = [g.passed for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.LANGUAGE]
    if not verdicts:
        return Finding.UNTOLD
    return Finding.YES if all(verdicts) else Finding.NO


def breakdowns(assessments: Sequence[Assessment]) -> tuple[Breakdown, ...]:
    """How each type, language, path and severity did; the largest group of each first."""
    groups: dict[str, Callable[[Assessment], str]] = {
        "type": lambda a: a.type,
        "language": lambda a: a.language,
        "path": lambda a: a.app_path or UNKNOWN_PATH,
        "severity": lambda a: str(a.case_severity.value),
    }
    return tuple(row for group, key in groups.items() for row in _grouped(group, key, assessments))


def _grouped(group: str, key: Callable[[Assessment], str], assessments: Sequence[Assessment]) -> list[Breakdown]:
    members: dict[str, list[CaseOutcome]] = {}
    for assessment in assessments:
        members.setdefault(key(assessment), []).append(assessment.outcome)
    rows = [
        Breakdown(
            group=group,
            key=name,
            cases=len(outcomes),
            correct=outcomes.count(CaseOutcome.CORRECT),
            failed=outcomes.count(CaseOutcome.FAILED),
            no_answer=outcomes.count(CaseOutcome.NO_ANSWER),
            untold=outcomes.count(CaseOutcome.UNTOLD),
        )
        for name, outcomes in members.items()
    ]
    return sorted(rows, key=lambda row: (-row.cases, row.key))
