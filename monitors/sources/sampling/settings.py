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
    """Each sign of risk has its own stratum, so that conversations with a rare sign are also sampled."""


class RiskSign(StrEnum):
    """A sign of risk that a conversation shows before it is graded."""

    DISCLOSURE = "disclosure"
    """A reply contains personal data or a secret that the user had not written before."""
    ERROR_LEAK = "error_leak"
    """A reply shows a technical error."""
    THUMBS_DOWN = "thumbs_down"
    """The user disliked a reply."""
    FALLBACK = "fallback"
    """A reply came from another model or path of the application than the primary one."""
    LANGUAGE = "language"
    """The user wrote in a language other than the main language. Each such language is a stratum."""
    SLOW = "slow"
    """A reply took longer than the latency objective."""


class Allocation(StrEnum):
    """How the sample is divided among the strata, after each stratum has received its minimum.

    A quarter of the sample is always divided equally. The members of this class describe how the rest is divided.
    """

    RISK = "risk"
    """Half of the sample is distributed among the strata by size, and a quarter by size times ``risk_weights``.

    Strata with a higher risk therefore get more conversations.
    """
    NEYMAN = "neyman"
    """Three quarters of the sample are distributed by stratum size times the spread of results in earlier runs.

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
        description="simple: all conversations have the same probability of being sampled. stratified: "
        "conversations with the same sign of risk form a group (stratum), and each stratum gets a share of the "
        "sample",
    )
    number: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="number of conversations to grade each night. Default, if rate is not set either: "
        f"{DEFAULT_NUMBER} with a judge; without a judge, all conversations up to {MAX_BY_RULES:,}",
    )
    rate: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="share of the conversations to grade, from 0 to 1; use it instead of number. With strata, the "
        "share is multiplied by the risk weight of the stratum",
    )
    minimum_per_stratum: Annotated[int, Field(ge=1)] = Field(
        default=1,
        description="minimum number of conversations from each stratum, even if the total is then larger than "
        "number",
    )
    signs: Annotated[tuple[RiskSign, ...], Field(min_length=1)] = Field(
        default=tuple(RiskSign),
        description="signs of risk, the most severe first. A conversation with several signs belongs to the "
        "stratum of the first",
    )
    certainty: tuple[RiskSign, ...] = Field(
        default=(),
        description="signs whose conversations are sampled completely if possible. With rate, Lookout always "
        "samples them completely. With number, they come first in the part of number that is not divided equally "
        "or by size. Lookout always counts disclosures and errors in every conversation",
    )
    allocation: Allocation = Field(
        default=Allocation.RISK,
        description="how number is divided among the strata. A quarter is always divided equally. risk: half is "
        "divided by size, and a quarter by size and risk_weights. neyman: three quarters are divided by the size "
        "of the strata and the spread of their results in earlier nights. neyman does not work with rate",
    )
    risk_weights: dict[RiskSign, Weight] = Field(
        default_factory=_build_default_weights,
        description="weight of a conversation with this sign of risk. A conversation without a sign has the "
        "weight 1. With rate, Lookout multiplies the rate by the weight. With number and the allocation risk, the "
        "weights decide how a quarter of number is divided",
    )
    primary_path: str | None = Field(
        default=None,
        min_length=1,
        description="name of the path or model that normally answers. Any other path or model counts as a "
        "fallback. Without this setting, nothing counts as a fallback",
    )
    main_language: Language = Field(
        default=Language.ENGLISH,
        description="the main language of the users. A conversation in any other language has the sign `language`",
    )
    latency_objective_ms: Annotated[float, Field(gt=0)] = Field(
        default=4_000, description="time in milliseconds above which a reply has the sign `slow`"
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
        """Return the number of conversations to sample. Return ``None`` if the settings contain a rate instead."""
        return None if self.rate is not None else self.number or DEFAULT_NUMBER

    def with_number_without_judge(self) -> Self:
        """Return the settings for a night without a judge.

        If neither a number nor a rate is set, the number is `MAX_BY_RULES`: rules grade all conversations up to
        this number.
        """
        unset = self.number is None and self.rate is None
        return self.model_copy(update={"number": MAX_BY_RULES}) if unset else self

    def get_weight(self, sign: RiskSign | None) -> float:
        """Return the weight of ``sign`` in the sample, or 1 if ``sign`` is ``None``.

        A conversation with weight 4 is sampled four times as often as a conversation without a sign.
        """
        return self.risk_weights.get(sign, 1.0) if sign else 1.0
