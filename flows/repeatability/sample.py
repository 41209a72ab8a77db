"""Selects the cases that a repeatability session asks twice: mostly severity 3, of all types and languages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Final

from monitors.records.base import Severity
from monitors.records.cases import GoldCase

TURNS_BY_SEVERITY: Final = {Severity.CRITICAL: 3, Severity.MAJOR: 2, Severity.MINOR: 1}
"""The weight of each severity in the selection of cases.

If the suite has equally many cases of each severity, three times as many cases of severity 3 as of severity 1 are
selected, because a single severity-3 failure fails a run.
"""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def sample_cases(
    cases: Sequence[GoldCase], count: int, last_asked: Mapping[str, datetime], rng: Random
) -> tuple[GoldCase, ...]:
    """Select up to ``count`` of ``cases``. Prefer cases that were never asked twice, then those asked longest ago.

    ``last_asked`` maps the id of a case to the time when it was last asked twice. ``rng`` breaks ties. Within a
    severity, types and languages alternate.
    """
    queues = {
        severity: list(
            _alternate_types_and_languages([case for case in cases if case.severity is severity], last_asked, rng)
        )
        for severity in TURNS_BY_SEVERITY
    }
    quotas = _compute_quotas({severity: len(queue) for severity, queue in queues.items()}, count)
    return tuple(case for severity, queue in queues.items() for case in queue[: quotas[severity]])


def _compute_quotas(available: Mapping[Severity, int], count: int) -> Mapping[Severity, int]:
    """Compute how many cases of each severity to select.

    ``available`` maps each severity to the number of its cases. No quota is higher than this number.
    """
    quotas = dict.fromkeys(available, 0)
    for _ in range(min(count, sum(available.values()))):
        open_ones = [severity for severity in available if quotas[severity] < available[severity]]
        neediest = min(
            open_ones,
            key=lambda severity: (quotas[severity] + 1) / (TURNS_BY_SEVERITY[severity] * available[severity]),
        )
        quotas[neediest] += 1
    return quotas


def _alternate_types_and_languages(
    cases: Iterable[GoldCase], last_asked: Mapping[str, datetime], rng: Random
) -> Iterator[GoldCase]:
    """Yield cases so that types and languages alternate.

    Among cases with the same type and language, the cases that were asked longest ago come first.
    """
    ordered = sorted(cases, key=lambda case: (last_asked.get(case.id, _NEVER), rng.random()))
    groups: defaultdict[tuple[str, str], list[GoldCase]] = defaultdict(list)
    for case in ordered:
        groups[case.type, case.language].append(case)
    rounds = max(map(len, groups.values()), default=0)
    for number in range(rounds):
        yield from (group[number] for group in groups.values() if number < len(group))
