"""Text made safe to send: personal data and secrets are masked by type. The only place that makes `Redacted`.

Foreign text becomes inert for Slack: Slack shows all of it, and it does nothing. An excerpt is a short, redacted
piece of a text, and shows a person where it was cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from monitors.facts.disclosures.candidates import Disclosure
from monitors.facts.disclosures.masking import mask
from monitors.facts.text import Unread
from monitors.records.incidents import Redacted

_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
"""Slack's three control characters and their entities, the ampersand first (docs.slack.dev, "Formatting message
text"). With ``<`` gone there is no mention, no ``<!channel>``, no masked link."""

_LOOK_ALIKES: Final = str.maketrans({"`": "ˋ", "*": "∗", "~": "∼"})
"""Marks of Slack's own formatting, replaced by lookalikes that format nothing: a backtick or a fence in an answer
would end the place it is shown in. Slack has no escape for them."""

_ITALIC: Final = re.compile(r"(?<!\w)_|_(?!\w)")
_EMOJI: Final = re.compile(r":(?=[a-zA-Z0-9_+'-]+:)")
_RINGS_ALL: Final = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
"""It notifies people only where a workspace or a proxy parses names in full; then it must not."""
_NEEDED_JOINERS: Final = frozenset({"\u200c", "\u200d"})
"""Zero-width (non-)joiner: Hindi is misspelt without them."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Unicode categories: control, format, surrogate, private use."""
_CUT_ENTITY: Final = re.compile(r"&[a-z]*$")
ELLIPSIS: Final = "…"


def visible(text: str) -> str:
    """Return one line without what a person cannot see: control, bidirectional and other format characters."""
    visible_text = (" " if character.isspace() else character for character in text if _is_seen(character))
    return re.sub(" +", " ", "".join(visible_text)).strip()


def _is_seen(character: str) -> bool:
    return character.isspace() or character in _NEEDED_JOINERS or unicodedata.category(character) not in _UNSEEN


def escape(text: str) -> str:
    """Escape Slack's three control characters; for our own words and for plain text."""
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


def inert(text: str) -> str:
    """One line of ``mrkdwn`` that shows ``text`` and can neither mention, link, format nor show an emoji."""
    flat = visible(text).translate(_LOOK_ALIKES)
    flat = _EMOJI.sub("꞉", _ITALIC.sub("ˍ", flat))
    return escape(_RINGS_ALL.sub("＠", flat))


_ADDRESS_MARK: Final = "⟦x⟧"
"""Stands for an address of our own configuration while the text around it is made safe."""
_PLAIN_ADDRESS: Final = re.compile(r"(?:https?://)?[A-Za-z0-9.\[\]:-]+")


def inert_but(text: str, address: str) -> str:
    """`inert`, but ``address``, of our own configuration, stays as it is: as code, which links nowhere."""
    if not _PLAIN_ADDRESS.fullmatch(address) or address not in text:
        return inert(text)
    return inert(text.replace(address, _ADDRESS_MARK)).replace(_ADDRESS_MARK, f"`{address}`")


def fit(escaped: str, room: int) -> str:
    """Cut escaped text to ``room`` characters, visibly, and never through an entity."""
    if len(escaped) <= room:
        return escaped
    if room < 1:
        return ""
    return _CUT_ENTITY.sub("", escaped[: room - len(ELLIPSIS)]).rstrip() + ELLIPSIS


class Redaction(NamedTuple):
    """A redacted text, and what was masked: places are in the text as it was given."""

    text: Redacted
    found: tuple[Disclosure, ...]
    unread: Unread | None = None
    """The middle of a text of more than a million characters: withheld, with a mark in its place."""


def redact(text: str, *, account_patterns: Sequence[str] = ()) -> Redacted:
    """The text with all personal data and secrets masked by type. See `redact_with_findings`."""
    return redact_with_findings(text, account_patterns=account_patterns).text


def redact_with_findings(text: str, *, account_patterns: Sequence[str] = ()) -> Redaction:
    """Mask all personal data and secrets, weak finds too, and say what was masked.

    Redacting twice is redacting once. ``account_patterns`` are regular expressions for the target's own numbers.
    """
    masked = mask(text, account_patterns=account_patterns)
    return Redaction(Redacted(masked.text), masked.found, masked.unread)


