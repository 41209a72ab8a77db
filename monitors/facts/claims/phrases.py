"""Find a name, a short phrase or list items in a reply, and decide whether the reply affirms them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from monitors.facts.claims.clauses import Clause, Passage, Words, extract_content_stems_and_numbers
from monitors.facts.claims.vocabulary import LIGHT, STEMS, Mark
from monitors.facts.quantities.other_languages import DENIALS, remove_unread_mark
from monitors.facts.text import NUMERAL, SIGN, WORD, Token, normalise, split_into_word_keys, tokenise


class PhraseStatus(StrEnum):
    """The way in which a reply contains a phrase: the reply affirms, denies or restricts the phrase."""

    LIVE = "live"
    DENIED = "a denied value"
    COMPARED = "a value for comparison"
    PAST = "an earlier value"
    HEDGED = "a guess"
    OTHERS = "what another company does"
    QUESTION = "a question"
    TAKEN_BACK = "a value that the reply withdraws"
    OUTDONE = "another subject than the question's"
    SEVERAL = "one of several"
    QUALIFIED = "a value that the reply limits afterwards"
    EXCLUDED = "a value that the reply excludes"
    ROLES = "one of two names whose roles rules cannot read"


class Phrase(NamedTuple):
    """A phrase in a reply: its first token, the token after its last token, and its status."""

    first: int
    after: int
    status: PhraseStatus


_ASIDE: Final = re.compile(r"\([^\s()]{0,40}(?:\s[^\s()]{1,40}){0,2}\)")
"""Up to three words in brackets, which distinguish things with the same name: "(2016 film)".

