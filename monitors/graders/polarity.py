"""Find out whether a gold and a reply mean yes or no, even if they do not contain the word yes or no.

"Is covered" and "कवर है" mean yes. "Is not covered", "कवर नहीं है", "cover nahi hota" and "excluded" mean no. "Not
covered until 24 months" and "not for the first two years" mean neither, because cover begins later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from monitors.domains.pack import Domain
from monitors.facts.quantities.locales import PLAIN, Locale
from monitors.facts.text import END, SIGN, Token, split_into_word_keys
from monitors.graders.base import CONDITION, UNCLEAR
from monitors.graders.golds import (
    STEM,
    collect_content_word_stems,
    collect_stems_without_quantities,
    scan_case_text,
    scan_reply_without_citations,
)
from monitors.graders.statements import (
    FILLERS,
    FORBIDS,
    LATER,
    LIMITS,
    MODALS,
    NEGATIONS,
    NEGATIONS_BEHIND,
    NO_WORDS,
    OPENERS,
    OUT_OF,
    PREDICATES,
    QUESTION_WORDS,
    SPEAKERS,
    STOP_WORDS,
    YES_WORDS,
    is_excluding_word,
)

NEITHER = "the gold answer is neither yes nor no"
"""The reason for an abstention if the gold is not the answer to a yes-or-no question."""


class Polarity(StrEnum):
    """What a text means as an answer to a yes-or-no question: yes, no, or neither."""

    YES = "yes"
    NO = "no"
    LATER = "not at first"
    """An answer that is no at first, but yes after some time."""
    OPEN = "open"


class PolarityReading(NamedTuple):
    """Whether a text means yes, no or neither, with the tokens that show this."""

    polarity: Polarity
    tokens: tuple[Token, ...]


class YesNoQuestion(NamedTuple):
    """The words that name the topic of a question, and the ``predicates``, which answer the question with yes."""

    topic: frozenset[str]
    predicates: frozenset[str]
    polar_words: frozenset[str]
    """All words that mean yes or no in a reply to this question."""
    quality: str
    """The quality that a question with "is" asks about: "heated" in "Is the terrace heated?".

    The quality is the last word of the question. For other questions, it is empty.
    """


class _Clause(NamedTuple):
    polarity: Polarity
    token: Token
    overlap: int


_GRANT_WORDS = PREDICATES["offer"] | split_into_word_keys("accept accepts accepted take takes")
"""Words for giving or accepting. If they are negated, they answer "Can I …?" with no.

For example, "We do not offer instalments." answers "Can I pay by instalments?" with no.
"""
_OPENING = 6
_MAX_SHORT_SENTENCES = 2
"""Maximum number of sentences in a short reply.

A short reply can be an answer even if it contains no word of the question.
"""
_EXISTENCE = frozenset({"there", "have", "has", "having"})
"""English words that a negation may follow: "there is no limit", "has no cap"."""
_NOT = frozenset({"not", "no", "never"})
"""Negations after a modal verb.

"Without" is not one of them: "You may come in without a ticket" has no negated verb.
"""
_ABLE_TO = split_into_word_keys("able allowed possible permitted free entitled have need")
_ONLY = split_into_word_keys("only केवल सिर्फ sirf keval")
_CLAUSE_ENDS = frozenset(".;!?।|•")
_BE = split_into_word_keys("is are isn't aren't")
_NOUN_MARKERS = split_into_word_keys(
    "a an the this that of for in on at to from with by and or my your our their i we you it they"
)
"""Words that are often before a noun.

After such a word, the last word of a question is not a quality: "Is she a doctor?".
"""
_IT = split_into_word_keys("it they")
_PRONOUNS = split_into_word_keys("it he she we you they i there")
_ADVERBS = split_into_word_keys("certainly definitely absolutely indeed really still always also usually")
_AUXILIARIES = {
    "be": split_into_word_keys("is are am was were"),
    "do": split_into_word_keys("do does did"),
    "have": split_into_word_keys("have has had"),
    "can": split_into_word_keys("can could may"),
    "will": split_into_word_keys("will would"),
}
_NEGATED_AUXILIARIES = {
    "be": split_into_word_keys("isn't aren't wasn't weren't"),
    "do": split_into_word_keys("don't doesn't didn't"),
    "have": split_into_word_keys("haven't hasn't hadn't"),
    "can": split_into_word_keys("can't cannot couldn't"),
    "will": split_into_word_keys("won't wouldn't"),
}
_AFTER_SHORT_ANSWER = split_into_word_keys(
    "as if but and provided unless up until till actually indeed except for from not"
)
_BEFORE, _BEHIND, _FAR = 5, 3, 12
"""Maximum distances in tokens from a word to the words that change its meaning.

