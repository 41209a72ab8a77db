"""What a judging model is: one method, a prompt in, its words and what they cost out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Protocol, runtime_checkable

from pydantic import Field

from monitors.errors import GradingError, JudgeRefused, VerdictUnreadable
from monitors.records.base import Record

RequestId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""What a batch is keyed by; the pattern is that of Anthropic's ``custom_id``."""

BYTES_PER_TOKEN: Final = 3
"""Where tokens must be guessed. Cautious: English has four bytes to one, Devanagari about three."""

Tokens = Annotated[int, Field(ge=0)]


class Usage(Record):
    """Tokens of one reply as the provider counted them. ``input_tokens`` are those neither written nor read.

    ``batch`` is true where the provider charged its price for batches.
    """

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_write_5m_tokens: Tokens = 0
    cache_write_1h_tokens: Tokens = 0
    cache_read_tokens: Tokens = 0
    batch: bool = False


class Stop(StrEnum):
    """Why the model stopped writing."""

    DONE = "done"
    CUT = "cut"
    """It reached the most it was allowed to write."""
    REFUSED = "refused"


class JudgePrompt(Record):
    """One question to a judge. ``instructions`` are ours and the same for many; ``material`` is fenced data."""

    id: RequestId
    instructions: str
    material: str
    schema_name: str = "verdict"
    max_tokens: Annotated[int, Field(ge=64, le=8192)] = 1024


class Reply(Record):
    """What a model wrote. Nothing in it is believed before `monitors.judge.verdict` has read it.

    ``answered_by`` is the model that the provider says answered, which may be another than the one asked.
    """

    text: str
    stop: Stop
    answered_by: str
    usage: Usage = Usage()


def require_finished(reply: Reply) -> None:
    """`JudgeRefused` or `VerdictUnreadable` where the model did not write to the end."""
    if reply.stop is Stop.REFUSED:
        raise JudgeRefused(f"{reply.answered_by} declined to grade this answer")
    if reply.stop is Stop.CUT:
        raise VerdictUnreadable(f"{reply.answered_by} was cut off before its verdict was complete")


class JudgeModel(Protocol):
    """A model that can be asked. ``name`` is the model id as configured."""

    @property
    def name(self) -> str:
        """The model that is asked for."""
        ...

    async def verdict(self, prompt: JudgePrompt) -> Reply:
        """Ask. `JudgeUnavailable` when no reply came within the deadline and the tries that are allowed.

        No error's text holds a key or an address.
        """
        ...


@runtime_checkable
class BatchModel(Protocol):
    """A model that takes many prompts at once, later and cheaper."""

    async def submit(self, prompts: tuple[JudgePrompt, ...]) -> str:
        """Hand in a batch; its id. `JudgeUnavailable` when the provider does not take it."""
        ...

    async def has_ended(self, batch_id: str) -> bool:
        """Whether its replies can be collected. `JudgeUnavailable` when nobody says."""
        ...

    async def collect(self, batch_id: str) -> dict[str, Reply | GradingError]:
        """Reply or reason for every prompt that the batch has something for, by its id, in no order."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Stop what has not been begun. Never raises: what is lost then is money, not a grade."""
        ...
