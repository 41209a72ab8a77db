"""Collect attributes of the questions and answers of a run, to find what failed cases have in common.

Grades are not attributes, because failed cases share them by definition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from monitors.explain.first_look import find_shared_causes
from monitors.records.exchanges import Exchange
from monitors.records.explanations import FirstLook, Value
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult

ANSWER_LENGTHS: Final = (200, 800)
"""Minimum number of characters of a medium answer and of a long answer.

A medium answer is longer than a sentence, and a long answer is longer than a phone screen.
"""
LATENCY_LIMITS_S: Final = (2.0, 4.0, 10.0)
"""Limits in seconds between the classes of latency. 4 s is the default latency objective of a run."""
DECIDED_OUTCOMES: Final = frozenset({CaseOutcome.CORRECT, CaseOutcome.FAILED})


def find_causes_of_failed_cases(results: Iterable[CaseResult], redact: Callable[[str], str]) -> FirstLook:
    """Find what the failed cases of a run have in common.

    A case counts as failed if any of its repeats failed. Ungraded repeats are ignored. ``redact`` masks personal
    data in stored values that come from the application, such as a source or a version.
    """
    results_by_case: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        if result.assessment.outcome in DECIDED_OUTCOMES:
            results_by_case[result.case.id].append(result)
    chosen = [min(same, key=_is_correct) for same in results_by_case.values()]
    look = find_shared_causes(
        [collect_attributes(result) for result in chosen], [not _is_correct(result) for result in chosen]
    )
    causes = (
        cause.with_conditions(
            {name: redact(value) if isinstance(value, str) else value for name, value in cause.conditions.items()}
        )
        for cause in look.causes
    )
    return look.replace_causes(tuple(causes))


def _is_correct(result: CaseResult) -> bool:
    return result.assessment.outcome is CaseOutcome.CORRECT


def collect_attributes(result: CaseResult) -> dict[str, Value]:
    """Return the known attributes of one case, with readable names as keys."""
    case, exchange = result.case, result.result
    attributes: dict[str, Value] = {
        "type": case.type,
        "language": case.language.value,
        "severity": int(case.severity),
        "group": case.cluster_or_repository,
        "turns": len(case.turns),
        "expected": "a refusal" if case.expected_refusal else "an answer",
        "hour (UTC)": exchange.asked_at.hour,
        "attempts": 1 + len(exchange.failed_attempts),
    }
    if isinstance(exchange, Exchange):
        attributes |= _collect_answer_attributes(exchange)
    return {name: value for name, value in attributes.items() if value is not None}


def _collect_answer_attributes(exchange: Exchange) -> dict[str, Value]:
    return {
        "answered by": exchange.app_path,
        "version": exchange.app_version,
        "cited source": next(iter(exchange.separately_sent_citations), None),
        "answer": ("short", "medium", "long")[bisect_right(ANSWER_LENGTHS, len(exchange.graded_text))],
        "latency": _classify_latency(exchange.timings.total_ms / 1000),
    }


def _classify_latency(total_s: float) -> str:
    names: Sequence[str] = (
        f"under {LATENCY_LIMITS_S[0]:g} s",
        *(f"{low:g} to {high:g} s" for low, high in pairwise(LATENCY_LIMITS_S)),
        f"over {LATENCY_LIMITS_S[-1]:g} s",
    )
    return names[bisect_right(LATENCY_LIMITS_S, total_s)]
