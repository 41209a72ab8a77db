"""Remove personal data and secrets from a conversation before it is stored.

A value can be replaced with a pseudonym. The same value always gets the same pseudonym. Without the secret key,
nobody can derive the value from the pseudonym.
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
from monitors.facts.disclosures.candidates import Disclosure, DisclosureKind, Strength, build_normalised_view
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS, WITHHELD, MaskedText, get_redaction_label, mask
from monitors.records.traffic import Conversation, Turn
from monitors.sources.traffic.items import hash_id_if_unsafe, is_impersonal_id

MIN_KEY_BYTES: Final = 16
"""Minimum length of the key in bytes. A shorter key could be found by trying all keys."""

_LETTERS: Final = "bcdfghjklmnpqrst"
"""The letters of a pseudonym. Without vowels and digits, a pseudonym cannot look like a word or a number."""
_BODY_LETTERS: Final = 16
"""Number of letters of a pseudonym, without the check letters.

Among the pseudonyms of ten million values, two are equal with a probability of 3 in a million.
"""
_CHECK_LETTERS: Final = 4
"""Number of check letters at the end of a pseudonym.

By these letters, Lookout recognises a pseudonym that was made with this key and must not be replaced again.
"""
_KIND_NAMES: Final = {kind: label.strip("[]") for kind, label in LABELS.items()}
_PSEUDONYM: Final = re.compile(
    rf"\[(?P<name>{'|'.join(map(re.escape, _KIND_NAMES.values()))}) "
    rf"(?P<code>[{_LETTERS}]{{{_BODY_LETTERS + _CHECK_LETTERS}}})\]"
)
_USER_PSEUDONYM: Final = re.compile(rf"user-(?P<code>[{_LETTERS}]{{{_BODY_LETTERS + _CHECK_LETTERS}}})")
_SPELLED_AS_IS: Final = frozenset(
    {DisclosureKind.EMAIL, DisclosureKind.UPI, DisclosureKind.IP, DisclosureKind.SECRET}
)
_PHONE_DIGITS: Final = 10
"""Number of digits of a phone number in India and North America, without the country code. The code is ignored."""


class Pseudonyms:
    """Makes pseudonyms with one secret key (HMAC-SHA256). Raises `ConfigError` if the key is too short."""

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ConfigError(
                f"the pseudonym key has {len(key)} bytes; it must have at least {MIN_KEY_BYTES} random bytes"
            )
        self._key = key

    def make_pseudonym(self, kind: DisclosureKind, text: str) -> str:
        """Return the pseudonym of a value, such as ``[phone bcdf…]``.

        All spellings of a value have the same pseudonym.
        """
        name = _KIND_NAMES[kind]
        return f"[{name} {self._compute_pseudonym_code(name, normalise_value(kind, text))}]"

    def pseudonymise_user(self, user_key: str) -> str:
        """Return the pseudonym of a user.

        If ``user_key`` is already a pseudonym of this key, return ``user_key`` unchanged.
        """
        match = _USER_PSEUDONYM.fullmatch(user_key)
        if match and self._has_valid_check_letters("user", match["code"]):
            return user_key
        return f"user-{self._compute_pseudonym_code('user', user_key)}"

    def find_pseudonym_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end offsets of each pseudonym in the text that was made with this key."""
        for match in _PSEUDONYM.finditer(text):
            if self._has_valid_check_letters(match["name"], match["code"]):
                yield match.span()

    def _compute_pseudonym_code(self, name: str, value: str) -> str:
        body = self._derive_letters(f"of\0{name}\0{value}")[:_BODY_LETTERS]
        return body + self._compute_check_letters(name, body)

    def _has_valid_check_letters(self, name: str, code: str) -> bool:
        return hmac.compare_digest(self._compute_check_letters(name, code[:_BODY_LETTERS]), code[_BODY_LETTERS:])

    def _compute_check_letters(self, name: str, body: str) -> str:
        return self._derive_letters(f"check\0{name}\0{body}")[:_CHECK_LETTERS]

    def _derive_letters(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return "".join(_LETTERS[half] for byte in digest for half in (byte >> 4, byte & 15))


def normalise_value(kind: DisclosureKind, text: str) -> str:
    """Return a value in a normalised form, which is the same for all spellings of the value.

    All letters become lower case. The other changes depend on the kind of the value:

    - In the name of a person, white space between words becomes a single space.
    - In an e-mail address, a UPI id, an IP address or a secret, white space is removed.
    - In any other value, only letters and digits remain. The country code of a phone number is also removed.
    """
    folded = unicodedata.normalize("NFKC", build_normalised_view(text).text).casefold()
    if kind is DisclosureKind.PERSON:
        return " ".join(folded.split())
    if kind in _SPELLED_AS_IS:
        return "".join(folded.split())
    alphanumerics = "".join(letter for letter in folded if letter.isalnum())
    if kind is DisclosureKind.PHONE and alphanumerics.isdecimal():
        return alphanumerics[-_PHONE_DIGITS:]
    return alphanumerics


_MAX_ROUNDS: Final = 4
_MIN_VALUE_CHARACTERS: Final = 4
"""Values with fewer characters are removed only where they were found, and not from the conversation's other texts.

Such short values are often common words.
"""

_NUMBER: Final = re.compile(r"[\d@]")
_SPECIFIC: Final = re.compile(r"[\d@\s]")
"""Matches a value that is removed even inside a longer word: a number, an address, or a name of several words."""
_EDGES: Final = re.compile(r"^[^\w@+]+|[^\w@]+$")


class PrivacyMode(StrEnum):
    """How personal data in texts is stored. In every mode, the user's name is replaced with a pseudonym."""

    REDACT = "redact"
    """A value is replaced with its type, such as ``[phone]``."""
    PSEUDONYMISE = "pseudonymise"
    """A value is replaced with its pseudonym, such as ``[phone bcdf…]``."""
    NONE = "none"
    """Texts are not changed."""


def protect_conversation(
    conversation: Conversation, mode: PrivacyMode, key: bytes, *, account_patterns: Sequence[str] = ()
) -> Conversation:
    """Return the conversation in the form in which it may be stored.

    A value that is found in one text is removed from all texts. A conversation id that identifies a person is also
    replaced. ``key`` is the key for pseudonyms: a key with fewer than 16 bytes raises `ConfigError`.
    ``account_patterns`` contains regular expressions for the account numbers of the target's users.
    """
    pseudonyms = Pseudonyms(key)
    user = conversation.user_key
    pseudonymous = conversation.model_copy(
        update={"user_key": pseudonyms.pseudonymise_user(user) if user is not None else None}
    )
    match mode:
        case PrivacyMode.NONE:
            return pseudonymous
        case PrivacyMode.REDACT:
            return _redact_disclosures(pseudonymous, _TextMasker(get_redaction_label, None, account_patterns))
        case PrivacyMode.PSEUDONYMISE:
            return _redact_disclosures(
                pseudonymous, _TextMasker(pseudonyms.make_pseudonym, pseudonyms, account_patterns)
            )
        case _:
            assert_never(mode)


class _TextMasker:
    """Masks the texts of one conversation. A value that is found in one text is masked in all texts."""

    def __init__(
        self,
        build_replacement: Callable[[DisclosureKind, str], str],
        pseudonyms: Pseudonyms | None,
        account_patterns: Sequence[str],
    ) -> None:
        self._build_replacement, self._pseudonyms, self._patterns = build_replacement, pseudonyms, account_patterns

    def mask_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the masked texts in their order."""
        kinds: dict[str, DisclosureKind] = {}
        masked: list[str] = []
        for _ in range(_MAX_ROUNDS):
            masked_texts = [self._mask_text(text, kinds) for text in texts]
            masked = [masked_text.text for masked_text in masked_texts]
            disclosed: dict[str, DisclosureKind] = {}
            # Numbers, e-mail addresses and names identify a person in the other texts, too.
            for text, masked_text in zip(texts, masked_texts, strict=True):
                for disclosure in masked_text.found if masked_text.text != WITHHELD else ():
                    value = _EDGES.sub("", text[disclosure.start : disclosure.end])
                    if len(value) >= _MIN_VALUE_CHARACTERS and (
                        _NUMBER.search(value) or disclosure.kind is DisclosureKind.PERSON
                    ):
                        disclosed[value] = disclosure.kind
            if disclosed.keys() <= kinds.keys():
                break
            kinds |= disclosed
        return masked

    def _mask_text(self, text: str, kinds: Mapping[str, DisclosureKind]) -> MaskedText:
        safe = self._pseudonyms.find_pseudonym_spans(text) if self._pseudonyms is not None else ()
        present_values = sorted((value for value in kinds if value in text), key=len, reverse=True)
        find_known = partial(
            _find_known_values, [(_compile_value_pattern(value), kinds[value]) for value in present_values]
        )
        return mask(text, self._build_replacement, account_patterns=self._patterns, safe=safe, find_more=find_known)


def _compile_value_pattern(value: str) -> re.Pattern[str]:
    return re.compile(re.escape(value) if _SPECIFIC.search(value) else rf"(?<!\w){re.escape(value)}(?!\w)")


def _find_known_values(
    patterns: Sequence[tuple[re.Pattern[str], DisclosureKind]], text: str, start: int, end: int
) -> Iterator[Disclosure]:
    """Yield the places in ``text[start:end]`` that contain a value found in another text.

    The places do not overlap.
    """
    gaps = [(start, end)]
    for pattern, kind in patterns:
        uncovered: list[tuple[int, int]] = []
        for begin, until in gaps:
            begin_uncovered = begin
            for match in pattern.finditer(text[begin:until]):  # a slice, because the text beside it may be masked
                span = begin + match.start(), begin + match.end()
                yield Disclosure(kind=kind, start=span[0], end=span[1], strength=Strength.LIKELY)
                uncovered.append((begin_uncovered, span[0]))
                begin_uncovered = span[1]
            uncovered.append((begin_uncovered, until))
        gaps = uncovered


def _redact_disclosures(conversation: Conversation, masking: _TextMasker) -> Conversation:
    texts = masking.mask_texts([text for turn in conversation.turns for text in _list_texts(turn)])
    turns: list[Turn] = []
    for turn in conversation.turns:
        count = len(_list_texts(turn))
        turns.append(_replace_texts(turn, texts[:count], masking))
        texts = texts[count:]
    safe = hash_id_if_unsafe(conversation.id)
    return conversation.model_copy(
        update={
            "id": safe,
            "origin_id": conversation.origin_id if is_impersonal_id(conversation.origin_id) else safe,
            "turns": tuple(turns),
            "app_version": _mask_version_or_path(conversation.app_version, masking),
        }
    )


def _list_texts(turn: Turn) -> list[str]:
    comment = (turn.feedback.comment,) if turn.feedback is not None else ()
    step_details = (step.detail for step in turn.steps)
    return [turn.user_text, turn.reply_text, *comment, *turn.citations, *turn.context, *step_details]


def _replace_texts(turn: Turn, texts: Sequence[str], masking: _TextMasker) -> Turn:
    """Return a copy of the turn that contains ``texts`` instead of its own texts, in the order of `_list_texts`."""
    user_text, reply_text, *other_texts = texts
    feedback = turn.feedback
    if feedback is not None:
        feedback, other_texts = feedback.model_copy(update={"comment": other_texts[0]}), other_texts[1:]
    citations_end, context_end = len(turn.citations), len(turn.citations) + len(turn.context)
    steps = zip(turn.steps, other_texts[context_end:], strict=True)
    return turn.model_copy(
        update={
            "user_text": user_text,
            "reply_text": reply_text,
            "feedback": feedback,
            "citations": tuple(other_texts[:citations_end]),
            "context": tuple(other_texts[citations_end:context_end]),
            "steps": tuple(step.model_copy(update={"detail": detail}) for step, detail in steps),
            "issue_url": _mask_version_or_path(turn.issue_url, masking),
            "app_path": _mask_version_or_path(turn.app_path, masking),
        }
    )


def _mask_version_or_path(name: str | None, masking: _TextMasker) -> str | None:
    """Return ``name``, which names a version or a path, with personal data masked.

    A number such as 10.0.0.12 is not masked, because the number is probably a version.
    """
    if name is None or all(disclosure.strength <= Strength.WEAK for disclosure in find_disclosures(name)):
        return name
    return masking.mask_texts([name])[0]
