"""A judging model: one method, a prompt in, its words and what they cost out.

A cost is tokens times a price that has a date and a source: data, and the arithmetic over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_UP, Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitors.errors import GradingError, JudgeRefused, VerdictUnreadable
from monitors.records.base import Record

RequestId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""What a batch is keyed by; the pattern is that of Anthropic's ``custom_id``."""

BYTES_PER_TOKEN: Final = 3
"""Where tokens must be guessed. Cautious: English has four bytes to one, Devanagari about three."""

Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""No call has as many; a larger count is not one, and would cost more than money can be stored."""


class Usage(Record):
    """Tokens of one reply as the provider counted them. ``input_tokens`` are those neither written nor read.

    ``batch`` is true where the provider charged its price for batches. ``estimated``: the provider counted nothing
    that can be true, so the tokens are estimated from the texts (`estimate_usage`).
    """

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_write_5m_tokens: Tokens = 0
    cache_write_1h_tokens: Tokens = 0
    cache_read_tokens: Tokens = 0
    batch: bool = False
    estimated: bool = False


def read_usage(**counts: object) -> Usage:
    """Return the usage that a provider reports; one to be estimated where a count is missing or cannot be true."""
    try:
        return Usage.model_validate(counts, strict=True)
    except ValidationError:
        return Usage(batch=counts.get("batch") is True, estimated=True)


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


class ModelReply(Record):
    """A model's reply, unchecked until `monitors.judge.verdict` has read it.

    ``answered_by`` is the model that the provider says answered, which may be another than the one asked.
    """

    text: str
    stop: Stop
    answered_by: str
    usage: Usage = Usage()


def estimate_usage(reply: ModelReply, prompt: JudgePrompt) -> ModelReply:
    """Return the reply with its tokens estimated, where the provider did not count them."""
    if not reply.usage.estimated:
        return reply
    asked, written = (
        -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
        for text in (prompt.instructions + prompt.material, reply.text)
    )
    usage = reply.usage.model_copy(update={"input_tokens": asked, "output_tokens": written})
    return reply.model_copy(update={"usage": usage})


def require_finished(reply: ModelReply) -> None:
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

    async def verdict(self, prompt: JudgePrompt) -> ModelReply:
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

    async def collect(self, batch_id: str) -> dict[str, ModelReply | GradingError]:
        """Reply or reason for every prompt that the batch has something for, by its id, in no order."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Stop what has not started. Never raises: a failure costs money then, not a grade."""
        ...


UsdPerMillion = Annotated[Decimal, Field(ge=0, le=10_000)]
"""US dollars for a million tokens."""

_MILLION = Decimal(1_000_000)
_PRICE_QUANTUM = Decimal("0.000000001")
"""A billionth of a dollar: what the warehouse stores."""


class PriceRow(BaseModel):
    """`[[judge.prices]]`: what one model costs, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)] = Field(
        description="the model id, with * and ?; the first matching row counts, your rows before the built-in rows"
    )
    input: UsdPerMillion = Field(description="prompt tokens that are neither written to the cache nor read from it")
    output: UsdPerMillion = Field(description="tokens that the model writes, including thinking")
    cache_write_5m: UsdPerMillion | None = Field(
        default=None, description="prompt tokens cached for five minutes; default: the price of input"
    )
    cache_write_1h: UsdPerMillion | None = Field(
        default=None, description="prompt tokens cached for an hour; default: the price of input"
    )
    cache_read: UsdPerMillion | None = Field(
        default=None, description="prompt tokens read from the cache; default: the price of input"
    )
    batch_factor: Annotated[Decimal, Field(gt=0, le=1)] = Field(
        default=Decimal(1), description="the price of a token in a batch, as a share of the usual price"
    )
    prompt_tokens_up_to: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="maximum number of prompt tokens for this row, including cached tokens"
    )
    as_of: date = Field(description="the date of the price")
    source: Annotated[str, Field(min_length=1)] = Field(description="the source of the price")

    def fits(self, model: str, prompt_tokens: int) -> bool:
        """Whether this row is the price of such a request."""
        within = self.prompt_tokens_up_to is None or prompt_tokens <= self.prompt_tokens_up_to
        return within and fnmatchcase(model.lower(), self.model.lower())


_ANTHROPIC = "Anthropic's published pricing page and model overviews"
_READ_ON = date(2026, 11, 22)


def _build_claude_price(
    model: str, prices: tuple[str, str, str, str, str], prompt_tokens_up_to: int | None = None
) -> PriceRow:
    """Build a price row from prices in Anthropic's order: input, 5 m write, 1 h write, read, output."""
    put_in, write_5m, write_1h, read, put_out = map(Decimal, prices)
    return PriceRow(
        model=model,
        input=put_in,
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_read=read,
        output=put_out,
        batch_factor=Decimal("0.5"),
        prompt_tokens_up_to=prompt_tokens_up_to,
        as_of=_READ_ON,
        source=_ANTHROPIC,
    )


BUILT_IN: tuple[PriceRow, ...] = (
    _build_claude_price(
        "claude-haiku-5-5*", ("0.10", "0.125", "0.20", "0.01", "0.50"), prompt_tokens_up_to=100_000
    ),
    _build_claude_price("claude-haiku-5-5*", ("0.50", "0.625", "1.00", "0.05", "2.50")),
    _build_claude_price("claude-sonnet-5-5*", ("2", "2.50", "4", "0.10", "10")),
    _build_claude_price("claude-opus-5-5*", ("4", "5", "8", "0.20", "20")),
    _build_claude_price("claude-haiku-4-5*", ("1", "1.25", "2", "0.10", "5")),
    _build_claude_price("claude-sonnet-5*", ("2", "2.50", "4", "0.20", "10")),
    _build_claude_price("claude-opus-5*", ("5", "6.25", "10", "0.50", "25")),
)
"""Prices of Anthropic's own API. The same models cost otherwise on other clouds: say so in the configuration."""


def find_price(model: str, prompt_tokens: int, prices: Sequence[PriceRow] = ()) -> PriceRow | None:
    """Find the price row for a request, ``prices`` before the built-in ones; ``None`` if the price is not known."""
    return next((row for row in (*prices, *BUILT_IN) if row.fits(model, prompt_tokens)), None)


def compute_cost_usd(usage: Usage, model: str, prices: Sequence[PriceRow] = ()) -> Decimal:
    """Return the cost of one reply, rounded up to a billionth of a dollar. 0 without a price."""
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    row = find_price(model, usage.input_tokens + written + usage.cache_read_tokens, prices)
    if row is None:
        return Decimal(0)
    total = (
        usage.input_tokens * row.input
        + usage.cache_write_5m_tokens * _choose_price(row.cache_write_5m, row.input)
        + usage.cache_write_1h_tokens * _choose_price(row.cache_write_1h, row.input)
        + usage.cache_read_tokens * _choose_price(row.cache_read, row.input)
        + usage.output_tokens * row.output
    )
    factor = row.batch_factor if usage.batch else Decimal(1)
    return (total * factor / _MILLION).quantize(_PRICE_QUANTUM, rounding=ROUND_UP)


def build_price(rows: Sequence[PriceRow]) -> Callable[[str, Usage], Decimal]:
    """`cost_usd` by these rows and the built-in ones: model and usage to US dollars."""
    return lambda model, usage: compute_cost_usd(usage, model, rows)


def _choose_price(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price
