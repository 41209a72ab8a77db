"""Define the interface of judging models, which receive a prompt and return the reply with its usage.

The cost of a reply is the number of tokens multiplied by the price. Each price has a date and a source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_UP, Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitors.errors import GradingError, JudgeRefused, VerdictUnreadable
from monitors.records.base import Record

RequestId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""The id of a prompt in a batch, in the format of Anthropic's ``custom_id``."""

BYTES_PER_TOKEN: Final = 3
"""Bytes per token in estimates. English has about four bytes per token, Devanagari about three."""

Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""The number of tokens of a call, at most a billion.

A larger number is an error of the provider, and its cost could not be stored.
"""


class Usage(Record):
    """The tokens of one reply, as the provider counted them.

    - ``input_tokens`` excludes tokens that were written to the cache or read from it.
    - ``batch`` is True if the provider charged its batch price.
    - ``estimated`` is True if the provider reported no plausible count. `add_estimated_usage_if_missing`
      then estimates the tokens.
    """

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_write_5m_tokens: Tokens = 0
    cache_write_1h_tokens: Tokens = 0
    cache_read_tokens: Tokens = 0
    batch: bool = False
    estimated: bool = False


def parse_usage_counts(**counts: object) -> Usage:
    """Return the usage that a provider reports. If a count is missing or implausible, ``estimated`` is True."""
    try:
        return Usage.model_validate(counts, strict=True)
    except ValidationError:
        return Usage(batch=counts.get("batch") is True, estimated=True)


class Stop(StrEnum):
    """The reason why the model stopped writing its reply."""

    DONE = "done"
    CUT = "cut"
    """The model reached the maximum number of output tokens."""
    REFUSED = "refused"


MAX_OUTPUT_TOKENS: Final = 8192
"""Maximum number of output tokens that a prompt may request."""


class JudgePrompt(Record):
    """One question to a judge.

    - ``instructions`` are the same for many prompts.
    - ``material`` is the data of the case between fences.
    - ``reply_schema`` is the JSON schema of the reply, and ``schema_name`` the name of the schema for the provider.
    """

    id: RequestId
    instructions: str
    material: str
    reply_schema: dict[str, Any]
    schema_name: str = "verdict"
    max_tokens: Annotated[int, Field(ge=64, le=MAX_OUTPUT_TOKENS)] = 1024


class ModelReply(Record):
    """The reply of a model, before `monitors.judge.verdict` checks it.

    ``answered_by`` is the model in the provider's reply, which may differ from the requested model.
    """

    text: str
    stop: Stop
    answered_by: str
    usage: Usage = Usage()


def add_estimated_usage_if_missing(reply: ModelReply, prompt: JudgePrompt) -> ModelReply:
    """Return the reply, with estimated token counts if the provider did not report the counts."""
    if not reply.usage.estimated:
        return reply
    asked, written = (
        -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
        for text in (prompt.instructions + prompt.material, reply.text)
    )
    usage = reply.usage.model_copy(update={"input_tokens": asked, "output_tokens": written})
    return reply.model_copy(update={"usage": usage})


def require_finished(reply: ModelReply) -> None:
    """Raise `JudgeRefused` or `VerdictUnreadable` if the model did not finish its reply."""
    if reply.stop is Stop.REFUSED:
        raise JudgeRefused(f"{reply.answered_by} declined to grade this answer")
    if reply.stop is Stop.CUT:
        raise VerdictUnreadable(f"{reply.answered_by} was cut off before its verdict was complete")


class JudgeModel(Protocol):
    """The interface of a model that can judge. ``name`` is the configured model id."""

    @property
    def name(self) -> str:
        """Return the id of the configured model."""
        ...

    async def request_reply(self, prompt: JudgePrompt) -> ModelReply:
        """Return the reply of the model to a prompt.

        Raises `JudgeUnavailable` if there is no reply within the deadline and the allowed number of attempts. Error
        messages contain neither the key nor the address.
        """
        ...


@runtime_checkable
class BatchModel(Protocol):
    """The interface of a model that accepts batches: many prompts at once, which are cheaper and answered later."""

    async def submit(self, prompts: tuple[JudgePrompt, ...]) -> str:
        """Submit a batch and return its id. Raises `JudgeUnavailable` if the provider does not accept the batch."""
        ...

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended. Raises `JudgeUnavailable` if the state is unknown."""
        ...

    async def collect(self, batch_id: str) -> dict[str, ModelReply | GradingError]:
        """Return the reply or the error for each prompt in the results of the batch, keyed by prompt id."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Cancel the prompts that have not started.

        Errors are not raised, because a failed cancellation only costs money.
        """
        ...


UsdPerMillion = Annotated[Decimal, Field(ge=0, le=10_000)]
"""A price in US dollars per million tokens."""