A reply may omit these words.
"""
_ARTICLES: Final = split_into_word_keys("the a an of and & in on at der die das le la les el los las")
_EXCEPTIONS: Final = split_into_word_keys("except excluding")
_DENIALS: Final = DENIALS | split_into_word_keys(
    "not isn't wasn't never nor neither without no nicht kein keine nie ohne pas sin "
    "cannot can't doesn't don't won't"
)
_DENIALS_BEHIND: Final = split_into_word_keys("नहीं nahi nahin nhi nicht pas niet")
_BEHIND_SKIPPED: Final = split_into_word_keys("के का की को से ke ka ki ko se में mein")
_SEPARATORS: Final = frozenset(",;()–—|")
_MAX_SKIPPED: Final = 3
_JOINING_SIGNS: Final = frozenset("-.")
"""Signs inside a phrase: "R. J. Mitchell"."""
_MAX_ABBREVIATION: Final = 3
"""Maximum number of letters of an abbreviation. A full stop after a longer word ends the phrase."""


@lru_cache(maxsize=256)
def extract_phrase_keys(text: str) -> tuple[str, ...]:
    """Return the words of a phrase that a reply must contain: all except articles and words in brackets."""
    tokens = _tokenise_words(_ASIDE.sub(" ", text)) or _tokenise_words(text)
    letters = {
        token.start for before, token in pairwise(tokens) if before.kind == NUMERAL and before.end == token.start
    }
    named = [token for token in tokens if token.start in letters or _to_plain_key(token) not in _ARTICLES]
    return tuple(map(_to_plain_key, named or tokens))  # the "a" in "platform 3a" is not an article


def _tokenise_words(text: str) -> list[Token]:
    return [token for token in tokenise(normalise(text).text) if token.kind != SIGN]


def _to_plain_key(token: Token) -> str:
    return remove_accents_and_possessive(token.key) if token.kind == WORD else token.key


@lru_cache(maxsize=20_000)
def remove_accents_and_possessive(key: str) -> str:
    """Return the key of a word without accents and possessive: ``cafés`` becomes ``cafes``."""
    key = key.removesuffix("\0").removesuffix("'s")
    if key.isascii():
        return key
    return "".join(unicodedata.normalize("NFD", character)[0] for character in key)


def find_phrase(passage: Passage, phrase: Sequence[str]) -> list[tuple[int, int]]:
    """Return the token span (end exclusive) of each occurrence of a phrase.

    Articles and signs such as "-" may be between the words of the phrase.
    """
    tokens = passage.scan.reader.tokens
    plain = [to_comparable_word(token) for token in tokens]
    places: list[tuple[int, int]] = []
    for start, word in enumerate(plain):
        if word != phrase[0]:
            continue
        at = start
        for wanted in phrase:
            skipped = 0
            while (
                at < len(plain)
                and plain[at] != wanted
                and (plain[at] in _ARTICLES or plain[at] in _JOINING_SIGNS)
                and not (plain[at] == "." and len(plain[at - 1]) > _MAX_ABBREVIATION)
                and skipped < _MAX_SKIPPED
            ):
                at, skipped = at + 1, skipped + 1
            if at >= len(plain) or plain[at] != wanted:
                break
            at += 1
        else:
            places.append((start, at))
    return places


def to_comparable_word(token: Token) -> str:
    """Return the written word of a token, without accents, for the comparison of phrases."""
    if token.kind != WORD:
        return token.key
    return (
        remove_accents_and_possessive(normalise(token.text).text.lower().removesuffix("\0"))
        if token.key != token.text
        else remove_accents_and_possessive(token.key)
    )


def find_phrase_with_status(
    passage: Passage, phrase: Sequence[str], asked: Words, question: Passage, accepted: Words = frozenset()
) -> list[Phrase]:
    """Return each occurrence of a phrase with its status.

    ``asked`` are the content words of the question. ``accepted`` are the words of all golds. A name that consists
    of these words is not another answer.
    """
    return [
        Phrase(first, after, _find_phrase_status(passage, first, after, asked, question, accepted))
        for first, after in find_phrase(passage, phrase)
    ]


def _find_phrase_status(  # noqa: C901, PLR0912, PLR0917 - one row for each status
    passage: Passage, first: int, after: int, asked: Words, question: Passage, accepted: Words
) -> PhraseStatus:
    tokens = passage.scan.reader.tokens
    clause = next(
        (other_clause for other_clause in passage.clauses if other_clause.first <= first < other_clause.after), None
    )
    if clause is None:  # the phrase is the label of a row, which belongs to no clause
        return (
            PhraseStatus.OUTDONE
            if any(other_clause.is_cell for other_clause in passage.clauses)
            else PhraseStatus.LIVE
        )
    if clause.is_question:
        return PhraseStatus.QUESTION
    if first < passage.retracted_before:
        return PhraseStatus.TAKEN_BACK
    start, end = _find_segment_around(passage, clause, first, after)
    before = [tokens[at].key for at in range(max(start, first - 4), first)]
    if "than" in before:
        return PhraseStatus.COMPARED
    if any(mark is Mark.TURN and at < first <= end + 1 for at, end, mark in passage.marks):
        return PhraseStatus.QUALIFIED  # "all but mango"
    if any(mark is Mark.NOT_FREE and at <= first < end for at, end, mark in passage.marks):
        return PhraseStatus.QUALIFIED  # "next to nothing"
    if _EXCEPTIONS & set(before):  # "closed except Monday": the question may be about the other days
        return PhraseStatus.QUALIFIED
    if _is_denied(tokens, start, first, after):
        return PhraseStatus.DENIED
    if _is_denied_by_later_words(tokens, after, end):
        return PhraseStatus.EXCLUDED
    if any(token.key in _TOO for token in tokens[after : after + _TOO_REACH]) and tokens[after].key in _IS:
        return PhraseStatus.QUALIFIED  # "March is too late"
    marks = _combine_marks_between(passage, start, end)
    if marks & Mark.HEDGE:
        return PhraseStatus.HEDGED
    if (marks | _combine_marks_between(passage, clause.first, first)) & Mark.OTHER:
        return PhraseStatus.OTHERS
    past = not (is_about_past(question))
    if past and (marks & Mark.PAST or (marks & Mark.PAST_VERB and marks & Mark.PAST_WITH_VERB)):
        return PhraseStatus.PAST
    gave_away = (
        after < clause.after
        and tokens[after].key in _GAVE_AWAY
        and {"to", "over"} & {token.key for token in tokens[after : clause.after]}
    )
    if past and (gave_away or _is_superseded_later(passage, clause, first, after)):
        return PhraseStatus.PAST
    if marks & Mark.INSTEAD and any(mark is Mark.INSTEAD and start <= at < first for at, _, mark in passage.marks):
        return PhraseStatus.DENIED
    if (
        marks & Mark.CHANGE
        and tokens[first - 1 if first else 0].key in _FROM | _ARTICLES
        and _FROM & set(before[-2:])
    ):
        return PhraseStatus.PAST
    later = [mark for at, _, mark in passage.marks if mark & Mark.RETRACT and after <= at]
    if later and any(
        clause.sentence <= other_clause.sentence <= clause.sentence + 1 and other_clause.marks & Mark.RETRACT
        for other_clause in passage.clauses
    ):
        return PhraseStatus.TAKEN_BACK
    if _is_joined_to_unexpected_name(passage, first, after, asked | accepted):
        return PhraseStatus.SEVERAL
    if any(
        tokens[at].key in _BUT and _DENIALS & {remove_unread_mark(token.key) for token in tokens[at + 1 : at + 4]}
        for at in range(after, min(len(tokens), after + _MAX_BUT))
    ):
        return PhraseStatus.QUALIFIED
    if _is_other_clause_closer_to_question(passage, clause, (first, after), asked, question):
        return PhraseStatus.OUTDONE
    if _is_after_other_name(passage, clause, first, asked):
        return PhraseStatus.OUTDONE
    if _is_after_name_and_verb(passage, question, start, first):
        return PhraseStatus.ROLES
    if _may_other_person_be_answer(passage, clause, (first, after), asked, question):
        return PhraseStatus.ROLES
    if _is_clause_about_other_thing(passage, clause, (first, after), asked):
        return PhraseStatus.OUTDONE
    if _is_after_similar_name(passage, clause, (first, after), asked):
        return PhraseStatus.OUTDONE
    return PhraseStatus.LIVE


def find_competing_name(passage: Passage, places: Sequence[Phrase], asked: Words, accepted: Words) -> str:
    """Return a name that the reply gives instead of the phrase at ``places``, or an empty string.

    Examples for a question about dentures, if the phrase is Corvane:

    - Pinnacle in "Our dentures come from Pinnacle; Corvane makes aligners"
    - Pinnacle in "At first Corvane made our dentures. Since May they come from Pinnacle"
    """
    tokens = passage.scan.reader.tokens
    if len(places) > 1 or places[0].status not in {PhraseStatus.OUTDONE, PhraseStatus.PAST}:
        return ""
    clause = passage.find_clause_at(places[0].first)
    if clause is None or clause.is_cell or clause.path:
        return ""
    start, end = _find_segment_around(passage, clause, places[0].first, places[0].after)
    is_first = all(tokens[at].key in _TITLES | _ARTICLES for at in range(start, places[0].first))
    is_past = places[0].status is PhraseStatus.PAST
    segments = _list_segment_token_ranges(passage)
    sentence = [
        part for part in segments if (at := passage.find_clause_at(part[0])) and at.sentence == clause.sentence
    ]
    if sum(bool(_find_name_after_other_words(tokens, *part, frozenset())) for part in sentence) > _MAX_NAMES:
        return ""
    for low, high in segments:
        other = passage.find_clause_at(low)
        is_heading = ":" in {token.text for token in tokens[low:high]}
        if (
            other is None
            or other.is_question
            or is_heading
            or not clause.sentence - 1 <= other.sentence <= clause.sentence + 1
        ):
            continue
        terms = _extract_stems_between(passage, low, high)
        beside = _extract_stems_between(passage, start, end) - _extract_stems_between(
            passage, places[0].first, places[0].after
        )
        if is_past:
            is_instead = other.first > clause.first and other.marks & Mark.NOW
        else:
            is_instead = low < start and is_first and terms & asked and beside - asked
        if not is_instead or _combine_marks_between(passage, low, high) & ~int(Mark.NOW):
            continue
        name = _find_name_after_other_words(tokens, low, high, asked | accepted)
        if name:
            return name
    return ""


_MAX_NAMES: Final = 2
"""Maximum number of parts of a sentence that may contain a name. More such parts are a list of names."""


def _find_name_after_other_words(tokens: Sequence[Token], low: int, high: int, known: Words) -> str:
    """Return the last name in a part of a text, if other words precede the name and do not deny it."""
    first = high
    while first > low and not _is_other_name(tokens[first - 1], known):
        first -= 1
    after = first
    while first > low and _is_other_name(tokens[first - 1], known):
        first -= 1
    has_title = tokens[first - 1].key in _TITLES
    is_noun = tokens[first].key.endswith("\0") and after == first + 1 and not has_title  # each German noun
    if first == after or first <= low or is_noun or _is_denied(tokens, low, first, after):
        return ""
    return " ".join(token.text.removesuffix("\0") for token in tokens[first:after])


def _is_other_name(token: Token, expected_words: Words) -> bool:
    return _may_be_name(token) and token.text[0].isupper() and STEMS[token.key] not in expected_words


_GAVE_AWAY: Final = split_into_word_keys("handed passed sold transferred ceded")
"""Verbs that show a change to another company or person: "Moorline handed the branch over to Dales"."""
_TOO: Final = split_into_word_keys("too zu trop demasiado bahut बहुत")
_TOO_REACH: Final = 3
_IS: Final = split_into_word_keys("is are was would ist sind wäre est sont es son")
_FROM: Final = frozenset({"from", "von", "vom", "de", "desde", "से", "se"})
_BUT: Final = frozenset({"but", "aber", "lekin", "लेकिन"})
_MAX_BUT: Final = 10
_AND_OR: Final = split_into_word_keys("and or & und oder et ou y o और या aur ya")


def _is_joined_to_unexpected_name(passage: Passage, first: int, after: int, expected_words: Words) -> bool:
    """Return whether "and" or "or" joins the phrase to a name that is not expected.

    ``expected_words`` are the words of the expected names. An example is Bo in ``between Ada and Bo``.
    """
    tokens = passage.scan.reader.tokens
    if not tokens[first].text[0].isupper():
        return False
    for joint, step in ((after, 1), (first - 1, -1)):
        if not 0 <= joint < len(tokens) or tokens[joint].key not in _AND_OR:
            continue
        at, name = joint + step, list[Token]()
        while 0 <= at < len(tokens) and tokens[at].kind == WORD and tokens[at].text[0].isupper():
            name.append(tokens[at])
            at += step
        if name and not any(STEMS[token.key] in expected_words for token in name):
            return True
    return False


def _is_superseded_later(passage: Passage, clause: Clause, first: int, after: int) -> bool:
    """Return whether a newer name replaces the phrase.

    Return True for Okello in "Okello conducted it. Since May it is led by Falk.".
    """
    tokens = passage.scan.reader.tokens
    behind = tokens[after].key if after < clause.after else ""
    did = (behind.endswith("ed") or behind in _IRREGULAR_PAST) or any(
        token.key in _IRREGULAR_PAST or token.key in _WAS for token in tokens[max(clause.first, first - 4) : first]
    )
    if did and any(
        mark & Mark.NOW
        and after <= at < clause.after
        and any(_may_be_name(tokens[place]) for place in range(at + 1, clause.after))
        for at, _, mark in passage.marks
    ):
        return True  # "Okello led it until May, now Falk does"
    later = (later_clause for later_clause in passage.clauses if later_clause.first > clause.first)
    return did and any(
        later_clause.marks & Mark.NOW
        and any(_may_be_name(tokens[at]) for at in range(later_clause.first + 1, later_clause.after))
        for later_clause in later
    )


def is_about_past(question: Passage) -> bool:
    """Return whether a question asks about the past."""
    return any(token.key in _PAST for token in question.scan.reader.tokens)


_PAST: Final = split_into_word_keys("was were did had used था थे थी tha thi")
_WAS: Final = split_into_word_keys("was were")
_IRREGULAR_PAST: Final = split_into_word_keys("met ran led sat stood held kept sold sent taught went came began")


def _find_segment_around(passage: Passage, clause: Clause, first: int, after: int) -> tuple[int, int]:
    """Return the part of a clause around a phrase, from one comma to the next."""
    tokens = passage.scan.reader.tokens
    start = next(
        (at + 1 for at in range(first - 1, clause.first - 1, -1) if tokens[at].text in _SEPARATORS), clause.first
    )
    end = next((at for at in range(after, clause.after) if tokens[at].text in _SEPARATORS), clause.after)
    return start, end


def _combine_marks_between(passage: Passage, start: int, end: int) -> int:
    marks = 0
    for at, _, mark in passage.marks:
        if start <= at < end:
            marks |= mark
    return marks


def _is_denied(tokens: Sequence[Token], start: int, first: int, after: int) -> bool:
    """Return whether a phrase is denied: ``no scissors``, ``Lotus Clinic nahi``, but not ``not only scissors``."""
    for at in range(first - 1, max(start, first - 4) - 1, -1):
        key = tokens[at].key
        if key in {"only", "just", "but"}:
            return False
        if remove_unread_mark(key) in _DENIALS:
            return True
    at = after
    while at < len(tokens) and tokens[at].key in _BEHIND_SKIPPED:
        at += 1
    return at < len(tokens) and (tokens[at].key in _DENIALS_BEHIND or tokens[at].text.lower() in _DENIALS_BEHIND)


def _is_denied_by_later_words(tokens: Sequence[Token], after: int, end: int) -> bool:
    """Return whether a phrase is the subject of a denial that follows it.

    Examples are "a clock isn't in it", "Ton gehört nicht dazu" and "desk par koi booking nahi hoti".
    """
    behind = [remove_unread_mark(token.key) for token in tokens[after : min(end, after + _DENIAL_REACH)]]
    if not behind or "only" in behind or "just" in behind:
        return False
    is_subject = behind[0] in _DENIED_VERBS or (behind[0] in _IS and len(behind) > 1 and behind[1] in _DENIALS)
    # German has its "nicht" after the verb. French "ne" and Spanish "no", translated to "not", are before it.
    near = tokens[after : min(end, after + _DENIAL_REACH)]
    is_foreign = (
        any(token.text.lower() == "nicht" for token in near) or near[0].key == "not" != near[0].text.lower()
    )
    return is_subject or is_foreign or any(key in _HINDI_DENIALS for key in behind)


_DENIED_VERBS: Final = split_into_word_keys("isn't aren't wasn't weren't doesn't don't won't can't cannot")
_HINDI_DENIALS: Final = split_into_word_keys("नहीं nahi nahin nhi")
_DENIAL_REACH: Final = 5
"""Maximum number of words between a phrase and a later verb that denies it: "a clock isn't in it"."""


def _is_other_clause_closer_to_question(
    passage: Passage, clause: Clause, place: tuple[int, int], asked: Words, question: Passage
) -> bool:
    """Return whether another clause, with another name, fits the question better than the clause of the phrase.

    For a question about dentures, Corvane is not the answer in "Dentures come from Pinnacle; Corvane makes
    aligners". Under a heading and in a table, the words of the headings, row and column are compared too.
    """
    tokens, verb = passage.scan.reader.tokens, _find_verb_after_who(question)
    first, after = place
    start, end = _find_segment_around(passage, clause, first, after)
    start = next((at + 1 for at in range(first - 1, start - 1, -1) if tokens[at].key in _JOINTS), start)
    end = next((at for at in range(after, end) if tokens[at].key in _JOINTS), end)
    beside = [tokens[at] for at in (*range(start, first), *range(after, end))]
    segment = (_extract_stems_between(passage, start, end) | clause.path) & asked
    strange = extract_content_stems_and_numbers(beside) - asked
    named = tokens[first].text[0].isupper() or not tokens[first].text.isascii()
    if clause.is_cell:
        own = len((clause.words | clause.context | clause.names) & asked)
        cells = [other for other in passage.clauses if other.is_cell and other is not clause]
        return any(len((other.words | other.context | other.names) & asked) >= own for other in cells)
    if clause.path:
        return any(other.path and len(other.words & asked) > len(segment) for other in passage.clauses)
    sentence = [part for part in passage.clauses if part.sentence == clause.sentence]
    whole = frozenset[str]().union(*(part.words for part in sentence))
    whole_strange = whole - asked - extract_content_stems_and_numbers(tokens[first:after])
    whole &= asked
    for low, high in _list_segment_token_ranges(passage):
        if low <= first < high:
            continue
        terms = _extract_stems_between(passage, low, high)
        theirs = terms & asked
        is_beside = sentence[0].first <= low < sentence[-1].after
        own = segment if is_beside else whole
        candidate = bool(terms - asked) and (
            not named
            or any(_may_be_name(tokens[at]) and STEMS[tokens[at].key] not in asked for at in range(low, high))
        )
        apposition = low == end + 1 and not strange
        more = theirs - own
        loose = strange if is_beside else strange or whole_strange
        outdone = len(own) < len(theirs) or (more and (verb & more or (loose and len(own) <= len(theirs))))
        if named and not is_beside and not own and whole_strange:
            outdone = outdone or _has_full_name_outside_question(tokens, low, high, asked)
        if candidate and not apposition and outdone:
            return True
        names = frozenset(STEMS[tokens[at].key] for at in range(low, high) if _may_be_name(tokens[at]))
        if candidate and own and own == theirs and strange and not _remove_weekdays(terms - asked - names):
            return True
    return False


def _is_after_other_name(passage: Passage, clause: Clause, first: int, asked: Words) -> bool:
    """Return whether another name in an earlier sentence may be the answer instead of the phrase.

    This is possible if the phrase begins a sentence without words of the question: "Lost property is with Danuta.
    Jolanta only looks after the machines".
    """
    tokens = passage.scan.reader.tokens
    if first != clause.first or not tokens[first].text[0].isupper() or (clause.words | clause.path) & asked:
        return False
    return any(
        earlier.sentence < clause.sentence
        and not earlier.is_question
        and any(
            _may_be_name(tokens[at])
            and tokens[at].text[0].isupper()
            and tokens[at].text != tokens[first].text
            and STEMS[tokens[at].key] not in asked
            for at in range(earlier.first + 1, earlier.after)
        )
        for earlier in passage.clauses
    )


def _has_full_name_outside_question(tokens: Sequence[Token], low: int, high: int, asked: Words) -> bool:
    """Return whether a full name (two adjacent names) is in this part of the text but not in the question."""
    names = [_may_be_name(tokens[at]) and STEMS[tokens[at].key] not in asked for at in range(low, high)]
    return any(map(all, pairwise(names)))


def _remove_weekdays(terms: Words) -> Words:
    return frozenset(term for term in terms if not term.startswith("weekday "))


def _find_verb_after_who(question: Passage) -> Words:
    """Return the stem of the verb in "Who built …?", or an empty set for a question of another form.

    For a verb such as "gave", return the stems of all words after the verb: "Who gave the rose its name?"
    """
    tokens = question.scan.reader.tokens
    if len(tokens) < 3 or tokens[0].key not in _WHO:  # noqa: PLR2004 - Who, a verb and an object
        return frozenset()
    if tokens[1].text in _EMPTY_VERBS:
        return frozenset(STEMS[token.key] for token in tokens[2:] if token.kind == WORD)
    if tokens[1].key in LIGHT:
        return frozenset()
    return frozenset({STEMS[tokens[1].key]})


_EMPTY_VERBS: Final = frozenset({"gave", "gives", "made", "makes", "took", "takes", "did", "does"})
_JOINTS: Final = split_into_word_keys("and und et y और aur but")


def _list_segment_token_ranges(passage: Passage) -> list[tuple[int, int]]:
    tokens = passage.scan.reader.tokens
    cuts = [
        -1,
        *(at for at, token in enumerate(tokens) if token.text in _CUTS or _is_joint(tokens, at)),
        len(tokens),
    ]
    return [(low + 1, high) for low, high in pairwise(cuts) if high > low + 1]


def _is_joint(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the token at ``at``, such as "and", joins two parts of a text.

    Return False for the "and" in "Ron and his band".
    """
    following = tokens[at + 1].key if at + 1 < len(tokens) else ""
    return tokens[at].key in _JOINTS and following not in {"his", "her", "their"}


