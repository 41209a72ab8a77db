"""One judge or three: when more are asked, and what their opinions come to. Pure.

The second judge is asked only when there is a doubt: the first is unsure of its score, the case is severity 3, or
the first contradicts a grader without a model. The third is asked only when the first two disagree, because two who
agree cannot be outvoted. With a share ``d`` of doubtful answers and a share ``q`` of these in which the second
disagrees, that costs ``1 + d * (1 + q)`` calls per answer instead of 3, and gives the verdict that asking all three
would have given on every doubtful answer. It buys this: where a verdict costs most, no fooled or careless judge
decides alone. What it cannot see is a first judge that is wrong and sure of it: canaries and spot checks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from monitors.judge.verdict import Verdict
from monitors.records.base import Finding, Probability, Record, Severity
from monitors.records.grades import FailureKind

UNSURE_SCORES = (0.3, 0.8)
"""A score strictly between these is a doubt. Below and above, judges that grade twice say the same."""

QUORUM = 2
"""Of three judges; a doubtful pass needs so many."""


class Opinion(Record):
    """What one judge said. ``judge`` is the model that answered."""

    judge: str
    verdict: Verdict


class Doubt(StrEnum):
    """Why one opinion is not enough."""

    UNSURE_SCORE = "unsure_score"
    SEVERITY_3 = "severity_3"
    AGAINST_RULES = "against_rules"


class Decision(Record):
    """What the judges came to. ``speaker`` is the opinion to be shown: of the winning side, the lowest score.

    ``score`` and ``rubric`` are the lowest of the winning side. ``failure_kinds`` are those of that side, the most
    often named first. ``disagreement`` is empty when all said the same. ``unconfirmed`` marks a failure that
    rests on one judge alone, where it would page somebody or where a second opinion was wanted and did not come.
    """

    passed: bool
    score: Probability
    rubric: int
    failure_kinds: tuple[FailureKind, ...]
    speaker: Opinion
    asked: int
    disagreement: str = ""
    unconfirmed: bool = False


class Undecided(Record):
    """No verdict: neither pass nor fail. ``reason`` is one sentence for the abstention."""

    reason: str
    asked: int


def doubts_about(first: Opinion, *, severity: Severity, rules: Finding) -> frozenset[Doubt]:
    """Why the first opinion is not enough; empty when it is.

    ``rules`` is what the graders without a model said on the same question: passed, failed, or nothing.
    """
    low, high = UNSURE_SCORES
    found = {
        Doubt.UNSURE_SCORE: low < first.verdict.score < high,
        Doubt.SEVERITY_3: severity is Severity.PAGE,
        Doubt.AGAINST_RULES: rules is not Finding.UNTOLD and first.verdict.factual_match != (rules is Finding.YES),
    }
    return frozenset(doubt for doubt, holds in found.items() if holds)


def is_another_needed(opinions: Sequence[Opinion], doubts: frozenset[Doubt], *, seats_left: int) -> bool:
    """Whether to ask the next judge: always for a first opinion, then in doubt until two agree."""
    if seats_left <= 0:
        return False
    if not opinions:
        return True
    votes = Counter(opinion.verdict.factual_match for opinion in opinions)
    return bool(doubts) and max(votes.values()) < QUORUM


def decide(
    opinions: Sequence[Opinion],
    doubts: frozenset[Doubt],
    *,
    seats: int,
    severity: Severity,
    rules: Finding,
) -> Decision | Undecided:
    """What the opinions come to. ``seats`` is how many judges are configured, 1 or 3, answering or not.

    The majority decides and a tie takes the worse. A pass against a rule that failed the answer is never given,
    whoever gives it. Where three are seated and there is a doubt, a pass needs two.
    """
    asked = len(opinions)
    if not opinions:
        return Undecided(reason="no judge gave a readable verdict", asked=0)
    passing = [opinion for opinion in opinions if opinion.verdict.factual_match]
    failing = [opinion for opinion in opinions if not opinion.verdict.factual_match]
    passed = len(passing) > len(failing)
    winners = passing if passed else failing
    if passed and rules is Finding.NO:
        return Undecided(
            reason="judged right, but a grader without a model failed it: its word stands", asked=asked
        )
    if passed and doubts and seats > 1 and len(passing) < QUORUM:
        return Undecided(reason=f"one judge passed it, {_why(doubts)}, and no second one answered", asked=asked)
    alone = len(failing) == 1 and rules is not Finding.NO
    speaker = min(winners, key=lambda opinion: opinion.verdict.score)
    return Decision(
        passed=passed,
        score=speaker.verdict.score,
        rubric=min(opinion.verdict.rubric for opinion in winners),
        failure_kinds=() if passed else _kinds(failing),
        speaker=speaker,
        asked=asked,
        disagreement=_disagreement(passing, failing),
        unconfirmed=not passed and alone and (severity is Severity.PAGE or bool(doubts)),
    )


def _kinds(failing: Sequence[Opinion]) -> tuple[FailureKind, ...]:
    counted = Counter(kind for opinion in failing for kind in opinion.verdict.failure_kinds)
    return tuple(kind for kind, _ in counted.most_common())


def _disagreement(passing: Sequence[Opinion], failing: Sequence[Opinion]) -> str:
    if not passing or not failing:
        return ""
    right, wrong = (", ".join(opinion.judge for opinion in side) for side in (passing, failing))
    return f"judges disagree: right says {right}; wrong says {wrong}"


_WORDS = {
    Doubt.UNSURE_SCORE: "unsure of it",
    Doubt.SEVERITY_3: "it is severity 3",
    Doubt.AGAINST_RULES: "a grader without a model says otherwise",
}


def _why(doubts: frozenset[Doubt]) -> str:
    return " and ".join(_WORDS[doubt] for doubt in Doubt if doubt in doubts)
