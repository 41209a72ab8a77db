"""Foreign text made inert for Slack: it can show everything and do nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
"""Slack's three control characters and their entities, the ampersand first (docs.slack.dev, "Formatting message
text"). With ``<`` gone there is no mention, no ``<!channel>``, no masked link."""

_LOOK_ALIKES: Final = str.maketrans({"`": "ˋ", "*": "∗", "~": "∼"})
"""Marks of Slack's own formatting, replaced by what looks the same and formats nothing: a backtick or a fence in an
answer would end the place it is shown in. Slack has no escape for them."""

_ITALIC: Final = re.compile(r"(?<!\w)_|_(?!\w)")
_EMOJI: Final = re.compile(r":(?=[a-zA-Z0-9_+'-]+:)")
_RINGS_ALL: Final = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
"""Rings people only where a workspace or a proxy parses names in full; then it must not."""
_NEEDED_JOINERS: Final = frozenset({"\u200c", "\u200d"})
"""Zero-width (non-)joiner: Hindi is misspelt without them."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Unicode categories: control, format, surrogate, private use."""
_CUT_ENTITY: Final = re.compile(r"&[a-z]*$")
ELLIPSIS: Final = "…"


def visible(text: str) -> str:
    """Return one line without what a person cannot see: control, bidirectional and other format characters."""
    kept = (" " if character.isspace() else character for character in text if _is_seen(character))
    return re.sub(" +", " ", "".join(kept)).strip()


def _is_seen(character: str) -> bool:
    return character.isspace() or character in _NEEDED_JOINERS or unicodedata.category(character) not in _UNSEEN


def escape(text: str) -> str:
    """Escape Slack's three control characters; for our own words and for plain text."""
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


def inert(text: str) -> str:
    """One line of ``mrkdwn`` that shows ``text`` and can neither mention, link, format nor draw an emoji."""
    flat = visible(text).translate(_LOOK_ALIKES)
    flat = _EMOJI.sub("꞉", _ITALIC.sub("ˍ", flat))
    return escape(_RINGS_ALL.sub("＠", flat))


def fit(escaped: str, room: int) -> str:
    """Cut escaped text to ``room`` characters, visibly, and never through an entity."""
    if len(escaped) <= room:
        return escaped
    if room < 1:
        return ""
    return _CUT_ENTITY.sub("", escaped[: room - len(ELLIPSIS)]).rstrip() + ELLIPSIS