READ_CHARACTERS: Final = 4_000
"""How much of a text is read, around its evidence: four times the longest excerpt, so that a hostile answer of
megabytes costs milliseconds."""
EDGE_CHARACTERS: Final = 1_000
"""Dropped after redaction where the text was cut before it: half an account number is one no pattern knows. Longer
than most secrets that are written in one piece."""

_SPACE: Final = re.compile(r"\s+")


def excerpt(text: str, *, limit: int, account_patterns: Sequence[str] = (), around: int | None = None) -> Redacted:
    """Return at most ``limit`` characters of ``text`` on one line, redacted; empty when nothing is there.

    It is redacted before it is cut. ``around`` is the code point of the evidence in ``text``; when it lies too far
    in, the excerpt is moved there.
    """
    flat = _SPACE.sub(" ", text).strip()
    point = len(_SPACE.sub(" ", text[:around]).lstrip()) if around else 0
    begin = 0 if len(flat) <= READ_CHARACTERS else max(0, min(point, len(flat)) - READ_CHARACTERS // 2)
    window = flat[begin : begin + READ_CHARACTERS]
    ends_early = begin + READ_CHARACTERS < len(flat)
    clean = redact(window, account_patterns=account_patterns)
    before = _redacted_length(window[: point - begin], limit, account_patterns)
    seen = _without_edges(clean, begins_late=begin > 0, ends_early=ends_early)
    near = before - (EDGE_CHARACTERS if begin else 0)
    start = 0 if near < limit * 2 // 3 else max(0, min(near - limit // 2, len(seen) - limit + len(ELLIPSIS)))
    cut = _cut(seen, start=start, limit=limit, begins_late=begin > 0, ends_early=ends_early)
    return redact(cut, account_patterns=account_patterns)


def excerpt_but(text: str, address: str, *, limit: int, account_patterns: Sequence[str] = ()) -> Redacted:
    """`excerpt`, but ``address``, of our own configuration, stays readable: it is no person's."""
    if not _PLAIN_ADDRESS.fullmatch(address) or address not in text:
        return excerpt(text, limit=limit, account_patterns=account_patterns)
    shown = excerpt(text.replace(address, _ADDRESS_MARK), limit=limit, account_patterns=account_patterns)
    return Redacted(shown.replace(_ADDRESS_MARK, address))


def redact_but(text: str, addresses: Iterable[str]) -> Redacted:
    """`redact`, but the hosts of these ``addresses`` stay readable: whoever reads the text typed them."""
    marks: dict[str, str] = {}
    for number, address in enumerate(sorted(map(origin_of, addresses), key=len, reverse=True)):
        if _PLAIN_ADDRESS.fullmatch(address) and address in text:
            mark = f"⟦{'x' * (number + 1)}⟧"  # the word "address" itself makes what follows look like a postal one
            text, marks[mark] = text.replace(address, mark), address
    shown = str(redact(text))
    for mark, address in marks.items():
        shown = shown.replace(mark, address)
    return Redacted(shown)


def origin_of(address: str) -> str:
    """``http://host:port`` of an address, without what else may stand in it; empty of what is none."""
    found = urlsplit(address)
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}" if found.scheme and found.netloc else ""


def _redacted_length(before: str, limit: int, account_patterns: Sequence[str]) -> int:
    """The place of the evidence once the text is redacted; it is not searched for where it is in view anyway."""
    if len(before) < limit * 2 // 3:
        return len(before)
    return len(redact(before, account_patterns=account_patterns))


def _without_edges(clean: str, *, begins_late: bool, ends_early: bool) -> str:
    return clean[EDGE_CHARACTERS if begins_late else 0 : len(clean) - (EDGE_CHARACTERS if ends_early else 0)]


def _cut(seen: str, *, start: int, limit: int, begins_late: bool, ends_early: bool) -> str:
    """Cut to ``limit`` with the marks that say where something is missing."""
    late = begins_late or start > 0
    room = limit - len(ELLIPSIS) * late
    early = ends_early or start + room < len(seen)
    piece = seen[start : start + room - len(ELLIPSIS) * early].strip()
    return ELLIPSIS * late + piece + ELLIPSIS * early
