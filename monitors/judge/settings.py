"""Define the settings `[judge]` and `[review]`: the judging models, their budget, and which answers people review.

The models judge the answers that the graders without a model leave ungraded. By default, they also confirm
severity-3 cases that these graders pass.

People review a sample of the graded answers of each run. The answers are divided into strata. All answers of a
stratum have the same verdicts and the same outcome, and either all or none of them have severity 3. A share of each
stratum, but at least one answer, is sampled. Therefore, all graders and also rare failures are reviewed. The sample
of a run never changes. The sampling probability of an answer is stored with its label, and in all rates an answer
has the weight 1 / (its sampling probability).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.judge.model import MAX_OUTPUT_TOKENS, PriceRow, find_price_row
from monitors.records.reviews import AnswerId, ReviewCandidate, SampledAnswer
from monitors.records.runs import format_missing_price
from monitors.records.targets import HttpUrl
from monitors.retry import RetryPolicy

ReviewStratum = tuple[str, str, str, str, bool]
"""The key of a stratum: target, run, verdicts and outcome of an answer, and whether the case has severity 3."""


class ReviewSettings(BaseModel):
    """Settings in `[review]`: the share of graded answers that people review with `lookout review`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.05,
        description="share (0 to 1) of the graded answers that people review, whether rules or a judge graded them",
    )


def sample_for_review(answers: Sequence[ReviewCandidate], share: float) -> tuple[SampledAnswer, ...]:
    """Return the answers to review, in an order that reveals no verdict.

    ``share`` is in [0, 1]. With 0, the sample is empty. The sample of a larger share contains the sample of a
    smaller share. The order of ``answers`` does not matter, and an answer that occurs twice counts once.
    """
    strata: dict[ReviewStratum, set[AnswerId]] = defaultdict(set)
    for answer in answers if share > 0 else ():
        strata[_build_stratum_key(answer)].add(answer.answer_id)
    sampled = [check for stratum in strata.values() for check in _sample_stratum(stratum, share)]
    return tuple(sorted(sampled, key=lambda check: _build_pseudo_random_sort_key("shown", check.answer_id)))


def _sample_stratum(answers: set[AnswerId], share: float) -> Sequence[SampledAnswer]:
    count = max(1, round(share * len(answers)))
    chosen = sorted(answers, key=lambda answer_id: _build_pseudo_random_sort_key("drawn", answer_id))[:count]
    return [SampledAnswer(answer_id, count / len(answers)) for answer_id in chosen]


def _build_stratum_key(answer: ReviewCandidate) -> ReviewStratum:
    return answer.target, answer.answer_id.run_id, answer.verdicts, answer.outcome, answer.severe


def _build_pseudo_random_sort_key(purpose: str, answer_id: AnswerId) -> str:
    """Return a sort key that looks random, but is always the same for the same purpose and answer.

    The order of sampling and the order of display use different keys.
    """
    parts = (purpose, answer_id.run_id, answer_id.case_id, str(answer_id.repeat))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


Seconds = Annotated[float, Field(gt=0, le=86_400)]
ACCEPTED_JUDGE_COUNTS: Final = (1, 3)
DEFAULT_BUDGET_USD: Final = Decimal(5)


class JudgeProvider(StrEnum):
    """The API through which Lookout asks a judge."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """Any endpoint with OpenAI's chat API. Install Lookout's extra ``openai`` to use it."""


KEY_VARIABLES: Final = {JudgeProvider.ANTHROPIC: "ANTHROPIC_API_KEY", JudgeProvider.OPENAI: "OPENAI_API_KEY"}


class JudgeScope(StrEnum):
    """Which answers a judge grades besides the answers that the rules leave ungraded."""

    OPEN = "open"
    """No additional answers."""
    SEVERE = "severe"
    """Severity-3 answers that the rules pass."""
    ALL = "all"
    """All answers."""


class JudgeModelSettings(BaseModel):
    """Settings in `[[judge.models]]`: one judging model.

    The API key is in the environment, never in the settings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: JudgeProvider = Field(
        default=JudgeProvider.ANTHROPIC,
        description="API of the model: anthropic, or openai for every OpenAI-compatible API",
    )
    model: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        default="claude-sonnet-5-5",
        description="id of the model. The model must belong to another model family than the target's model",
    )
    base_url: HttpUrl | None = Field(
        default=None, description="address of the API. Default: the provider's address"
    )
    key_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None,
        description="name of the environment variable with the API key. Default: ANTHROPIC_API_KEY or "
        "OPENAI_API_KEY",
    )

    @property
    def key_variable_or_default(self) -> str:
        """Return the name of the environment variable with the API key: as configured, or the default."""
        return self.key_variable or KEY_VARIABLES[self.provider]


