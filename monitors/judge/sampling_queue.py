"""Which judged answers people are asked about: a share of each kind, the same ones whoever asks and whenever.

Answers are drawn run by run from four kinds: passed and failed by the judge, of severity 3 and below. Each kind
gives its share and at least one, so that the rare ones (a failed severity 3) are looked at too. How likely an
answer was to be drawn stays with it, and whatever is reckoned from the labels is weighted by that.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from monitors.records.base import Severity
from monitors.records.reviews import AnswerId, JudgedAnswer, SpotCheck

Kind = tuple[str, str, bool, bool]
"""Target, run, whether the judge passed it, whether it is severity 3."""


def spot_checks(answers: Sequence[JudgedAnswer], share: float) -> tuple[SpotCheck, ...]:
    """The answers to look at, in an order that says nothing about the judge's verdict.

    ``share`` is in [0, 1]; with 0 nothing is drawn. A larger share draws all that a smaller one does, in whatever
    order the answers come. An answer that stands twice counts once.
    """
    kinds: dict[Kind, dict[AnswerId, JudgedAnswer]] = defaultdict(dict)
    for answer in answers if share > 0 else ():
        kinds[_kind(answer)][answer.answer_id] = answer
    drawn = [check for kind in kinds.values() for check in _drawn(list(kind.values()), share)]
    return tuple(sorted(drawn, key=lambda check: _place("shown", check.answer.answer_id)))


def _drawn(answers: Sequence[JudgedAnswer], share: float) -> Sequence[SpotCheck]:
    count = max(1, round(share * len(answers)))
    chosen = sorted(answers, key=lambda answer: _place("drawn", answer.answer_id))[:count]
    return [SpotCheck(answer=answer, inclusion_probability=count / len(answers)) for answer in chosen]


def _kind(answer: JudgedAnswer) -> Kind:
    return answer.target, answer.answer_id.run_id, answer.judge_passed, answer.severity is Severity.PAGE


def _place(purpose: str, answer_id: AnswerId) -> str:
    """A random place that never changes; another for drawing than for showing, so that neither tells the other."""
    parts = (purpose, answer_id.run_id, answer_id.case_id, str(answer_id.repeat))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
