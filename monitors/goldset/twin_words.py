"""Twins that say the opposite: yes for no, a statement denied."""

from __future__ import annotations

import re

from monitors.facts.scan import read_facts
from monitors.records.base import Language

_LEAD = re.compile(r"^\s*([^\W\d_][\w\u0900-\u0963]*)\s*[,.!।;:]*\s*")
_OPPOSITE = {
    "yes": "No", "no": "Yes", "haan": "Nahi", "han": "Nahi", "ji": "Nahi", "nahi": "Haan", "nahin": "Haan",
    "हाँ": "नहीं", "हां": "नहीं", "नहीं": "हाँ",
}  # fmt: skip


def yes_flipped(gold: str) -> str:
    """The opening yes is a no, or the other way; what follows is turned round with it, or left out."""
    lead = _LEAD.match(gold)
    opposite = _OPPOSITE.get(lead[1].lower()) if lead is not None else None
    if lead is None or opposite is None:
        return ""
    turned = _turned(gold[lead.end() :])
    return f"{opposite}, {turned}" if turned else f"{opposite}."


def negated(gold: str, language: Language) -> str:
    """A sentence turned round, or a bare answer denied: "It is not 24 months". Empty for a yes or no."""
    lead = _LEAD.match(gold)
    if lead is not None and lead[1].lower() in _OPPOSITE:
        return ""
    turned = _turned(gold)
    if turned:
        return turned
    if len(gold.split()) > _LONGEST_ANSWER or _NEGATIVE.search(gold):
        return ""
    said = gold.rstrip(" .।")
    match language:
        case Language.HINDI:
            return f"यह {said} नहीं है।"
        case Language.HINGLISH:
            return f"Yeh {said} nahi hai."
        case _:
            return f"It is not {said[:1].lower()}{said[1:]}."


_LONGEST_ANSWER = 6
"""Words: a longer text without a verb that can be turned is a list, of which "it is not" denies too little."""
_NEGATIVE = re.compile(
    r"(?i)\b(?:no|not|never|none|nothing|nobody|neither|nor|without|cannot|nahi|nahin|koi)\b|नहीं|n't|कोई"
)
_VERB = r"(is|are|was|were|can|will|must|may|should|does|do|has|have)"
_TURNS = (
    (re.compile(rf"(?i)\b{_VERB}(?: not\b|n't\b)"), r"\1"),
    (re.compile(r"(?i)\bcannot\b"), "can"),
    (re.compile(r"(?i)\bthere (is|are) no\b"), r"there \1 a"),
    (re.compile(r"(?i)\bexcluded\b"), "included"),
    (re.compile(r"कोई (.{1,40}?) नहीं (हैं|है)"), r"\1 \2"),
    (re.compile(r"कवर नहीं (हैं|है|होती|होता)"), r"कवर \1"),
    (re.compile(r"नहीं (हैं|है|होती|होता)"), r"\1"),
    (re.compile(r"(?i)\bkoi (.{1,40}?) nahin? (hai|hain)\b"), r"\1 \2"),
    (re.compile(r"(?i)\b(cover|restore) nahin? (hota|hoti|hote|hai|hain)\b"), r"\1 \2"),
    (re.compile(r"(?i)\bnahin? (hai|hain|hota|hoti|hote)\b"), r"\1"),
)  # fmt: skip
_DENIALS = (
    (re.compile(r"(?i)\b(is|are|was|were|can|will|must|may|should|does|do)\b(?! not\b| no\b)"), r"\1 not"),
    (re.compile(r"(कवर|बहाल) (हैं|है|होती|होता)"), r"\1 नहीं \2"),
    (re.compile(r"(?i)\b(cover|restore|included) (hota|hoti|hote|hai|hain)\b"), r"\1 nahi \2"),
)


def _turned(text: str) -> str:
    """The first statement of a text turned round; empty where that cannot be done, or a second no would undo it."""
    for pattern, instead in _TURNS if _NEGATIVE.search(text) or "xclude" in text else _DENIALS:
        found = pattern.search(text)
        if found is not None:
            before = text[: found.start()]
            return "" if _IS_ASIDE.search(before) or read_facts(before) else pattern.sub(instead, text, count=1)
    return ""


_IS_ASIDE = re.compile(r"(?i)\b(?:if|unless|only|when|where|that|which|except)\b|[(;:—–]|अगर|यदि|जब|agar|yadi|jab")
"""Behind these stands a condition or an explanation: turned round, it leaves the answer as it was. So does what
stands behind a quantity, which has answered by then."""
