"""What of a conversation may be stored: personal data and secrets go before anything is written down. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, assert_never

from monitors.facts.disclosure import Disclosure, DisclosureKind, Strength
from monitors.facts.disclosures import find_disclosures
from monitors.facts.masking import WITHHELD, Masked, label_of, mask
from monitors.records.traffic import Conversation, Turn
from monitors.sources.pseudonyms import Pseudonyms
from monitors.sources.traffic_items import is_plain, safe_id

_ROUNDS: Final = 4
_SHORTEST: Final = 4
"""Characters of a find that is looked for in the other texts too; a shorter one is a common word."""

_NUMBER: Final = re.compile(r"[\d@]")
_TELLING: Final = re.compile(r"[\d@\s]")
"""In numbers, addresses and names of several words; a single word counts only as a whole one."""
_EDGES: Final = re.compile(r"^[^\w@+]+|[^\w@]+$")


class PrivacyMode(StrEnum):
    """What becomes of personal data in the texts. The user's key is a pseudonym in every mode."""

    REDACT = "redact"
    """Masked by type: ``[phone]``."""
    PSEUDONYMISE = "pseudonymise"
    """The same person or number is told by the same pseudonym: ``[phone bcdf…]``."""
    NONE = "none"
    """Texts stay as they are."""


def protected(
    conversation: Conversation, mode: PrivacyMode, key: bytes, *, account_patterns: Sequence[str] = ()
) -> Conversation:
    """The conversation as it may be stored. Twice is once.

    Nothing that the disclosure rules find in any of its texts is left in any other. ``key`` makes the pseudonyms,
    at least 16 random bytes, else `ConfigError`; ``account_patterns`` are regular expressions for the target's own
    numbers. Scores are written back to the conversation as it was read: an id that tells of a person is replaced.
    """
    pseudonyms = Pseudonyms(key)
    user = conversation.user_key
    hidden = conversation.model_copy(update={"user_key": pseudonyms.of_user(user) if user is not None else None})
    match mode:
        case PrivacyMode.NONE:
            return hidden
        case PrivacyMode.REDACT:
            return _without_disclosures(hidden, _Masking(label_of, None, account_patterns))
        case PrivacyMode.PSEUDONYMISE:
            return _without_disclosures(hidden, _Masking(pseudonyms.of, pseudonyms, account_patterns))
        case _:
            assert_never(mode)


class _Masking:
    """Masks texts that belong together: what is found in one is masked wherever it stands."""

    def __init__(
        self,
        instead: Callable[[DisclosureKind, str], str],
        pseudonyms: Pseudonyms | None,
        account_patterns: Sequence[str],
    ) -> None:
        self._instead, self._pseudonyms, self._patterns = instead, pseudonyms, account_patterns

    def all(self, texts: Sequence[str]) -> list[str]:
        """The texts, masked, in their order."""
        known: dict[str, DisclosureKind] = {}
        masked: list[str] = []
        for _ in range(_ROUNDS):
            results = [self._masked(text, known) for text in texts]
            masked = [result.text for result in results]
            new = dict(pair for text, result in zip(texts, results, strict=True) for pair in _found(text, result))
            if new.keys() <= known.keys():
                break
            known |= new
        return masked

    def _masked(self, text: str, known: Mapping[str, DisclosureKind]) -> Masked:
        safe = self._pseudonyms.stretches(text) if self._pseudonyms is not None else ()
        also = list(_again(text, known))
        return mask(text, self._instead, account_patterns=self._patterns, safe=safe, also=also)


def _again(text: str, known: Mapping[str, DisclosureKind]) -> Iterator[Disclosure]:
    """Where what is known to be personal from one place stands elsewhere, the longest first."""
    for said in sorted((said for said in known if said in text), key=len, reverse=True):
        pattern = re.escape(said) if _TELLING.search(said) else rf"(?<!\w){re.escape(said)}(?!\w)"
        for match in re.finditer(pattern, text):
            start, end = match.span()
            yield Disclosure(kind=known[said], start=start, end=end, strength=Strength.LIKELY)


def _found(text: str, result: Masked) -> Iterator[tuple[str, DisclosureKind]]:
    """What the text gave away that would be known again elsewhere: a number, an address of the net, a name."""
    if result.text == WITHHELD:
        return
    for one in result.found:
        said = _EDGES.sub("", text[one.start : one.end])
        if len(said) >= _SHORTEST and (_NUMBER.search(said) or one.kind is DisclosureKind.PERSON):
            yield said, one.kind


def _without_disclosures(conversation: Conversation, masking: _Masking) -> Conversation:
    texts = masking.all([text for turn in conversation.turns for text in _texts(turn)])
    turns: list[Turn] = []
    for turn in conversation.turns:
        count = len(_texts(turn))
        turns.append(_with_texts(turn, texts[:count], masking))
        texts = texts[count:]
    safe = safe_id(conversation.id)
    return conversation.model_copy(
        update={
            "id": safe,
            "origin_id": conversation.origin_id if is_plain(conversation.origin_id) else safe,
            "turns": tuple(turns),
            "app_version": _name(conversation.app_version, masking),
        }
    )


def _texts(turn: Turn) -> list[str]:
    comment = (turn.feedback.comment,) if turn.feedback is not None else ()
    return [turn.user_text, turn.reply_text, *comment, *turn.citations, *turn.context]


def _with_texts(turn: Turn, texts: Sequence[str], masking: _Masking) -> Turn:
    """The turn with texts in the order of `_texts`."""
    user_text, reply_text, *others = texts
    feedback = turn.feedback
    if feedback is not None:
        feedback, others = feedback.model_copy(update={"comment": others[0]}), others[1:]
    cited = len(turn.citations)
    return turn.model_copy(
        update={
            "user_text": user_text,
            "reply_text": reply_text,
            "feedback": feedback,
            "citations": tuple(others[:cited]),
            "context": tuple(others[cited:]),
            "app_path": _name(turn.app_path, masking),
        }
    )


def _name(name: str | None, masking: _Masking) -> str | None:
    """A version or path. What merely looks like a number of somebody's (10.0.0.12) is a version here."""
    if name is None or all(one.strength is Strength.WEAK for one in find_disclosures(name)):
        return name
    return masking.all([name])[0]
