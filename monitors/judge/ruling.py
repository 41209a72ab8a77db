"""What became of one case before the judges: a decision, or a reason why there is none."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from monitors.judge.consensus import Decision
from monitors.judge.model import RequestId, Usage
from monitors.judge.prompt import Subject, Task
from monitors.records.base import Blame, Finding, Record, Severity
from monitors.records.grades import JudgeLineage


class JudgeCase(Record):
    """One answer to be judged. ``rules`` is what the graders without a model said on the same question."""

    id: RequestId
    subject: Subject
    severity: Severity
    rules: Finding = Finding.UNTOLD

    @property
    def task(self) -> Task:
        """What its judges are asked to do."""
        return self.subject.task


class Cost(Record):
    """What something took: calls, tokens, money. Adds up."""

    calls: Annotated[int, Field(ge=0)] = 0
    input_tokens: Annotated[int, Field(ge=0)] = 0
    cached_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
        )


def cost_of(usage: Usage, usd: Decimal) -> Cost:
    """One call. Tokens written to the cache are input, those read from it are told apart."""
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    return Cost(
        calls=1,
        input_tokens=usage.input_tokens + written,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        usd=usd,
    )


class Ruled(Record):
    """The judges decided. ``lineage`` names the model that answered, not the one that was asked."""

    status: Literal["ruled"] = "ruled"
    case: JudgeCase
    decision: Decision
    lineage: JudgeLineage
    cost: Cost


class Unruled(Record):
    """Nobody decided: neither pass nor fail. ``budget`` is true when the money was spent."""

    status: Literal["unruled"] = "unruled"
    case: JudgeCase
    reason: str
    blame: Blame
    cost: Cost
    budget: bool = False


Ruling = Annotated[Ruled | Unruled, Field(discriminator="status")]
