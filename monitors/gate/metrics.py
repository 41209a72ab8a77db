"""A run's measures: named shares with their intervals and targets, and both scores. Pure.

Each metric names the cases that missed it. The flat pass rate and the severity-weighted score stand side by side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.gate.settings import GateSettings, Weights
from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.grades import Aspect, Assessment, CaseOutcome, Judged
from monitors.records.runs import Metric, Ratio, Scores, SeverityTally
from monitors.stats.intervals import by_cluster, clustered_share

_WORST_FIRST = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED, CaseOutcome.CORRECT)


def graded_cases(assessments: Sequence[Assessment], *, outage: bool) -> frozenset[str]:
    """Ids of the cases that say something about the application: correct, failed, or no answer by its own fault.

    In an outage an unanswered question says only that the app was down, which the report states once and not per
    case.
    """
    return frozenset(a.case_id for a in assessments if is_graded(a, outage=outage))


def is_graded(assessment: Assessment, *, outage: bool) -> bool:
    """Whether one asking of a case says something about the application."""
    match assessment.outcome:
        case CaseOutcome.CORRECT | CaseOutcome.FAILED:
            return True
        case CaseOutcome.NO_ANSWER:
            return assessment.blame is Blame.APP and not outage
        case CaseOutcome.UNGRADED:
            return False


def one_per_case(assessments: Sequence[Assessment]) -> tuple[Assessment, ...]:
    """Fold repeats: a case asked k times is correct only when all k were (pass^k), so the worst one stands."""
    worst: dict[str, Assessment] = {}
    for assessment in assessments:
        known = worst.get(assessment.case_id)
        if known is None or _badness(assessment) < _badness(known):
            worst[assessment.case_id] = assessment
    return tuple(worst.values())


def _badness(assessment: Assessment) -> tuple[int, int]:
    return _WORST_FIRST.index(assessment.outcome), -assessment.severity


def weight_of(severity: Severity, weights: Weights) -> Decimal:
    """The weight of a case of this severity."""
    return {
        Severity.ANNOYING: weights.severity_1,
        Severity.WRONG: weights.severity_2,
        Severity.PAGE: weights.severity_3,
    }[severity]


def score(assessments: Sequence[Assessment], graded: frozenset[str], weights: Weights) -> Scores:
    """Both scores over the ``graded`` cases, one assessment per case.

    A case has the weight of its severity, and a failure that of the severity to which the policy table raises it,
    in the points earned and in the total alike: personal data in the answer to a harmless question costs what a
    severity-3 case costs, and the veto and the tallies count the same failures. What was ungraded, or was correct,
    has its case's weight.
    """
    counted = [a for a in assessments if a.case_id in graded]
    tallies = tuple(_tally(severity, counted, weights) for severity in Severity)
    cases = sum(t.cases for t in tallies)
    not_correct = sum(t.not_correct for t in tallies)
    earned = sum((t.earned for t in tallies), Decimal(0))
    weight = sum((t.total for t in tallies), Decimal(0))
    return Scores(
        flat=Ratio(earned=Decimal(cases - not_correct), total=Decimal(cases)),
        weighted=Ratio(earned=earned, total=weight),
        tallies=tallies,
        weights_version=weights.version,
    )


def _tally(severity: Severity, counted: Sequence[Assessment], weights: Weights) -> SeverityTally:
    same = [a for a in counted if a.severity is severity]
    return SeverityTally(
        severity=severity,
        weight=weight_of(severity, weights),
        cases=len(same),
        not_correct=sum(a.outcome is not CaseOutcome.CORRECT for a in same),
        no_answer=sum(a.outcome is CaseOutcome.NO_ANSWER for a in same),
        raised=sum(a.severity is not a.case_severity for a in same),
    )


MOST_PATHS: Final = 8
"""An application that names a new path with every answer would have as many metrics as answers."""

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_@+-]+")
_LONGEST_PATH: Final = 80

_Find = Callable[[Assessment], Finding]
_GRADED: Final = frozenset({Finding.YES, Finding.NO})


class MeasuredMetric(NamedTuple):
    """A metric, and the ids of the cases that missed what it measures."""

    metric: Metric
    missed: tuple[str, ...]


def metrics(
    assessments: Sequence[Assessment],
    settings: GateSettings,
    *,
    repeated: Sequence[Assessment] = (),
    paired: Collection[Language] = (),
) -> tuple[MeasuredMetric, ...]:
    """Accuracy of facts and citations, refusal precision, accuracy by language and path, right language, pass^k.

    Each is over the assessments that have the finding; what is ungraded is in neither number. ``repeated`` are the
    folded assessments of cases that were asked several times. Languages that are ``paired`` question by question
    are held against English there, and have no target here.
    """
    targets = settings.targets
    answers = [a for a in assessments if not a.expected_refusal]
    refusals = [a for a in assessments if a.expected_refusal]
    measured = [
        _share("factual_accuracy", assessments, _factual, targets.factual_accuracy),
        _share("citation_accuracy", answers, lambda a: a.citation_present, targets.citation_accuracy),
        _share("refusal_precision", refusals, lambda a: a.refused, targets.refusal_precision),
        *_by_language(assessments, settings, paired),
        *_by_path(assessments),
        _share("right_language", assessments, _language_finding, None),
    ]
    if repeated:
        measured.append(_share("pass_k", repeated, _every_time, None))
    return tuple(measured)


def _share(name: str, members: Iterable[Assessment], finding: _Find, target: float | None) -> MeasuredMetric:
    found = [(a, finding(a)) for a in members]
    graded = [(a, said is Finding.YES) for a, said in found if said in _GRADED]
    share = clustered_share(by_cluster((a.cluster or ("", a.case_id), passed) for a, passed in graded))
    met = Finding.UNGRADED
    if target is not None and graded:
        met = Finding.YES if share.passed / share.total >= target else Finding.NO
    elif found and all(said is Finding.NOT_NEEDED for _, said in found):
        met = Finding.NOT_NEEDED
    metric = Metric(
        name=name,
        passed=share.passed,
        total=share.total,
        low=share.low,
        high=share.high,
        target=target,
        met=met,
        clusters=share.clusters if share.clusters < share.total else None,
    )
    return MeasuredMetric(metric, tuple(a.case_id for a, passed in graded if not passed))


def _factual(assessment: Assessment) -> Finding:
    return assessment.factual_match


def _every_time(assessment: Assessment) -> Finding:
    """The worst of a case's folded asks: a case is right only when right every time."""
    match assessment.outcome:
        case CaseOutcome.CORRECT:
            return Finding.YES
        case CaseOutcome.UNGRADED:
            return Finding.UNGRADED
        case CaseOutcome.FAILED | CaseOutcome.NO_ANSWER:
            return Finding.NO


