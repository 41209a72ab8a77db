"""Skip texts without personal data: fast native code excludes most texts before the disclosure rules read them.

The rules take a few hundred microseconds for a reply, which is too slow for a log of a gigabyte. The sieve never
rejects a text in which `find_disclosures` finds something: it contains the pattern of each rule, without the
conditions that make the pattern stricter (text around a match, check digits, strengths). For a rule that depends on
certain words, a text passes if it has enough digits and one of the words anywhere. The rules read each text that
passes. A new rule also needs a pattern here; the tests compare the sieve with the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaValidator, core_schema

from monitors.facts.disclosures.candidates import build_normalised_view
from monitors.facts.disclosures.identifiers import IBAN_LENGTHS
from monitors.facts.disclosures.labelled import SPACED_TOPICS, SPOKEN_DIGITS, SPOKEN_TIMES
from monitors.facts.disclosures.masking import LABELS
from monitors.facts.disclosures.phrases import (
    COMPANY,
    CUES,
    MAIL_AT,
    NAME_TOPICS,
    PERSON,
    PLACES,
    THING,
    split_words,
)
from monitors.facts.text import MAX_TEXT_LENGTH


def _build_matcher(*patterns: str) -> Callable[[str], bool]:
    """Return a matcher for all patterns. The matcher uses Rust's regex engine.

    The engine takes linear time and is 20 times as fast as `re`.
    """
    pattern = "|".join(f"(?:{alternative})" for alternative in patterns)
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python


# Characters that the view of a text replaces or removes, and control characters, which the two engines read
# differently. A text with such characters is folded first.
_FOLDED = (
    r"[\p{Nd}&&[^0-9]]|[\p{Zs}&&[^ ]]|[\p{Cf}\p{Pd}&&[^\-]]|[\u{ff01}-\u{ff5e}\u{2460}-\u{2468}\u{24ea}]"
    r"|[\u{34f}\u{2065}\u{20e3}\u{fe00}-\u{fe0f}\u{2043}\u{2212}\u{fe6b}\u{2024}\u{b7}\u{2044}\u{2215}]"
    r"|[\u{1d7ce}-\u{1d7ff}\u{e0000}-\u{e007f}]"
)
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
_MARKS = r"\*\*|`"
_LABELS = "|".join(map(re.escape, LABELS.values()))

_EDGE = "(?:^|(?-i:[^A-Za-z0-9]))"
_END = "(?:$|(?-i:[^A-Za-z0-9]))"
_STATES = (
    "AN|AP|AR|AS|BH|BR|CG|CH|DD|DL|DN|GA|GJ|HP|HR|JH|JK|KA|KL|LA|LD|MH|ML|MN|MP|MZ|NL|OD|OR|PB|PY|RJ|SK|TN|TR|TS"
    "|TG|UK|UA|UP|WB"
)
_SPOKEN_DIGITS = "|".join((*SPOKEN_DIGITS, *SPOKEN_TIMES))

_LETTER = r"A-Za-z\x{c0}-\x{24f}\x{900}-\x{97f}"
_PLACES = (
    r"(?:^|[^A-Za-z0-9])[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}|[A-Za-z.]{2},? [0-9]{5}",
    r"[0-9]{4,5} [A-Z\x{c0}-\x{de}]|[0-9][A-Za-z]?,? (?:[A-Z][^ ]* ){1,3}[A-Z]",
    rf"(?i)(?:{'|'.join(map(re.escape, PLACES['street_ending']))})\.? ?[0-9]",
    rf"(?i)(?:{'|'.join(PLACES['mail']['dot'])})[^{_LETTER}]{{1,4}}(?:{'|'.join(PLACES['mail']['domains'].split())})",
)
_CAPITAL_SOON = re.compile(r"[^\n]{0,60}?[^\W\d_a-zß-ÿ]|[,!. \t]{0,3}\n")
_VALUE = re.compile(r"[\d!@#$%^&*+=~?]")
_DIGIT_BY_DIGIT = re.compile(r"\d(?:[ .\-/]\d){4}")
_SIX_DIGITS = re.compile(r"[0-9]{3} ?[0-9]{3}")
_STREETS = frozenset(PLACES["street"])
_NAMES_BEFORE = frozenset({"relation", "role", "honorific", "possession"})


def _has_label_name_or_address(plain: str) -> bool:
    """Return whether the text contains a label of a value, a word beside a name, or the shape of an address."""
    lowered = plain.lower()
    words = split_words(lowered)
    is_spoken = len(SPOKEN_DIGITS.keys() & words.words) > 1
    has_value = is_spoken or _VALUE.search(plain)
    for phrase in CUES.find_phrases(words):
        if phrase.topic in NAME_TOPICS:
            if phrase.topic in _NAMES_BEFORE or _CAPITAL_SOON.match(plain, words.ends[phrase.end - 1]):
                return True
        elif phrase.topic == MAIL_AT:
            if words.words[phrase.first] != "at":
                return True
        elif phrase.topic in SPACED_TOPICS:
            if is_spoken or _DIGIT_BY_DIGIT.search(plain):
                return True
        elif has_value and phrase.topic not in (COMPANY, PERSON, THING):
            return True
    if _SIX_DIGITS.search(plain) is None:
        return False
    return not _STREETS.isdisjoint(words.words) or any(word.endswith(_STREET_ENDINGS) for word in words.words)


_STREET_ENDINGS = tuple(PLACES["street_ending"])

_SECRETS = (
    r"sk-[A-Za-z0-9_\-]{16}|(?:hf|gsk|lsv2|gh[pousr])_[A-Za-z0-9_]{16}|github_pat_|glpat-",
    r"A(?:KIA|SIA|ROA)[A-Z0-9]{12}|AIza[A-Za-z0-9_\-]{30}|ya29\.|xox[abeoprs]-|xapp-|(?:[srp]k|rzp)_(?:live|test)_",
    r"npm_[A-Za-z0-9]{20}|pypi-[A-Za-z0-9_\-]{20}|SG\.[A-Za-z0-9_\-]{10}|whsec_|pn[ub]_[A-Za-z0-9]{20}",
    r"SK[0-9a-f]{32}|eyJ[A-Za-z0-9_\-]{6}|hooks\.slack\.com/|PRIVATE KEY-----",
    r"(?i)(?:bearer|basic)[ \t]+[A-Za-z._/\-]*[0-9~+=]",
    (
        r"""(?i)(?:key|secret|password|passwd|pwd|passphrase|token)["']?\s{0,3}(?:=|:|is|-)\s{0,3}["']?"""
        r"""[^\s"',;<>\[\]]*[\d!@#$%^&*+=~?]"""
    ),
    r"(?i)(?:otp|cvv|cvc|y code|n code)(?: ?(?:code|number|no\.?))?\s{0,3}(?:is|:|=|-)?\s{0,3}\d{3}",
    r"(?i)pin(?: ?(?:number|no\.?))?\s{0,3}(?:is|:|=|-)\s{0,3}\d{4}",
)
_ADDRESSES_OF_NETWORKS = (
    r"(?i)@|\[at\]|\(at\)| dot ",  # mailboxes, UPI ids, credentials in URLs
    r"\.\d{1,3}\.\d{1,3}\.\d|::|(?:[0-9A-Fa-f]{0,4}:){6}",
)
_PERSONAL = (
    r"(?im)^(?:to|from|cc|attn|an|von|à|para) ?: ?[^\W\d_]",
    rf"(?i)(?:{_SPOKEN_DIGITS})(?:[ ,.\-]{{1,3}}(?:{_SPOKEN_DIGITS})){{5}}",
    r"(?i)(?:address|(?:liv(?:es?|ing)|resid(?:es?|ing)|stays?|staying|hai) at|ghar ka|पता)(?s:.)*\d",
)
_CODES = (
    r"(?i)[A-Z]{5}\d{4}[A-Z]",
    r"[A-Z]{5}[ -]\d{4}[ -][A-Z]",  # PAN, GSTIN
    rf"(?i){_EDGE}(?:[A-Z][1-9]\d ?\d{{5}}|[A-Z]{{3}}[ /-]?\d{{7}}){_END}",  # passport, voter
    rf"(?i){_EDGE}(?:{'|'.join(IBAN_LENGTHS)})\d{{2}}(?:[ -]?[A-Z0-9]){{11}}",
    rf"(?i){_EDGE}(?:{_STATES})[ -]?\d{{1,2}}[ -]?[A-Z]{{1,3}}[ -]?\d{{4}}{_END}",
    r"(?i)\d{2}[ -]?BH[ -]?\d{4}[ -]?[A-Z]",  # vehicles
    rf"(?im)^[ \t\r.,;:\"']*(?:{_STATES})[ -]?\d{{4}}[ \t\r.,;:\"']*$",
)
_NUMBERS = (
    r"\d(?:[ .\-]{1,3}\d){9}",
    r"\d(?:[ .\-/]?\d){12}",  # cards, driving licences
    r"(?:^|\D)[2-9]\d{3}(?:[ .\-/:]\d{4}[ .\-/:]\d{4}|\d{8})(?:\D|$)",  # Aadhaar
    r"\d{3}[ .-]\d{2}[ .-]\d{4}|\d{3}-\d{6}|\d{5}-\d{4}",  # SSN
    # telephones: international, European, American, Indian
    r"(?:^|\D)00 ?[1-9](?:[ .\-/()]{0,3}\d){7}|0[1-9](?:[ .]\d\d){4}",
    r"0[1-9]\d{1,3}\)?(?: ?[/\-] ?| )(?:\d{5}|\d{2,4} \d\d)",
    r"\+\d{1,3}\)?(?:[ .\-/]{0,2}\(?\d\)?){6}",
    r"(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.\-])\d{3}[ .\-]\d{4}",
    (
        r"(?:^|[^\d.]|(?:0091|91|0)[ .\-/]?)"
        r"[6-9](?:\d{4}[ .\-/]?\d{5}|\d{2}[ .\-/]\d{3}[ .\-/]\d{4}|\d{3}[ .\-/]\d{3}[ .\-/]\d{3})(?:\D|$)"
    ),
)
_SAID_NUMBER = (
    r"(?i)\d(?:(?:[a-z/\-]{0,28}[/.\- ]?[a-z]{0,6}|[ .\-/()]{0,4})\d){4}",
    r"\d(?:[ .\-/:,]{0,2}\d){11}",
    rf"(?i){_EDGE}(?:{_STATES})[ -]?\d{{4}}",
)
"""Forms of numbers that are disclosures only after a word such as "passport"."""
_SAYING_WORDS = (
    "aadh?aa?r|adh?aa?r|uid|card|visa|master|maestro|amex|rupay|debit|credit|cc|lic|dl|passport|vehicle|plate|reg|car|bike"
    "|scooter|truck|gad|gaad|polic|acc|a/c|folio|cif|crn|uhid|khata|khaata|customer|member|client|subscriber|patient|claim"
    "|loan|phone|telephone|mob|cel|tel|call|dial|ring|whatsapp|toll|fax|sms|helpline|hotline|landline|desk|contact|reach"
    "|handy|rufn|durchw|festn|anruf|erreich|portable|appele|joindre|llam|chiam|tfno"
    "|ph|messages|sampark|number|mer"
)
_SAYING_BEYOND_ASCII = (
    "tél|móvil|llám"
    "|आधार|कार्ड|लाइसेंस|पासपोर्ट|गाड़ी|वाहन|पॉलिसी|पालिसी|खाता|खाते|फ़ोन|फोन|मोबाइल|मोबाईल|संपर्क|सम्पर्क|कॉल|व्हाट्सएप|मे"
)

