"""Decide whether a reply states the facts of the gold. This module contains all rules of the factual grader.

Each figure of the gold is a claim.

- A claim passes if the reply states the figure for the subject of the claim, and no condition changes its meaning.
- A claim fails if the reply states another figure for the subject.
- Otherwise, the case stays ungraded, and the grade contains the reason.

Yes-or-no answers, names and lists have other rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from monitors.domains.pack import Domain
from monitors.facts.claims.clauses import Passage, Words, extract_content_stems_and_numbers, format_figures_as_words
from monitors.facts.claims.compare import Leeway, Likeness, compare_figures, is_conversion
from monitors.facts.claims.figures import Figure, FigureKind
from monitors.facts.claims.phrases import (
    Phrase,
    PhraseStatus,
    extract_phrase_keys,
    find_competing_name,
    find_phrase_with_status,
    has_new_name_or_number,
    is_proper_name,
    is_sequence_question,
    split_items,
    to_comparable_word,
)
from monitors.facts.claims.vocabulary import (
    FALLS,
    LIGHT,
    OPPOSITES,
    RISES,
    SIDES,
    STEMS,
    Mark,
    find_opposite_pair,
)
from monitors.facts.claims.wording import describe_figure
from monitors.facts.language import LanguageEvidence, classify_language_evidence, find_foreign_language_code
from monitors.facts.quantities.clock import ALWAYS
from monitors.facts.quantities.fact import Bound
from monitors.facts.quantities.lexicon import AMBIGUOUS_MONTHS, MONTHS, WEEKDAYS
from monitors.facts.quantities.locales import PLAIN, Locale, build_locale
from monitors.facts.quantities.other_languages import remove_unread_mark
from monitors.facts.quantities.translations import LANGUAGES
from monitors.facts.refusals.detect import classify_refusal
from monitors.facts.text import SIGN, WORD, Token, normalise, split_into_word_keys, tokenise
from monitors.facts.weekdays import find_day_ranges
from monitors.graders.base import (
    SAYS_MORE,
    SENTENCE,
    STATEMENT,
    UNREAD_GOLD,
    GraderSettings,
    abstain,
    format_unsupported_language_reason,
    give_verdict,
)
from monitors.graders.claims import (
    AMOUNTS,
    Asked,
    Claim,
    Mention,
    Status,
    collect_all_stems,
    find_amount_where_none_expected,
    find_bound_that_question_asks,
    find_clause_part_about_figure,
    find_comparable_mentions,
    has_zero_in_words,
    is_denial_of_amount,
    is_gold_about_figures,
    list_period_stems,
    list_periods,
    read_case_passage,
    read_gold_and_question,
    read_reply_passage,
)
from monitors.graders.golds import FLOOD, scan_reply_without_citations
from monitors.graders.polarity import (
    NEITHER,
    PolarityFinding,
    compare_with_gold_polarity,
    has_condition_beyond_plain_gold,
    lacks_limit_of_golds,
)
from monitors.graders.statements import NO_WORDS
from monitors.graders.verbatim import find_gold_word_for_word
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span

NOT_STATED: Final = "the reply has no figure that can be compared with {gold}"
FOR_ANOTHER: Final = (
    "the reply states {gold} for another subject. For the subject of the question, it states {other}"
)
SEVERAL: Final = "the reply gives both {gold} and {other}, and rules cannot decide which one applies"
NEAR: Final = "the reply states {other}, which may or may not mean {gold}"
ONLY_AS: Final = "the reply contains {gold}, but only as {status}"
TURNED: Final = "the reply contains {gold}, but “{word}” may change the meaning"
NOT_AN_INTERVAL: Final = "the reply contains {gold}, but not as the time between two events"
OPPOSITE: Final = "the reply contains {gold}, but with “{word}”, the opposite of “{known}”"
STRANGE: Final = "the reply contains {gold}, but with words that may change the meaning: {word}"
BETTER: Final = "the reply contains {gold}, but another sentence fits the question better"
UNSURE: Final = "the reply contains {other}, but rules cannot decide whether this answers the question"
OTHER_DAYS: Final = "the days of the week or months in the reply differ from those in the gold answer"
OTHER_TIME: Final = "the reply states {gold} for other months or days of the week than the question"
WORKING_DAYS: Final = "the figures agree, but either only the reply or only the gold answer counts working days"
LIMITED: Final = "the reply gives the same yes or no as the gold answer, but its conditions differ"
SAID_OTHERWISE: Final = (
    "the reply gives the same yes or no as the gold answer, but only as a guess, or about the past or about others"
)
UNLABELLED: Final = "the reply contains {gold}, but it is not clear what this value is for"
NONE_EXPECTED: Final = "expected “{gold}”, found {other}"
DECLINED: Final = "the reply declines to answer and does not say where to find the answer"
UNREAD_REPLY: Final = "rules cannot read the language of the reply, so only a judge can grade its facts"


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """The decision about a claim or a gold. ``passed`` is ``None`` if the rules cannot decide."""

    passed: bool | None
    reason: str
    gold: Figure | None = None
    stated: Figure | None = None
    kind: FailureKind = FailureKind.WRONG_FACT
    span: tuple[int, int] = (0, 0)
    strange: Words = frozenset()
    """Words near the figure that are neither in the gold nor in the question."""
    turned: bool = False
    """Whether the reply contains the gold, but with other words that change its meaning.

    Such a reply does not pass, even if it contains the gold word for word.
    """


class FactualGrader:
    """Grade whether the reply states the facts of the gold. The docstring of this module explains the rules."""

    name = "factual"
    version = "16"
    aspect = Aspect.FACTUAL_MATCH

    def __init__(self, settings: GraderSettings, domain: Domain) -> None:
        self._settings = settings
        self._domain = domain

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the figures of the reply. If the gold has no figures, grade the words of the reply.

        Abstain on an expected refusal.
        """
        reply = exchange.graded_text
        if case.expected_refusal:
            return abstain(self, "a refusal is expected and has no facts to grade")
        if not reply.strip():
            return give_verdict(self, FailureKind.MISSING_FACT, "the reply is empty", ())
        if scan_reply_without_citations(reply, PLAIN).cut:
            return abstain(self, FLOOD)
        speech = self._find_foreign_reply_language(case, reply)
        locale = self._build_locale_for_reply(case, speech)
        grade = self._grade_by_figures(case, exchange, speech, locale) or self._grade_without_figures(
            case, exchange, speech, locale
        )
        if isinstance(grade, Abstained) and not speech and _is_plain_refusal(case, reply):
            grade = give_verdict(self, FailureKind.MISSING_FACT, DECLINED)
        if not (isinstance(grade, Judged) and grade.passed) and case.alternatives:
            grade = (
                self._grade_word_for_word(case.model_copy(update={"gold": case.alternatives[0]}), exchange) or grade
            )
        return grade

    def _find_foreign_reply_language(self, case: GoldCase, reply: str) -> str:
        """Return the code of the reply's language.

        The code is empty for English, Hindi and Hinglish, and ``other`` for an unsupported language.
        """
        shown = classify_language_evidence(reply)
        own = f"{case.question}\n{case.gold}"
        unread = shown is LanguageEvidence.UNREAD or (
            shown is LanguageEvidence.NONE
            and (
                not case.language.is_english_hindi_or_hinglish
                or classify_language_evidence(own) is LanguageEvidence.UNREAD
            )
        )
        if not unread:
            return ""
        spoken = find_foreign_language_code(
            f"{own}\n{reply}" if classify_language_evidence(own) is LanguageEvidence.UNREAD else reply
        )
        return spoken if spoken in LANGUAGES else "other"

    # --- figures ----------------------------------------------------------------------------------------------

    def _build_locale_for_reply(self, case: GoldCase, speech: str) -> Locale:
        locale = build_locale(case.language, self._settings.locale, self._settings.currency)
        if speech in LANGUAGES:
            return locale.copy_for_foreign_language(speech)
        return locale._replace(language=Language.OTHER) if speech else locale

    def _grade_by_figures(
        self, case: GoldCase, exchange: Exchange, speech: str, locale: Locale
    ) -> Judged | Abstained | None:
        """Grade the figures of the reply against each accepted gold. Return ``None`` if no gold has figures."""
        reply = read_reply_passage(exchange.graded_text, locale)
        golds = (case.gold, *case.alternatives)
        decisions: list[ClaimDecision] = []
        read = [read_gold_and_question(gold, case.question, locale, self._domain) for gold in golds]
        measured_golds = [asked for asked in read if is_gold_about_figures(asked)]
        accepted = [claim.figure for asked in measured_golds for claim in asked.claims]
        for asked in measured_golds:
            leeway = Leeway(
                case.month_is_30_days,
                case.relative_tolerance,
                locale.currency,
                collect_all_stems(asked.question) | asked.question_terms | list_periods(asked.question),
                find_bound_that_question_asks(case.question),
            )
            decisions.append(decide_gold(asked, reply, leeway, self._domain, accepted))
        if not decisions:
            return None
        best = next((decision for decision in decisions if decision.passed), None) or next(
            (decision for decision in decisions if decision.passed is None), decisions[0]
        )
        if speech == "other" and best.passed is not False:
            stated = self._grade_word_for_word(case, exchange)
            return stated or abstain(self, _explain_unsupported_language(case))
        others = [gold for gold, asked in zip(golds, read, strict=True) if asked not in measured_golds]
        if best.passed is None and not speech and (others or all(figure.code for figure in accepted)):
            named = case.model_copy(
                update={"gold": (others or golds)[0], "alternatives": tuple((others or golds)[1:])}
            )
            by_terms = decide_gold_without_figures(named, reply, locale)
            if by_terms.passed or (others and by_terms.passed is None):
                return self._convert_decision_to_grade(by_terms, exchange)
        return self._grade_claim_unless_polarity_disagrees(best, case, exchange, reply, locale)

    def _grade_claim_unless_polarity_disagrees(
        self, best: ClaimDecision, case: GoldCase, exchange: Exchange, reply: Passage, locale: Locale
    ) -> Judged | Abstained:
        polarity = self._compare_polarity_of_exchange(case, exchange, locale)
        if polarity.agrees is False:
            return self._build_polarity_verdict(polarity, exchange, reply)
        if best.passed is None:
            return abstain(self, best.reason)
        if best.passed and polarity.agrees is None and polarity.reason != NEITHER:
            return abstain(self, polarity.reason)
        return give_verdict(
            self, None if best.passed else best.kind, best.reason, _build_evidence(best, reply, exchange)
        )

    # --- words ------------------------------------------------------------------------------------------------

    def _grade_without_figures(  # noqa: C901 - one row for each reason that leaves a yes or no open
        self, case: GoldCase, exchange: Exchange, speech: str, locale: Locale
    ) -> Judged | Abstained:
        stated, text = self._grade_word_for_word(case, exchange), exchange.graded_text
        reply = read_reply_passage(text, locale)
        if speech == "other":
            decision = decide_gold_without_figures(case, reply, locale)
            return stated or (
                self._convert_decision_to_grade(decision, exchange)
                if decision.passed
                else abstain(self, _explain_unsupported_language(case))
            )
        polarity = self._compare_polarity_of_exchange(case, exchange, locale)
        if polarity.agrees is not None:
            if (
                polarity.agrees
                and polarity.tokens
                and not _is_statement_about_present(polarity.tokens[0].start, reply)
            ):
                return abstain(self, SAID_OTHERWISE)
            if polarity.agrees and _has_unsupported_waiver(case, text):
                return abstain(self, LIMITED)
            if polarity.agrees and _denies_condition(case, reply, locale):
                return abstain(self, LIMITED)
            if polarity.agrees and _has_other_months_or_weekdays(case, text):
                return abstain(self, OTHER_DAYS)
            if polarity.agrees and lacks_limit_of_golds((case.gold, *case.alternatives), text, locale):
                return abstain(self, SAYS_MORE)
            if polarity.agrees and has_condition_beyond_plain_gold(
                (case.gold, *case.alternatives), case.question, text, locale
            ):
                return abstain(self, LIMITED)
            return self._build_polarity_verdict(polarity, exchange, reply)
        if polarity.reason != NEITHER:
            return stated or abstain(self, polarity.reason)
        decision = decide_gold_without_figures(case, reply, locale)
        if decision.passed is None and not case.alternatives:
            asked = read_gold_and_question(case.gold, case.question, locale, self._domain)
            figure = find_amount_where_none_expected(asked, reply)
            if figure is not None:
                reason = NONE_EXPECTED.format(gold=case.gold, other=describe_figure(figure))
                decision = ClaimDecision(False, reason, stated=figure)
        if speech and decision.passed is False and decision.kind is FailureKind.MISSING_FACT:
            return stated or abstain(self, _explain_unsupported_language(case))
        return (
            stated
            if stated and decision.passed is None and not decision.turned
            else self._convert_decision_to_grade(decision, exchange)
        )

    def _compare_polarity_of_exchange(self, case: GoldCase, exchange: Exchange, locale: Locale) -> PolarityFinding:
        if locale.is_unread:
            return PolarityFinding(None, NEITHER)
        golds = (case.gold, *case.alternatives)
        return compare_with_gold_polarity(case.question, golds, exchange.graded_text, self._domain, locale)

    def _build_polarity_verdict(self, polarity: PolarityFinding, exchange: Exchange, reply: Passage) -> Judged:
        folded = reply.scan.normalised
        spans = tuple(
            Span(where=exchange.graded_channel, start=start, end=end, label=polarity.reason)
            for start, end in (folded.find_original_span(token.start, token.end) for token in polarity.tokens)
        )
        return give_verdict(self, None if polarity.agrees else FailureKind.WRONG_FACT, polarity.reason, spans)

    def _convert_decision_to_grade(self, decision: ClaimDecision, exchange: Exchange) -> Judged | Abstained:
        if decision.passed is None:
            return abstain(self, decision.reason)
        spans = (
            Span(where=exchange.graded_channel, start=decision.span[0], end=decision.span[1], label="gold phrase"),
        )
        return give_verdict(
            self, None if decision.passed else decision.kind, decision.reason, spans if decision.passed else ()
        )

    def _grade_word_for_word(self, case: GoldCase, exchange: Exchange) -> Judged | None:
        place = find_gold_word_for_word((case.gold, *case.alternatives), exchange.graded_text, case.question)
        if place is None or not _is_statement_about_present(
            place[0], read_reply_passage(exchange.graded_text, PLAIN)
        ):
            return None
        if _adds_item_to_gold_list(case, exchange.graded_text):
            return None
        span = Span(where=exchange.graded_channel, start=place[0], end=place[1], label="gold word for word")
        return give_verdict(self, None, "the reply contains the gold answer word for word", (span,))