The distances are for a negation before the word, a negation after it, and an "until" after it.
"""


@lru_cache(maxsize=256)
def read_yes_no_question(text: str, domain: Domain, locale: Locale = PLAIN) -> YesNoQuestion:
    """Return the topic and the predicates of a question."""
    tokens = scan_case_text(text, locale).reader.tokens
    keys = [token.key for token in tokens]
    topic = frozenset(word for word in convert_to_comparable_words(tokens) if len(word) > 2)  # noqa: PLR2004 - shorter words are function words
    plain = {key for at, key in enumerate(keys) if key != "any" and not _is_auxiliary_have(keys, at)}
    asked = [group for group in (*PREDICATES.values(), *domain.predicates) if group & plain]
    predicates = domain.yes.union(*asked)
    polar_words = predicates | domain.no
    if PREDICATES["allow"] <= predicates:
        polar_words |= _GRANT_WORDS | FORBIDS | {"must"}
    topic -= STOP_WORDS | domain.common
    quality = _find_quality(keys)
    if asked or quality in polar_words:
        quality = ""
    if quality:
        predicates, polar_words = predicates | {quality}, polar_words | {quality}
        topic -= frozenset(convert_to_comparable_words([token for token in tokens if token.key == quality]))
    return YesNoQuestion(topic, predicates, polar_words, quality)


def _find_quality(keys: Sequence[str]) -> str:
    """Return the quality that a question asks about: "heated" in "Is the terrace heated?", or an empty string."""
    words = [key for key in keys if key.isalpha()]
    if len(words) < 3 or keys[0] not in _BE or words[-2] in _NOUN_MARKERS - _IT or words[1] == "there":  # noqa: PLR2004 - verb, subject, quality
        return ""
    return words[-1]


def convert_to_comparable_words(tokens: Sequence[Token]) -> list[str]:
    """Return the words of a text in the form in which topics are compared.

    Plural endings are removed, and ``co-payment`` becomes ``copay``.
    """
    words: list[str] = []
    for place, token in enumerate(tokens):
        key = token.key
        if (
            key.startswith("pay") and place > 1 and tokens[place - 1].text == "-" and tokens[place - 2].key == "co"
        ) or key.startswith("copay"):
            key = "copay"
        elif len(key) > 3 and key.isascii() and key.endswith("s"):  # noqa: PLR2004 - shorter words end in s in the singular: bus
            key = key[:-1]
        words.append(key)
    return words


@lru_cache(maxsize=256)
def is_yes_no_question(text: str, locale: Locale = PLAIN) -> bool:
    """Return whether a text is a yes-or-no question. The first words decide, or the word "kya" in Hindi."""
    keys = [token.key for token in scan_case_text(text, locale).reader.tokens]
    if not keys:
        return False
    if keys[0] in OPENERS:
        return not QUESTION_WORDS & set(keys[:3]) and "or" not in keys
    return ("kya" in keys or "क्या" in keys) and not QUESTION_WORDS & set(keys)


def find_opening_yes_or_no(tokens: Sequence[Token]) -> PolarityReading | None:
    """Return the yes or no at the beginning (``Yes, …``, ``जी हां``, ``**No**``), or ``None``.

    The "no" of "No cover is …" is not an answer.
    """
    for place, token in enumerate(tokens[:_OPENING]):
        if token.key in YES_WORDS:
            return PolarityReading(Polarity.YES, (token,))
        if token.key in NO_WORDS:
            following = tokens[place + 1] if place + 1 < len(tokens) else END
            is_plain_no = following is END or following.kind == SIGN or token.key != "no"
            if place and tokens[place - 1].key == "oh":
                return None  # "Oh no, I'm sorry to hear that."
            return PolarityReading(Polarity.NO, (token,)) if is_plain_no else None
        if token.key not in FILLERS:
            return None
    return None


def find_short_answer(tokens: Sequence[Token], question: Sequence[Token]) -> PolarityReading | None:
    """Return the yes or no of an answer such as "We certainly do!", "He isn't." or "Not at all.", or ``None``.

    An auxiliary verb in the answer must also be in the question: "It is." does not answer "Can I pay by card?".
    """
    if [token.key for token in tokens[:2]] == ["of", "course"]:
        tokens = tokens[3:] if [token.key for token in tokens[2:3]] == [","] else tokens[2:]
    keys = [token.key for token in tokens[:_OPENING]]
    if keys[:3] == ["not", "at", "all"] and keys[3:4] in _ANSWER_ENDS:
        return PolarityReading(Polarity.NO, tuple(tokens[:3]))
    if not keys or keys[0] not in _PRONOUNS or keys[0] == "i":  # "I can't." may be a refusal
        return None
    place = 2 if keys[1:2] and keys[1] in _ADVERBS else 1
    asked = {token.key for token in question}
    for kind, words in _AUXILIARIES.items():
        if asked.isdisjoint(words | _NEGATED_AUXILIARIES[kind]) or place >= len(keys):
            continue
        negated = keys[place] in _NEGATED_AUXILIARIES[kind]
        if not negated and keys[place] not in words:
            continue
        after = place + 1
        if not negated and keys[after : after + 1] == ["not"]:
            negated, after = True, after + 1
        following = keys[after : after + 2]
        if following[:1] in _ANSWER_ENDS or (following[:1] == [","] and set(following[1:]) & _AFTER_SHORT_ANSWER):
            return PolarityReading(Polarity.NO if negated else Polarity.YES, tuple(tokens[:after]))
    return None


_ANSWER_ENDS: Final[tuple[list[str], ...]] = ([], ["."], ["!"], [";"])


_BRACKETS = re.compile(r"\([^()]{0,300}\)")


def find_polarity(
    tokens: Sequence[Token], question: YesNoQuestion, domain: Domain, opening: PolarityReading | None = None
) -> PolarityReading:
    """Return whether a text answers ``question`` with yes, no or neither, and the tokens that show this.

    A yes or no at the beginning decides. If there is none, the clause that shares the most words with the question
    decides. The result is `OPEN` if the rest of the text, or another clause with as many shared words, contradicts
    this yes or no. ``opening`` is a yes or no that was already found at the beginning.
    """
    reply_opening = opening or find_opening_yes_or_no(tokens)
    if reply_opening is None:
        return _read_polarity_of_best_clause(tokens, question, domain)
    sentence = {token.key for token in next(iter(_split_sentences_without_questions(tokens)), list[Token]())}
    agrees_to_denial = reply_opening.tokens[0].key in _AGREEMENTS and bool(sentence & (NEGATIONS | {"never"}))
    if reply_opening.polarity is Polarity.YES and (agrees_to_denial or _ends_first_sentence_in_denial(tokens)):
        return PolarityReading(Polarity.OPEN, reply_opening.tokens)  # "Correct, we aren't."
    stated = _read_polarity_of_best_clause(
        _skip_opening_yes_or_no(tokens, reply_opening.tokens[-1]), question, domain
    )
    if {reply_opening.polarity, stated.polarity} == {Polarity.YES, Polarity.NO}:
        return PolarityReading(Polarity.OPEN, (*reply_opening.tokens, *stated.tokens))
    return reply_opening


_AGREEMENTS: Final = split_into_word_keys("correct right exactly true")
"""Words that agree with the question. A denial may follow: "Correct, we aren't." does not mean yes."""


def _ends_first_sentence_in_denial(tokens: Sequence[Token]) -> bool:
    """Return whether the first sentence ends with a denial: "we aren't" in "Correct, we aren't."."""
    first = next(iter(_split_sentences_without_questions(tokens)), list[Token]())
    return len(first) > 1 and first[-1].key in _BARE_DENIALS


_BARE_DENIALS: Final = split_into_word_keys("aren't isn't don't doesn't can't won't didn't not nicht nahi नहीं")


def _skip_opening_yes_or_no(tokens: Sequence[Token], opener: Token) -> Sequence[Token]:
    """Return the tokens after a yes or no at the beginning.

    In "No, it is excluded", the "no" does not negate "excluded".
    """
    place = tokens.index(opener)
    is_opening = place + 1 < len(tokens) and tokens[place + 1].kind == SIGN
    return tokens[place + 2 :] if is_opening else tokens


def _read_polarity_of_best_clause(
    tokens: Sequence[Token], question: YesNoQuestion, domain: Domain
) -> PolarityReading:
    """Return the yes or no of the clause that shares the most words with the question."""
    clauses = _split_sentences_without_questions(tokens)
    statements = [
        statement
        for clause in clauses
        if (statement := _read_polarity_of_clause(clause, question, domain)) is not None
    ]
    if not statements:
        return PolarityReading(Polarity.OPEN, ())
    max_overlap = max(clause.overlap for clause in statements)
    if (
        max_overlap == 0
        and question.topic
        and (len(clauses) > _MAX_SHORT_SENTENCES or statements[0].token not in clauses[0])
    ):
        return PolarityReading(Polarity.OPEN, ())
    best = [clause for clause in statements if clause.overlap == max_overlap]
    polarities = {clause.polarity for clause in best}
    if len(polarities) == 1:
        return PolarityReading(best[0].polarity, (best[0].token,))
    if polarities == {Polarity.YES, Polarity.LATER}:
        return PolarityReading(Polarity.LATER, tuple(clause.token for clause in best[:4]))
    return PolarityReading(Polarity.OPEN, tuple(clause.token for clause in best[:4]))


def _split_sentences_without_questions(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split a text into sentences. A question before a sentence is omitted: "Compulsory?" in "Compulsory? No."."""
    clauses: list[list[Token]] = [[]]
    for at, token in enumerate(tokens):
        if token.key in _CLAUSE_ENDS or (token.key == ":" and not tokens[at - 1].text.isdecimal()):
            if token.key == "?" and at + 1 < len(tokens):
                clauses.pop()
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _read_polarity_of_clause(clause: list[Token], question: YesNoQuestion, domain: Domain) -> _Clause | None:
    """Return the yes or no of a clause, or ``None``.

    The first word that can answer the question decides, together with a negation near this word.
    """
    keys = [token.key for token in clause]
    may = PREDICATES["allow"] <= question.predicates
    if question.predicates.isdisjoint(keys) and domain.no.isdisjoint(keys) and not may:
        return None
    silent = frozenset[str]().union(*(silenced for word, silenced in domain.yes_unless.items() if word in keys))
    for place, token in enumerate(clause):
        if token.key not in question.polar_words:
            continue
        before = keys[_find_start_of_main_clause(keys, place) : place]
        refused = may and token.key in _GRANT_WORDS and bool(NEGATIONS & set(before))
        positive = (
            (token.key in question.predicates or refused)
            and token.key not in silent
            and tuple(keys[place + 1 : place + 3]) not in OUT_OF
            and not _is_verb_of_purpose(keys, place)
            and not _is_verb_about_part(keys, place)
            and not _is_auxiliary_have(keys, place)
        )
        forbidden = may and _is_forbidding_word(keys, place)
        if (
            not positive
            and not forbidden
            and not is_excluding_word(token.key, keys[place - 1] if place else "", domain)
        ):
            continue
        behind = keys[place + 1 : place + 1 + _BEHIND]
        negated = (
            bool(NEGATIONS & set(before))
            or _is_negated_behind(token.key, behind, forbidden=forbidden)
            or _ends_in_negation(keys[place + 1 : place + 2 + _MAX_WORDS_TO_FINAL_NOT])
        )
        words = convert_to_comparable_words(clause)
        if token.key == question.quality and not _states_quality_of_subject(words, keys, place, question.topic):
            return None
        overlap = len(question.topic & set(words))
        if negated != positive:
            return _Clause(Polarity.YES, token, overlap)
        ends = LATER & {*before, *keys[place + 1 : place + _FAR]}
        return _Clause(Polarity.LATER if ends else Polarity.NO, token, overlap)
    return None