_CUTS: Final = _SEPARATORS | frozenset(".!?।")


def _extract_stems_between(passage: Passage, start: int, end: int) -> Words:
    return extract_content_stems_and_numbers(passage.scan.reader.tokens[start:end])


def _may_be_name(token: Token) -> bool:
    """Return whether a content word may be a name.

    It may be a name if it starts with a capital letter, or is not ASCII, because some scripts have no capitals.
    """
    return token.kind == WORD and token.key not in LIGHT and (not token.text.isascii() or token.text[0].isupper())


def _is_after_name_and_verb(passage: Passage, question: Passage, start: int, first: int) -> bool:
    """Return whether another name and a verb precede the phrase.

    Return True for Osei in "Lund hired Osei", but not in "Lund was hired by Osei".
    """
    asked = question.scan.reader.tokens
    if not asked or asked[0].key not in _WHO:
        return False
    tokens = passage.scan.reader.tokens
    before = [token for token in tokens[start:first] if token.key not in _ARTICLES and token.key not in _TITLES]
    took_over = bool(before) and before[-1].key == "from" and any(token.key == "over" for token in before)
    if before and (took_over or before[-1].key in _RANKS) and any(_may_be_name(token) for token in before):
        return True  # "the Sandpiper came in before the Kittiwake"
    if not before or before[-1].kind != WORD or before[-1].key in LIGHT or not before[-1].text[0].islower():
        return False
    named = any(_may_be_name(token) and token.text[0].isupper() for token in before[:-1])
    return named and not any(token.key in _BY for token in before)


