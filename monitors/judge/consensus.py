"""Decide whether to ask more judges, and combine the opinions of all judges into a verdict.

The functions have no side effects.

The second judge is asked only if the answer is doubtful. An answer is doubtful in these cases:

- the first judge gave an unsure score;
- the case has severity 3;
- the first judge contradicts a grader without a model.

The third judge is asked only if the first two judges disagree, because two judges that agree cannot be outvoted.
Therefore, the verdict on a doubtful answer is the same as if all three judges were asked, and no single judge
decides it. If a share ``d`` of the answers is doubtful, and the second judge disagrees on a share ``q`` of them, an
answer costs on average ``1 + d * (1 + q)`` calls instead of 3. If the first judge is wrong but the answer is not
doubtful, this module does not detect the error. Canaries and spot checks can detect it.

A ruling is a decision of the judges, or the reason why there is no decision. A decision becomes a verdict with
lineage, cost and evidence. A reason becomes an abstention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from monitors.judge.model import RequestId, Usage
from monitors.judge.prompt import RUBRIC_VERSION, Subject, Task, load_instructions
from monitors.judge.verdict import CriteriaReading, JudgeVerdict
from monitors.records.base import Blame, Finding, Probability, Record, Severity
from monitors.records.exchanges import Channel, Exchange, WirePayload
from monitors.records.grades import (
    JUDGE,
    Abstained,
    Aspect,
    FailureKind,
    Judged,
    JudgeLineage,
    Span,
    UsefulnessCriterion,
)

UNSURE_SCORES = (0.3, 0.8)
"""The lower and the upper limit of unsure scores. A score between these limits is unsure.

If a judge gave a score outside these limits and grades the answer again, it gives the same verdict.
"""

QUORUM = 2
"""A doubtful answer passes only if at least this many of the three judges pass it."""


class Opinion(Record):
    """The verdict of one judge. ``judge`` is the id of the model that answered."""

    judge: str
    verdict: JudgeVerdict
    criteria: CriteriaReading = CriteriaReading()


class SecondOpinionReason(StrEnum):
    """The reason why one opinion is not enough."""

    UNSURE_SCORE = "unsure_score"
    SEVERITY_3 = "severity_3"
    AGAINST_RULES = "against_rules"


class JudgeDecision(Record):
    """The decision of the judges. The winning side consists of the judges that voted for this decision.

    - ``score``, ``rubric`` and ``criteria`` are the lowest values of the winning side.
    - ``speaker`` is the opinion with the lowest score on the winning side. This opinion is shown.
    - ``failure_kinds`` contains the failure kinds of the winning side, the most frequent first.
    - ``disagreement`` is empty if all judges agree.
    - ``unconfirmed`` is True if only one judge, and no rule, failed an answer that has severity 3 or needed a
      second opinion.
    """

    passed: bool
    score: Probability
    rubric: int
    failure_kinds: tuple[FailureKind, ...]
    speaker: Opinion
    criteria: CriteriaReading = CriteriaReading()
    asked: int
    disagreement: str = ""
    unconfirmed: bool = False


class Undecided(Record):
    """The result if the judges gave no verdict. ``reason`` is one sentence for the abstention."""

    reason: str
    asked: int


def find_second_opinion_reasons(
    first: Opinion, *, severity: Severity, rules: Finding
) -> frozenset[SecondOpinionReason]:
    """Return the reasons why the first opinion is not enough. The result is empty if one opinion is enough.

    ``rules`` states whether the facts of the answer are right, according to the graders that use no model.
    """
    low, high = UNSURE_SCORES
    reasons = {
        SecondOpinionReason.UNSURE_SCORE: low < first.verdict.score < high,
        SecondOpinionReason.SEVERITY_3: severity is Severity.CRITICAL,
        SecondOpinionReason.AGAINST_RULES: rules is not Finding.UNGRADED
        and first.verdict.factual_match != (rules is Finding.YES),
    }
    return frozenset(doubt for doubt, holds in reasons.items() if holds)


def is_next_opinion_necessary(
    opinions: Sequence[Opinion], doubts: frozenset[SecondOpinionReason], *, members_left: int
) -> bool:
    """Return whether to ask the next judge.

    The first judge is always asked. Another judge is asked only if the answer is doubtful, and only until two
    judges agree.
    """
    if members_left <= 0:
        return False
    if not opinions:
        return True
    votes = Counter(opinion.verdict.factual_match for opinion in opinions)
    return bool(doubts) and max(votes.values()) < QUORUM


def combine_judge_opinions(
    opinions: Sequence[Opinion],
    doubts: frozenset[SecondOpinionReason],
    *,
    members: int,
    severity: Severity,
    rules: Finding,
) -> JudgeDecision | Undecided:
    """Combine the opinions into a decision. ``members`` is the number of configured judges, 1 or 3.

    The majority decides; in a tie, the answer fails. An answer that a rule failed never passes. If three judges are
    configured and the answer is doubtful, two judges must pass it.
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
            reason="the judges passed the answer, but a rule failed it, and the rule decides",
            asked=asked,
        )
    if passed and doubts and members > 1 and len(passing) < QUORUM:
        return Undecided(
            reason="one judge passed the answer, but the required second judge did not answer "
            f"({_join_doubts(doubts)})",
            asked=asked,
        )
    is_single_failure = len(failing) == 1 and rules is not Finding.NO
    speaker = min(winners, key=lambda opinion: opinion.verdict.score)
    return JudgeDecision(
        passed=passed,
        score=speaker.verdict.score,
        rubric=min(opinion.verdict.rubric for opinion in winners),
        failure_kinds=() if passed else _rank_failure_kinds(failing),
        speaker=speaker,
        criteria=_find_lowest_score_per_criterion(winners),
        asked=asked,
        disagreement=_describe_disagreement(passing, failing),
        unconfirmed=not passed and is_single_failure and (severity is Severity.CRITICAL or bool(doubts)),
    )