def _find_start_of_main_clause(keys: Sequence[str], place: int) -> int:
    """Return the start of the clause with the verb at ``place``, at most `_BEFORE` tokens before the verb.

    A denial before the clause does not negate the verb: "I'm no vet, but you can feed them", "Not to worry, you can
    feed them".
    """
    first = max(0, place - _BEFORE)
    for at in range(place - 1, first - 1, -1):
        if keys[at] in _TURNS or (keys[at] == "," and keys[at + 1] in _PRONOUNS):
            return at + 1
    return first


def _ends_in_negation(behind: Sequence[str]) -> bool:
    """Return whether the words after a verb end with its negation, as in German: "Baden dürfen Sie hier nicht".

    After a comma or another verb, the negation belongs to another subject: "Lunch is included, dinner is not".
    """
    if len(behind) > _MAX_WORDS_TO_FINAL_NOT or not behind or behind[-1] not in _FINAL_NOT:
        return False
    return _OTHER_PART.isdisjoint(behind[:-1])


_FINAL_NOT: Final = split_into_word_keys("not nicht")
_MAX_WORDS_TO_FINAL_NOT: Final = 6
_OTHER_PART: Final = (
    MODALS
    | frozenset[str]().union(*_AUXILIARIES.values())
    | split_into_word_keys("or oder but aber if and while , –")
)
_TURNS: Final = split_into_word_keys("but however though aber lekin लेकिन")


