"""Makes text safe to send: masks personal data and secrets. Only this module creates `Redacted` texts.

Text from outside is also changed so that Slack shows the text without interpreting mentions, links or formatting in
it. An excerpt is a short, redacted part of a text with an ellipsis at each cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from monitors.facts.disclosures.candidates import Disclosure
from monitors.facts.disclosures.masking import mask
from monitors.facts.disclosures.values import KnownValues
from monitors.facts.text import Unread
from monitors.records.cases import GoldCase
from monitors.records.incidents import Redacted

_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
"""Slack's three control characters and their entities, the ampersand first.

See docs.slack.dev, "Formatting message text". Without ``<``, a text cannot contain a mention, a ``<!channel>`` or a
link with another text.
"""

_LOOK_ALIKES: Final = str.maketrans({"`": "ˋ", "*": "∗", "~": "∼"})
"""Replacements for Slack's formatting characters.

The replacements look the same but format nothing. Slack has no escape for the originals.
"""

_ITALIC: Final = re.compile(r"(?<!\w)_|_(?!\w)")
_EMOJI: Final = re.compile(r":(?=[a-zA-Z0-9_+'-]+:)")
_GROUP_MENTION: Final = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)
"""Mentions that would notify a whole channel if the workspace converts names to mentions."""
_NEEDED_JOINERS: Final = frozenset({"\u200c", "\u200d"})
"""Invisible joiners that the correct spelling of Hindi needs."""
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Unicode categories: control, format, surrogate, private use."""
_CUT_ENTITY: Final = re.compile(r"&[a-z]*$")
ELLIPSIS: Final = "…"


def remove_invisible_characters(text: str) -> str:
    """Return the text on one line without control, bidirectional and other invisible format characters."""
    visible_text = (" " if character.isspace() else character for character in text if _is_visible(character))
    return re.sub(" +", " ", "".join(visible_text)).strip()


def _is_visible(character: str) -> bool:
    return (
        character.isspace()
        or character in _NEEDED_JOINERS
        or unicodedata.category(character) not in _INVISIBLE_CATEGORIES
    )


def escape_for_slack(text: str) -> str:
    """Escape Slack's three control characters in Lookout's own texts."""
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


def disable_slack_markup(text: str) -> str:
    """Return ``text`` as one line in which Slack shows no mentions, links, formats or emoji."""
    flat = remove_invisible_characters(text).translate(_LOOK_ALIKES)
    flat = _EMOJI.sub("꞉", _ITALIC.sub("ˍ", flat))
    return escape_for_slack(_GROUP_MENTION.sub("＠", flat))


_ADDRESS_MARK: Final = "⟦x⟧"
"""Stands in for a configured address while the rest of the text is redacted."""
_PLAIN_ADDRESS: Final = re.compile(r"(?:https?://)?[A-Za-z0-9.\[\]:-]+")
_PLAIN_ID: Final = re.compile(r"[\w@:+.-]+")


def disable_slack_markup_except(text: str, address: str = "", ids: Iterable[str] = ()) -> str:
    """Disable Slack's markup, but show the configured ``address`` and the ``ids`` unchanged as code."""
    ours = {case_id for case_id in ids if _PLAIN_ID.fullmatch(case_id) and disable_slack_markup(case_id) != case_id}
    ours |= {address} if _PLAIN_ADDRESS.fullmatch(address) else set()
    marks: dict[str, str] = {}
    for number, words in enumerate(sorted(ours, key=len, reverse=True), start=1):
        if words in text:
            marks[f"⟦{'x' * number}⟧"] = words
            text = text.replace(words, f"⟦{'x' * number}⟧")
    shown = disable_slack_markup(text)
    for mark, words in marks.items():
        shown = shown.replace(mark, f"`{words}`")
    return shown


def truncate_escaped_text(escaped: str, limit: int) -> str:
    """Cut escaped text to ``limit`` characters, and add an ellipsis.

    The cut is never inside an entity such as ``&amp;``.
    """
    if len(escaped) <= limit:
        return escaped
    if limit < 1:
        return ""
    return _CUT_ENTITY.sub("", escaped[: limit - len(ELLIPSIS)]).rstrip() + ELLIPSIS


class Redaction(NamedTuple):
    """A redacted text, and the masked values with their positions in the original text."""

    text: Redacted
    found: tuple[Disclosure, ...]
    unread: Unread | None = None
    """The middle part of a text of more than a million characters.

    Lookout removes this part, because it is not checked.
    """


def redact(
    text: str, *, account_patterns: Sequence[str] = (), strict: bool = False, suite: KnownValues | None = None
) -> Redacted:
    """Mask all personal data and secrets. For the parameters, see `redact_with_findings`."""
    return redact_with_findings(text, account_patterns=account_patterns, strict=strict, suite=suite).text


def redact_with_findings(
    text: str, *, account_patterns: Sequence[str] = (), strict: bool = False, suite: KnownValues | None = None
) -> Redaction:
    """Mask all personal data and secrets, including uncertain matches. Also return the masked values.

    - ``account_patterns`` are regular expressions for the target's own account numbers.
    - ``strict`` also masks the contacts of companies. Use it for text that the public reads.
    - ``suite`` contains the texts of a suite. Names and contacts in these texts are not masked.

    Redacting a redacted text changes nothing.
    """
    masked = mask(text, account_patterns=account_patterns, strict=strict, suite=suite)
    return Redaction(Redacted(masked.text), masked.found, masked.unread)


