"""Named shares of a run with their intervals and targets, each with the cases that missed it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

from monitors.clusters import by_cluster, clustered_share
from monitors.gate.settings import GateSettings
from monitors.records.base import Finding, Language
from monitors.records.grades import Aspect, Assessment, CaseOutcome, Judged
from monitors.records.runs import Metric

MOST_PATHS: Final = 8
"""An application that names a new path with every answer would have as many metrics as answers."""

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_@+-]+")
_LONGEST_PATH: Final = 80

_Find = Callable[[Assessment], Finding]


class Measured(NamedTuple):
    """A metric, and the ids of the cases that missed what it measures."""

    metric: Metric
    missed: tuple[str, ...]


def metrics(
    assessments: Sequence[Assessment],
    settings: GateSettings,
    *,
    repeated: Sequence[Assessment] = (),
    paired: Collection[Language] = (),
) -> tuple[Measured, ...]:
    """Accuracy of facts and citations, refusal precision, accuracy by language and path, right language, pass^k.

    Each is over the assessments that have the finding; what could not be told is in neither number. ``repeated``
    are the folded assessments of cases that were asked several times. Languages that are ``paired`` question by
    question are held against English there, and have no target here.
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


def _share(name: str, members: Iterable[Assessment], finding: _Find, target: float | None) -> Measured:
    found = [(a, finding(a)) for a in members]
    told = [(a, said is Finding.YES) for a, said in found if said is not Finding.UNTOLD]
    share = clustered_share(by_cluster((a.cluster or ("", a.case_id), passed) for a, passed in told))
    met = Finding.UNTOLD
    if target is not None and told:
        met = Finding.YES if share.passed / share.total >= target else Finding.NO
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
    return Measured(metric, tuple(a.case_id for a, passed in told if not passed))


def _factual(assessment: Assessment) -> Finding:
    return assessment.factual_match


def _every_time(assessment: Assessment) -> Finding:
    """Folded over its asks, the worst one stands: right only when right every time."""
    match assessment.outcome:
        case CaseOutcome.CORRECT:
            return Finding.YES
        case CaseOutcome.UNTOLD:
            return Finding.UNTOLD
        case CaseOutcome.FAILED | CaseOutcome.NO_ANSWER:
            return Finding.NO


def _by_language(
    assessments: Sequence[Assessment], settings: GateSettings, paired: Collection[Language]
) -> list[Measured]:
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


def _accuracy_in(language: Language, assessments: Sequence[Assessment], target: float | None) -> Measured:
    members = (a for a in assessments if a.language is language)
    return _share(f"factual_accuracy:{language}", members, _factual, target)


def _by_path(assessments: Sequence[Assessment]) -> list[Measured]:
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
        return Finding.UNTOLD
    return Finding.YES if all(verdicts) else Finding.NO