def _states_quality_of_subject(
    words: Sequence[str], keys: Sequence[str], place: int, topic: frozenset[str]
) -> bool:
    """Return whether a sentence only says that the question's subject has, or lacks, the quality at ``place``.

    Return True for "The terrace isn't heated" and "it's heated". Return False for "Ask if it's heated", "hardly
    heated" and "The hall near the terrace is heated". ``words`` are the comparable words of the sentence.
    """
    nearest = range(place - 1, max(-1, place - _BEFORE), -1)
    verb = next((at for at in nearest if keys[at] in _BE or keys[at] in _IT_IS), None)
    if verb is None or not _INTENSIFIERS.issuperset(keys[verb + 1 : place]):
        return False
    start = verb
    while start > 0 and verb - start < _BEFORE and keys[start - 1] not in _TURNS and keys[start - 1] != ",":
        start -= 1
    subject = {"it"} if keys[verb] in _IT_IS else set(words[start:verb])
    is_subject = bool(subject & (topic | _IT)) and subject <= topic | _IT | _DETERMINERS
    return is_subject and (place + 1 == len(keys) or keys[place + 1] in _QUALITY_ENDS)


_IT_IS: Final = split_into_word_keys("it's they're")
_DETERMINERS: Final = split_into_word_keys("the a an our your my this that these those both all")
_INTENSIFIERS: Final = split_into_word_keys("not very fully completely also indeed always still now")
_QUALITY_ENDS: Final = split_into_word_keys(", and but –")


