"""What of a conversation may be stored: personal data and secrets go before anything is written down. Pure.

Pseudonyms stand for persons and their numbers: always the same one, and none leads back without the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, assert_never

from monitors.errors import ConfigError
from monitors.facts.disclosures.candidates import Disclosure, DisclosureKind, Strength, view_of
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS, WITHHELD, MaskedText, label_of, mask
from monitors.records.traffic import Conversation, Turn
from monitors.sources.traffic.items import is_plain, safe_id

KEY_BYTES_AT_LEAST: Final = 16
"""128 bits: what is hashed with less can be found by trying keys."""

_LETTERS: Final = "bcdfghjklmnpqrst"
"""Sixteen consonants, four bits each: no digits that could be read as a number, and no words."""
_BODY: Final = 16
"""Letters of the pseudonym itself, 64 bits: among ten million, two are alike with a chance of 3 in a million."""
_CHECK: Final = 4
"""Letters by which a pseudonym of this key is known again, so that it is not made into another one."""
_NAMES: Final = {kind: label.strip("[]") for kind, label in LABELS.items()}
_TOKEN: Final = re.compile(
    rf"\[(?P<name>{'|'.join(map(re.escape, _NAMES.values()))}) (?P<code>[{_LETTERS}]{{{_BODY + _CHECK}}})\]"
)
_USER: Final = re.compile(rf"user-(?P<code>[{_LETTERS}]{{{_BODY + _CHECK}}})")
_SPELLED_AS_IS: Final = frozenset(
    {DisclosureKind.EMAIL, DisclosureKind.UPI, DisclosureKind.IP, DisclosureKind.SECRET}
)
_PHONE_DIGITS: Final = 10
"""A national number in India and North America: with or without the country's code it is one telephone."""


class Pseudonyms:
    """Makes pseudonyms by HMAC-SHA256 under one key; `ConfigError` when that is too short to hide anything."""

    def __init__(self, key: bytes) -> None:
        if len(key) < KEY_BYTES_AT_LEAST:
            raise ConfigError(
                f"the pseudonym key has {len(key)} bytes; at least {KEY_BYTES_AT_LEAST} random ones are needed"
            )
        self._key = key

    def of(self, kind: DisclosureKind, text: str) -> str:
        """What stands for a find, such as ``[phone bcdf…]``: the same for each spelling of it."""
        name = _NAMES[kind]
        return f"[{name} {self._code(name, normal(kind, text))}]"

    def of_user(self, user_key: str) -> str:
        """What stands for a user. A pseudonym of this key stays as it is."""
        known = _USER.fullmatch(user_key)
        if known and self._is_mine("user", known["code"]):
            return user_key
        return f"user-{self._code('user', user_key)}"

    def stretches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where pseudonyms of this key stand in a text."""
        for match in _TOKEN.finditer(text):
            if self._is_mine(match["name"], match["code"]):
                yield match.span()

    def _code(self, name: str, said: str) -> str:
        body = self._letters(f"of\0{name}\0{said}")[:_BODY]
        return body + self._check(name, body)

    def _is_mine(self, name: str, code: str) -> bool:
        return hmac.compare_digest(self._check(name, code[:_BODY]), code[_BODY:])

    def _check(self, name: str, body: str) -> str:
        return self._letters(f"check\0{name}\0{body}")[:_CHECK]

    def _letters(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return "".join(_LETTERS[half] for byte in digest for half in (byte >> 4, byte & 15))


def normal(kind: DisclosureKind, text: str) -> str:
    """One spelling for what is one thing: script of digits, spaces, hyphens, case and country codes aside."""
    folded = unicodedata.normalize("NFKC", view_of(text).text).casefold()
    if kind is DisclosureKind.PERSON:
        return " ".join(folded.split())
    if kind in _SPELLED_AS_IS:
        return "".join(folded.split())
    plain = "".join(letter for letter in folded if letter.isalnum())
    if kind is DisclosureKind.PHONE and plain.isdecimal():
        return plain[-_PHONE_DIGITS:]
    return plain


_ROUNDS: Final = 4
_SHORTEST: Final = 4
"""Characters of a find that is searched for in the other texts too; a shorter one is a common word."""

_NUMBER: Final = re.compile(r"[\d@]")
_TELLING: Final = re.compile(r"[\d@\s]")
"""In numbers, addresses and names of several words; a single word counts only as a whole one."""
_EDGES: Final = re.compile(r"^[^\w@+]+|[^\w@]+$")


class PrivacyMode(StrEnum):
    """What becomes of personal data in the texts. The user's key is a pseudonym in every mode."""

    REDACT = "redact"
    """Masked by type: ``[phone]``."""
    PSEUDONYMISE = "pseudonymise"
    """The same person or number gets the same pseudonym: ``[phone bcdf…]``."""
    NONE = "none"
    """Texts stay as they are."""


