"""Is a user who writes Hindi told the right thing as often as one who writes English? Over paired questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from monitors.gate.paired_difference import Paired, paired_difference
from monitors.records.base import Finding, Language
from monitors.records.grades import Assessment
from monitors.records.parity import ParityGap

FEWEST_PAIRS = 10
"""Below it one answer is a tenth, and a gap of five points cannot be asked for."""

_ROUNDING = 1e-9
"""Two shares of twenty differ by exactly 0.05 as people count, and by 0.05 and a bit as floats do."""


def parity(
    assessments: Sequence[Assessment], *, most_gap: float | None = None, fewest_pairs: int = FEWEST_PAIRS
) -> tuple[ParityGap, ...]:
    """The gap of every other language against English, over cases that share a ``pair``; none without pairs.

    A case asked several times is right when it was right each time. A pair is left out when one of its sides could
    not be told: neither right nor wrong. ``most_gap`` is the largest gap that is accepted (0.05 = five points).
    """
    told: dict[str, dict[Language, Finding]] = defaultdict(dict)
    for one in assessments:
        if one.pair is not None:
            found = told[one.pair]
            found[one.language] = _worse(found.get(one.language), one.factual_match)
    others = sorted({language for found in told.values() for language in found} - {Language.ENGLISH})
    gaps = (_gap(language, told.values(), most_gap, fewest_pairs) for language in others)
    return tuple(gap for gap in gaps if gap.pairs + gap.left_out)


def _gap(
    language: Language, told: Iterable[Mapping[Language, Finding]], most_gap: float | None, fewest_pairs: int
) -> ParityGap:
    shared = [(one[Language.ENGLISH], one[language]) for one in told if {Language.ENGLISH, language} <= one.keys()]
    counted = Counter(pair for pair in shared if Finding.UNTOLD not in pair)
    yes, no = Finding.YES, Finding.NO
    table = Paired(counted[yes, yes], counted[yes, no], counted[no, yes], counted[no, no])
    gap, low, high = paired_difference(table)
    met = Finding.UNTOLD
    if most_gap is not None and table.total >= max(1, fewest_pairs):
        met = Finding.YES if gap <= most_gap + _ROUNDING else Finding.NO
    return ParityGap(
        language=language,
        both=table.both,
        english_only=table.first_only,
        other_only=table.second_only,
        neither=table.neither,
        left_out=len(shared) - table.total,
        gap=gap,
        low=low,
        high=high,
        target=most_gap,
        met=met,
    )


def _worse(before: Finding | None, now: Finding) -> Finding:
    """Wrong once is wrong; not told once, and never wrong, is not told."""
    if before is None or before is now:
        return now
    return Finding.NO if Finding.NO in (before, now) else Finding.UNTOLD