def _find_lowest_score_per_criterion(winners: Sequence[Opinion]) -> CriteriaReading:
    """Return the verdict with the lowest score for each criterion, from the winning judges.

    If no judge has readable criteria, return the problem.
    """
    ranked = [opinion.criteria for opinion in sorted(winners, key=lambda opinion: opinion.verdict.score)]
    answers = zip(*(reading.criteria for reading in ranked if reading.criteria), strict=True)
    lowest = tuple(min(same, key=lambda criterion: criterion.score) for same in answers)
    return CriteriaReading(criteria=lowest) if lowest else ranked[0]


def _rank_failure_kinds(failing: Sequence[Opinion]) -> tuple[FailureKind, ...]:
    counted = Counter(kind for opinion in failing for kind in opinion.verdict.failure_kinds)
    return tuple(kind for kind, _ in counted.most_common())


def _describe_disagreement(passing: Sequence[Opinion], failing: Sequence[Opinion]) -> str:
    if not passing or not failing:
        return ""
    right, wrong = (", ".join(opinion.judge for opinion in side) for side in (passing, failing))
    return f"the judges disagree: passed by {right}; failed by {wrong}"


_WORDS = {
    SecondOpinionReason.UNSURE_SCORE: "the judge's score is unsure",
    SecondOpinionReason.SEVERITY_3: "the case has severity 3",
    SecondOpinionReason.AGAINST_RULES: "a rule disagrees",
}


def _join_doubts(doubts: frozenset[SecondOpinionReason]) -> str:
    return " and ".join(_WORDS[doubt] for doubt in SecondOpinionReason if doubt in doubts)


class JudgeCase(Record):
    """An answer that judges grade.

    ``rules`` states whether the facts of the answer are right, according to the graders that use no model.
    """

    id: RequestId
    subject: Subject
    severity: Severity
    rules: Finding = Finding.UNGRADED

    @property
    def task(self) -> Task:
        """Return the task of the judges for this answer."""
        return self.subject.task


class Cost(Record):
    """The calls, tokens and money that were spent on judges. Two costs can be added."""

    calls: Annotated[int, Field(ge=0)] = 0
    input_tokens: Annotated[int, Field(ge=0)] = 0
    cached_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    estimated_calls: Annotated[int, Field(ge=0)] = 0
    """Number of calls whose tokens are estimated, because the provider did not count them."""

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        return Cost(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            estimated_calls=self.estimated_calls + other.estimated_calls,
        )


