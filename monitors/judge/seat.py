"""One judge on its seat: a prompt becomes an opinion or a reason why there is none, and every token is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from monitors.errors import ConfigError, GradingError, VerdictUnreadable
from monitors.judge.account import Account
from monitors.judge.consensus import Opinion
from monitors.judge.families import require_other_family
from monitors.judge.model import JudgeModel, JudgePrompt, Reply
from monitors.judge.prompt import Asked
from monitors.judge.ruling import Cost, cost_of
from monitors.judge.verdict import read_verdict
from monitors.records.base import Record

READINGS: Final = 2
"""An unreadable verdict is asked for once more: models write differently each time."""


class Rivals(Record):
    """Of which family no judge may be. ``additions`` are families of models with names of their own."""

    target: str
    family: str | None = None
    additions: dict[str, tuple[str, ...]] = Field(default={})

    def refuse(self, judge_model: str) -> None:
        """`ConfigError` where ``judge_model`` is, or may be, of the target's family."""
        require_other_family(judge_model, target=self.target, target_family=self.family, additions=self.additions)


class Tally:
    """What one case has cost so far."""

    def __init__(self) -> None:
        self.cost = Cost()


class Seat:
    """One judging model, and the account that pays for it."""

    def __init__(self, model: JudgeModel, *, account: Account, rivals: Rivals) -> None:
        self.model = model
        self._account = account
        self._rivals = rivals

    async def opinion(self, asked: Asked, tally: Tally, *, first: Reply | None = None) -> Opinion:
        """What this judge says. ``first`` is a reply that a batch brought already.

        `BudgetReached` before money is spent that is not there; `JudgeUnavailable`, `JudgeRefused`,
        `JudgeMisconfigured` and `VerdictUnreadable` as they come.
        """
        last: VerdictUnreadable | None = None
        for reading in range(READINGS):
            reply = await self._reply(asked, tally, first if reading == 0 else None)
            try:
                return self._read(asked, reply)
            except VerdictUnreadable as error:
                last = error
        raise last or AssertionError("an opinion is read at least once")

    def affordable(self, prompts: Sequence[JudgePrompt]) -> Sequence[JudgePrompt]:
        """As many of ``prompts``, from the first on, as a batch of them could be paid for at its worst."""
        return prompts[: self._account.affordable(self.model.name, prompts)]

    async def _reply(self, asked: Asked, tally: Tally, brought: Reply | None) -> Reply:
        if brought is not None:
            self._pay(brought, tally)
            return brought
        with self._account.reserved(self.model.name, asked.prompt):
            reply = await self.model.verdict(asked.prompt)
            self._pay(reply, tally)
        return reply

    def _pay(self, reply: Reply, tally: Tally) -> None:
        """Whatever came of it: it was charged."""
        tally.cost += cost_of(reply.usage, self._account.paid(self.model.name, reply.usage))

    def _read(self, asked: Asked, reply: Reply) -> Opinion:
        """A verdict is believed only from a model that may judge, whatever was asked for."""
        if reply.answered_by != self.model.name:
            self._refuse_stranger(reply.answered_by)
        verdict = read_verdict(reply, asked.graded)
        if asked.graded.cut and verdict.factual_match:
            left_out = f"{asked.graded.cut:,} characters of the answer were too many to show"
            raise GradingError(f"{left_out}: nobody can say that it is right")
        return Opinion(judge=reply.answered_by, verdict=verdict)

    def _refuse_stranger(self, answered_by: str) -> None:
        try:
            self._rivals.refuse(answered_by)
        except ConfigError as error:
            raise GradingError(f"{self.model.name} was asked and {answered_by} answered: {error}") from None
