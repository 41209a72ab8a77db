"""What judging a run costs, and the end of its money: asked before each call, counted after it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from decimal import Decimal

from monitors.errors import BudgetReached
from monitors.judge.model import BYTES_PER_TOKEN, JudgePrompt, Usage
from monitors.judge.ruling import Cost, cost_of

Price = Callable[[str, Usage], Decimal]
"""What a model's provider charges for this, in US dollars."""


class Account:
    """The money of one run. Calls under way count at their worst, so that the limit holds with many at once."""

    def __init__(self, price: Price, *, limit_usd: Decimal | None) -> None:
        self._price = price
        self._limit = limit_usd
        self._reserved = Decimal(0)
        self.total = Cost()
        self.is_reached = False

    @contextmanager
    def reserved(self, model: str, prompt: JudgePrompt) -> Generator[None]:
        """Keep what this call may cost at most while it is under way. `BudgetReached` where that is too much."""
        most = self._price(model, _at_most(prompt))
        if self._limit is not None and self.total.usd + self._reserved + most > self._limit:
            self.is_reached = True
            raise BudgetReached(
                f"the run's budget for judging, ${self._limit:.2f}, does not allow another verdict"
                f" (${self.total.usd:.4f} spent)"
            )
        self._reserved += most
        try:
            yield
        finally:
            self._reserved -= most

    def affordable(self, model: str, prompts: Sequence[JudgePrompt]) -> int:
        """How many of ``prompts`` a batch may hold, each at its worst, before the limit is reached."""
        if self._limit is None:
            return len(prompts)
        left = self._limit - self.total.usd - self._reserved
        for number, prompt in enumerate(prompts):
            left -= self._price(model, _at_most(prompt, batch=True))
            if left < 0:
                return number
        return len(prompts)

    def paid(self, model: str, usage: Usage) -> Decimal:
        """Count a reply, whatever came of it; its price."""
        usd = self._price(model, usage)
        self.total += cost_of(usage, usd)
        return usd


def _at_most(prompt: JudgePrompt, *, batch: bool = False) -> Usage:
    """Nothing read from a cache, everything written to it, the longest verdict that is allowed."""
    said = -(-len((prompt.instructions + prompt.material).encode("utf-8")) // BYTES_PER_TOKEN)
    if batch:
        return Usage(cache_write_1h_tokens=said, output_tokens=prompt.max_tokens, batch=True)
    return Usage(cache_write_5m_tokens=said, output_tokens=prompt.max_tokens)