def protected(
    conversation: Conversation, mode: PrivacyMode, key: bytes, *, account_patterns: Sequence[str] = ()
) -> Conversation:
    """The conversation as it may be stored. Twice is once.

    Nothing that the disclosure rules find in any of its texts is left in any other. ``key`` makes the pseudonyms,
    at least 16 random bytes, else `ConfigError`; ``account_patterns`` are regular expressions for the target's own
    numbers. Scores are written back to the conversation as it was read: an id that identifies a person is replaced.
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

    def _masked(self, text: str, known: Mapping[str, DisclosureKind]) -> MaskedText:
        safe = self._pseudonyms.stretches(text) if self._pseudonyms is not None else ()
        here = sorted((said for said in known if said in text), key=len, reverse=True)
        also = partial(_again, [(_pattern_of(said), known[said]) for said in here])
        return mask(text, self._instead, account_patterns=self._patterns, safe=safe, also=also)


def _pattern_of(said: str) -> re.Pattern[str]:
    return re.compile(re.escape(said) if _TELLING.search(said) else rf"(?<!\w){re.escape(said)}(?!\w)")


def _again(
    known: Sequence[tuple[re.Pattern[str], DisclosureKind]], text: str, start: int, end: int
) -> Iterator[Disclosure]:
    """Where in a stretch of ``text`` what is ``known`` stands, each in what those before it left."""
    gaps = [(start, end)]
    for pattern, kind in known:
        left: list[tuple[int, int]] = []
        for begin, until in gaps:
            at = begin
            for match in pattern.finditer(text[begin:until]):  # cut, as a mask beside it is no part of a word
                place = begin + match.start(), begin + match.end()
                yield Disclosure(kind=kind, start=place[0], end=place[1], strength=Strength.LIKELY)
                left.append((at, place[0]))
                at = place[1]
            left.append((at, until))
        gaps = left


def _found(text: str, result: MaskedText) -> Iterator[tuple[str, DisclosureKind]]:
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
    done = (step.detail for step in turn.steps)
    return [turn.user_text, turn.reply_text, *comment, *turn.citations, *turn.context, *done]


def _with_texts(turn: Turn, texts: Sequence[str], masking: _Masking) -> Turn:
    """The turn with texts in the order of `_texts`."""
    user_text, reply_text, *others = texts
    feedback = turn.feedback
    if feedback is not None:
        feedback, others = feedback.model_copy(update={"comment": others[0]}), others[1:]
    cited, read = len(turn.citations), len(turn.citations) + len(turn.context)
    done = zip(turn.steps, others[read:], strict=True)
    return turn.model_copy(
        update={
            "user_text": user_text,
            "reply_text": reply_text,
            "feedback": feedback,
            "citations": tuple(others[:cited]),
            "context": tuple(others[cited:read]),
            "steps": tuple(step.model_copy(update={"detail": detail}) for step, detail in done),
            "issue_url": _name(turn.issue_url, masking),
            "app_path": _name(turn.app_path, masking),
        }
    )


def _name(name: str | None, masking: _Masking) -> str | None:
    """A version or path. What could be somebody's number by its form alone (10.0.0.12) is a version here."""
    if name is None or all(one.strength is Strength.WEAK for one in find_disclosures(name)):
        return name
    return masking.all([name])[0]
