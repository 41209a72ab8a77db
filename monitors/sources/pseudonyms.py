"""Names that stand for persons and their numbers: always the same one, none leads back without the key. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from monitors.errors import ConfigError
from monitors.facts.disclosure import DisclosureKind
from monitors.facts.disclosures_view import view_of
from monitors.facts.masking import LABELS

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
