"""The settings for sampling conversations in a nightly run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.records.base import Language

DEFAULT_NUMBER: Final = 10
MAX_BY_RULES: Final = 5_000
"""Maximum number of conversations that rules grade in a night without a judge.

About 6 kB of text is stored for each conversation.
"""


class SamplingMode(StrEnum):
    """The way in which conversations are sampled."""

    SIMPLE = "simple"
    """Each conversation has the same probability of being sampled."""
    STRATIFIED = "stratified"
    """Each sign of risk has its own stratum, so that rare suspicious conversations are also sampled."""


class RiskSign(StrEnum):
    """A sign of risk that a conversation shows before it is graded."""

    DISCLOSURE = "disclosure"
    """A reply contains personal data or a secret that the user had not written before."""
    ERROR_LEAK = "error_leak"
    """A reply shows a technical error."""
    THUMBS_DOWN = "thumbs_down"
    """The user disliked a reply."""
    FALLBACK = "fallback"
    """A reply came from another path than the primary path."""
    LANGUAGE = "language"
    """The user wrote in another language than the main language. Each such language is a stratum."""
    SLOW = "slow"
    """A reply took longer than the latency objective."""


class Allocation(StrEnum):
    """How the sample is divided among the strata, after each stratum has received its minimum.

    A quarter of the sample is always divided equally. The members of this class describe how the rest is divided.
    """

    RISK = "risk"
    """Half of the sample is divided by size, and a quarter by size times ``risk_weights``.

    Strata with a higher risk therefore get more conversations.
    """
    NEYMAN = "neyman"
    """Three quarters of the sample are divided by size times the spread of results in earlier runs.

    This allocation gives the narrowest interval for the overall rate.
    """


Weight = Annotated[float, Field(gt=0, le=1_000)]


def _build_default_weights() -> dict[RiskSign, float]:
    return {
        RiskSign.DISCLOSURE: 20,
        RiskSign.ERROR_LEAK: 10,
        RiskSign.THUMBS_DOWN: 10,
        RiskSign.FALLBACK: 4,
        RiskSign.LANGUAGE: 2,
        RiskSign.SLOW: 2,
    }


class SamplingSettings(BaseModel):
    """Settings in ``[targets.NAME.traffic.sampling]``: how many conversations are sampled, and by which rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: SamplingMode = Field(
        default=SamplingMode.SIMPLE,
        description="simple: all conversations are equally likely; stratified: each sign of risk gets a share",
    )
    number: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description=f"number of conversations per night; if neither number nor rate is set, {DEFAULT_NUMBER} with "
        "a "
        f"judge; without a judge, all conversations up to {MAX_BY_RULES:,}",
    )
    rate: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="share of the conversations, instead of number; with strata, the share is multiplied by the "
        "risk weight",
    )
    minimum_per_stratum: Annotated[int, Field(ge=1)] = Field(
        default=1,
        description="minimum number of conversations from each stratum, even if the sum is larger than number",
    )
    signs: Annotated[tuple[RiskSign, ...], Field(min_length=1)] = Field(
        default=tuple(RiskSign),
        description="signs of risk, the most severe first; a conversation belongs to its first sign",
    )
    certainty: tuple[RiskSign, ...] = Field(
        default=(),
        description="signs whose conversations come first in a quarter of number, or are all sampled with a rate; "
        "Lookout always counts disclosures and errors in every conversation",
    )
    allocation: Allocation = Field(
        default=Allocation.RISK,
        description="how to divide number: a quarter equally among all strata, and three quarters with `risk` by "
        "size and "
        "risk_weights, or with `neyman` by the rates of earlier nights (only with number)",
    )
    risk_weights: dict[RiskSign, Weight] = Field(
        default_factory=_build_default_weights,
        description="weight of a conversation with this sign (without a sign, the weight is 1): with a rate, the "
        "weight "
        "multiplies the rate; with a number, it decides how a quarter of the number is divided",
    )
    primary_path: str | None = Field(
        default=None,
        min_length=1,
        description="name of the path or model that must answer; any other path or model counts as a fallback. "
        "Without "
        "this key, nothing counts as a fallback",
    )
    main_language: Language = Field(
        default=Language.ENGLISH,
        description="the main language, which does not get a stratum",
    )
    latency_objective_ms: Annotated[float, Field(gt=0)] = Field(
        default=4_000, description="number of milliseconds after which a reply is slow"
    )

    @model_validator(mode="after")
    def _check_number_or_rate(self) -> Self:
        if self.number is not None and self.rate is not None:
            raise ValueError("set `number` or `rate`, not both")
        if self.rate is not None and self.allocation is Allocation.NEYMAN:
            raise ValueError("allocation `neyman` works only with `number`: set `number` instead of `rate`")
        if len(set(self.signs)) < len(self.signs):
            raise ValueError("signs: list each sign only once")
        return self

    @property
    def budget(self) -> int | None:
        """Return the number of conversations to sample, or ``None`` if a rate is set."""
        return None if self.rate is not None else self.number or DEFAULT_NUMBER

    def with_number_for_rules(self) -> Self:
        """Return the settings for a night without a judge.

        If neither a number nor a rate is set, the number is `MAX_BY_RULES`: rules grade all conversations up to
        this number.
        """
        unset = self.number is None and self.rate is None
        return self.model_copy(update={"number": MAX_BY_RULES}) if unset else self

    def get_weight(self, sign: RiskSign | None) -> float:
        """Return how many times more often a conversation with ``sign`` is sampled than one without a sign.

        The result is 1 if ``sign`` is ``None``.
        """
        return self.risk_weights.get(sign, 1.0) if sign else 1.0