_is_unicode = _build_matcher("")
_is_unusual = _build_matcher(_FOLDED)
_is_unreadable = _build_matcher(_CONTROLS, r"\*\*\*")
_is_marked = _build_matcher(_FOLDED, _CONTROLS, _MARKS)
_FORM_MATCHERS: Final = (
    _build_matcher(*_SECRETS, *_ADDRESSES_OF_NETWORKS, *_PERSONAL, _LABELS),
    _build_matcher(*_CODES),
    _build_matcher(*_NUMBERS),
    _build_matcher(*_PLACES),
)
"""One matcher for each group of forms. A single pattern is slower, because the engine's state table has a limit."""
_has_counted_digits = _build_matcher(*_SAID_NUMBER)
_has_context_word = _build_matcher(f"(?i)(?:^|(?-i:[^A-Za-z]))(?:{_SAYING_WORDS})", _SAYING_BEYOND_ASCII)


def is_possible_disclosure(text: str, account_patterns: Sequence[str] = ()) -> bool:
    """Return whether a text may contain a disclosure.

    If the result is False, the rules find no disclosure in the text or in any of its lines. ``account_patterns``
    are the target's own patterns, as for `find_disclosures`.
    """
    if not _can_regex_engine_search(text) or _is_unreadable(text):
        return True
    plain = build_normalised_view(text).text if _is_unusual(text) else text.replace("**", "").replace("`", "")
    if _has_disclosure_form(plain) or (_has_counted_digits(plain) and _has_context_word(plain)):
        return True
    return any(pattern.search(plain) for pattern in _compile_patterns(tuple(account_patterns)))


def has_possible_disclosure(texts: Sequence[str], account_patterns: Sequence[str] = ()) -> bool:
    """Return whether any of the texts may contain a disclosure. If possible, all texts are tested in one pass."""
    whole = "\n".join(texts)
    if account_patterns or not _can_regex_engine_search(whole) or _is_marked(whole) or _has_disclosure_form(whole):
        return any(is_possible_disclosure(text, account_patterns) for text in texts)
    # Digits of one text must not be combined with the words of another text.
    return (
        _has_counted_digits(whole)
        and _has_context_word(whole)
        and any(_has_counted_digits(text) and _has_context_word(text) for text in texts)
    )


def _can_regex_engine_search(text: str) -> bool:
    """Return whether Rust's regex engine accepts the text: it has no lone surrogates and is not too long."""
    return len(text) <= MAX_TEXT_LENGTH and (text.isascii() or _is_unicode(text))


def _has_disclosure_form(plain: str) -> bool:
    return any(matches(plain) for matches in _FORM_MATCHERS) or _has_label_name_or_address(plain)


@lru_cache(maxsize=64)
def _compile_patterns(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)