_MILLION = Decimal(1_000_000)
_PRICE_QUANTUM = Decimal("0.000000001")
"""The smallest amount that the warehouse stores: a billionth of a dollar."""


class PriceRow(BaseModel):
    """One price row, `[[judge.prices]]`: the prices of one model, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)] = Field(
        description="id of the model. It may contain the wildcards * and ?. Lookout uses the first matching row, "
        "and checks your rows before the built-in rows"
    )
    input: UsdPerMillion = Field(
        description="price in US dollars of a million prompt tokens that are neither written to the cache nor "
        "read from it"
    )
    output: UsdPerMillion = Field(
        description="price in US dollars of a million tokens that the model writes, including thinking"
    )
    cache_write_5m: UsdPerMillion | None = Field(
        default=None,
        description="price in US dollars of a million prompt tokens that are written to the cache for five "
        "minutes. Default: the price of `input`",
    )
    cache_write_1h: UsdPerMillion | None = Field(
        default=None,
        description="price in US dollars of a million prompt tokens that are written to the cache for an "
        "hour. Default: the price of `input`",
    )
    cache_read: UsdPerMillion | None = Field(
        default=None,
        description="price in US dollars of a million prompt tokens that are read from the cache. Default: "
        "the price of `input`",
    )
    batch_factor: Annotated[Decimal, Field(gt=0, le=1)] = Field(
        default=Decimal(1), description="price of a token in a batch, as a share of its usual price: 0.5 is half"
    )
    prompt_tokens_up_to: Annotated[int, Field(gt=0)] | None = Field(
        default=None,
        description="this row applies only to requests with at most this number of prompt tokens, including cached "
        "tokens",
    )
    as_of: date = Field(description="date on which these prices were valid")
    source: Annotated[str, Field(min_length=1)] = Field(
        description="source of these prices, such as the provider's price list"
    )

    def applies_to(self, model: str, prompt_tokens: int) -> bool:
        """Return whether this price row applies to a request of ``prompt_tokens`` tokens to ``model``."""
        within = self.prompt_tokens_up_to is None or prompt_tokens <= self.prompt_tokens_up_to
        return within and fnmatchcase(model.lower(), self.model.lower())


_PRICE_SOURCE = "Anthropic's published pricing page and model overviews"
_PRICE_DATE = date(2026, 11, 22)


def _build_claude_price_row(
    model: str, prices: tuple[str, str, str, str, str], prompt_tokens_up_to: int | None = None
) -> PriceRow:
    """Build a price row.

    ``prices`` are, in this order: input, cache write for 5 minutes, for 1 hour, cache read, output.
    """
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
        as_of=_PRICE_DATE,
        source=_PRICE_SOURCE,
    )


BUILT_IN_PRICES: tuple[PriceRow, ...] = (
    _build_claude_price_row(
        "claude-haiku-5-5*", ("0.10", "0.125", "0.20", "0.01", "0.50"), prompt_tokens_up_to=100_000
    ),
    _build_claude_price_row("claude-haiku-5-5*", ("0.50", "0.625", "1.00", "0.05", "2.50")),
    _build_claude_price_row("claude-sonnet-5-5*", ("2", "2.50", "4", "0.10", "10")),
    _build_claude_price_row("claude-opus-5-5*", ("4", "5", "8", "0.20", "20")),
    _build_claude_price_row("claude-haiku-4-5*", ("1", "1.25", "2", "0.10", "5")),
    _build_claude_price_row("claude-sonnet-5*", ("2", "2.50", "4", "0.20", "10")),
    _build_claude_price_row("claude-opus-5*", ("5", "6.25", "10", "0.50", "25")),
)
"""Prices of Anthropic's own API.

Other clouds have other prices for the same models. Set their prices in the configuration.
"""


def find_price_row(model: str, prompt_tokens: int, prices: Sequence[PriceRow] = ()) -> PriceRow | None:
    """Return the price row for a request, or ``None`` if no row fits.

    Rows of ``prices`` come before the built-in rows.
    """
    return next((row for row in (*prices, *BUILT_IN_PRICES) if row.applies_to(model, prompt_tokens)), None)


def compute_cost_usd(usage: Usage, model: str, prices: Sequence[PriceRow] = ()) -> Decimal:
    """Return the cost of one reply, rounded up to a billionth of a dollar, or 0 if the price is unknown."""
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    row = find_price_row(model, usage.input_tokens + written + usage.cache_read_tokens, prices)
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


def build_price_function(rows: Sequence[PriceRow]) -> Callable[[str, Usage], Decimal]:
    """Return a function that computes the price of a model's usage in US dollars.

    The price rows ``rows`` come before the built-in rows.
    """
    return lambda model, usage: compute_cost_usd(usage, model, rows)


def _choose_price(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price