def _may_other_person_be_answer(
    passage: Passage, clause: Clause, place: tuple[int, int], asked: Words, question: Passage
) -> bool:
    """Return whether another person in the reply may be the answer.

    This is possible if "by" precedes the phrase, and the words of its clause differ from those of the question.

    Question: "Who plays the solo?". Reply: "It is conducted by Wilma Strand, with Petr Amadi as the soloist". The
    result is True for Wilma Strand.
    """
    tokens, (first, after) = passage.scan.reader.tokens, place
    if not question.scan.reader.tokens or question.scan.reader.tokens[0].key not in _WHO:
        return False
    strange = clause.words - asked - extract_content_stems_and_numbers(tokens[first:after])
    by = any(token.key in _BY for token in tokens[max(clause.first, first - 2) : first])
    others = [range(first), range(after, len(tokens))]
    return bool(by and strange and asked - clause.words) and any(
        _has_full_name_outside_question(tokens, part.start, part.stop, asked) for part in others
    )


def _is_clause_about_other_thing(passage: Passage, clause: Clause, place: tuple[int, int], asked: Words) -> bool:
    """Return whether the clause names a thing that the question does not name.

    The result is True only if another clause contains words of the question that are missing in this clause.
    """
    tokens = passage.scan.reader.tokens
    first, after = place
    inside = range(clause.first, clause.after)
    other = any(
        tokens[at - 1].key == "the" and tokens[at].kind == WORD and STEMS[tokens[at].key] not in asked
        for at in (*inside[1 : first - clause.first], *range(after + 1, clause.after))
        if tokens[at].text[0].islower() and tokens[at].key not in LIGHT
    )
    missing = asked - clause.words
    return other and any(
        other_clause.words & missing for other_clause in passage.clauses if other_clause is not clause
    )


