"""Local judge providers for the cost benchmarks: verdicts of realistic length, with or without a cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from tests.servers.anthropic_tokens import Prompt, PromptCache
from tests.servers.anthropic_verdicts import Case, RuleJudge, read_prompt

REASON = (
    "The answer names the right waiting period and the clause that it stands in, but it also says that the period is"
    " waived for accidents, which none of the passages states, so that a customer may rely on a cover that is not there."
)
"""A reason as a judge writes it: 41 words of the 60 that the schema allows."""


class LengthyJudge(RuleJudge):
    """Writes as much as a real one does."""

    _known: ClassVar[dict[Case | None, dict[str, Any]]] = {}
    """Verdicts by the case: the same cases go to every judge."""

    def verdict(self, prompt: str, wanted: Iterable[str]) -> dict[str, Any]:
        """As by rule, with a reason of the usual length."""
        case = read_prompt(prompt)
        if case not in self._known:
            self._known[case] = super().verdict(prompt, wanted) | {"reason": REASON}
        return self._known[case]


class NoCache(PromptCache):
    """Counts all that was sent as sent for the first time and never to be cached."""

    def usage(self, body: dict[str, Any], written: str, *, batch: bool = False) -> dict[str, Any]:
        """As the API says it of a request without a cache mark."""
        cache_usage = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation": None}
        usage = super().usage(body, written, batch=batch)
        return usage | cache_usage | {"input_tokens": Prompt.of(body).count()}