def build_cost(usage: Usage, usd: Decimal) -> Cost:
    """Return the cost of one call. Tokens that are written to the cache count as input."""
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    return Cost(
        calls=1,
        input_tokens=usage.input_tokens + written,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        usd=usd,
        estimated_calls=int(usage.estimated),
    )


class PanelRuling(Record):
    """A ruling with a decision of the judges.

    ``lineage`` names the model that answered, not the configured model.
    """

    status: Literal["ruled"] = "ruled"
    case: JudgeCase
    decision: JudgeDecision
    lineage: JudgeLineage
    cost: Cost


class NoRuling(Record):
    """The judges made no decision: neither pass nor fail. ``budget`` is True if the budget was spent."""

    status: Literal["unruled"] = "unruled"
    case: JudgeCase
    reason: str
    blame: Blame
    cost: Cost
    budget: bool = False


Ruling = Annotated[PanelRuling | NoRuling, Field(discriminator="status")]


REASON_CHARACTERS: Final = 600

JUDGE_OFF: Final = "the judge is off"
"""The beginning of the reason that is stored if a case has no verdict because the judge is off."""


def build_judge_grade(ruling: Ruling, exchange: Exchange) -> Judged | Abstained:
    """Return the judge's grade.

    A decision becomes a verdict, and a ruling without a decision becomes an abstention.
    """
    task = ruling.case.task
    if not isinstance(ruling, PanelRuling):
        return build_judge_abstention(ruling.reason, ruling.blame, task)
    decision = ruling.decision
    kinds = decision.failure_kinds
    reason = f"{decision.speaker.verdict.reason}; {decision.disagreement}".removesuffix("; ")
    return Judged(
        grader=JUDGE,
        version=format_judge_version(task),
        aspect=get_task_aspect(task),
        passed=decision.passed,
        failure_kind=None if decision.passed else kinds[0],
        score=decision.score,
        rubric=decision.rubric,
        criteria=tuple(
            UsefulnessCriterion(
                name=criterion.name,
                score=criterion.score,
                quote=_find_quote(criterion.quote, exchange),
                reason=criterion.reason,
            )
            for criterion in decision.criteria.criteria
        ),
        criteria_problem=decision.criteria.problem,
        reason=reason[:REASON_CHARACTERS],
        evidence=tuple(filter(None, (_find_quote(quote, exchange) for quote in decision.speaker.verdict.quotes))),
        lineage=ruling.lineage,
        cost_usd=ruling.cost.usd,
    )


def build_judge_abstention(reason: str, blame: Blame = Blame.MONITOR, task: Task = Task.FACTUAL) -> Abstained:
    """Return the grade of a judge that gives no verdict for ``reason``."""
    return Abstained(
        grader=JUDGE,
        version=format_judge_version(task),
        aspect=get_task_aspect(task),
        reason=reason[:REASON_CHARACTERS],
        blame=blame,
    )


def format_judge_version(task: Task) -> str:
    """Return the version of the judge. The version changes with every word of the instructions."""
    return f"{RUBRIC_VERSION}-{load_instructions(task).sha256[:12]}"


def get_task_aspect(task: Task) -> Aspect:
    """Return the aspect of a task. The rating of a report grades usefulness, not correctness."""
    return Aspect.USEFULNESS if task is Task.RUBRIC else Aspect.FACTUAL_MATCH


def _find_quote(quote: str, exchange: Exchange) -> Span | None:
    """Return the position of a quote in the original text, or ``None`` if the quote is empty or not in the text."""
    pattern = r"\s+".join(map(re.escape, quote.split()))
    place = re.search(pattern, exchange.graded_text) if pattern else None
    graded_on_wire = exchange.graded_channel is Channel.WIRE and isinstance(exchange.wire, WirePayload)
    where = Channel.WIRE if graded_on_wire else Channel.VISIBLE
    return place and Span(where=where, start=place.start(), end=place.end(), label="quoted by the judge")
