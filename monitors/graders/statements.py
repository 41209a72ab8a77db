"""What a sentence does with its quantity: takes another back, leaves it open, speaks of something else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from monitors.facts.fact import FactKind
from monitors.facts.normalise import keys_of
from monitors.facts.number_words import NUMBER_WORDS
from monitors.facts.reading import Reading
from monitors.facts.scan import Scan
from monitors.facts.tokens import END, WORD, Token
from monitors.facts.unit_keys import UNIT_KEYS
from monitors.facts.words import Reader
from monitors.graders.polarity_words import COVERED, NEGATIONS, excludes

_ENDS = frozenset(".;!?।|•")
_LONGEST = 60
"""Tokens looked at on either side of a quantity; no sentence that people read is longer."""

_OR = ({"or"}, {"/"}, {"या"}, {"ya"}, {","}, {"or", ","})

_FUNCTION_WORDS = keys_of(
    "the a an is are was were be will would shall of for in on to and or with from at by as this that it "
    "its there has have had does do not only also actually really so then in fact however but you your we "
    "our they their must may can है हैं का के की को में से और यह वह hai hain ka ke ki ko mein me se aur "
    "yeh woh ye wo"
)
_CONTRAST = keys_of(
    "if unless except other others instead from reduced increased earlier previously standard than "
    "optional plan plans variant option otherwise after before until was were when where while per each "
    "another अगर यदि अन्य agar yadi"
)
"""With one of these a second figure has its own condition and contradicts nothing."""


_IT = keys_of("it it's its this that actually fact yeh ye यह")
"""A sentence of small words alone is about what was said before: "It is actually 36 months"."""


def sentence_of(reader: Reader, reading: Reading) -> list[Token]:
    """The tokens of the sentence in which a quantity stands, without the quantity itself."""
    before: list[Token] = []
    for at in range(reading.first - 1, reading.first - 1 - _LONGEST, -1):
        token = reader.token(at)
        if token is END or token.text in _ENDS:
            break
        before.append(token)
    after: list[Token] = []
    for at in range(reading.last + 1, reading.last + 1 + _LONGEST):
        token = reader.token(at)
        if token is END or token.text in _ENDS:
            break
        after.append(token)
    return before[::-1] + after


def _content(tokens: list[Token]) -> frozenset[str]:
    return frozenset(
        token.key
        for token in tokens
        if token.kind == WORD
        and token.key not in _FUNCTION_WORDS
        and token.key not in UNIT_KEYS
        and token.key not in NUMBER_WORDS
    )


def overrules(reply: Scan, said: Reading, other: Reading, question: Scan, gold: Scan) -> bool:
    """Whether ``other`` contradicts ``said``: another sentence, the same subject, no condition, nothing new."""
    first, second = sentence_of(reply.reader, said), sentence_of(reply.reader, other)
    if {token.start for token in first} & {token.start for token in second}:
        return False
    about, words = _content(second), {token.key for token in second}
    if words & _CONTRAST or not (about or words & _IT):
        return False
    known = _content(first) | _content(list(question.reader.tokens)) | _content(list(gold.reader.tokens))
    return about <= known


def is_one_of_several(reply: Scan, said: Reading, other: Reading) -> bool:
    """``24 or 36 months``: one of several, so neither is stated."""
    first, second = sorted((said, other), key=lambda reading: reading.first)
    gap = {reply.reader.token(at).key for at in range(first.last + 1, second.first)}
    return second.first - first.last <= 3 and gap in _OR  # noqa: PLR2004 - a joint is one or two tokens


def speaks_of_another(reply: Scan, said: Reading, asked: Names) -> bool:
    """Whether the sentence names a sibling of what was asked about: "Suraksha Silver" where Suraksha Gold was."""
    named = names_in(sentence_of(reply.reader, said))
    if named & asked:
        return False
    families = {first for first, _ in asked}
    return any(first in families for first, _ in named)


Names = frozenset[tuple[str, str]]
"""Pairs of capitalised words in a row, by their keys."""


def names_in(tokens: Sequence[Token]) -> Names:
    """The names in some tokens: what people capitalise."""
    pairs: set[tuple[str, str]] = set()
    for first, second in pairwise(tokens):
        near = first.end + 1 == second.start and first.kind == WORD and second.kind == WORD
        if near and first.text[0].isupper() and second.text[0].isupper():
            pairs.add((first.key, second.key))
    return frozenset(pairs)


_NONE = keys_of("no nil without none zero not कोई नहीं koi nahi")
_REACH = 3


def is_denied(reply: Scan, question: Scan, gold: Scan) -> bool:
    """``no co-payment`` says what a gold of zero says: a negation right before a word of the question or gold."""
    topic = (_content(list(question.reader.tokens)) | _content(list(gold.reader.tokens))) - _FUNCTION_WORDS
    tokens = reply.reader.tokens
    for at, token in enumerate(tokens):
        if token.key in _NONE and any(near.key in topic for near in tokens[at + 1 : at + 1 + _REACH]):
            return True
    return False


_OFTEN = {"once": 1, "twice": 2, "thrice": 3}
_TIMES = keys_of("times often frequently baar bar बार")


def says_how_often(reply: Scan, question: Scan, wanted: Reading) -> bool:
    """``once``, ``twice``, ``thrice`` in answer to "how many times"."""
    if wanted.kind is not FactKind.NUMBER or wanted.value not in _OFTEN.values():
        return False
    if not any(token.key in _TIMES for token in question.reader.tokens):
        return False
    said = {_OFTEN[token.key] for token in reply.reader.tokens if token.key in _OFTEN}
    return said == {int(wanted.value)}


_BEHIND_LIMIT = keys_of("beyond above over exceeding than after until till before within first during unless अधिक")
_COVER_REACH = 12


def is_uncovered(reply: Scan, said: Reading) -> bool:
    """``is not covered up to ₹60,000``: a limit of cover that is denied; not "not covered beyond ₹60,000"."""
    reader = reply.reader
    for place in range(said.first - 1, said.first - 1 - _COVER_REACH, -1):
        key = reader.token(place).key
        if reader.token(place) is END or key in _ENDS or key in _BEHIND_LIMIT:
            return False
        if key in COVERED:
            return bool(NEGATIONS & {reader.token(place - 1).key, reader.token(place - 2).key})
        if excludes(key, reader.token(place - 1).key):
            return not NEGATIONS & {reader.token(place - 1).key, reader.token(place - 2).key}
    return False