def _is_after_similar_name(passage: Passage, clause: Clause, place: tuple[int, int], asked: Words) -> bool:
    """Return whether a name with the same first word precedes the phrase, and the clause is about another thing.

    An example is "Use Glidewell Dry; Glidewell Wet is for summer tracks".
    """
    tokens, (first, after) = passage.scan.reader.tokens, place
    if after - first < 2 or not tokens[first].text[0].isupper():  # noqa: PLR2004 - a first word and another one
        return False
    strange = clause.words - asked - extract_content_stems_and_numbers(tokens[first:after])
    is_similar = any(
        tokens[at].text == tokens[first].text
        and _is_other_name(tokens[at + 1], asked)
        and tokens[at + 1].text != tokens[first + 1].text
        for at in range(min(first, clause.first))
    )
    return bool(strange) and is_similar


_RANKS: Final = split_into_word_keys(
    "before after behind beat beats beating defeated over ahead vor nach hinter avant après"
)
_WHO: Final = split_into_word_keys("who which what wer qui quién")
_TITLES: Final = split_into_word_keys("mr mrs ms dr miss frau herr")
_BY: Final = split_into_word_keys("by von durch par por")


def split_items(text: str) -> list[tuple[str, ...]]:
    """Split a list at commas and "and". The result is empty if the text is not a list."""
    parts = [part for part in _ITEM_BREAK.split(text.strip(" .")) if part.strip()]
    if len(parts) < 2:  # noqa: PLR2004 - a list has two items
        return []
    items = [extract_phrase_keys(part) for part in parts]
    return items if all(item and len(item) <= _MAX_ITEM_TERMS for item in items) else []


