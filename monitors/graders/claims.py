"""Read the claims of a gold, and find the figures of a reply that can be compared with each claim.

A claim is a figure of the gold with its label. This module only collects the figures. `monitors.graders.factual`
decides whether they are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

from monitors.domains.pack import Domain
from monitors.facts.claims.clauses import (
    Clause,
    Passage,
    Words,
    build_passage_with_clauses,
    extract_content_stems_and_numbers,
    format_figures_as_words,
)
from monitors.facts.claims.compare import Leeway, Likeness, compare_figures, to_comparable_size
from monitors.facts.claims.figures import Figure, FigureKind
from monitors.facts.claims.vocabulary import LIGHT, OPPOSITES, PERIODS, STEMS, Mark
from monitors.facts.claims.wording import describe_figure
from monitors.facts.quantities.clock import ALWAYS
from monitors.facts.quantities.fact import Bound, FactKind, QuantityReading
from monitors.facts.quantities.locales import Locale
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.other_languages import remove_unread_mark
from monitors.facts.quantities.units import TIME_UNITS
from monitors.facts.text import NUMERAL, SIGN, WORD, split_into_word_keys
from monitors.graders.golds import scan_case_text, scan_reply_without_citations
from monitors.graders.statements import (
    find_asked_units,
    find_roles,
    has_word_for_before,
    is_always_open_negated,
    is_document_reference,
    is_limit_negated,
    is_quantity_negated,
    is_time_before_event,
    list_quantity_roles,
)


class Status(StrEnum):
    """The status of a figure in a reply: stated as a current fact (`CURRENT`), or the reason why it is not."""

    __hash__ = str.__hash__  # four times as fast as Enum's own hash; each reply needs hundreds

    CURRENT = "current"
    PAST = "an earlier value"
    DENIED = "a denied value"
    HEDGED = "a guess"
    OTHER_COMPANY = "the value of another company"
    QUESTION = "a question"
    TAKEN_BACK = "a value that the reply withdraws"
    INSTEAD = "a value that no longer applies"
    ALTERNATIVE = "one of several values"
    ELSEWHERE = "the value for another item than the question's"


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure of the gold that the reply must state.

    ``label`` contains the words of the gold that belong only to this figure.
    """

    figure: Figure
    label: Words
    subject: Words
    """The words of the question, except words that belong to the labels of other figures of the gold."""
    others: Words
    """The words of the gold besides the figure. If the gold has several clauses, only the words of the label."""
    roles: frozenset[str]
    description: str
    """The figure in words, for the reason of a grade: "up to ₹40,000"."""
    in_asked_unit: Figure | None = None
    """For a gold that is only a number: this number with the unit of the question, otherwise ``None``.

    For "how many months", the unit is months.
    """


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a case and one gold of the case, both split into clauses, and the claims of the gold."""

    question: Passage
    gold: Passage
    claims: tuple[Claim, ...]
    question_terms: Words
    known_stems: Words
    """The stems of all words of the question and the gold."""
    is_past: bool
    before: bool
    how_often: bool


@dataclass(slots=True)
class Mention:
    """A figure of the reply that can be compared with the figure of a claim."""

    figure: Figure
    clause: Clause
    likeness: Likeness
    status: Status
    key: Words
    """The words near the figure that are also in the label or the subject of the claim."""
    strange: Words = field(default_factory=frozenset[str])
    """Words near the figure that are neither in the gold nor in the question."""

    @property
    def is_current_statement(self) -> bool:
        """Return whether the reply states the figure as a current fact."""
        return self.status is Status.CURRENT


_TIMES: Final = frozenset({"times", "often", "frequently", "baar", "bar", "बार"})
_PAST_QUESTION: Final = frozenset({"was", "were", "did", "had", "been", "used", "था", "थे", "थी", "tha", "thi"})


@lru_cache(maxsize=256)
def read_case_passage(text: str, locale: Locale) -> Passage:
    """Split a gold or a question into clauses.

    The latest results are cached, because a suite repeats some texts.
    """
    return build_passage_with_clauses(scan_case_text(text, locale))


@lru_cache(maxsize=8)
def read_reply_passage(text: str, locale: Locale) -> Passage:
    """Split a reply into clauses. The latest results are cached, because several graders read the same reply."""
    return build_passage_with_clauses(scan_reply_without_citations(text, locale))


def collect_all_stems(passage: Passage, first: int = 0, after: int | None = None) -> Words:
    """Return the stems of all words between token ``first`` and token ``after`` (exclusive).

    For "check-in", the stem of "checkin" is included.
    """
    tokens = passage.scan.reader.tokens[first:after]
    joined = {
        stem
        for start, hyphen, end in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if hyphen.text == "-" and (stem := STEMS[start.key + end.key]) in OPPOSITES
    }
    return frozenset(STEMS[token.key] for token in tokens if token.kind == WORD) | joined


@lru_cache(maxsize=256)
def read_gold_and_question(gold_text: str, question_text: str, locale: Locale, domain: Domain) -> Asked:
    """Read the claims of a gold that answers a question."""
    gold, question = read_case_passage(gold_text, locale), read_case_passage(question_text, locale)
    question_terms = extract_content_stems_and_numbers(
        question.scan.reader.tokens, question.figures
    ) - _find_measure_adjectives(question)
    question_terms |= format_figures_as_words(question.figures)
    figures = [
        _mark_lower_bound_after_from(figure, gold) for figure in gold.figures if _is_part_of_answer(gold, figure)
    ]
    clauses = [gold.find_clause(figure) for figure in figures]
    own_terms = [
        _collect_terms_beside(figure, clause) if clause is not None else frozenset[str]()
        for figure, clause in zip(figures, clauses, strict=True)
    ]
    has_several_clauses = len(figures) > 1 and len({clause.first for clause in clauses if clause is not None}) > 1
    common = frozenset[str].intersection(*own_terms) if has_several_clauses else frozenset[str]()
    labels = [terms - common if has_several_clauses else frozenset[str]() for terms in own_terms]
    others = extract_content_stems_and_numbers(gold.scan.reader.tokens, gold.figures)
    roles = list_quantity_roles(question.scan.reader, domain)
    claims: list[Claim] = []
    for place, figure in enumerate(figures):
        rest = frozenset[str]().union(*(label for at, label in enumerate(labels) if at != place)) - labels[place]
        subject = question_terms - rest
        claims.append(
            Claim(
                figure,
                labels[place],
                subject,
                (labels[place] if has_several_clauses else others - _list_words_for_figure(figure))
                - figure.per
                - figure.noun,
                find_roles(gold.scan.reader, figure.low, domain) or roles,
                describe_figure(figure),
                _convert_to_asked_unit(figure, question),
            )
        )
    known_stems = collect_all_stems(question) | collect_all_stems(gold) | question_terms | others
    keys = {token.key for token in question.scan.reader.tokens}
    before = has_word_for_before(question.scan.reader) or has_word_for_before(gold.scan.reader)
    return Asked(
        question,
        gold,
        tuple(claims),
        question_terms,
        known_stems,
        bool(keys & _PAST_QUESTION),
        before,
        bool(keys & _TIMES),
    )


def _convert_to_asked_unit(figure: Figure, question: Passage) -> Figure | None:
    units = find_asked_units(question.scan.reader)
    if figure.kind is not FigureKind.NUMBER or not figure.low.bare or len(units) != 1:
        return None
    (unit,) = units
    if unit == FactKind.PERCENT:
        return replace(figure, kind=FigureKind.PERCENT, low=figure.low._replace(kind=FactKind.PERCENT))
    time = TIME_UNITS[f"{unit}s"] if f"{unit}s" in TIME_UNITS else TIME_UNITS[unit]
    low = figure.low._replace(
        kind=FactKind.DURATION, original_value=figure.low.value, original_unit=unit,
        months=figure.low.value * time.months, days=figure.low.value * time.days, bare=False,
    )  # fmt: skip
    return replace(figure, kind=FigureKind.DURATION, low=low)


def _find_measure_adjectives(question: Passage) -> Words:
    """Return the adjectives after "how" in a question, such as "long" and "heavy".

    They determine the unit of the answer.
    """
    tokens = question.scan.reader.tokens
    return frozenset(
        STEMS[following.key]
        for token, following in pairwise(tokens)
        if token.key == "how" and following.kind == WORD
    )


_FROM: Final = frozenset({"from", "ab"})
_BOUNDED: Final = frozenset({FigureKind.QUANTITY, FigureKind.NUMBER, FigureKind.MONEY, FigureKind.DURATION})


def _mark_lower_bound_after_from(figure: Figure, passage: Passage) -> Figure:
    """Return the figure, changed to a lower bound if "from" precedes the figure: ``from 115 cm``."""
    lower = passage.scan.reader.token(figure.first - 1).key in _FROM and figure.kind in _BOUNDED
    return replace(figure, bound=Bound.AT_LEAST) if lower and figure.high is None else figure


def _is_part_of_answer(gold: Passage, figure: Figure) -> bool:
    if is_document_reference(gold.scan.reader, figure.low):
        return False
    if figure.said_often and len(gold.figures) > 1:
        return False
    if figure.said_free and figure.kind is FigureKind.PERCENT:
        words = extract_content_stems_and_numbers(gold.scan.reader.tokens, gold.figures) - {STEMS["off"]}
        return not words
    plain = figure.low.ordinal and not figure.low.counts
    return not plain or all(other.low.ordinal for other in gold.figures)


def _collect_terms_beside(figure: Figure, clause: Clause) -> Words:
    """Return the words beside a figure in its clause.

    A figure of another kind also counts as a word, such as "20 l" beside a price.
    """
    others = format_figures_as_words([other for other in clause.figures if other.kind is not figure.kind])
    terms = clause.words | clause.names | others
    has_names = any(term[0] in "#=" for term in terms)
    return terms - _list_words_for_figure(figure) if has_names else terms


def _list_words_for_figure(figure: Figure) -> Words:
    return frozenset({f"#{figure.low.value.normalize()}", f"#{figure.code}"}) | format_figures_as_words([figure])


MAX_PLAIN_ORDINAL: Final = 3
"""The largest ordinal that is not a quantity, as in "the first year" and "the third option"."""


def find_comparable_mentions(
    claim: Claim, asked: Asked, reply: Passage, leeway: Leeway, domain: Domain
) -> list[Mention]:
    """Return the figures of the reply that can be compared with the figure of a claim.

    The figures are in the order in which the reply states them.
    """
    mentions: list[Mention] = []
    unit = _find_unit_in_reply(claim, reply, leeway)
    wanted = claim.label | claim.subject
    for clause in reply.clauses:
        for stated in clause.figures:
            figure = _complete_figure_from_clause(stated, claim, clause, reply)
            likeness = _compare_in_clause(claim, figure, clause, asked, reply, leeway)
            if likeness is Likeness.OTHER and unit is not None and (figure.kind, figure.low.unit) == unit:
                likeness = Likeness.DIFFERENT
            if likeness is not Likeness.SAME and _is_value_in_question(figure, asked, leeway):
                continue
            if likeness is Likeness.OTHER or _is_incomparable_number(figure, claim, asked, reply):
                continue
            if not clause.is_cell and _has_other_role_than_claim(claim, figure, asked, reply, domain):
                continue
            mention = Mention(
                figure, clause, likeness, find_mention_status(figure, clause, reply, asked, claim), frozenset()
            )
            mention.strange = find_unknown_words_near_figure(mention, asked, reply)
            words = _collect_terms_beside(figure, clause) | (
                frozenset[str]() if mention.strange else clause.context
            )
            turns = _DIRECTIONS & asked.known_stems
            mention.key = (words & wanted) | (
                turns & collect_all_stems(reply, clause.first, clause.after) if turns else turns
            )
            mentions.append(mention)
    return mentions


def _complete_figure_from_clause(figure: Figure, claim: Claim, clause: Clause, reply: Passage) -> Figure:
    """Return a figure of the reply, completed with the bound, period or counted noun of its clause or table."""
    if claim.figure.bound is Bound.AT_MOST:
        figure = _mark_lower_bound_after_from(figure, reply)  # "from 80" beside "up to 80"
    if claim.figure.per and not figure.per and claim.figure.per <= _list_clause_periods(clause, reply):
        figure = replace(figure, per=claim.figure.per)  # "the monthly charge is £58"
    if clause.is_cell and figure.kind is FigureKind.NUMBER and not figure.low.counts:
        figure = replace(figure, low=figure.low._replace(counts=claim.figure.low.counts))  # the 6 in "room 6"
    return figure


def _compare_in_clause(  # noqa: PLR0917 - one row for each fact of the clause that changes the likeness
    claim: Claim, figure: Figure, clause: Clause, asked: Asked, reply: Passage, leeway: Leeway
) -> Likeness:
    likeness = compare_figures(claim.figure, figure, leeway)
    if likeness is Likeness.OTHER and claim.in_asked_unit is not None:
        in_unit = compare_figures(claim.in_asked_unit, figure, leeway)
        likeness = in_unit if in_unit is Likeness.DIFFERENT else likeness
    if likeness is Likeness.OTHER and _takes_unit_of_earlier_figure(figure, clause, claim, reply):
        likeness = (
            Likeness.SAME if figure.low.value in _list_values_without_unit(claim.figure) else Likeness.DIFFERENT
        )
    if likeness is Likeness.SAME and claim.figure.per and not figure.per:
        if _is_price_for_several(claim, clause):
            return Likeness.NEAR
        if _FOR_ALL.search(reply.scan.normalised.text, figure.end, figure.end + _NEAR_TEXT):
            return Likeness.OTHER_PER
    if likeness is Likeness.SAME and _has_opposite_bound(claim.figure, clause, reply):
        likeness = Likeness.OTHER_BOUND
    if likeness is Likeness.OTHER_BOUND and asked.before and figure.kind is FigureKind.DURATION:
        return Likeness.NEAR  # "up to 48 hours before" means "no later than two days before"
    if likeness is Likeness.SAME and _is_after_not_within(claim.figure, figure, reply):
        return Likeness.NEAR
    is_counted_on = figure.said_often and _is_counting_continued(figure, clause, reply)
    if likeness is Likeness.DIFFERENT and (is_counted_on or _is_next_birthday(claim.figure, figure, reply)):
        return Likeness.NEAR
    return likeness


def _list_values_without_unit(figure: Figure) -> set[Decimal | None]:
    """Return the numbers that a reply may give instead of a figure with its unit.

    Examples are 55 for 55 minutes and 3 for 3 pm.
    """
    if figure.kind is FigureKind.TIME:
        times = (figure.low.value, figure.low.other_value)
        return {time / _HOUR_MINUTES for time in times if time is not None}
    return {figure.low.original_value, figure.low.value}


def _is_incomparable_number(figure: Figure, claim: Claim, asked: Asked, reply: Passage) -> bool:
    """Return whether a number is not a value that can be compared with the claim.

    Examples are "the first", "clause 4", "once" and "ek paisa bhi" ("even a paisa").
    """
    if figure.low.ordinal and not claim.figure.low.ordinal and figure.low.value <= MAX_PLAIN_ORDINAL:
        return True
    if is_document_reference(reply.scan.reader, figure.low) or (figure.said_often and not asked.how_often):
        return True
    return figure.kind is FigureKind.MONEY and _is_coin_that_denies_price(figure, reply)


_BIRTHDAYS: Final = split_into_word_keys(
    "turn turns birthday geburtstag geburtstags anniversaire cumpleaños janamdin जन्मदिन"
)


def _is_next_birthday(wanted: Figure, stated: Figure, reply: Passage) -> bool:
    """Return whether the reply states the age limit of the gold as the next birthday.

    For a gold of "up to 6", this is "until they turn seven".
    """
    reader = reply.scan.reader
    beside = {reader.token(stated.first - 1).key, *(reader.token(stated.last + step).key for step in (1, 2))}
    ends = {(end.original_value or end.value) for end in (wanted.low, wanted.high) if end is not None}
    value = stated.low.original_value or stated.low.value
    keys = {remove_unread_mark(key) for key in beside}
    return bool(keys & _BIRTHDAYS) and any(abs(value - end) == 1 for end in ends)


def _is_counting_continued(figure: Figure, clause: Clause, reply: Passage) -> bool:
    """Return whether the sentence continues to count after a figure: "once, and then a second time"."""
    return any(
        other.low.ordinal and other.first > figure.first
        for later in reply.clauses
        if later.sentence == clause.sentence
        for other in later.figures
    ) or any(
        token.key in _AGAIN for token in reply.scan.reader.tokens[figure.last + 1 : figure.last + 1 + _AGAIN_REACH]
    )


_AGAIN: Final = split_into_word_keys("again second another")
_AGAIN_REACH: Final = 8


def _is_coin_that_denies_price(figure: Figure, reply: Passage) -> bool:
    """Return whether an amount is a coin that only denies a price: "ek paisa bhi nahi" ("not even a paisa")."""
    coin = figure.low.worded and figure.low.value <= _MAX_COIN_VALUE
    return coin and reply.scan.reader.token(figure.last + 1).key in {"भी", "bhi"}


_MAX_COIN_VALUE: Final = Decimal("0.01")
_FOR_ALL: Final = re.compile(
    r"\b(?:for (?:the lot|all|both|everything)|altogether|in total|all together|insgesamt|zusammen"
    r"|en tout|en total)\b"
)
_NEAR_TEXT: Final = 30
"""Words such as "for the lot" are searched for in this number of characters after an amount."""
_MAX_WORDS: Final = split_into_word_keys(
    "largest biggest highest longest maximum most latest größte höchste längste"
)
_MIN_WORDS: Final = split_into_word_keys(
    "smallest lowest shortest minimum least earliest kleinste niedrigste kürzeste"
)


def _has_opposite_bound(wanted: Figure, clause: Clause, reply: Passage) -> bool:
    """Return whether the clause states the opposite bound.

    For a gold of "at least 40", the clause "The largest order is 40" states the opposite bound.
    """
    keys = {token.key for token in reply.scan.reader.tokens[clause.first : clause.after]}
    if wanted.bound is Bound.AT_LEAST:
        return bool(keys & _MAX_WORDS) and not keys & _MIN_WORDS
    return wanted.bound is Bound.AT_MOST and bool(keys & _MIN_WORDS) and not keys & _MAX_WORDS


def _takes_unit_of_earlier_figure(figure: Figure, clause: Clause, claim: Claim, reply: Passage) -> bool:
    """Return whether a number has the unit of an earlier figure in the reply.

    In "a trial lasts 25 minutes, a lesson 55", the 55 has the unit minutes.
    """
    wanted = claim.figure
    is_hour = wanted.kind is FigureKind.TIME and reply.scan.reader.token(figure.first - 1).key in _BEFORE_HOURS
    if figure.kind is not FigureKind.NUMBER or figure.noun or figure.is_year:
        return False
    if not is_hour and wanted.kind not in _WITH_UNIT:
        return False
    if reply.scan.reader.token(figure.last + 1).text not in _ENDS or figure.high is not None:
        return False
    before = (
        other
        for earlier_clause in reply.clauses
        if earlier_clause.sentence == clause.sentence
        for other in earlier_clause.figures
        if other.first < figure.first and other.kind is wanted.kind
    )
    return any(other.low.unit == wanted.low.unit for other in before)


_BEFORE_HOURS: Final = frozenset({"at", "from", "by", "until", "till"})
_HOUR_MINUTES: Final = 60
_ENDS: Final = frozenset({".", ",", ";", "!", "", "।", "का", "की", "के", "ka", "ki", "ke"})


def _is_price_for_several(claim: Claim, clause: Clause) -> bool:
    """Return whether the clause states the price of several items, but the gold states the price of one item.

    An example is "two cans are ₹35".
    """
    return any(
        other.kind is FigureKind.NUMBER and other.low.value != 1 and claim.figure.per & other.noun
        for other in clause.figures
    )


_AFTER: Final = split_into_word_keys("after nach après después")
_AFTER_BEHIND: Final = split_into_word_keys("baad बाद")


def _is_after_not_within(wanted: Figure, stated: Figure, reply: Passage) -> bool:
    """Return whether the reply says "after three days", but the gold says "within three days"."""
    if wanted.bound is not Bound.AT_MOST or wanted.kind is not FigureKind.DURATION:
        return False
    reader = reply.scan.reader
    behind = (reader.token(at).key for at in range(stated.last + 1, stated.last + 1 + _NEAR_BEFORE))
    return reader.token(stated.first - 1).key in _AFTER or any(key in _AFTER_BEHIND for key in behind)


def _find_unit_in_reply(claim: Claim, reply: Passage, leeway: Leeway) -> tuple[FigureKind, str | None] | None:
    """Return the unit that the reply adds to the number of the gold, or ``None`` if the reply adds no unit.

    For the gold "27" and the reply "27 days", the unit is days.
    """
    if claim.figure.kind is not FigureKind.NUMBER or claim.figure.noun or claim.figure.high is not None:
        return None
    for figure in reply.figures:
        if figure.kind in _WITH_UNIT and compare_figures(claim.figure, figure, leeway) is Likeness.SAME:
            return figure.kind, figure.low.unit
    return None


_WITH_UNIT: Final = frozenset({FigureKind.DURATION, FigureKind.MONEY, FigureKind.PERCENT, FigureKind.QUANTITY})
_DIRECTIONS: Final = frozenset(STEMS[word] for word in ("until", "till", "before", "after", "from"))
"""Stems of words that show which of two figures is meant: "open from 9", "open until 5"."""


def _list_clause_periods(clause: Clause, reply: Passage) -> Words:
    tokens = reply.scan.reader.tokens[clause.first : clause.after]
    return frozenset(PERIODS[token.key] for token in tokens if token.key in _PERIOD_TERMS)


_PERIOD_TERMS: Final = frozenset(key for key in PERIODS if key.endswith("ly") or key == "annual")


def _is_value_in_question(figure: Figure, asked: Asked, leeway: Leeway) -> bool:
    """Return whether the question contains the value of the figure."""
    if not asked.question.figures:
        return False
    plain = Leeway(leeway.month_is_30_days, leeway.tolerance, leeway.currency)
    return any(compare_figures(named, figure, plain) is Likeness.SAME for named in asked.question.figures)


def _has_other_role_than_claim(claim: Claim, figure: Figure, asked: Asked, reply: Passage, domain: Domain) -> bool:
    """Return whether a figure has another role than the claim.

    For example, it is a grace period, and the claim is a waiting period.
    """
    reader = reply.scan.reader
    if figure.kind is FigureKind.DURATION and is_time_before_event(reader, figure.last + 1, domain):
        return not asked.before
    if not claim.roles:
        return False
    roles = find_roles(reader, figure.low, domain)
    return bool(roles) and not roles & claim.roles


_NONE_WORDS: Final = frozenset({"no", "nil", "without", "none", "zero", "not", "कोई", "नहीं", "koi", "nahi"})
_NONE_REACH: Final = 3
AMOUNTS: Final = frozenset({FigureKind.MONEY, FigureKind.NUMBER, FigureKind.PERCENT, FigureKind.DURATION})


def has_zero_in_words(claim: Claim, asked: Asked, reply: Passage) -> bool:
    """Return whether the reply states in words that the value is zero: "no co-payment" for a gold of 0."""
    if claim.figure.low.value != 0 or claim.figure.kind in {
        FigureKind.DATE,
        FigureKind.TIME,
        FigureKind.IDENTIFIER,
    }:
        return False
    return _find_negation_of_topic(asked.question_terms | claim.others, reply) is not None


def is_denial_of_amount(asked: Asked, reply: Passage) -> bool:
    """Return whether the reply states that there is no amount at all: "There is no co-payment"."""
    place = _find_negation_of_topic(asked.question_terms, reply)
    clause = next(
        (
            denied_clause
            for denied_clause in reply.clauses
            if place is not None and denied_clause.first <= place < denied_clause.after
        ),
        None,
    )
    return (
        clause is not None
        and _is_plain_statement(clause, reply)
        and not _find_words_not_in_question_or_gold(clause, asked, reply)
    )


def find_amount_where_none_expected(asked: Asked, reply: Passage) -> Figure | None:
    """Return the only amount of a reply, if it is above zero and the gold states that there is no amount.

    Otherwise, return ``None``.
    """
    figures = [figure for figure in reply.figures if figure.kind in AMOUNTS]
    if (
        len(figures) != 1
        or figures[0].low.value <= 0
        or _find_negation_of_topic(asked.question_terms, asked.gold) is None
    ):
        return None
    clause = reply.find_clause(figures[0])
    if clause is None or _find_negation_of_topic(asked.question_terms, reply) is not None:
        return None
    return (
        figures[0]
        if _is_plain_statement(clause, reply) and not _find_words_not_in_question_or_gold(clause, asked, reply)
        else None
    )


def _is_plain_statement(clause: Clause, reply: Passage) -> bool:
    return not clause.is_question and not clause.marks and clause.first >= reply.retracted_before


def _find_words_not_in_question_or_gold(clause: Clause, asked: Asked, reply: Passage) -> Words:
    tokens = reply.scan.reader.tokens[clause.first : clause.after]
    spans = [_shift_token_span(figure, clause.first) for figure in clause.figures]
    return frozenset(
        word for word in _collect_terms_outside(tokens, spans) - asked.known_stems if not word.startswith("#")
    )


def _find_negation_of_topic(topic: Words, passage: Passage) -> int | None:
    """Return the index of a negation shortly before a word of ``topic``.

    Return ``None`` if there is no such negation.
    """
    tokens = passage.scan.reader.tokens
    near = (
        at
        for at, token in enumerate(tokens)
        if token.key in _NONE_WORDS
        and any(token.kind != SIGN for token in tokens[at + 1 : at + 2])
        and any(STEMS[behind.key] in topic for behind in tokens[at + 1 : at + 1 + _NONE_REACH])
    )
    return next(near, None)


# --- status ---------------------------------------------------------------------------------------------------

_NEAR_BEFORE: Final = 4
_DENIALS: Final = split_into_word_keys("not isn't aren't wasn't doesn't don't didn't never nicht kein no")
_BE: Final = frozenset({"cost", "costs", "be", "is", "last", "lasts", "take", "takes", "charge"})


def find_mention_status(  # noqa: C901, PLR0912 - one row for each status
    figure: Figure, clause: Clause, reply: Passage, asked: Asked, claim: Claim
) -> Status:
    """Return whether the reply states a figure as a current fact, or the reason why it does not."""
    reader, marks = reply.scan.reader, clause.marks
    if clause.is_question:
        return Status.QUESTION
    if _is_one_of_two_alternatives(figure, claim, reply):
        return Status.ALTERNATIVE
    if _is_for_other_value_than_asked(figure, clause, asked):
        return Status.ELSEWHERE
    if figure.first < reply.retracted_before:
        return Status.TAKEN_BACK
    if figure.kind is not FigureKind.UNLIMITED and not figure.said_free and _is_denied(figure, reply):
        return Status.DENIED
    if claim.figure.bound is not Bound.EXACT and is_limit_negated(reader, figure.low):
        return Status.DENIED
    if figure.low.date == ALWAYS and is_always_open_negated(reader, figure.low):
        return Status.DENIED
    about = any(mark & Mark.APPROXIMATE and after == figure.first for _, after, mark in reply.marks)
    if about and not any(mark & Mark.APPROXIMATE for _, _, mark in asked.gold.marks) and not _is_far(figure, claim):
        return Status.HEDGED
    if not is_gold_hedged(asked) and any(
        near_clause.marks & Mark.HEDGE for near_clause in reply.clauses if near_clause.sentence == clause.sentence
    ):
        return Status.HEDGED
    if marks & Mark.OTHER or _belongs_to_other_company(figure, clause, reply):
        return Status.OTHER_COMPANY
    if not marks:
        return Status.CURRENT
    if marks & Mark.INSTEAD and _is_preceded_by_mark(figure, clause, reply, Mark.INSTEAD):
        return Status.INSTEAD
    if marks & Mark.CHANGE and _is_old_value_of_change(figure, clause, reader):
        return Status.INSTEAD
    if not asked.is_past and _is_past_value(figure, clause, reply):
        return Status.PAST
    return Status.CURRENT


_MEASURED: Final = frozenset({FigureKind.MONEY, FigureKind.PERCENT, FigureKind.DURATION, FigureKind.QUANTITY})
_NEAR_RATIOS: Final = (Decimal("0.75"), Decimal("1.34"))
"""Smallest and largest ratio to the gold for a figure with "about". "About 30 kg" is near 25 kg; 40 kg is not."""


def _is_far(figure: Figure, claim: Claim) -> bool:
    """Return whether a figure differs from the gold so much that "about" does not explain the difference."""
    gold = claim.figure
    if figure.kind not in _MEASURED or gold.kind is not figure.kind or gold.low.unit != figure.low.unit:
        return False
    wanted, stated = to_comparable_size(gold.low), to_comparable_size(figure.low)
    if gold.high is not None or figure.high is not None or wanted <= 0 or stated <= 0:
        return False
    return not _NEAR_RATIOS[0] <= stated / wanted <= _NEAR_RATIOS[1]


_OURS: Final = split_into_word_keys("ours")


def _belongs_to_other_company(figure: Figure, clause: Clause, reply: Passage) -> bool:
    """Return whether a figure belongs to another company.

    In "The alley across town has 14 lanes; ours has 10", the 14 belongs to another company.
    """
    tokens = reply.scan.reader.tokens
    own = [
        own_clause
        for own_clause in reply.clauses
        if own_clause.sentence == clause.sentence
        and any(token.key in _OURS for token in tokens[own_clause.first : own_clause.after])
    ]
    return clause not in own and any(
        other.kind is figure.kind for own_clause in own for other in own_clause.figures
    )


_OR: Final = split_into_word_keys("or oder ou ya या")


def _is_one_of_two_alternatives(figure: Figure, claim: Claim, reply: Passage) -> bool:
    """Return whether a figure is one of two alternatives: "£72 or £81"."""
    if claim.figure.high is not None:
        return False
    reader = reply.scan.reader
    place = next(
        (at for at, other in enumerate(reply.figures) if other.start == figure.start and other == figure), -1
    )
    if place < 0:
        return False
    neighbours = [(reply.figures[at], figure) for at in (place - 1,) if at >= 0]
    neighbours += [(figure, other) for other in reply.figures[place + 1 : place + 2]]
    return any(
        first.kind is second.kind
        and second.first - max(first.last, first.per_last) <= 2  # noqa: PLR2004 - "or" and nothing else between
        and any(reader.token(at).key in _OR for at in range(first.last + 1, second.first))
        for first, second in neighbours
    )


def _is_for_other_value_than_asked(figure: Figure, clause: Clause, asked: Asked) -> bool:
    """Return whether a figure applies to another value than the value in the question.

    Return True for "€980 for ten years" if the question is about twenty years.
    """
    if not asked.question.figures:
        return False
    plain = Leeway()
    beside = [other for other in clause.figures if other is not figure]
    for wanted in asked.question.figures:
        likenesses = {
            compare_figures(wanted, other, plain) for other in beside if not _is_within_bound(wanted.low, other)
        }
        is_other = any(_is_beyond_bound(wanted, other) for other in beside)
        if (Likeness.DIFFERENT in likenesses and Likeness.SAME not in likenesses) or is_other:
            return wanted.kind is not figure.kind
    return False


def _is_beyond_bound(wanted: Figure, other: Figure) -> bool:
    """Return whether a figure is outside the limit in the question.

    Return True for "10 to 15" if the question is about children under 10.
    """
    if (wanted.low.kind, wanted.low.unit) != (other.low.kind, other.low.unit):
        return False
    if other.high is None:
        is_opposite = {wanted.bound, other.bound} == {Bound.AT_MOST, Bound.AT_LEAST}
        return is_opposite and other.low.value == wanted.low.value
    if wanted.bound is Bound.AT_MOST:
        return other.low.value >= wanted.low.value
    return wanted.bound is Bound.AT_LEAST and other.high.value <= wanted.low.value


def _is_within_bound(value: QuantityReading, limit: Figure) -> bool:
    """Return whether a value is within a limit: 3 kg is within "up to 4 kg"."""
    if limit.high is not None or (value.kind, value.unit) != (limit.low.kind, limit.low.unit):
        return False
    if limit.bound is Bound.AT_MOST:
        return value.value <= limit.low.value
    return limit.bound is Bound.AT_LEAST and value.value >= limit.low.value


def is_gold_hedged(asked: Asked) -> bool:
    """Return whether the gold is uncertain, for example because it contains "perhaps"."""
    return any(mark is Mark.HEDGE for _, _, mark in asked.gold.marks)


def _is_denied(figure: Figure, reply: Passage) -> bool:
    reader = reply.scan.reader
    if is_quantity_negated(reader, figure.low._replace(last=figure.last)):
        return True
    before = [reader.token(at).key for at in range(figure.first - 1, figure.first - 1 - _NEAR_BEFORE, -1)]
    if figure.bound is not Bound.EXACT or not before:
        return False
    return before[0] in _BE and before[1] in _DENIALS


def _is_preceded_by_mark(figure: Figure, clause: Clause, reply: Passage, wanted: Mark) -> bool:
    """Return whether a phrase with the mark ``wanted`` is shortly before a figure.

    No other figure may be between the phrase and this figure.
    """
    for first, after, mark in reply.marks:
        if mark is wanted and clause.first <= first < figure.first:
            between = [other for other in clause.figures if after <= other.first < figure.first]
            if not between and figure.first - after <= _REACH:
                return True
    return False


_REACH: Final = 6


def _is_old_value_of_change(figure: Figure, clause: Clause, reader: NumberReader) -> bool:
    """Return whether a figure is the old value of a change: the 35 in "went up from 35 to 70"."""
    place = clause.figures.index(figure) if figure in clause.figures else -1
    before = figure.first - 1 - (reader.token(figure.first - 1).key == "the")
    return reader.token(before).key == "from" and place == 0


def _is_past_value(figure: Figure, clause: Clause, reply: Passage) -> bool:
    marks = clause.marks
    if marks & Mark.PAST:
        return not marks & Mark.NOW or not _is_preceded_by_mark(figure, clause, reply, Mark.NOW)
    if not marks & (Mark.PAST_VERB | Mark.PAST_WITH_VERB):
        return False
    if marks & Mark.PAST_VERB and marks & Mark.PAST_WITH_VERB:
        return True
    if not marks & Mark.PAST_VERB:
        keys = {token.key for token in reply.scan.reader.tokens[clause.first : clause.after]}
        is_span = "until" in keys or "years" in keys  # "For years we guaranteed it for 12 months"
        return is_span and any(key.endswith("ed") for key in keys) and not keys & _PRESENT
    if any(other.marks & Mark.NOW and other.figures for other in reply.clauses if other is not clause):
        return True
    return any(  # "It was £66; it is £58"
        other.sentence == clause.sentence
        and other.first > clause.first
        and not other.marks & Mark.PAST_VERB
        and any(later.kind is figure.kind and later.low.value != figure.low.value for later in other.figures)
        for other in reply.clauses
    )


# --- other words near a figure --------------------------------------------------------------------------------

_PRESENT: Final = frozenset({"is", "are", "will", "be", "must", "can", "may", "have", "has", "need", "should"})
_ENDS_CORE: Final = frozenset(",;:(–—")
_CONTINUING_WORDS: Final = split_into_word_keys(
    "for if when with in per on a each every only at of from to provided as until before after during within"
)
_NEW_CLAUSE: Final = frozenset({"and", "which", "who", "because", "so", "plus", "then", "where", "और", "aur"})
_SUBJECTS: Final = frozenset({"you", "it", "we", "they", "i", "the", "there", "your", "our", "this", "that"})


def find_clause_part_about_figure(figure: Figure, clause: Clause, reply: Passage) -> tuple[int, int]:
    """Return the span of the tokens of a clause that are about a figure.

    Additions such as "and you …" are excluded.
    """
    reader = reply.scan.reader
    after = clause.after
    for at in range(max(figure.last, figure.per_last) + 1, clause.after):
        token, following = reader.token(at), reader.token(at + 1)
        if token.text in _ENDS_CORE and following.key not in _CONTINUING_WORDS:
            after = at
            break
        if token.key in _NEW_CLAUSE and following.key in _SUBJECTS:
            after = at
            break
    return clause.first, after


def find_unknown_words_near_figure(mention: Mention, asked: Asked, reply: Passage) -> Words:
    """Return the words of the reply near a figure that are neither in the question nor in the gold."""
    first, after = find_clause_part_about_figure(mention.figure, mention.clause, reply)
    tokens = reply.scan.reader.tokens[first:after]
    figures = [_shift_token_span(figure, first) for figure in reply.figures if first <= figure.first < after]
    words = extract_content_stems_and_numbers(tokens) if not figures else _collect_terms_outside(tokens, figures)
    return frozenset(
        word
        for word in words - asked.known_stems - mention.figure.per - _PERIOD_STEMS
        if not word.startswith(("#", "weekday "))
    )


def _shift_token_span(figure: Figure, by: int) -> tuple[int, int]:
    return figure.first - by, max(figure.last, figure.per_last) - by


def _collect_terms_outside(tokens: Sequence[object], spans: Iterable[tuple[int, int]]) -> Words:
    inside = {index for low, high in spans for index in range(low, high + 1)}
    outside = [token for index, token in enumerate(tokens) if index not in inside]
    return extract_content_stems_and_numbers(outside)  # type: ignore[arg-type] - the tokens are typed as object here


_PERIOD_STEMS: Final = frozenset(STEMS[key] for key in PERIODS) | frozenset(PERIODS.values())

_AT_MOST: Final = re.compile(
    r"\b(?:at most|maximum|max|longest|most|up to|largest|highest|latest|limit|(?:until|by|till) when|last day"
    r"|deadline)\b"
    r"|höchst|अधिकतम|zyada se zyada",
    re.IGNORECASE,
)
_AT_LEAST: Final = re.compile(
    r"\b(?:at least|minimum|min|shortest|least|fewest|smallest|lowest|earliest)\b|mindest|न्यूनतम|kam se kam",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def find_bound_that_question_asks(question: str) -> Bound:
    """Return the bound that the question asks for, such as the upper bound for "How long at most?"."""
    most, least = _AT_MOST.search(question), _AT_LEAST.search(question)
    if bool(most) == bool(least):
        return Bound.EXACT
    return Bound.AT_MOST if most else Bound.AT_LEAST


def list_periods(passage: Passage) -> Words:
    """Return the periods that are named in a text: ``year`` for "annual"."""
    return frozenset(PERIODS[token.key] for token in passage.scan.reader.tokens if token.key in PERIODS)


_MAX_NAME_WORDS: Final = 8
"""A gold with at most this many words may be a name or phrase. In a longer gold, numbers are figures."""


def is_gold_about_figures(asked: Asked) -> bool:
    """Return whether the figures of a gold are the answer.

    Return False if the figures belong to a name such as "Apollo 11".
    """
    figures = [claim.figure for claim in asked.claims]
    if not figures:
        return False
    if any(figure.kind is not FigureKind.NUMBER or figure.low.counts or figure.per for figure in figures):
        return True
    tokens = asked.gold.scan.reader.tokens
    inside = {at for figure in figures for at in range(figure.first, figure.last + 1)}
    words = [token for at, token in enumerate(tokens) if at not in inside and token.kind != SIGN]
    content = [token for token in words if token.key not in LIGHT]
    if all(figure.low.ordinal for figure in figures):
        return not words
    if any(token.kind == NUMERAL for token in words):
        return False
    counted = all(figure.noun or figure.bound is not Bound.EXACT for figure in figures)
    named = any(token.text[0].isupper() for token in content[1:] or content) or any(
        (before := asked.gold.scan.reader.token(figure.first - 1)).kind == WORD and before.text[0].isupper()
        for figure in figures
    )
    return len(words) > _MAX_NAME_WORDS or len(content) <= len(figures) or (counted and not named)


def list_period_stems(figure: Figure) -> Words:
    """Return the stems of the words that name the period of a figure: "annual" for "£6 a year"."""
    return frozenset(STEMS[key] for key, period in PERIODS.items() if period in figure.per)
