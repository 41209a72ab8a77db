"""How far each judge can be believed, from what people said of the answers that were drawn for review."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from monitors.agreement import (
    Confusion,
    Estimate,
    agreement,
    corrected_pass_rate,
    effective,
    false_fail_rate,
    false_pass_rate,
)
from monitors.records.base import Identifier, Probability, Record
from monitors.records.grades import JudgeLineage
from monitors.records.reviews import JudgedAnswer, Reviewed

FEW = 30
"""With fewer answers reviewed, every interval is too wide to steer by; it is said so."""

Count = Annotated[int, Field(ge=0)]
_HASH_SHOWN = 8


class Interval(Record):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class Calibration(Record):
    """One judge against people, on one target.

    ``both_told`` answers were told by people and judge, ``agreed`` of them alike; these two are plain counts, all
    else is weighted by how likely an answer was to be drawn. ``kappa`` is Cohen's. The rates are shares of the
    answers that people find wrong or right. ``pass_rate`` is the judge's own over all ``judged`` answers,
    ``corrected_pass_rate`` what people would have found. What cannot be reckoned is absent.
    """

    target: Identifier
    lineage: JudgeLineage
    both_told: Count
    agreed: Count
    judged: Count
    pass_rate: Probability
    kappa: Interval | None = None
    false_pass_rate: Interval | None = None
    false_fail_rate: Interval | None = None
    corrected_pass_rate: Interval | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The figures in words, one a line; the first names the judge."""
        judge = f"{self.lineage.model}, prompt {self.lineage.prompt_sha256[:_HASH_SHOWN]}"
        head = f"{judge}, rubric {self.lineage.rubric_version}, on {self.target}"
        if not self.both_told:
            return head, f"no answer of {self.judged} was told by a person: `lookout review` asks for some"
        corrected = _percent(self.corrected_pass_rate, "cannot be told from these reviews")
        few = f"; fewer than {FEW}: take no figure here at its word" if self.both_told < FEW else ""
        return (
            head,
            f"people and judge say the same of {self.agreed} of {self.both_told} answers{few}",
            f"kappa {_plain(self.kappa)}",
            f"passes wrong answers: {_percent(self.false_pass_rate, 'no wrong answer was reviewed')}",
            f"fails right answers: {_percent(self.false_fail_rate, 'no right answer was reviewed')}",
            f"passed {100 * self.pass_rate:.1f} % of {self.judged}; corrected for its errors: {corrected}",
        )


def calibrate(reviewed: Sequence[Reviewed], judged: Sequence[JudgedAnswer]) -> tuple[Calibration, ...]:
    """Each judge of each target that graded any of ``judged``, those with most reviews first."""
    told: dict[tuple[str, JudgeLineage], list[Reviewed]] = defaultdict(list)
    for each in reviewed:
        told[each.target, each.lineage].append(each)
    graded: dict[tuple[str, JudgeLineage], list[bool]] = defaultdict(list)
    for answer in judged:
        graded[answer.target, answer.lineage].append(answer.judge_passed)
    found = [_one(*who, told.get(who, []), passed) for who, passed in graded.items()]
    return tuple(sorted(found, key=lambda each: (-each.both_told, each.target, each.lineage.model)))


def _one(target: str, lineage: JudgeLineage, told: Sequence[Reviewed], passed: Sequence[bool]) -> Calibration:
    counts = effective([(each.judge_passed, each.people_right, each.inclusion_probability) for each in told])
    return Calibration(
        target=target,
        lineage=lineage,
        both_told=len(told),
        agreed=sum(each.judge_passed == each.people_right for each in told),
        judged=len(passed),
        pass_rate=sum(passed) / len(passed),
        kappa=_interval(agreement(counts)),
        false_pass_rate=_interval(false_pass_rate(counts)),
        false_fail_rate=_interval(false_fail_rate(counts)),
        corrected_pass_rate=_corrected(passed, counts),
    )


def _corrected(passed: Sequence[bool], counts: Confusion) -> Interval | None:
    return _interval(corrected_pass_rate(sum(passed), len(passed), counts))


def _interval(found: Estimate | None) -> Interval | None:
    return Interval(value=found.value, low=found.low, high=found.high) if found else None


def _plain(interval: Interval | None) -> str:
    if interval is None:
        return "is not defined: one of them only ever said one thing"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _percent(interval: Interval | None, otherwise: str) -> str:
    if interval is None:
        return otherwise
    return f"{100 * interval.value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