def build_redactor(
    account_patterns: Sequence[str], cases: Iterable[GoldCase] = (), *, strict: bool = False
) -> Callable[[str], Redacted]:
    """Build the redaction function for a run.

    If ``strict`` is false, names and contacts in ``cases`` are not masked.
    """
    suite = None if strict else collect_case_texts(cases)
    return lambda text: redact(text, account_patterns=account_patterns, strict=strict, suite=suite)


def collect_case_texts(cases: Iterable[GoldCase]) -> KnownValues:
    """Collect the texts of the cases: their questions, and the right answers of cases that expect an answer."""
    return KnownValues(
        text
        for case in cases
        for text in (*case.turns, *(() if case.expected_refusal else (case.gold, *case.alternatives)))
    )


MAX_READ_CHARACTERS: Final = 4_000
"""An excerpt is built from this many characters around the evidence: four times the longest possible excerpt.

With this limit, an excerpt of a hostile answer of several megabytes takes only milliseconds.
"""
CONTEXT_MARGIN_CHARACTERS: Final = 1_000
"""Number of characters next to a cut that are removed after redaction.

These characters may contain half an account number, which redaction does not recognise.
"""

_SPACE: Final = re.compile(r"\s+")


def build_redacted_excerpt(
    text: str,
    *,
    limit: int,
    account_patterns: Sequence[str] = (),
    evidence_at: int | None = None,
    suite: KnownValues | None = None,
) -> Redacted:
    """Return at most ``limit`` characters of ``text`` as one line. The text is redacted before it is cut.

    ``evidence_at`` is the position of the evidence in ``text``. If an excerpt from the beginning would not show the
    evidence, the excerpt shows the text around the evidence.
    """
    flat = _SPACE.sub(" ", text).strip()
    point = len(_SPACE.sub(" ", text[:evidence_at]).lstrip()) if evidence_at else 0
    begin = 0 if len(flat) <= MAX_READ_CHARACTERS else max(0, min(point, len(flat)) - MAX_READ_CHARACTERS // 2)
    window = flat[begin : begin + MAX_READ_CHARACTERS]
    ends_early = begin + MAX_READ_CHARACTERS < len(flat)
    redact_part = partial(redact, account_patterns=account_patterns, suite=suite)
    redacted = redact_part(window)
    evidence = window[: point - begin]
    # If an excerpt from the beginning shows the evidence, its position need not be exact.
    before = len(evidence) if len(evidence) < limit * 2 // 3 else len(redact_part(evidence))
    readable = _trim_context_margins(redacted, begins_late=begin > 0, ends_early=ends_early)
    evidence_place = before - (CONTEXT_MARGIN_CHARACTERS if begin else 0)
    start = (
        0
        if evidence_place < limit * 2 // 3
        else max(0, min(evidence_place - limit // 2, len(readable) - limit + len(ELLIPSIS)))
    )
    cut = _shorten_excerpt(readable, start=start, limit=limit, begins_late=begin > 0, ends_early=ends_early)
    return redact_part(cut)


def make_excerpt_with_unmasked_address(
    text: str, address: str, *, limit: int, account_patterns: Sequence[str] = ()
) -> Redacted:
    """Make an excerpt, but do not redact the configured ``address``."""
    if not _PLAIN_ADDRESS.fullmatch(address) or address not in text:
        return build_redacted_excerpt(text, limit=limit, account_patterns=account_patterns)
    shown = build_redacted_excerpt(
        text.replace(address, _ADDRESS_MARK), limit=limit, account_patterns=account_patterns
    )
    return Redacted(shown.replace(_ADDRESS_MARK, address))


def redact_except_hosts(text: str, addresses: Iterable[str]) -> Redacted:
    """Redact the text, but not the hosts of ``addresses``, which the reader of the text has typed."""
    marks: dict[str, str] = {}
    for number, address in enumerate(sorted(map(parse_origin, addresses), key=len, reverse=True)):
        if _PLAIN_ADDRESS.fullmatch(address) and address in text:
            mark = f"⟦{'x' * (number + 1)}⟧"  # not the word "address": text after it looks like a postal address
            text, marks[mark] = text.replace(address, mark), address
    shown = str(redact(text))
    for mark, address in marks.items():
        shown = shown.replace(mark, address)
    return Redacted(shown)


def parse_origin(address: str) -> str:
    """Return the ``http://host:port`` of an address. Return an empty string for any other text."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.scheme and parts.netloc else ""


def _trim_context_margins(redacted: str, *, begins_late: bool, ends_early: bool) -> str:
    return redacted[
        CONTEXT_MARGIN_CHARACTERS if begins_late else 0 : len(redacted)
        - (CONTEXT_MARGIN_CHARACTERS if ends_early else 0)
    ]


def _shorten_excerpt(readable: str, *, start: int, limit: int, begins_late: bool, ends_early: bool) -> str:
    """Return up to ``limit`` characters of ``readable``, beginning at ``start``, with an ellipsis at each cut.

    ``begins_late`` and ``ends_early`` are true if the beginning or the end of the text was already cut.
    """
    late = begins_late or start > 0
    room = limit - len(ELLIPSIS) * late
    early = ends_early or start + room < len(readable)
    piece = readable[start : start + room - len(ELLIPSIS) * early].strip()
    return ELLIPSIS * late + piece + ELLIPSIS * early