class JudgeSettings(BaseModel):
    """Settings in `[judge]`: the judging models and their limits.

    Without this table or an API key, the judge is off and cases stay ungraded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[JudgeModelSettings, ...] = Field(
        default=(JudgeModelSettings(),),
        min_length=1,
        max_length=3,
        description="one or three judging models. Lookout asks another model if the first is unsure or "
        "contradicts the rules, or if the severity is 3",
    )
    scope: JudgeScope = Field(
        default=JudgeScope.SEVERE,
        description="which answers the judge grades: open (only answers that rules cannot grade), severe (also "
        "severity-3 answers that rules pass), or all",
    )
    families: dict[str, tuple[str, ...]] = Field(
        default={},
        description="model families that Lookout does not know. Each family has patterns for the ids of its "
        "models, such as acme-*",
    )
    production_key_variables: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = Field(
        default=(),
        description="names of environment variables on this machine that contain production's keys for model APIs. "
        "Lookout refuses a run whose judge uses one of these keys",
    )
    prices: tuple[PriceRow, ...] = Field(
        default=(),
        description="prices of models, which override the built-in prices. For a model without a price, Lookout "
        "only counts tokens and cannot apply a budget",
    )
    batch_size: Annotated[int, Field(ge=1, le=500)] = Field(
        default=25,
        description="number of cases that the judge gets as one batch, together with known answers (canaries). If "
        "the judge grades canaries of a batch wrongly, Lookout discards all grades of the batch",
    )
    canaries: Annotated[int, Field(ge=2, le=20)] = Field(
        default=4,
        description="number of known answers (canaries) in a full batch, half of them wrong. A small batch has "
        "two canaries",
    )
    budget_usd: Annotated[Decimal, Field(gt=0)] | None = Field(
        default=None,
        description="maximum cost in US dollars of judging one run. When the budget is spent, the remaining "
        "answers stay ungraded. The price of each judge must be known. Default: 5 if all prices are known, "
        "otherwise no limit",
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="maximum number of parallel requests to a judge"
    )
    deadline_s: Seconds = Field(
        default=90.0, description="maximum time in seconds for one verdict, including all attempts and pauses"
    )
    try_s: Seconds = Field(default=45.0, description="maximum time in seconds for one attempt to get a verdict")
    tries: Annotated[int, Field(ge=1, le=10)] = Field(
        default=4, description="maximum number of attempts for one verdict"
    )
    most_pause_s: Seconds = Field(
        default=20.0,
        description="longest wait in seconds that a provider may request before the next attempt. If the provider "
        "requests a longer wait, the judge counts as unavailable",
    )
    max_tokens: Annotated[int, Field(ge=256, le=MAX_OUTPUT_TOKENS)] = Field(
        default=1024,
        description="maximum number of tokens of a verdict. A verdict on a report may have 512 tokens more, for "
        "its criteria. If a verdict is longer, the answer stays ungraded",
    )
    effort: Literal["low", "medium", "high"] = Field(
        default="low", description="how much effort a Claude judge spends on thinking"
    )
    cache_ttl: Literal["5m", "1h"] = Field(
        default="5m", description="time for which the provider caches the instructions of a Claude judge"
    )
    nightly_batches: bool = Field(
        default=True,
        description="whether the judge grades nightly traffic through the provider's batch API, if there is one. "
        "A batch costs half the price",
    )
    batch_deadline_s: Seconds = Field(
        default=14_400.0,
        description="maximum time in seconds for a nightly batch. After that, Lookout requests each missing "
        "verdict separately",
    )
    batch_poll_s: Seconds = Field(default=30.0, description="time in seconds between two polls of a nightly batch")

    @model_validator(mode="after")
    def _check_model_count(self) -> Self:
        if len(self.models) not in ACCEPTED_JUDGE_COUNTS:
            raise ValueError("two judges have no majority if they disagree. Configure one or three judges")
        return self

    @model_validator(mode="after")
    def _require_prices_for_budget(self) -> Self:
        if self.budget_usd is not None and self.unpriced_models:
            rows = "; ".join(map(format_missing_price, self.unpriced_models))
            raise ValueError(
                f"budget_usd requires the price of every judge. Add the missing prices ({rows}), or remove "
                "budget_usd"
            )
        return self

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Return the ids of the judging models whose price is unknown."""
        return tuple(dict.fromkeys(m.model for m in self.models if find_price_row(m.model, 0, self.prices) is None))

    @property
    def limit_usd(self) -> Decimal | None:
        """Return the maximum cost of judging one run in US dollars.

        Return ``None`` (no limit) if the price of a model is unknown.
        """
        return self.budget_usd or (None if self.unpriced_models else DEFAULT_BUDGET_USD)

    @property
    def retry_policy(self) -> RetryPolicy:
        """Return the maximum time and the maximum number of attempts for one verdict."""
        return RetryPolicy(
            deadline_s=self.deadline_s,
            try_s=min(self.try_s, self.deadline_s),
            tries=self.tries,
            most_pause_s=self.most_pause_s,
        )
