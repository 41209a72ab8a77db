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
"""A typical reason in a judge's verdict. It has 41 words; the schema allows 60."""


class LengthyJudge(RuleJudge):
    """A judge whose verdicts are as long as those of a real judge."""

    _known: ClassVar[dict[Case | None, dict[str, Any]]] = {}
    """The verdicts of each case. They are computed once, because every judge gets the same cases."""

    def verdict(self, prompt: str, wanted: Iterable[str]) -> dict[str, Any]:
        """Return the verdict that the rules give, with a reason of the usual length."""
        case = read_prompt(prompt)
        if case not in self._known:
            self._known[case] = super().verdict(prompt, wanted) | {"reason": REASON}
        return self._known[case]


class NoCache(PromptCache):
    """A prompt cache that never hits: all input counts as new and as not cacheable."""

    def usage(self, body: dict[str, Any], written: str, *, batch: bool = False) -> dict[str, Any]:
        """Return the usage that the API reports for a request without cache control."""
        cache_usage = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation": None}
        usage = super().usage(body, written, batch=batch)
        return usage | cache_usage | {"input_tokens": Prompt.of(body).count()}
