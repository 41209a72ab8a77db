"""`[judge]`: which models judge what the plain graders leave open, how often, and for how much money."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.judge.prices import PriceRow
from monitors.judge.retrying import Patience
from monitors.records.targets import HttpUrl

Seconds = Annotated[float, Field(gt=0, le=86_400)]
ONE_OR_THREE: Final = (1, 3)


class Provider(StrEnum):
    """How a judge is reached."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """Any endpoint that speaks OpenAI's chat API; needs the extra ``openai``."""


KEY_VARIABLES: Final = {Provider.ANTHROPIC: "ANTHROPIC_API_KEY", Provider.OPENAI: "OPENAI_API_KEY"}


class JudgeModelSettings(BaseModel):
    """`[[judge.models]]`: one judging model. Its key is in the environment, never here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Provider = Field(default=Provider.ANTHROPIC, description="anthropic; openai is any such API")
    model: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        default="claude-sonnet-5-5", description="the model id; of another family than the target's"
    )
    base_url: HttpUrl | None = Field(default=None, description="where the API is, if not at the provider's own")
    key_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="environment variable with the key; ANTHROPIC_API_KEY or OPENAI_API_KEY if unset"
    )

    @property
    def key_from(self) -> str:
        """The environment variable that holds its key."""
        return self.key_variable or KEY_VARIABLES[self.provider]


class JudgeSettings(BaseModel):
    """`[judge]`. Without this table, or without a key, the judge is off and abstentions stay abstentions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[JudgeModelSettings, ...] = Field(
        default=(JudgeModelSettings(),),
        min_length=1,
        max_length=3,
        description="one, or three; the others are asked where the first is unsure or severity is 3",
    )
    families: dict[str, tuple[str, ...]] = Field(
        default={}, description="families of models with names of your own: family to patterns over the model id"
    )
    prices: tuple[PriceRow, ...] = Field(
        default=(),
        description="what models cost, before the built-in price list; a model without a price is refused",
    )
    batch_size: Annotated[int, Field(ge=1, le=500)] = Field(
        default=25, description="cases that are believed or voided together; canaries ride in each such batch"
    )
    canaries: Annotated[int, Field(ge=2, le=20)] = Field(
        default=4, description="known answers in a full batch, as many right as wrong; small batches have two"
    )
    budget_usd: Annotated[Decimal, Field(gt=0)] | None = Field(
        default=Decimal(5), description="most money for judging one run; what is left then stays ungraded"
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(default=4, description="verdicts asked for at once")
    deadline_s: Seconds = Field(default=90.0, description="for one verdict, with all its tries and pauses")
    try_s: Seconds = Field(default=45.0, description="for one try")
    tries: Annotated[int, Field(ge=1, le=10)] = Field(default=4, description="most tries for one verdict")
    most_pause_s: Seconds = Field(
        default=20.0, description="longest wait that a provider may ask for; beyond it the judge is unavailable"
    )
    max_tokens: Annotated[int, Field(ge=256, le=8192)] = Field(
        default=1024, description="most tokens of a verdict; a longer one is ungraded"
    )
    effort: Literal["low", "medium", "high"] = Field(default="low", description="how hard a Claude judge thinks")
    cache_ttl: Literal["5m", "1h"] = Field(default="5m", description="how long the instructions stay cached")
    nightly_batches: bool = Field(
        default=True, description="judge nightly traffic by the batches API, at half the price, where there is one"
    )
    batch_deadline_s: Seconds = Field(
        default=14_400.0, description="for a nightly batch; what it has not judged then is asked for one by one"
    )
    batch_poll_s: Seconds = Field(default=30.0, description="between two looks at a nightly batch")
    spot_check_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.05, description="share of judged answers that people are asked about"
    )

    @model_validator(mode="after")
    def _is_decidable(self) -> Self:
        if len(self.models) not in ONE_OR_THREE:
            raise ValueError("models holds two judges; one or three are accepted, because two cannot outvote")
        return self

    @property
    def patience(self) -> Patience:
        """How long one verdict may take."""
        return Patience(
            deadline_s=self.deadline_s,
            try_s=min(self.try_s, self.deadline_s),
            tries=self.tries,
            most_pause_s=self.most_pause_s,
        )