def _is_verb_of_purpose(keys: Sequence[str], place: int) -> bool:
    """Return whether a verb states a purpose.

    The "cancel" in "to cancel, call us" states a purpose. The "cancel" in "you are able to cancel" does not.
    """
    return place > 0 and keys[place - 1] == "to" and _ABLE_TO.isdisjoint(keys[max(0, place - 2) : place - 1])


def _is_verb_about_part(keys: Sequence[str], place: int) -> bool:
    """Return whether a verb describes only a part of the sentence: "can" in "anything that can burn"."""
    is_aside = keys[place + 1 : place + 2] == [","] and "," in keys[:place]
    return is_aside or (place > 1 and keys[place - 1] in {"that", "which", "who"})


def _is_auxiliary_have(keys: Sequence[str], place: int) -> bool:
    """Return whether the word is an auxiliary "have", as in "have dropped off", "has been" and "has to"."""
    following = keys[place + 1] if place + 1 < len(keys) else ""
    return keys[place] in _HAVE and (following in {"been", "to"} or following.endswith("ed"))


_HAVE: Final = frozenset({"have", "has", "having"})


def _is_forbidding_word(keys: Sequence[str], place: int) -> bool:
    """Return whether the word forbids an action: ``cannot``, ``forbidden``, ``must not``."""
    if keys[place] == "must":
        return not _NOT.isdisjoint(keys[place + 1 : place + 2])
    return keys[place] in FORBIDS and SPEAKERS.isdisjoint(keys[max(0, place - 2) : place])


def _is_negated_behind(key: str, behind: Sequence[str], *, forbidden: bool) -> bool:
    """Return whether a negation after a word negates this word.

    This is possible in Hindi, after a modal verb ("may not") and after "there is" ("there is no").
    """
    if key in MODALS:
        return not forbidden and not _NOT.isdisjoint(behind[:2])
    return not (NEGATIONS if key in _EXISTENCE else NEGATIONS_BEHIND).isdisjoint(behind)