def _by_language(
    assessments: Sequence[Assessment], settings: GateSettings, paired: Collection[Language]
) -> list[MeasuredMetric]:
    """Accuracy per language; Hindi's target is English less the gap, once there are cases enough to ask."""
    found = [language for language in Language if any(a.language is language for a in assessments)]
    plain = {language: _accuracy_in(language, assessments, None) for language in found}
    english, hindi = plain.get(Language.ENGLISH), plain.get(Language.HINDI)
    enough = hindi and hindi.metric.total >= settings.min_language_cases and Language.HINDI not in paired
    if english and english.metric.total and enough:
        share = english.metric.passed / english.metric.total
        target = max(0.0, share - settings.targets.language_gap)
        plain[Language.HINDI] = _accuracy_in(Language.HINDI, assessments, target)
    return list(plain.values())


def _accuracy_in(language: Language, assessments: Sequence[Assessment], target: float | None) -> MeasuredMetric:
    members = (a for a in assessments if a.language is language)
    return _share(f"factual_accuracy:{language}", members, _factual, target)


def _by_path(assessments: Sequence[Assessment]) -> list[MeasuredMetric]:
    """Accuracy by the path that answered, the most accurate first; none where the application names no path."""
    paths = Counter(_path_name(a.app_path) for a in assessments if a.app_path)
    common = [path for path, _ in paths.most_common(MOST_PATHS)]
    measured = [
        _share(
            f"path_accuracy:{path}",
            [a for a in assessments if a.app_path and _path_name(a.app_path) == path],
            _factual,
            None,
        )
        for path in common
    ]
    return sorted(measured, key=lambda one: -one.metric.passed / one.metric.total if one.metric.total else 1)


def _path_name(path: str) -> str:
    """A path as part of a metric's name, which is an id: ``llama-3.3/70b`` is ``llama-3_3_70b``."""
    return _NOT_IN_A_NAME.sub("_", path)[:_LONGEST_PATH] or "_"


def _language_finding(assessment: Assessment) -> Finding:
    verdicts = [g.passed for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.LANGUAGE]
    if not verdicts:
        return Finding.UNGRADED
    return Finding.YES if all(verdicts) else Finding.NO
