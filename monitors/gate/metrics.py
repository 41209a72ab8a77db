"""Compute the metrics and the two scores of a run.

A metric is a named share of cases, such as ``factual_accuracy``, with a confidence interval. A metric may have a
target. The two scores are the share of correct cases, and the weighted score, in which severe cases count more.
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
from monitors.stats.intervals import compute_clustered_share, count_by_cluster

_WORST_FIRST = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED, CaseOutcome.CORRECT)


def collect_graded_case_ids(assessments: Sequence[Assessment], *, outage: bool) -> frozenset[str]:
    """Return the ids of the cases that were graded.

    A case without an answer counts as graded (and wrong) if the application caused the missing answer. During an
    outage, such a case does not count as graded, because the report already names the outage.
    """
    return frozenset(a.case_id for a in assessments if is_graded(a, outage=outage))


def is_graded(assessment: Assessment, *, outage: bool) -> bool:
    """Return whether the assessment states that the application was right or wrong.

    Return True for correct and for failed cases. Return True also for a case without an answer, if the application
    caused the missing answer and there was no outage.
    """
    match assessment.outcome:
        case CaseOutcome.CORRECT | CaseOutcome.FAILED:
            return True
        case CaseOutcome.NO_ANSWER:
            return assessment.blame is Blame.APP and not outage
        case CaseOutcome.UNGRADED:
            return False


def select_worst_repeats(assessments: Sequence[Assessment]) -> tuple[Assessment, ...]:
    """Return the worst assessment of each case, so that a case is correct only if it was correct every time."""
    worst: dict[str, Assessment] = {}
    for assessment in assessments:
        previous = worst.get(assessment.case_id)
        if previous is None or _rank_worst_first(assessment) < _rank_worst_first(previous):
            worst[assessment.case_id] = assessment
    return tuple(worst.values())


def _rank_worst_first(assessment: Assessment) -> tuple[int, int]:
    return _WORST_FIRST.index(assessment.outcome), -assessment.severity


def get_weight(severity: Severity, weights: Weights) -> Decimal:
    """Return the weight of a case with the given severity from ``weights``."""
    return {
        Severity.MINOR: weights.severity_1,
        Severity.MAJOR: weights.severity_2,
        Severity.CRITICAL: weights.severity_3,
    }[severity]


def compute_scores(assessments: Sequence[Assessment], graded: frozenset[str], weights: Weights) -> Scores:
    """Return the flat and the weighted score of the ``graded`` cases.

    ``assessments`` contains one assessment for each case. A correct case has the weight of its own severity. A
    failed case has the weight of its failure's severity, which can be higher. For example, personal data in the
    answer to a harmless question costs as much as a severity-3 case.
    """
    counted = [a for a in assessments if a.case_id in graded]
    tallies = tuple(_count_cases_of_severity(severity, counted, weights) for severity in Severity)
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


def _count_cases_of_severity(severity: Severity, counted: Sequence[Assessment], weights: Weights) -> SeverityTally:
    same = [a for a in counted if a.severity is severity]
    return SeverityTally(
        severity=severity,
        weight=get_weight(severity, weights),
        cases=len(same),
        not_correct=sum(a.outcome is not CaseOutcome.CORRECT for a in same),
        no_answer=sum(a.outcome is CaseOutcome.NO_ANSWER for a in same),
        raised=sum(a.severity is not a.case_severity for a in same),
    )


MAX_PATHS: Final = 8
"""Maximum number of application paths (`app_path`) with a separate metric. The most frequent paths are selected.