@lru_cache(maxsize=512)
def find_gold_polarity(question: str, text: str, domain: Domain, locale: Locale = PLAIN) -> Polarity:
    """Return whether a gold means yes or no.

    The first words of the gold decide, or the words that answer the question.
    """
    tokens = scan_case_text(text, locale).reader.tokens
    opened = find_opening_yes_or_no(tokens)
    if opened is not None:
        denies = opened.tokens[0].key == "correct" and any(token.key in NEGATIONS for token in tokens)
        return Polarity.OPEN if denies else opened.polarity  # "Correct, dogs are not allowed."
    if not is_yes_no_question(question, locale):
        return Polarity.OPEN
    bare = scan_case_text(_BRACKETS.sub(" ", text), locale).reader.tokens
    return find_polarity(bare, read_yes_no_question(question, domain, locale), domain).polarity


_UNSTATED = re.compile(
    r"(?:not|n't|never) (?:explicitly |specifically |clearly |directly )?"
    r"(?:mention|state|specif|address|list|say|contain)|no (?:mention|information|specific|details?)"
    r"|cannot (?:confirm|determine|find)|उल्लेख नहीं|nahi likha|zikr nahi"
)
_UNSTATED_CHARACTERS = 600
"""In this number of characters at the beginning of a reply, "not stated" is an answer.

After these characters, "not stated" is about a detail.
"""


_MAX_BARE_WORDS: Final = 3
"""A gold with at most this many words may be a plain yes or no."""
_LIMITS: Final = LIMITS - split_into_word_keys("without otherwise instead")
"""Words that add a condition. "Without" is not included: "Yes, without a ticket" is a plain answer."""
_ANSWERS: Final = YES_WORDS | NO_WORDS


def has_condition_beyond_plain_gold(
    golds: Sequence[str], question: str, reply: str, locale: Locale = PLAIN
) -> bool:
    """Return whether the gold is a plain yes or no, and the first sentence of the reply adds a condition."""
    known_words = frozenset(
        token.key for text in (*golds, question) for token in scan_case_text(text, locale).reader.tokens
    )
    if (
        known_words & _LIMITS
        or not known_words & _ANSWERS
        or any(len(gold.split()) > _MAX_BARE_WORDS for gold in golds)
    ):
        return False
    for sentence in _split_sentences_without_questions(scan_reply_without_citations(reply, locale).reader.tokens):
        keys = frozenset(token.key for token in sentence)
        if keys - _ANSWERS:
            return bool(keys & _LIMITS)
    return False


_EXCEPTIONS: Final = split_into_word_keys("except excluding only unless if without केवल सिर्फ बिना sirf keval bina")


def lacks_limit_of_golds(golds: Sequence[str], reply: str, locale: Locale = PLAIN) -> bool:
    """Return whether each gold has a word such as "only" or "except", and the reply has none of these words."""
    keys = frozenset(token.key for token in scan_reply_without_citations(reply, locale).reader.tokens)
    limits = [
        frozenset(token.key for token in scan_case_text(gold, locale).reader.tokens) & _EXCEPTIONS for gold in golds
    ]
    return all(limit and not limit & keys for limit in limits)


_OPENINGS_ONLY: Final = frozenset({"fr", "es"})
"""Languages in which a yes or no is read only at the beginning of a reply."""


_MAX_SHORT_ANSWER_WORDS: Final = 5
_WITHOUT: Final = split_into_word_keys("without बिना bina")
"""Words that may reverse the answer. For "Can I come without a ticket?", "You need no ticket" means yes."""


def _answers_its_own_question(tokens: Sequence[Token]) -> bool:
    """Return whether a text asks a question and answers it in a few words: "Pay for parking? No.".

    The meaning of such an answer is unclear, because its question may be the reverse of the user's question.
    """
    asks = next((at for at, token in enumerate(tokens) if token.key == "?"), len(tokens))
    ends = (at for at, token in enumerate(tokens) if at > asks and token.key in _CLAUSE_ENDS)
    return 0 < next(ends, len(tokens)) - asks - 1 <= _MAX_SHORT_ANSWER_WORDS


_BUT: Final = split_into_word_keys("but however though must has need aber lekin par लेकिन")
"""Words that limit the answer of a reply, if the gold also has a limit such as "only"."""


