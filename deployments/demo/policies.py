"""The invented policies and the words for them, as the bot holds them in memory."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict

HERE = Path(__file__).parent
POLICIES_PATH = HERE / "policies.json"
VOCABULARY_PATH = HERE / "vocabulary.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PolicyFact(_Frozen):
    """One thing that a policy says, with the clause that says it.

    ``amount`` with ``unit`` (``inr``, ``percent``, ``hour``, ``day``, ``month``, ``year`` or a noun) is the
    quantity, ``per`` what it is counted by. ``covered`` answers a yes-or-no question. ``text`` is the clause in
    English; ``hi`` and ``hinglish`` say it where the plain sentence pattern would be clumsy.
    """

    field: str
    clause: str
    amount: Decimal | None = None
    unit: str | None = None
    per: str | None = None
    bound: str | None = None
    covered: bool | None = None
    text: str
    hi: str | None = None
    hinglish: str | None = None


class Policy(_Frozen):
    """An invented policy: what it is called and what it says."""

    id: str
    name: str
    kind: str
    aliases: tuple[str, ...]
    facts: tuple[PolicyFact, ...]

    def fact(self, field: str) -> PolicyFact | None:
        """What it says about ``field``, or ``None``."""
        return next((fact for fact in self.facts if fact.field == field), None)

    def cite(self, fact: PolicyFact) -> str:
        """The citation as the bot writes it."""
        return f"[Source: {self.name}, clause {fact.clause}]"


class PolicyBook(_Frozen):
    """All policies of the invented insurer."""

    insurer: str
    note: str
    policies: tuple[Policy, ...]


class Label(_Frozen):
    """What a field is called in the three languages."""

    en: str
    hi: str
    hinglish: str


class Field(_Frozen):
    """How a question asks for a field: one concept of each group in ``needs``; those in ``boost`` add a little."""

    label: Label
    needs: tuple[tuple[str, ...], ...]
    boost: tuple[str, ...]


class Topic(_Frozen):
    """A subject that no health policy answers; a ``hard`` one not even beside something that has an answer."""

    name: str
    hard: bool
    phrases: tuple[str, ...]


class Actions(_Frozen):
    """The words of a request to do something rather than to know something."""

    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    hindi: tuple[str, ...]


class Vocabulary(_Frozen):
    """Words in three languages: concepts, foreign topics, private data, actions, and words that say nothing."""

    fields: dict[str, Field]
    concepts: dict[str, tuple[str, ...]]
    topics: dict[str, Topic]
    private: tuple[str, ...]
    actions: Actions
    hinglish_words: tuple[str, ...]
    plain_words: tuple[str, ...]


def load_policies(path: Path = POLICIES_PATH) -> PolicyBook:
    """Read the policies from JSON."""
    return PolicyBook.model_validate_json(path.read_bytes())


def load_vocabulary(path: Path = VOCABULARY_PATH) -> Vocabulary:
    """Read the vocabulary from JSON."""
    return Vocabulary.model_validate_json(path.read_bytes())