The limit is needed because an application may report a new path with every answer.
"""

_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_@+-]+")
_MAX_PATH_CHARACTERS: Final = 80

_FindingOf = Callable[[Assessment], Finding]
_GRADED: Final = frozenset({Finding.YES, Finding.NO})


class MeasuredMetric(NamedTuple):
    """A metric, and the ids of the cases that count against it."""

    metric: Metric
    missed: tuple[str, ...]


def compute_metrics(
    assessments: Sequence[Assessment],
    settings: GateSettings,
    *,
    repeated: Sequence[Assessment] = (),
    paired: Collection[Language] = (),
) -> tuple[MeasuredMetric, ...]:
    """Return the metrics of a run: accuracy of facts, of citations and of refusals, by language and by path.

    Ungraded cases do not count. ``assessments`` contains one assessment for each case, and ``repeated`` contains
    the assessments of the cases that were asked several times. Languages in ``paired`` get no target here, because
    `compute_language_gaps` compares them with English.
    """
    targets = settings.targets
    answers = [a for a in assessments if not a.expected_refusal]
    refusals = [a for a in assessments if a.expected_refusal]
    measured = [
        _build_share_metric("factual_accuracy", assessments, _get_factual_finding, targets.factual_accuracy),
        _build_share_metric("citation_accuracy", answers, lambda a: a.citation_present, targets.citation_accuracy),
        _build_share_metric("refusal_precision", refusals, lambda a: a.refused, targets.refusal_precision),
        *_build_language_metrics(assessments, settings, paired),
        *_build_app_path_metrics(assessments),
        _build_share_metric("right_language", assessments, _get_reply_language_finding, None),
    ]
    if repeated:
        measured.append(_build_share_metric("pass_k", repeated, _convert_outcome_to_finding, None))
    return tuple(measured)


def _build_share_metric(
    name: str, members: Iterable[Assessment], get_finding: _FindingOf, target: float | None
) -> MeasuredMetric:
    findings = [(a, get_finding(a)) for a in members]
    graded = [(a, answer is Finding.YES) for a, answer in findings if answer in _GRADED]
    share = compute_clustered_share(
        count_by_cluster((a.cluster or ("", a.case_id), passed) for a, passed in graded)
    )
    met = Finding.UNGRADED
    if target is not None and graded:
        met = Finding.YES if share.passed / share.total >= target else Finding.NO
    elif findings and all(answer is Finding.NOT_NEEDED for _, answer in findings):
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


def _get_factual_finding(assessment: Assessment) -> Finding:
    return assessment.factual_match


def _convert_outcome_to_finding(assessment: Assessment) -> Finding:
    """Return whether a case was right every time that it was asked: YES, NO or UNGRADED."""
    match assessment.outcome:
        case CaseOutcome.CORRECT:
            return Finding.YES
        case CaseOutcome.UNGRADED:
            return Finding.UNGRADED
        case CaseOutcome.FAILED | CaseOutcome.NO_ANSWER:
            return Finding.NO


def _build_language_metrics(
    assessments: Sequence[Assessment], settings: GateSettings, paired: Collection[Language]
) -> list[MeasuredMetric]:
    """Return the accuracy by language.

    If there are enough cases in Hindi, the target for Hindi is the accuracy in English minus the allowed gap.
    """
    languages = [language for language in Language if any(a.language is language for a in assessments)]
    measured = {language: _build_language_metric(language, assessments, None) for language in languages}
    english, hindi = measured.get(Language.ENGLISH), measured.get(Language.HINDI)
    enough = hindi and hindi.metric.total >= settings.min_language_cases and Language.HINDI not in paired
    if english and english.metric.total and enough:
        share = english.metric.passed / english.metric.total
        target = max(0.0, share - settings.targets.language_gap)
        measured[Language.HINDI] = _build_language_metric(Language.HINDI, assessments, target)
    return list(measured.values())


def _build_language_metric(
    language: Language, assessments: Sequence[Assessment], target: float | None
) -> MeasuredMetric:
    members = (a for a in assessments if a.language is language)
    return _build_share_metric(f"factual_accuracy:{language}", members, _get_factual_finding, target)


def _build_app_path_metrics(assessments: Sequence[Assessment]) -> list[MeasuredMetric]:
    """Return the accuracy by path of the application (for example by model), the most accurate path first.

    The result is empty if the application does not report paths.
    """
    paths = Counter(_format_path_for_metric_name(a.app_path) for a in assessments if a.app_path)
    common = [path for path, _ in paths.most_common(MAX_PATHS)]
    measured = [
        _build_share_metric(
            f"path_accuracy:{path}",
            [a for a in assessments if a.app_path and _format_path_for_metric_name(a.app_path) == path],
            _get_factual_finding,
            None,
        )
        for path in common
    ]
    return sorted(measured, key=lambda row: -row.metric.passed / row.metric.total if row.metric.total else 1)


def _format_path_for_metric_name(path: str) -> str:
    """Replace the characters that a metric name cannot have: ``llama-3.3/70b`` becomes ``llama-3_3_70b``."""
    return _INVALID_NAME_CHARACTERS.sub("_", path)[:_MAX_PATH_CHARACTERS] or "_"


def find_reply_language_grade(assessment: Assessment) -> Judged | None:
    """Return the grade of the reply's language, preferably a failed grade. Return ``None`` if there is no grade."""
    grades = [g for g in assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.LANGUAGE]
    return min(grades, key=lambda grade: grade.passed, default=None)


def _get_reply_language_finding(assessment: Assessment) -> Finding:
    grade = find_reply_language_grade(assessment)
    if grade is None:
        return Finding.UNGRADED
    return Finding.YES if grade.passed else Finding.NO