_ITEM_BREAK: Final = re.compile(
    r"\s*[,;]\s*(?:and\s+|und\s+|et\s+|y\s+|और\s+|aur\s+)?|\s+(?:and|und|et|y|&|और|aur)\s+"
)
_MAX_ITEM_TERMS: Final = 4
_ORDER: Final = split_into_word_keys("order sequence reihenfolge ordre orden क्रम")


def is_sequence_question(question: Passage) -> bool:
    """Return whether a question asks for the order of several things."""
    return any(token.key in _ORDER for token in question.scan.reader.tokens)


def is_proper_name(text: str) -> bool:
    """Return whether a gold is a name: more than half of its words begin with a capital letter.

    Articles do not count.
    """
    words = [token for token in tokenise(normalise(text).text) if token.kind == WORD and token.key not in _ARTICLES]
    return 2 * sum(token.text[0].isupper() for token in words) > len(words)


def has_new_name_or_number(passage: Passage, question: Passage) -> bool:
    """Return whether a reply contains a name or a number that is not in the question."""
    tokens = passage.scan.reader.tokens
    asked = {to_comparable_word(token) for token in question.scan.reader.tokens}
    firsts = {clause.first for clause in passage.clauses}
    return any(
        token.kind == NUMERAL or (token.kind == WORD and token.text[0].isupper() and token.key not in LIGHT)
        for at, token in enumerate(tokens)
        if to_comparable_word(token) not in asked and (at not in firsts or len(tokens) < 5)  # noqa: PLR2004 - a bare name
    )