_WITHOUT: Final = re.compile(r"\b(?:without|ohne|sans|sin|bina)\b|बिना", re.IGNORECASE)
_WAIVES: Final = re.compile(
    r"\b(?:even (?:if|when|though)|whether or not|regardless|auch wenn|selbst wenn|egal ob|même si|aunque"
    r"|chahe|bhale hi|wet or dry|dry or wet|rain or shine|member or not|with or without|mit oder ohne"
    r"|avec ou sans|con o sin)\b|चाहे|भले ही",
    re.IGNORECASE,
)
"""Phrases that remove a condition, such as "even if" in "even if it rains"."""
_MAX_BARE_WORDS: Final = 2
"""A gold with at most this many words is too short to have a condition."""


_ADDS: Final = re.compile(
    r"\b(?:as well as|along with|together with|in addition|additionally|plus|on top|außerdem|zusätzlich|ainsi que"
    r"|en plus|de plus|además|también|ke saath|ke sath|ke alawa)\b|के साथ|के अलावा",
    re.IGNORECASE,
)
"""Words that add another item to a list."""


def _adds_item_to_gold_list(case: GoldCase, text: str) -> bool:
    """Return whether the gold is a list and the reply may add an item: "entry and train, plus a boat ride"."""
    known_text = "\n".join((*case.turns, case.gold))
    return bool(split_items(case.gold) and _ADDS.search(text) and not _ADDS.search(known_text))


def _has_other_months_or_weekdays(case: GoldCase, text: str) -> bool:
    """Return whether the reply lacks a month or weekday of the gold, although it names other months or weekdays."""
    wanted, stated = _list_months_and_weekdays(case.gold), _list_months_and_weekdays(text)
    return bool(wanted and stated and wanted - stated)


def _list_months_and_weekdays(text: str) -> set[tuple[str, int]]:
    tokens = [
        token
        for token in scan_reply_without_citations(text, PLAIN).reader.tokens
        if not _is_lowercase_ambiguous_month(token)
    ]
    months = {("month", MONTHS[token.key]) for token in tokens if token.key in MONTHS}
    return months | {("weekday", WEEKDAYS[token.key]) for token in tokens if token.key in WEEKDAYS}


def _is_lowercase_ambiguous_month(token: Token) -> bool:
    """Return whether a word such as "may" or "march" is in lower case, so that it is perhaps not a month."""
    return token.key in AMBIGUOUS_MONTHS and not token.text[0].isupper()


def _has_unsupported_waiver(case: GoldCase, text: str) -> bool:
    """Return whether the reply says "without" or "even if", but neither the question nor the gold says so."""
    known_text = "\n".join((*case.turns, case.gold, *case.alternatives))
    waives = len(case.gold.split()) > _MAX_BARE_WORDS and _WAIVES.search(text) and not _WAIVES.search(known_text)
    return bool(waives or (_WITHOUT.search(text) and not _WITHOUT.search(known_text)))


def _denies_condition(case: GoldCase, reply: Passage, locale: Locale) -> bool:
    """Return whether the reply denies a condition of the gold.

    For the gold "Yes, with a doctor's note", the reply "no note is needed" denies the condition.
    """
    gold, question = read_case_passage(case.gold, locale), read_case_passage(case.question, locale)
    own = collect_all_stems(gold) - collect_all_stems(question)
    if not own or (_DENIAL_WORDS | NO_WORDS) & {token.key for token in gold.scan.reader.tokens}:
        return False
    return any(
        clause.words & own
        and _DENIAL_WORDS & {token.key for token in reply.scan.reader.tokens[max(clause.first, 1) : clause.after]}
        for clause in reply.clauses
    )


def _is_statement_about_present(place: int, reply: Passage) -> bool:
    """Return whether the clause at offset ``place`` is a statement about the app's own company at present.

    A guess is not a statement.
    """
    tokens = reply.scan.reader.tokens
    clause = next(
        (
            reply_clause
            for reply_clause in reply.clauses
            if tokens[reply_clause.first].start <= place < tokens[reply_clause.after - 1].end
        ),
        None,
    )
    if clause is None:
        return True
    marks = clause.marks
    is_past = marks & Mark.PAST or (marks & Mark.PAST_VERB and marks & Mark.PAST_WITH_VERB)
    return not (is_past or marks & (Mark.HEDGE | Mark.OTHER))


def _explain_unsupported_language(case: GoldCase) -> str:
    return (
        UNREAD_REPLY
        if case.language.is_english_hindi_or_hinglish
        else format_unsupported_language_reason(UNREAD_GOLD)
    )