class PolarityFinding(NamedTuple):
    """Whether a reply agrees with the gold, and the reason. ``agrees`` is ``None`` if the rules cannot decide."""

    agrees: bool | None
    reason: str
    tokens: tuple[Token, ...] = ()


def compare_with_gold_polarity(
    question: str, golds: Sequence[str], reply: str, domain: Domain, locale: Locale = PLAIN
) -> PolarityFinding:
    """Return whether the yes or no of a reply agrees with the yes or no of a gold.

    The result is undecided in two cases: the reply, or every gold, states neither yes nor no; or a condition may
    change the answer.
    """
    wanted = {find_gold_polarity(question, text, domain, locale) for text in golds} - {Polarity.OPEN}
    if not wanted:
        return PolarityFinding(None, NEITHER)
    scan = scan_reply_without_citations(reply, locale)
    tokens = scan.reader.tokens
    reply_opening = find_opening_yes_or_no(tokens)
    if reply_opening is None and _UNSTATED.search(scan.normalised.text[:_UNSTATED_CHARACTERS].lower()):
        return PolarityFinding(None, "the reply says that this information is missing")
    if reply_opening is None and _WITHOUT & {token.key for token in scan_case_text(question, locale).reader.tokens}:
        return PolarityFinding(None, UNCLEAR)
    asked = read_yes_no_question(question, domain, locale)
    if locale.speech in _OPENINGS_ONLY:
        reading = reply_opening or PolarityReading(Polarity.OPEN, ())
    else:
        opening = reply_opening or find_short_answer(tokens, scan_case_text(question, locale).reader.tokens)
        reading = find_polarity(tokens, asked, domain, opening)
        if opening is None and reading.tokens and _is_in_table(scan.normalised.text, reading.tokens[0]):
            return PolarityFinding(None, UNCLEAR)
    agrees = _compare_polarity(
        reading.polarity, wanted, limited=any(scan_case_text(gold, locale).readings for gold in golds)
    )
    if agrees is None or (reply_opening is None and _answers_its_own_question(tokens)):
        return PolarityFinding(None, UNCLEAR)
    if reply_opening is None:
        clause = {
            token.key
            for sentence in _split_sentences_without_questions(tokens)
            if reading.tokens[0] in sentence
            for token in sentence
        }
        if _ONLY & clause:
            return PolarityFinding(None, CONDITION)
        if not agrees and (
            LIMITS & clause
            or (
                _BUT & clause
                and LIMITS & {t.key for gold in golds for t in scan_case_text(gold, locale).reader.tokens}
            )
            or _collect_stems_only_in_golds(golds, question, asked, domain, locale)
            & collect_content_word_stems(tokens)
        ):
            return PolarityFinding(None, CONDITION)
    expected = " or ".join(sorted(wanted))
    reason = f"says {reading.polarity}" if agrees else f"expected {expected}, but the reply says {reading.polarity}"
    return PolarityFinding(agrees, reason, reading.tokens)


def _is_in_table(text: str, token: Token) -> bool:
    """Return whether a word is in a Markdown table.

    The word may then be about another row or column than the question.
    """
    before, after = text[: token.start].rpartition("\n")[2], text[token.end :].partition("\n")[0]
    return before.count("|") + after.count("|") >= _MIN_TABLE_BARS


_MIN_TABLE_BARS: Final = 2


def _collect_stems_only_in_golds(
    golds: Sequence[str], question: str, asked: YesNoQuestion, domain: Domain, locale: Locale
) -> frozenset[str]:
    """Return the stems of words that only the golds contain.

    A reply with such a word may agree with the gold: "Pay in cash" with "No, cash only".
    """
    plain = {key[:STEM] for key in asked.predicates | domain.no | YES_WORDS | NO_WORDS}
    own = frozenset[str]().union(*(collect_stems_without_quantities(text, domain, locale) for text in golds))
    return own - collect_content_word_stems(scan_case_text(question, locale).reader.tokens) - plain


def _compare_polarity(polarity: Polarity, wanted: set[Polarity], *, limited: bool) -> bool | None:
    """Return whether two answers agree, or ``None`` if that is unknown.

    "Not at first" agrees with yes only if the gold has a quantity (``limited`` is True).
    """
    if polarity is Polarity.OPEN:
        return None
    if polarity in wanted:
        return True
    if Polarity.LATER in {polarity, *wanted}:
        return True if limited and Polarity.NO not in {polarity, *wanted} else None
    return False