_POINTS: Final = re.compile(
    r"\b(?:find|found|shown|listed|see|page|look up|section|displayed|available (?:at|in|on)|under|website"
    r"|app|link|(?:top|bottom) (?:left|right)|(?:oben|unten) (?:links|rechts)|steht|write to|e-?mail)\b"
    r"|@|www\.|https?:",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(r"\d")


def _is_plain_refusal(case: GoldCase, reply: str) -> bool:
    """Return whether a reply declines and gives no part of an answer.

    Such a reply has no figure and does not say where to find the answer. Apart from the words
    of the question, it shares at most one word with a gold.
    """
    shown = _CITATION.sub(" ", reply)
    if _FIGURE.search(shown) or _POINTS.search(shown) or not classify_refusal(reply).refused:
        return False
    question, answer, *golds = (
        extract_content_stems_and_numbers(tokenise(normalise(text).text))
        for text in (case.question, shown, case.gold, *case.alternatives)
    )
    return len(answer & (frozenset[str]().union(*golds) - question)) <= 1


_CITATION: Final = re.compile(r"\[[^\[\]\n]{0,300}\]")

# --- deciding -------------------------------------------------------------------------------------------------


def decide_gold(
    asked: Asked, reply: Passage, leeway: Leeway, domain: Domain, accepted: Sequence[Figure] = ()
) -> ClaimDecision:
    """Decide whether the reply states all claims of a gold.

    The gold passes if all claims pass, and fails if one claim fails. Otherwise, it stays ungraded. ``accepted``
    contains the figures of all golds of the case. These figures do not contradict the gold.
    """
    decisions = [decide_claim(claim, asked, reply, leeway, domain, accepted) for claim in asked.claims]
    failed = next((decision for decision in decisions if decision.passed is False), None)
    if failed is not None:
        return failed
    undecided = next((decision for decision in decisions if decision.passed is None), None)
    if undecided is not None:
        return undecided
    reason = _find_reason_to_leave_ungraded(asked, reply, decisions, domain)
    expected, named = (_list_all_weekdays(passage) for passage in (asked.gold, reply))
    has_date = any(claim.figure.kind is FigureKind.DATE for claim in asked.claims)
    if reason == OTHER_DAYS and len(expected) == len(named) == 1 and not has_date:
        return ClaimDecision(False, OTHER_DAYS, decisions[0].gold, decisions[0].stated)
    if reason:
        return ClaimDecision(None, reason)
    return ClaimDecision(
        True, "; ".join(decision.reason for decision in decisions), decisions[0].gold, decisions[0].stated
    )


def decide_claim(  # noqa: C901, PLR0912, PLR0917 - the five before `accepted` are what each reader of claims takes
    claim: Claim, asked: Asked, reply: Passage, leeway: Leeway, domain: Domain, accepted: Sequence[Figure] = ()
) -> ClaimDecision:
    """Decide whether the reply states a claim for its subject."""
    mentions = find_comparable_mentions(claim, asked, reply, leeway, domain)
    gold = claim.description
    contrary = _find_figure_with_opposite_trend(claim, mentions, asked, reply)
    if contrary is not None:
        other = describe_figure(contrary)
        return ClaimDecision(
            False, f"expected {gold}, found {other} in the opposite direction", claim.figure, contrary
        )
    same = [mention for mention in mentions if mention.likeness is Likeness.SAME]
    live = [mention for mention in same if mention.is_current_statement]
    subjects = frozenset[str]().union(*(mention.key for mention in live))
    competing = [
        mention
        for mention in mentions
        if mention.likeness is not Likeness.SAME
        and (
            mention.is_current_statement
            or (mention.status is Status.OTHER_COMPANY and live and mention.key - subjects)
        )
    ]
    other_golds = [
        figure for figure in accepted if all(figure is not gold_claim.figure for gold_claim in asked.claims)
    ]
    competing = [
        mention
        for mention in competing
        if not _is_for_another_claim(mention, claim, asked, leeway)
        and not _is_example_value(mention, reply)
        and all(compare_figures(other, mention.figure, leeway) is not Likeness.SAME for other in other_golds)
    ]
    exchanged = _find_exchanged_figure(claim, live, mentions, asked, leeway) if live else None
    if exchanged is not None:
        return ClaimDecision(False, f"expected {gold}, found {describe_figure(exchanged)}", claim.figure, exchanged)
    if live:
        others = [mention for mention in mentions if mention.likeness.is_contradicting_gold]
        if others and any(mention.status is Status.TAKEN_BACK for mention in same):
            other = describe_figure(others[-1].figure)
            return ClaimDecision(None, SEVERAL.format(gold=gold, other=other), claim.figure)
        sentences = {mention.clause.sentence for mention in live}
        competing = [
            mention
            for mention in competing
            if not (mention.clause.sentence in sentences and is_conversion(claim.figure, mention.figure))
        ]
        elsewhere = [
            mention for mention in competing if _is_right_for_another_claim(mention, claim, asked, reply, leeway)
        ]
        is_update = any(
            mention.status in _REPLACED and mention.likeness.is_contradicting_gold for mention in mentions
        )
        return _decide_claim_with_stated_figure(
            claim, live, competing, elsewhere, asked, reply, is_update=is_update
        )
    different = [
        mention
        for mention in competing
        if mention.likeness.is_contradicting_gold and not _has_opposite_words(mention, asked, reply)
    ]
    if _is_interval_between_events(asked.gold, claim.figure):
        different = [
            mention
            for mention in different
            if _is_interval_between_events(reply, mention.figure, _OTHER_INTERVAL_WORDS)
        ]
    if _is_distance_from_other_figure(claim.figure, asked.gold):
        different = [mention for mention in different if _is_distance_from_other_figure(mention.figure, reply)]
    if different and _EVERY.search(reply.scan.normalised.text):
        different = [mention for mention in different if not mention.figure.said_often]
    if not different:
        if any(mention.status is Status.DENIED for mention in same):
            return ClaimDecision(False, f"expected {gold}, but the reply denies it", claim.figure, same[0].figure)
        if same:
            return ClaimDecision(None, ONLY_AS.format(gold=gold, status=same[0].status), claim.figure)
        if competing:
            return ClaimDecision(
                None, NEAR.format(gold=gold, other=describe_figure(competing[0].figure)), claim.figure
            )
        if has_zero_in_words(claim, asked, reply):
            return ClaimDecision(True, f"states {gold}", claim.figure)
        if claim.figure.low.value > 0 and claim.figure.kind in AMOUNTS and is_denial_of_amount(asked, reply):
            return ClaimDecision(False, f"expected {gold}, but the reply says that there is none", claim.figure)
        return ClaimDecision(None, NOT_STATED.format(gold=gold), claim.figure)
    if any(mention.status is Status.QUESTION for mention in same):
        return ClaimDecision(None, ONLY_AS.format(gold=gold, status=Status.QUESTION), claim.figure)
    aside = next((mention for mention in same if mention.status not in _REPLACED), None)
    if aside is not None and not any(mention.key for mention in different):
        return ClaimDecision(None, ONLY_AS.format(gold=gold, status=aside.status), claim.figure)
    replaced = any(mention.status in _REPLACED for mention in same)
    return _decide_by_other_figures(claim, different, competing, asked, replaced=replaced)


def _find_figure_with_opposite_trend(
    claim: Claim, mentions: Sequence[Mention], asked: Asked, reply: Passage
) -> Figure | None:
    """Return the figure of the reply that has the number of the gold, but the opposite direction.

    For a gold of "down 3 %", this is the 3 % in "The price rose by 3 %".
    """
    expected = _find_direction(asked.gold, claim.figure, collect_all_stems(asked.gold))
    if not expected:
        return None
    contrary: Figure | None = None
    for mention in mentions:
        figure, clause = mention.figure, mention.clause
        is_equal = abs(figure.low.value) == abs(claim.figure.low.value) and figure.low.unit == claim.figure.low.unit
        if not is_equal or figure.kind is not claim.figure.kind or not mention.is_current_statement:
            continue
        keys = {token.key for token in reply.scan.reader.tokens[clause.first : clause.after]}
        stated = _find_direction(reply, figure, collect_all_stems(reply, clause.first, clause.after))
        if stated == expected:
            return None
        if stated and keys.isdisjoint(_DENIAL_WORDS) and not ("than" in keys and keys.isdisjoint(_EARLIER)):
            contrary = figure
    return contrary


def _find_direction(passage: Passage, figure: Figure, stems: Words) -> int:
    """Return 1 if words or a sign say that a figure goes up, -1 if it goes down, and 0 if neither or both do."""
    signs = {-1} if figure.low.value < 0 else set[int]()
    before = passage.scan.reader.token(figure.first - 1).key
    if before in {"to", "at", "from"}:  # "rose to 5 %" is not a rise by 5 %
        return 0
    if before in {"+", "plus", "up"}:
        signs.add(1)
    if not signs:
        signs = {sign for sign, words in ((1, RISES), (-1, FALLS)) if stems & words}
    return signs.pop() if len(signs) == 1 else 0


_EARLIER: Final = split_into_word_keys("before previously last earlier us wir uns")
"""Words that do not name another thing after "than", such as "before"."""
_REPLACED: Final = frozenset({Status.PAST, Status.INSTEAD, Status.TAKEN_BACK, Status.DENIED})
"""The statuses of a figure that the reply takes back or replaces with another figure."""


_EVERY: Final = re.compile(
    r"\b(?:every|each|alle|jede[nsr]?|chaque|tous les|cada|har) (?:other |second |zweite[nr]? |\w+ )?"
    r"(?:day|week|month|quarter|year|tage?|wochen?|monate?|quartal|jahre?|jours?|semaines?|mois|días?|semanas?|mes|din|hafte)",
    re.IGNORECASE,
)
"""A pattern for a frequency in words: "every quarter" is four times a year. It is not read as a figure."""


_DIFFERENCES: Final = split_into_word_keys(
    "below above under over less more cheaper dearer earlier later lower higher older younger longer shorter off"
)


def _is_distance_from_other_figure(figure: Figure, passage: Passage) -> bool:
    """Return whether a figure is the difference from another value: the £20 in "£20 below the estimate"."""
    return passage.scan.reader.token(figure.last + 1).key in _DIFFERENCES


def _is_for_another_claim(mention: Mention, claim: Claim, asked: Asked, leeway: Leeway) -> bool:
    """Return whether a figure equals the figure of another claim, and no label distinguishes the two claims."""
    return any(
        compare_figures(other.figure, mention.figure, leeway) is Likeness.SAME
        for other in asked.claims
        if other is not claim and not (other.label and claim.label and mention.key & claim.label)
    )


def _is_example_value(mention: Mention, reply: Passage) -> bool:
    """Return whether the sentence of a figure is only an example: "a group of ten, for example, pays $90"."""
    return any(
        clause.sentence == mention.clause.sentence and clause.marks & Mark.EXAMPLE for clause in reply.clauses
    )


def _is_right_for_another_claim(
    mention: Mention, claim: Claim, asked: Asked, reply: Passage, leeway: Leeway
) -> bool:
    """Return whether a figure equals the figure of another claim.

    The result is True only if no word of the reply distinguishes the claims.
    """
    labels = frozenset[str]().union(*(other.label for other in asked.claims))
    return not any(clause.words & labels for clause in reply.clauses) and any(
        compare_figures(other.figure, mention.figure, leeway) is Likeness.SAME
        for other in asked.claims
        if other is not claim
    )


def _decide_claim_with_stated_figure(  # noqa: C901, PLR0912, PLR0917 - what a claim is decided by, one row for each reason
    claim: Claim,
    live: Sequence[Mention],
    competing: Sequence[Mention],
    elsewhere: Sequence[Mention],
    asked: Asked,
    reply: Passage,
    *,
    is_update: bool,
) -> ClaimDecision:
    """Decide a claim whose figure the reply states.

    ``competing`` contains the other figures that may be about the subject of the claim. ``elsewhere`` contains
    those competing figures that belong to another claim. ``is_update`` is True if the figure replaces an old figure
    in the reply. In this case, the subject of the figure is clear.
    """
    gold = claim.description
    best = max(live, key=lambda mention: (len(mention.key & claim.label), len(mention.key), -len(mention.strange)))
    own = best.key & claim.label
    labelled = bool(own)
    if len(asked.claims) > 1 and not labelled and _may_be_for_another_claim(claim, best, asked, reply):
        return ClaimDecision(None, UNLABELLED.format(gold=gold), claim.figure)
    stems = collect_all_stems(reply, best.clause.first, best.clause.after)
    has_plus = asked.gold.scan.reader.token(claim.figure.first - 1).text == "+"
    if has_plus and not _find_direction(reply, best.figure, stems):
        return ClaimDecision(None, NEAR.format(gold=f"+{gold}", other=describe_figure(best.figure)), claim.figure)
    if len(asked.claims) == 1 and _is_about_other_part_of_gold(claim, best, asked):
        return ClaimDecision(None, UNLABELLED.format(gold=gold), claim.figure)
    competing = [mention for mention in competing if not _is_at_other_time(mention, asked, reply)]
    if _is_at_other_time(best, asked, reply):
        return _decide_for_other_time(claim, competing, asked, reply)
    behind = next(
        (
            mention
            for mention in competing
            if _is_only_content_of_clause(mention) and _is_next_clause(best, mention, reply)
        ),
        None,
    )
    if behind is not None:  # "in A it is 1.40 m and in B, 1.30 m"
        return ClaimDecision(None, SEVERAL.format(gold=gold, other=describe_figure(behind.figure)), claim.figure)
    if any(_list_weekdays(mention) != _list_weekdays(best) for mention in live) and any(
        word.startswith("weekday") for word in claim.others
    ):
        return ClaimDecision(None, OTHER_DAYS, claim.figure)
    if labelled:
        competing = [mention for mention in competing if mention.key & claim.label]
    nearer = [
        mention
        for mention in competing
        if (mention.key & claim.label > own if labelled else mention.key - best.key)
        and not _begins_sentence_of_mention(mention, best)
    ]
    if nearer:
        contradicting = [
            mention
            for mention in _prefer_mention_with_all_key_words(nearer)
            if mention.likeness.is_contradicting_gold
            and mention not in elsewhere
            and not _has_opposite_words(mention, asked, reply)
            and (
                (best.key < mention.key and (best.strange or not mention.strange))
                or (best.strange and not mention.strange)
            )
        ]
        values = {describe_figure(mention.figure) for mention in contradicting}
        is_other_subject = bool(best.strange) and not best.key and contradicting == nearer
        if len(values) == 1 or is_other_subject:
            stated = max(contradicting, key=lambda mention: (len(mention.key), -len(mention.strange))).figure
            return ClaimDecision(False, f"expected {gold}, found {describe_figure(stated)}", claim.figure, stated)
        return ClaimDecision(
            None, FOR_ANOTHER.format(gold=gold, other=describe_figure(nearer[0].figure)), claim.figure
        )
    is_event_open = claim.figure.kind is FigureKind.TIME and bool(claim.subject - best.key)
    tied = [
        mention
        for mention in competing
        if (mention.key & claim.label == own if labelled else mention.key == best.key)
        and (is_event_open or not (mention.strange and not best.strange))
    ]
    if tied:
        return ClaimDecision(None, SEVERAL.format(gold=gold, other=describe_figure(tied[0].figure)), claim.figure)
    rival = _find_competing_time_or_date(claim, best, competing, reply)
    if rival is not None:
        return ClaimDecision(None, SEVERAL.format(gold=gold, other=describe_figure(rival.figure)), claim.figure)
    # Two times may belong to two events: "we close at 4:15, and the last visitors come in at 3:30".
    of_another_event = (
        claim.figure.kind is FigureKind.TIME
        and bool(claim.subject - best.key)
        and any(mention.clause.sentence == best.clause.sentence for mention in competing)
    )
    if not labelled and _is_for_another_sort_of_subject(best, competing, asked, reply):
        other = describe_figure(competing[0].figure)
        return ClaimDecision(None, SEVERAL.format(gold=gold, other=other), claim.figure)
    # "Children's tickets are ₹150, adults' ₹300": the question mentions neither children nor adults.
    is_contrast = any(find_opposite_pair(best.strange, mention.strange) for mention in competing)
    unsure = of_another_event or is_contrast or any(not mention.key < best.key for mention in competing)
    of_anything = not (best.key or is_update or not claim.subject or best.figure.kind in _UNMISTAKABLE)
    if not labelled and (
        (best.strange and unsure) or (of_anything and _is_about_something_else(best, asked, reply))
    ):
        word = ", ".join(sorted(best.strange)[:3])
        return ClaimDecision(None, STRANGE.format(gold=gold, word=word), claim.figure)
    if claim.label and not labelled and elsewhere:
        return ClaimDecision(None, UNLABELLED.format(gold=gold), claim.figure)
    reason = _explain_words_that_change_meaning(claim, best, asked, reply)
    if reason:
        return ClaimDecision(None, reason, claim.figure)
    return ClaimDecision(True, f"states {gold}", claim.figure, best.figure, strange=best.strange)


def _list_months_and_weekdays_between(passage: Passage, first: int = 0, after: int | None = None) -> set[str]:
    """Return the months and weekdays of a part of a text. A range contains all its months or weekdays."""
    tokens = passage.scan.reader.tokens[first:after]
    named: set[str] = set()
    for kind, table, count in (("month", MONTHS, 12), ("weekday", WEEKDAYS, 7)):
        places = [
            (at, value)
            for at, token in enumerate(tokens)
            if (value := table.get(token.key, table.get(token.key.removesuffix("s")))) is not None
            and not _is_lowercase_ambiguous_month(token)
        ]
        named.update(f"{kind} {value % count}" for _, value in places)
        for (low, start), (high, end) in pairwise(places):
            if any(token.key in _RANGE_WORDS for token in tokens[low + 1 : high][-_MAX_RANGE_GAP:]):
                named.update(f"{kind} {(start + step) % count}" for step in range((end - start) % count))
    return named


_RANGE_WORDS: Final = split_into_word_keys("to until till through – - bis à al a au")
_MAX_RANGE_GAP: Final = 5
"""A word such as "to" is searched for in this many tokens before a month or weekday: "to the end of August"."""


def _is_at_other_time(mention: Mention, asked: Asked, reply: Passage) -> bool:
    """Return whether a figure is for other months or weekdays than the question.

    For a question about July, this is the €4.50 in "In May it is €4.50, in July €6".
    """
    stated = _list_months_and_weekdays_between(reply, mention.clause.first, mention.clause.after)
    kinds = {value.split()[0] for value in stated}
    wanted = {value for value in _list_months_and_weekdays_between(asked.question) if value.split()[0] in kinds}
    return (
        bool(wanted and stated)
        and wanted.isdisjoint(stated)
        and not wanted.isdisjoint(_list_months_and_weekdays_between(reply))
    )


def _decide_for_other_time(
    claim: Claim, competing: Sequence[Mention], asked: Asked, reply: Passage
) -> ClaimDecision:
    """Decide a claim whose figure the reply states only for other months or weekdays than the question."""
    for mention in competing:
        if mention.likeness.is_contradicting_gold and _list_months_and_weekdays_between(
            asked.question
        ) & _list_months_and_weekdays_between(reply, mention.clause.first, mention.clause.after):
            other = describe_figure(mention.figure)
            return ClaimDecision(
                False, f"expected {claim.description}, found {other}", claim.figure, mention.figure
            )
    return ClaimDecision(None, OTHER_TIME.format(gold=claim.description), claim.figure)


def _find_exchanged_figure(
    claim: Claim, live: Sequence[Mention], mentions: Sequence[Mention], asked: Asked, leeway: Leeway
) -> Figure | None:
    """Return the figure that the reply states for the claim, if the reply swaps the figures of two claims.

    For a gold of "members €12, guests €16", this is €16 in "Members pay €16 and guests €12".
    """
    for other in asked.claims:
        own, theirs = claim.label - other.label, other.label - claim.label
        if other is claim or not theirs:
            continue
        is_theirs = all(_has_label(mention, theirs, own) for mention in live)
        for mention in mentions if is_theirs else ():
            is_exchanged = compare_figures(other.figure, mention.figure, leeway) is Likeness.SAME
            is_own = _has_label(mention, own, theirs) if own else not mention.clause.words & theirs
            if mention.is_current_statement and is_exchanged and is_own:
                return mention.figure
    return None


def _has_label(mention: Mention, label: Words, other_label: Words) -> bool:
    """Return whether the clause of a figure has words of a label, and no word of another label."""
    words = mention.clause.words | mention.clause.names
    return bool(words & label) and not words & other_label


def _is_about_other_part_of_gold(claim: Claim, best: Mention, asked: Asked) -> bool:
    """Return whether the words near a figure belong to another part of the gold and of the question.

    For a gold of "test in room 14, breakfast in the atrium", this is true for "breakfast: room 14".
    """
    tokens = asked.gold.scan.reader.tokens
    cuts = [
        -1,
        *(at for at, token in enumerate(tokens) if token.text in {",", ";"} or token.key == "and"),
        len(tokens),
    ]
    parts = [(low + 1, high) for low, high in pairwise(cuts)]
    terms = [collect_all_stems(asked.gold, *part) & asked.question_terms for part in parts]
    own = [words for part, words in zip(parts, terms, strict=True) if part[0] <= claim.figure.first < part[1]]
    others = frozenset[str]().union(*(words for words in terms if words not in own))
    counted = {STEMS[key] for key in claim.figure.low.counts.split()}  # the "room" of "room 14"
    own_words = frozenset[str]().union(*own) - others - counted
    stated = best.clause.words
    return bool(own_words) and not stated & own_words and bool(stated & others)


def _has_opposite_words(mention: Mention, asked: Asked, reply: Passage) -> bool:
    """Return whether the clause of a figure contains the opposite of a word of the question: "early" for "late"."""
    stems = collect_all_stems(reply, mention.clause.first, mention.clause.after)
    return find_opposite_pair(asked.question_terms, stems) is not None


def _list_weekdays(mention: Mention) -> Words:
    return frozenset(word for word in mention.clause.words if word.startswith("weekday"))


def _find_competing_time_or_date(
    claim: Claim, best: Mention, competing: Sequence[Mention], reply: Passage
) -> Mention | None:
    """Return another time or date of the reply that may be the answer, or ``None`` if there is none.

    For the gold "9 July", the reply "register until 9 July; the truck comes on 16 July" has the competing date 16
    July.
    """
    if claim.figure.kind in _MOMENTS:
        later = next((mention for mention in competing if _is_about_same_subject(mention, best, reply)), None)
        if later is not None:
            return later
    if claim.figure.kind is FigureKind.DATE:
        is_deadline = best.figure.bound is Bound.AT_MOST and claim.figure.bound is Bound.EXACT
        return competing[0] if is_deadline and competing else None
    if claim.figure.kind is not FigureKind.TIME or claim.figure.high is not None:
        return None
    rivals = (
        mention for mention in competing if mention.clause is best.clause and mention.likeness.is_contradicting_gold
    )
    return next(rivals, None)


def _is_for_another_sort_of_subject(
    best: Mention, competing: Sequence[Mention], asked: Asked, reply: Passage
) -> bool:
    """Return whether ``best`` and a competing figure are for different variants of the subject.

    An example of a variant is "an express pass", if the question is about a pass.
    """
    tokens = reply.scan.reader.tokens
    is_sort = any(
        STEMS[tokens[at].key] in best.key and STEMS[tokens[at - 1].key] in best.strange
        for at in range(best.clause.first + 1, min(best.figure.first, best.clause.after))
    )
    counts_sort = bool(best.figure.noun - asked.known_stems)  # "40 standing places and 25 seats"
    return any(
        mention.likeness.is_contradicting_gold
        and mention.clause.sentence == best.clause.sentence
        and ((is_sort and mention.strange) or (counts_sort and mention.figure.noun - asked.known_stems))
        for mention in competing
    )


def _is_about_same_subject(mention: Mention, best: Mention, reply: Passage) -> bool:
    """Return whether a later clause is still about the same subject: "order from 3 May; it arrives on 9 May"."""
    clause = mention.clause
    if clause.first <= best.clause.first or clause.sentence > best.clause.sentence + 1:
        return False
    tokens = reply.scan.reader.tokens[clause.first : min(mention.figure.first, clause.first + _SUBJECT_REACH)]
    return any(remove_unread_mark(normalise(token.text).text.lower()) in _PRONOUNS for token in tokens)


_SUBJECT_REACH: Final = 5
"""The subject of a clause is searched for in this number of tokens at its start."""
_UNMISTAKABLE: Final = frozenset({FigureKind.IDENTIFIER, FigureKind.UNLIMITED})


_PRONOUNS: Final = split_into_word_keys("it it's they this that that's es er sie das il elle c'est yeh ye यह ये")


def _is_about_something_else(mention: Mention, asked: Asked, reply: Passage) -> bool:
    """Return whether a figure may be about another subject than the question.

    In this case, several words near the figure are not in the question. Only words in the script of the question
    count.
    """
    if reply.scan.reader.token(mention.clause.first).key in _PRONOUNS:
        return False  # "It lasts 24 months" is about the subject of the question
    is_latin = all(word.isascii() for word in asked.question_terms)
    return sum(word.isascii() == is_latin for word in mention.strange) > 1 and mention.figure.low.date != ALWAYS


def _may_be_for_another_claim(claim: Claim, best: Mention, asked: Asked, reply: Passage) -> bool:
    """Return whether neither a label nor the order shows to which claim a figure of the reply belongs."""
    in_order = _has_gold_figures_in_order(asked, reply)
    if claim.label or _has_hyphenated_word(asked.gold):
        return not (claim.label and in_order)
    if _follows_label_of_another_claim(claim, best, asked, reply):
        return True
    figures = (other.figure for other in asked.claims)
    kinds = {figure.kind for figure in figures if figure.kind is not FigureKind.NUMBER or figure.noun}
    own_words = {word for word in claim.others - asked.question_terms if not word.startswith("#")}
    return len(kinds) <= 1 and not own_words and not in_order  # "2 to 3" written as "3 to 2"


def _has_hyphenated_word(gold: Passage) -> bool:
    """Return whether the gold has a hyphenated word.

    Such a gold is a problem: no rule distinguishes "in-ear" from "behind-the-ear".
    """
    return re.search(r"[a-z]-[a-z]", gold.scan.normalised.text.lower()) is not None


def _follows_label_of_another_claim(claim: Claim, best: Mention, asked: Asked, reply: Passage) -> bool:
    """Return whether the label of another claim precedes a figure.

    For a gold of 60 km a day, the reply "week: 60 km" has the label of another claim.
    """
    beside = {
        other.figure.first: collect_all_stems(asked.gold, clause.first, clause.after)
        for other in asked.claims
        if (clause := asked.gold.find_clause(other.figure)) is not None
    }
    own = beside.get(claim.figure.first, frozenset[str]())
    others = frozenset[str]().union(*(words for first, words in beside.items() if first != claim.figure.first))
    tokens, figures = (
        reply.scan.reader.tokens,
        {at for figure in reply.figures for at in (figure.first, figure.last)},
    )
    for at in range(best.figure.first - 1, max(-1, best.figure.first - _LABEL_REACH), -1):
        if at in figures or tokens[at].text in {".", ";", "!", "?"}:
            return False
        stem = STEMS[tokens[at].key]
        if stem in own ^ others:
            return stem in others
    return False


_LABEL_REACH: Final = 8
"""The label of a figure is searched for in this number of tokens before the figure."""


def _has_gold_figures_in_order(asked: Asked, reply: Passage) -> bool:
    """Return whether the reply has each figure of the gold exactly once and in the same order.

    An example is "12 and 16 euros".
    """
    wanted = [(claim.figure.kind, claim.figure.low.value) for claim in asked.claims]
    stated = [(figure.kind, figure.low.value) for figure in reply.figures]
    return [value for value in stated if value in wanted] == wanted


def _is_only_content_of_clause(mention: Mention) -> bool:
    return not frozenset(word for word in mention.clause.words if not word.startswith("#")) - mention.figure.per


def _is_next_clause(first: Mention, second: Mention, reply: Passage) -> bool:
    places = [reply.clauses.index(mention.clause) for mention in (first, second)]
    return places[1] == places[0] + 1 and first.clause.sentence == second.clause.sentence


def _begins_sentence_of_mention(other: Mention, best: Mention) -> bool:
    """Return whether ``other`` precedes ``best`` in a sentence, and only ``other`` has unknown words near it.

    For a question about men, this is the €24 in "It is €24 for women and €19 for men".
    """
    earlier = other.clause.sentence == best.clause.sentence and other.clause.first < best.clause.first
    return earlier and bool(other.strange) and not best.strange and bool(best.key)


def _prefer_mention_with_all_key_words(mentions: Sequence[Mention]) -> Sequence[Mention]:
    """Return the mention that has the key words of all mentions.

    If there is no such mention, return all mentions.
    """
    fullest = max(mentions, key=lambda mention: len(mention.key))
    return [fullest] if all(mention is fullest or mention.key < fullest.key for mention in mentions) else mentions


def _explain_words_that_change_meaning(claim: Claim, best: Mention, asked: Asked, reply: Passage) -> str:  # noqa: C901, PLR0912 - a row per turn
    """Return the reason why words near a correct figure may make it wrong, or an empty string if there is none."""
    gold = claim.description
    first, after = find_clause_part_about_figure(best.figure, best.clause, reply)
    tokens = reply.scan.reader.tokens
    for start, end, mark in reply.marks:
        inside = best.figure.first <= start <= best.figure.last
        if (
            mark is Mark.TURN
            and first <= start < after
            and not inside
            and not _is_part_of_bound(tokens, start, best.figure)
        ):
            word = " ".join(token.text for token in tokens[start:end])
            if not {token.key for token in tokens[start:end]} <= _collect_word_keys_of_case(asked):
                return TURNED.format(gold=gold, word=word)
    stems = collect_all_stems(reply, best.clause.first, best.clause.after)
    # If the question has both words ("Is it early or late?"), the word of the gold decides.
    opposite = find_opposite_pair(asked.known_stems, stems) or find_opposite_pair(
        collect_all_stems(asked.gold), stems
    )
    if opposite is None and asked.gold.scan.reader.token(claim.figure.first - 1).text == "+":
        opposite = find_opposite_pair({STEMS["increase"]}, stems)
    if opposite is not None and not best.figure.said_free:
        return OPPOSITE.format(gold=gold, known=opposite[0], word=opposite[1])
    if claim.figure.kind in _MOMENTS and _states_start_instead_of_end(asked, stems):
        return OPPOSITE.format(gold=gold, known="until", word="start")
    if claim.figure.kind is FigureKind.IDENTIFIER and (word := _find_different_code_end(claim, best, asked, reply)):
        return STRANGE.format(gold=gold, word=word)
    if claim.figure.kind in _MOMENTS and (shift := _SHIFT.search(reply.scan.normalised.text)):
        return TURNED.format(gold=gold, word=shift[0])
    tokens_before = tokens[best.clause.first : best.figure.first]
    if best.figure.bound is Bound.EXACT and any(token.key in _NEVER for token in tokens_before):
        return TURNED.format(gold=gold, word="never")
    if _is_interval_between_events(asked.gold, claim.figure) and not _is_interval_between_events(
        reply, best.figure, _OTHER_INTERVAL_WORDS
    ):
        return NOT_AN_INTERVAL.format(gold=gold)
    if best.figure.noun and not claim.figure.noun and _counts_other_things(best.figure, asked):
        return STRANGE.format(gold=gold, word=", ".join(sorted(best.figure.noun)))
    missing = claim.subject - best.key - list_period_stems(best.figure)
    if best.strange and missing:
        better = any(
            other.first != best.clause.first
            and not any(figure.kind is best.figure.kind for figure in other.figures)
            and not other.is_question
            and best.key < (other.words & claim.subject)
            for other in reply.clauses
        )
        if better:
            return BETTER.format(gold=gold)
        substitute = _find_substitute_for_missing_word(best, missing, asked, reply)
        if substitute:
            return STRANGE.format(gold=gold, word=substitute)
    return ""


_NEVER: Final = split_into_word_keys("never nie niemals jamais nunca kabhi कभी")
_INTERVAL_WORDS: Final = split_into_word_keys("every each per alle jede jeder jeden toutes tous cada har हर")
_OTHER_INTERVAL_WORDS: Final = _INTERVAL_WORDS | split_into_word_keys("a")


def _is_interval_between_events(passage: Passage, figure: Figure, words: Words = _INTERVAL_WORDS) -> bool:
    """Return whether a duration is the time between two events: "every 40 minutes"."""
    key = passage.scan.reader.token(figure.first - 1).key
    return figure.kind is FigureKind.DURATION and key in words


def _counts_other_things(figure: Figure, asked: Asked) -> bool:
    """Return whether the question asks how many of something, and the figure counts something else."""
    tokens = asked.question.scan.reader.tokens
    counted = {STEMS[tokens[at + 1].key] for at, token in enumerate(tokens[:-1]) if token.key in _HOW_MANY and at}
    return figure.kind is FigureKind.NUMBER and bool(counted) and not figure.noun & asked.known_stems


_HOW_MANY: Final = split_into_word_keys("many viele cuántos cuántas combien कितने कितनी kitne kitni")
_MOMENTS: Final = frozenset({FigureKind.DATE, FigureKind.TIME})
_UNTIL: Final = frozenset(STEMS[key] for key in split_into_word_keys("until till तक tak"))
_STARTS: Final = SIDES[STEMS["start"]] | SIDES[STEMS["शुरू"]]
_ENDS: Final = SIDES[STEMS["end"]] | SIDES[STEMS["खत्म"]] | SIDES[STEMS["close"]]


def _states_start_instead_of_end(asked: Asked, stems: Words) -> bool:
    """Return whether the question asks when something ends, and the clause says when it starts."""
    wanted = collect_all_stems(asked.question)
    return bool(wanted & _UNTIL and stems & _STARTS and not wanted & _STARTS and not stems & (_UNTIL | _ENDS))


def _find_different_code_end(claim: Claim, best: Mention, asked: Asked, reply: Passage) -> str:
    """Return the token after the digits of a code in the reply, if the gold has other capital letters there.

    If the reply has no token there, return "no" and the letters of the gold. If nothing differs, return an empty
    string.
    """
    end = asked.gold.scan.reader.token(claim.figure.last + 1)
    stated = reply.scan.reader.token(best.figure.last + 1)
    is_part = end.kind == WORD and end.text.isupper() and 1 < len(end.text) <= _MAX_CODE_END
    return (stated.text or f"no {end.text}") if is_part and stated.key != end.key else ""


_MAX_CODE_END: Final = 4
"""Maximum number of capital letters at the end of a code. More letters are a word."""
_SHIFT: Final = re.compile(
    r"\b(?:days?|hours?|weeks?|minutes?|tage?|stunden?|wochen?) (?:later|earlier|sooner|später|früher)\b",
    re.IGNORECASE,
)
"""A pattern for a time that is relative to another time: "a day later" in "the auction a day later"."""


def _collect_word_keys_of_case(asked: Asked) -> set[str]:
    return {token.key for passage in (asked.gold, asked.question) for token in passage.scan.reader.tokens}


def _is_part_of_bound(tokens: Sequence[Token], at: int, figure: Figure) -> bool:
    """Return whether a token belongs to the bound of a figure, such as "than" in "no more than 5"."""
    return tokens[at].key == "than" and at < figure.first <= at + 3 and figure.bound is not Bound.EXACT


def _find_substitute_for_missing_word(best: Mention, missing: Words, asked: Asked, reply: Passage) -> str:
    """Return the word that the reply uses instead of a missing word of the question, or an empty string."""
    question = asked.question.scan.reader.tokens
    heads = {
        STEMS[question[at + 1].key]
        for at in range(len(question) - 1)
        if STEMS[question[at].key] in missing
        and question[at + 1].kind == WORD
        and question[at + 1].key not in LIGHT
    }
    tokens = reply.scan.reader.tokens
    for at in range(best.clause.first + 1, best.clause.after):
        before = tokens[at - 1]
        if (
            STEMS[tokens[at].key] in heads
            and STEMS[before.key] in best.strange
            and not before.key.endswith("ly")
            and tokens[at - 2].text != "-"
        ):
            return tokens[at - 1].text
    return ""


MIN_SHARE: Final = 3
"""A figure with unknown words near it contradicts the gold only if enough known words are also near it.

At least one in `MIN_SHARE` of the words of the label and the subject must be among these known words.
"""


def _decide_by_other_figures(
    claim: Claim, different: Sequence[Mention], competing: Sequence[Mention], asked: Asked, *, replaced: bool
) -> ClaimDecision:
    """Decide a claim whose figure is not in the reply.

    The decision depends on the figure of the reply whose nearby words have most in common with the claim.
    """
    gold = claim.description
    best = max(
        different, key=lambda mention: (len(mention.key & claim.label), len(mention.key), -len(mention.strange))
    )
    nearest = [mention for mention in competing if mention.key >= best.key]
    values = {describe_figure(mention.figure) for mention in nearest}
    other = describe_figure(best.figure)
    near = [
        mention
        for mention in competing
        if not mention.likeness.is_contradicting_gold and not mention.key < best.key
    ]
    if near:
        return ClaimDecision(None, NEAR.format(gold=gold, other=describe_figure(near[0].figure)))
    wanted = claim.label | claim.subject
    loose = best.strange and len(best.key) * MIN_SHARE < len(wanted)
    is_ambiguous = bool(claim.label) and any(
        other.label & best.clause.words for other in asked.claims if other is not claim
    )
    # Three kinds of figures are about the subject, whatever words are near them: the number of the gold in another
    # unit, an identifier, and a new value that replaces the value of the gold.
    alone = best.likeness.has_number_with_other_meaning or best.figure.kind is FigureKind.IDENTIFIER or replaced
    if len(values) == 1 and (alone or not loose) and not is_ambiguous:
        return ClaimDecision(False, f"expected {gold}, found {other}", claim.figure, best.figure)
    return ClaimDecision(None, UNSURE.format(other=other), claim.figure)


_DENIAL_WORDS: Final = split_into_word_keys(
    "not no never nicht kein keine nie नहीं nahi nahin pas sin cannot can't doesn't don't isn't aren't"
)
_WORKING: Final = re.compile(
    r"\b(working|business|banking)[\s-]days?\b|\b(werk|arbeits)tage?n?\b|\bjours ouvr|\bdías (?:hábil|laborab)",
    re.IGNORECASE,
)
_CONDITIONS: Final = split_into_word_keys("if unless only except without provided when once अगर agar jab bina")


def _find_reason_to_leave_ungraded(  # noqa: C901, PLR0912 - one row for each reason that leaves a gold's other words open
    asked: Asked, reply: Passage, decisions: Sequence[ClaimDecision], domain: Domain
) -> str:
    """Return why the case stays ungraded although all figures agree: because of words, days or conditions.

    Return an empty string if there is no such reason.
    """
    gold_text, text = asked.gold.scan.normalised.text, reply.scan.normalised.text
    known_text = f"{gold_text}\n{asked.question.scan.normalised.text}"
    stated_days, gold_days = find_day_ranges(text), find_day_ranges(gold_text)
    if stated_days and gold_days and stated_days.isdisjoint(gold_days):
        return OTHER_DAYS
    if _is_about_other_weekday(asked, reply, decisions):
        return OTHER_DAYS
    days = any(decision.gold is not None and decision.gold.low.original_unit == "day" for decision in decisions)
    if days:
        sentence = _find_text_of_stated_clause(decisions, reply)
        if bool(_WORKING.search(known_text)) != bool(_WORKING.search(sentence)):
            return WORKING_DAYS
    sentences = {
        clause.sentence
        for decision in decisions
        if decision.stated is not None and (clause := reply.find_clause(decision.stated)) is not None
    }
    near = [clause for clause in reply.clauses if clause.sentence in sentences or clause.is_cell] or reply.clauses
    words = frozenset[str]().union(
        *(clause.words | clause.context | collect_all_stems(reply, clause.first, clause.after) for clause in near)
    )
    others = frozenset[str]().union(*(claim.others for claim in asked.claims))
    inside = {
        at
        for figure in asked.gold.figures
        for at in range(figure.first - (0 if figure.bound is Bound.EXACT else _BOUND_REACH), figure.last + 1)
    }
    outside = {STEMS[token.key] for at, token in enumerate(asked.gold.scan.reader.tokens) if at not in inside}
    turns = [stem for stem in outside - collect_all_stems(asked.question) if stem in OPPOSITES]
    if any(not SIDES[stem] & words for stem in turns if stem not in _GENERAL_TURNS):
        return SAYS_MORE
    items = split_items(gold_text)
    if len(items) >= MIN_LIST and (_has_absent_item(items, reply) or _adds_extra_cost(known_text, text)):
        return SAYS_MORE
    if _WAIVES.search(text) and not _WAIVES.search(known_text) and len(gold_text.split()) > _MAX_BARE_WORDS:
        return SAYS_MORE
    missing = others - words - asked.question_terms - frozenset(STEMS[word] for word in domain.common)
    if any(
        decision.gold and _has_missing_name_before(decision.gold, asked.gold, missing) for decision in decisions
    ):
        return SAYS_MORE  # "Lunova 3" for "Ardena 3"
    keys = {token.key for token in asked.gold.scan.reader.tokens}
    if (
        keys & _BUT
        and keys & _DENIAL_WORDS
        and not _DENIAL_WORDS & {token.key for token in reply.scan.reader.tokens}
    ):
        return SAYS_MORE  # "yes, but not in the first 3 months"
    conditions = keys & _CONDITIONS
    if "only" in conditions and not words & _ONLY:
        return SAYS_MORE
    if conditions & {"if", "unless", "provided", "wenn"} and any(decision.strange for decision in decisions):
        return SAYS_MORE
    if missing and (conditions or any(word.startswith("weekday") for word in missing)):
        return SAYS_MORE
    replaced = {
        preposition for stem, preposition in _map_words_to_preposition(asked.gold).items() if stem in missing
    }
    strange = frozenset[str]().union(*(decision.strange for decision in decisions))
    if len(missing) > 1 or any(
        preposition in replaced for stem, preposition in _map_words_to_preposition(reply).items() if stem in strange
    ):
        return SAYS_MORE
    return ""


def _has_missing_name_before(figure: Figure, gold: Passage, missing: Words) -> bool:
    """Return whether a name before a number of the gold is not in the reply: the "Ardena" in "Ardena 3"."""
    before = gold.scan.reader.token(figure.first - 1)
    return (
        figure.kind is FigureKind.NUMBER
        and not figure.noun
        and before.kind == WORD
        and STEMS[before.key] in missing
    )


_EXTRA_COST: Final = re.compile(
    r"\b(?:extra (?:cost|charge|fee)|at extra|additional (?:cost|charge|fee)|surcharge|separately"
    r"|gegen aufpreis|zuschlag|extra (?:bezahl|berechn)|en supplément|en sus|aparte|alag se)\b|अलग से",
    re.IGNORECASE,
)


def _adds_extra_cost(known_text: str, text: str) -> bool:
    """Return whether the reply says that something costs extra, but neither the question nor the gold says so."""
    return bool(_EXTRA_COST.search(text)) and not _EXTRA_COST.search(known_text)


def _list_all_weekdays(passage: Passage) -> Words:
    return frozenset(word for word in _collect_words(passage) if word.startswith("weekday"))


def _is_about_other_weekday(asked: Asked, reply: Passage, decisions: Sequence[ClaimDecision]) -> bool:
    """Return whether the clause of a stated figure names weekdays, but none of the weekdays of the gold."""
    expected = _list_all_weekdays(asked.gold)
    if not expected:
        return False
    for decision in decisions:
        clause = reply.find_clause(decision.stated) if decision.stated is not None else None
        named = {word for word in clause.words if word.startswith("weekday")} if clause is not None else set[str]()
        if named and not named & expected:
            return True
    return False


def _collect_words(passage: Passage) -> Words:
    return frozenset[str]().union(*(clause.words for clause in passage.clauses))


MIN_LIST: Final = 3
"""A list in a gold with a figure has at least this many items. "Yes, after 24 months" is not a list."""


def _has_absent_item(items: Sequence[tuple[str, ...]], reply: Passage) -> bool:
    """Return whether the reply lacks an item of the list in the gold: "case" in "2 batteries, charger, case"."""
    stems = {to_comparable_word(token)[:4] for token in reply.scan.reader.tokens}
    return any(
        all(word.isalpha() for word in item) and not any(word[:4] in stems for word in item) for item in items
    )


_BUT: Final = split_into_word_keys("but except aber lekin par लेकिन पर sauf pero")
_GENERAL_TURNS: Final = split_into_word_keys(
    "from till until with least most maximum minimum max min over new after"
)
"""Words that are not compared with their opposites, because other rules compare them."""


_BOUND_REACH: Final = 4
"""Maximum number of words between a bound such as "no more than" and its figure."""
_ONLY: Final = frozenset(STEMS[word] for word in ("only", "just", "solely", "exclusively", "sirf", "केवल", "सिर्फ"))
_PREPOSITIONS: Final = frozenset({"of", "after", "before", "from", "for", "in", "on", "at", "to", "by"})


def _map_words_to_preposition(passage: Passage) -> dict[str, str]:
    """Return the preposition before each word, keyed by the stem of the word.

    For "of the booking", the preposition of "booking" is "of".
    """
    prepositions: dict[str, str] = {}
    preposition = ""
    for token in passage.scan.reader.tokens:
        if token.key in _PREPOSITIONS:
            preposition = token.key
        elif token.key not in {"the", "a", "an", "your", "our"}:
            if preposition and token.kind == WORD:
                prepositions[STEMS[token.key]] = preposition
            preposition = ""
    return prepositions


def _find_text_of_stated_clause(decisions: Sequence[ClaimDecision], reply: Passage) -> str:
    text = reply.scan.normalised.text
    for decision in decisions:
        clause = reply.find_clause(decision.stated) if decision.stated is not None else None
        if clause is not None:
            tokens = reply.scan.reader.tokens
            return text[tokens[clause.first].start : tokens[clause.after - 1].end]
    return text


# --- names, phrases, lists --------------------------------------------------------------------------------------

MAX_PHRASE_TERMS: Final = 8
"""Maximum number of words of a phrase. A longer gold is a sentence and is not compared word by word."""
MAX_NAME_TERMS: Final = 5
"""A gold with at most this many words may be a name. A reply may state a longer gold in other words."""


def decide_gold_without_figures(case: GoldCase, reply: Passage, locale: Locale) -> ClaimDecision:
    """Decide a gold without figures: whether the reply states its name, short phrase or list."""
    question = read_case_passage(case.question, locale)
    asked = extract_content_stems_and_numbers(
        question.scan.reader.tokens, question.figures
    ) | format_figures_as_words(question.figures)
    asked_terms = {to_comparable_word(token) for token in question.scan.reader.tokens}
    golds = (case.gold, *case.alternatives)
    accepted = frozenset[str]().union(
        *(extract_content_stems_and_numbers(read_case_passage(text, locale).scan.reader.tokens) for text in golds)
    )
    decisions = [_decide_phrase(text, reply, question, asked, asked_terms, accepted) for text in golds]
    short = [decision for decision in decisions if decision.reason != SENTENCE] or decisions
    return next((decision for decision in short if decision.passed), None) or next(
        (decision for decision in short if decision.passed is None), short[0]
    )


def _decide_phrase(  # noqa: C901, PLR0912, PLR0917 - what a phrase is decided by, one row for each reason
    text: str, reply: Passage, question: Passage, asked: Words, asked_terms: set[str], accepted: Words
) -> ClaimDecision:
    keys = extract_phrase_keys(text)
    if not keys or len(keys) > MAX_PHRASE_TERMS:
        return ClaimDecision(None, SENTENCE)
    if asked_terms.issuperset(keys):
        return ClaimDecision(
            None, "the gold answer has only words of the question, so the reply may only repeat the question"
        )
    places = find_phrase_with_status(reply, keys, asked, question, accepted)
    stands = any(place.status is PhraseStatus.LIVE and not _is_across_list_items(reply, place) for place in places)
    items = [] if stands else split_items(text)
    if items:
        decision = _decide_list(items, reply, question, asked, accepted)
        if decision is not None:
            return decision
    live = next((place for place in places if place.status is PhraseStatus.LIVE), None)
    if live is not None and (opposite := _find_opposite_beside(live, reply, question, text)):
        expected, word = opposite
        return ClaimDecision(None, OPPOSITE.format(gold="the gold answer", known=expected, word=word), turned=True)
    if live is not None and _is_under_other_label(live, reply, asked):
        return ClaimDecision(None, "the reply contains the gold answer, but under another label", turned=True)
    if live is not None and all(place.status is not PhraseStatus.TAKEN_BACK for place in places):
        return ClaimDecision(
            True,
            "the reply contains the gold answer",
            span=_find_original_span_of_tokens(reply, live.first, live.after),
        )
    if places and all(place.status is PhraseStatus.DENIED for place in places) and not _asks_for_absence(question):
        return ClaimDecision(False, "the reply denies the gold answer")
    if places and is_proper_name(text):
        other = find_competing_name(reply, places, asked, accepted)
        if other:
            return ClaimDecision(False, f"expected “{text}”, found “{other}”")
    if places:
        return ClaimDecision(None, ONLY_AS.format(gold="the gold answer", status=places[0].status), turned=True)
    reply_words = {to_comparable_word(token) for token in reply.scan.reader.tokens}
    stems = {word[:4] for word in reply_words}
    telling = [word for word in keys if word not in asked_terms] or list(keys)
    if any(word in reply_words or (len(word) > 3 and word[:4] in stems) for word in telling):  # noqa: PLR2004 - shorter words have no stem
        return ClaimDecision(None, "the reply contains words of the gold answer, but not the whole phrase")
    is_name = (
        len(keys) <= MAX_NAME_TERMS
        and is_proper_name(text)
        and not _may_state_gold_days_in_another_form(keys, reply)
    )
    if not is_name or not has_new_name_or_number(reply, question):
        return ClaimDecision(None, STATEMENT)
    return ClaimDecision(
        False,
        "the reply contains other names or numbers, but no word of the gold answer",
        kind=FailureKind.MISSING_FACT,
    )


def _find_opposite_beside(place: Phrase, reply: Passage, question: Passage, gold: str) -> tuple[str, str] | None:
    """Return a word of the question or gold, and its opposite in the clause of the phrase.

    For example, the word is "closed" and its opposite is "open". Return ``None`` if there is no such pair.
    """
    clause = next((part for part in reply.clauses if part.first <= place.first < part.after), None)
    if clause is None:
        return None
    expected = collect_all_stems(question) | {STEMS[key] for key in extract_phrase_keys(gold)}
    return find_opposite_pair(expected, collect_all_stems(reply, clause.first, clause.after))


_LABEL: Final = re.compile(r"^[^\n:–—]{1,60}(?::|[ ][–—][ ])", re.MULTILINE)


def _is_under_other_label(place: Phrase, reply: Passage, asked: Words) -> bool:
    """Return whether another line of the reply fits the question better than the line of the phrase.

    Lines begin with a label such as "dryer:" or "**Ashby** –". The phrase may follow a label or be part of it.
    """
    tokens, text = reply.scan.reader.tokens, reply.scan.normalised.text
    start = tokens[place.first].start
    labels = [*_LABEL.finditer(text)]
    own, others = -1, [0]
    for label in labels:
        is_label = label.start() <= start < label.end() and len(labels) > 1
        end = text.find("\n", label.end())
        after = label.end() if not is_label and start >= label.end() else len(text) if end < 0 else end
        stems = {STEMS[token.key] for token in tokens if label.start() <= token.start < after}
        if is_label or (label.end() <= start and "\n" not in text[label.end() : start]):
            own = len(stems & asked)
        else:
            others.append(len(stems & asked))
    return -1 < own < max(others)


def _may_state_gold_days_in_another_form(keys: Sequence[str], reply: Passage) -> bool:
    """Return whether a reply may state the days or months of the gold in another form.

    The form is a range without the gold's closed day ("open from Monday to Saturday"), or an abbreviation ("Thu",
    "Feb–Apr").
    """
    stated = {token.key for token in reply.scan.reader.tokens}
    has_day = any(WEEKDAYS.get(key, WEEKDAYS.get(key.removesuffix("s"))) is not None for key in keys)
    if has_day and (find_day_ranges(reply.scan.normalised.text) or not stated.isdisjoint(WEEKDAYS)):
        return True
    return any(key in MONTHS for key in keys) and not stated.isdisjoint(MONTHS)


def _asks_for_absence(question: Passage) -> bool:
    """Return whether a question contains a denial: "Which cream is without perfume?"."""
    return any(token.key in _ABSENCES for token in question.scan.reader.tokens)


_ABSENCES: Final = split_into_word_keys("without no not doesn't isn't don't aren't")


def _is_across_list_items(reply: Passage, place: Phrase) -> bool:
    """Return whether a phrase extends over several lines of the reply.

    Its words then belong to several items of a list.
    """
    start, end = (reply.scan.reader.tokens[at] for at in (place.first, place.after - 1))
    return "\n" in reply.scan.normalised.text[start.start : end.end]


def _decide_list(  # noqa: C901 - what a list is decided by, one row for each reason
    items: Sequence[tuple[str, ...]], reply: Passage, question: Passage, asked: Words, accepted: Words
) -> ClaimDecision | None:
    """Decide whether the reply states a list. Return ``None`` if the reply contains no item of the list.

    The list passes if all items are stated, no item is denied or added, and the order is right if the question asks
    for an order.
    """
    item_places = [find_phrase_with_status(reply, item, asked, question, accepted) for item in items]
    for item, places in zip(items, item_places, strict=True):
        if places and all(place.status is PhraseStatus.DENIED for place in places):
            return ClaimDecision(False, f"the reply denies “{' '.join(item)}”")
    if not any(item_places):
        return None
    added = _find_added_item(item_places, reply, asked)
    if added:
        return ClaimDecision(False, f"the reply adds “{added}” to the items of the gold answer")
    if not all(any(place.status in _STANDS for place in places) for places in item_places):
        for item, places in zip(items, item_places, strict=True):
            excluded = bool(places) and all(place.status in _EXCLUDED for place in places)
            if excluded and any(place.status is PhraseStatus.LIVE for other in item_places for place in other):
                return ClaimDecision(False, f"the reply excludes “{' '.join(item)}”")
        return ClaimDecision(None, "the reply may lack items of the gold answer", turned=True)
    firsts = [next(place.first for place in places if place.status in _STANDS) for places in item_places]
    if is_sequence_question(question) and firsts != sorted(firsts):
        if _SEQUENCE.search(reply.scan.normalised.text):
            return ClaimDecision(None, "the reply describes the order of the items in words", turned=True)
        return ClaimDecision(False, "the reply lists the items in a different order")
    tokens = reply.scan.reader.tokens
    low, high = min(firsts), max(next(p.after for p in places if p.status in _STANDS) for places in item_places)
    if any(
        token.key in {"or", "oder", "ou", "या", "ya", "to", "till", "through", "bis"} for token in tokens[low:high]
    ):
        return ClaimDecision(None, "the reply lists the items as a choice or a range")
    inside = {at for places in item_places for place in places for at in range(place.first, place.after)}
    sentences = {
        clause.sentence for clause in reply.clauses for first in firsts if clause.first <= first < clause.after
    }
    bullets = {
        clause.sentence
        for clause in reply.clauses
        if any(
            token.kind == SIGN and token.text not in _STOPS
            for token in tokens[max(clause.first - 1, 0) : clause.first + 1]
        )
    }
    if bullets & sentences:
        sentences |= bullets
    words = frozenset[str]().union(
        *(
            extract_content_stems_and_numbers(
                [tokens[at] for at in range(clause.first, clause.after) if at not in inside]
            )
            for clause in reply.clauses
            if clause.sentence in sentences
        )
    )
    strange = words - asked
    if strange:
        return ClaimDecision(
            None,
            (
                "the reply contains all items, but also words that may be additional items: "
                f"{', '.join(sorted(strange)[:3])}"
            ),
        )
    return ClaimDecision(
        True,
        "the reply contains all items of the gold answer",
        span=_find_original_span_of_tokens(reply, low, high),
    )


def _find_added_item(item_places: Sequence[Sequence[Phrase]], reply: Passage, asked: Words) -> str:
    """Return an item that the reply adds to the items of the gold in the same enumeration, or an empty string.

    For a gold of "S and M", this is "L" in "It comes in S, M and L".
    """
    tokens = reply.scan.reader.tokens
    listed = _STANDS | {PhraseStatus.SEVERAL}
    stated = [place for places in item_places for place in places[:1] if place.status in listed]
    if len(stated) < len(item_places):
        return ""
    last = max(stated, key=lambda place: place.after)
    clause = reply.find_clause_at(last.first)
    if clause is None or any(tokens[at].text == "\n" for at in range(last.first, last.after)):
        return ""
    at = last.after
    if at < len(tokens) and tokens[at].text == ",":
        at += 1
    if (
        at >= len(tokens)
        or tokens[at].key not in _LIST_ENDS
        or (at == last.after and len(stated) > 1 and _is_joined(stated, tokens))
    ):
        return ""
    end = next(
        (
            place
            for place in range(at + 1, min(len(tokens), at + 1 + _MAX_ADDED))
            if tokens[place].text in _ITEM_ENDS
        ),
        0,
    )
    words = [token for token in tokens[at + 1 : end] if token.kind == WORD]
    content = extract_content_stems_and_numbers(words) - asked
    is_item = (
        bool(content)
        and _GENERAL_WORDS.isdisjoint(token.key for token in words)
        and not any(token.key in _VERBS_OF_SENTENCES or token.key.endswith("ing") for token in words)
    )
    return " ".join(token.text.removesuffix("\0") for token in words) if is_item else ""


def _is_joined(stated: Sequence[Phrase], tokens: Sequence[Token]) -> bool:
    """Return whether "and" joins two items of the gold. A further "and" then begins a new part."""
    return any(place.first and tokens[place.first - 1].key in _LIST_ENDS for place in stated)


_LIST_ENDS: Final = split_into_word_keys("and und et y e और aur")
_MAX_ADDED: Final = 6
"""Maximum number of tokens of an added item, including the punctuation mark after it."""
_ITEM_ENDS: Final = frozenset(".;!।")
_GENERAL_WORDS: Final = split_into_word_keys("more much lot lots fun etc others everything")
"""Words that name no item: "and much more", "and a lot of fun"."""
_VERBS_OF_SENTENCES: Final = split_into_word_keys(
    "is are was were be has have had can could may must will would should do does did you we i they it he she there"
    " ist sind hat haben kann können sie wir est sont avez vous nous es son tiene hay usted"
)


_SEQUENCE: Final = re.compile(
    r"\b(?:before|after(?!wards)|last|finally|first of all|vor(?:her)?|davor|zuletzt|nach(?!einander)|avant|après"
    r"|dernier|antes|después|último|pehle|baad|aakhir)\b|पहले|बाद|आख़?िर",
    re.IGNORECASE,
)
"""Words that change the order of a list, such as "before". "Then" and "next" do not change the order."""
_STOPS: Final = frozenset(".,;:!?…()[]\"'“”‘’«»")
"""Punctuation marks that are not the bullet of a list item."""
_EXCLUDED: Final = frozenset({PhraseStatus.DENIED, PhraseStatus.EXCLUDED})
"""The statuses of an item that the reply excludes from a list: "no map", "the map isn't included"."""
_STANDS: Final = frozenset({PhraseStatus.LIVE, PhraseStatus.OUTDONE})
"""The statuses of a phrase that is stated as an item of a list."""


def _find_original_span_of_tokens(reply: Passage, first: int, after: int) -> tuple[int, int]:
    tokens = reply.scan.reader.tokens
    return reply.scan.normalised.find_original_span(tokens[first].start, tokens[after - 1].end)


# --- reporting ------------------------------------------------------------------------------------------------


def _build_evidence(decision: ClaimDecision, reply: Passage, exchange: Exchange) -> tuple[Span, ...]:
    if decision.stated is None:
        return ()
    start, end = reply.scan.normalised.find_original_span(decision.stated.start, decision.stated.end)
    return (Span(where=exchange.graded_channel, start=start, end=end, label=describe_figure(decision.stated)),)
