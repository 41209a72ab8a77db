"""Grade replies to real users with the graders that need no gold, because real questions have no expected answer.

The rules are used in two ways: as graders of sampled conversations, and for a fast census of all conversations of a
nightly run. The graders also fail each reply that the census reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from monitors.facts.citations import find_citations, is_unrequested_source_list
from monitors.facts.error_leaks import find_error_leak
from monitors.facts.language import identify_language
from monitors.facts.refusals.detect import classify_refusal
from monitors.graders.base import Grader, GraderSettings, abstain_as_not_needed
from monitors.graders.conduct import CitationGrader, ErrorLeakGrader, LanguageGrader, has_enough_words_for_language
from monitors.graders.disclosure import DisclosureGrader
from monitors.graders.triage import build_triage_graders
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect
from monitors.records.nightly import CensusKind
from monitors.records.traffic import Conversation, Turn

MIN_TOKENS: Final = 3
"""The language of a reply is graded only if the question has at least this many words."""
NOTHING_CAME: Final = "nothing came back"


class CensusFinding(NamedTuple):
    """The first finding of one kind in a conversation, with its turn and its position in the reply."""

    turn: int
    start: int
    detail: str


class CensusOfOne(NamedTuple):
    """The result of the census of one conversation.

    ``graded`` has the kinds of failures that could be graded, and ``found`` the first finding of each kind.
    """

    graded: frozenset[CensusKind]
    found: dict[CensusKind, CensusFinding]


class UnseenCitations:
    """A grader that always abstains on citations. It is used for a log without the sources that users saw."""

    name = "citations"
    version = "1"
    aspect = Aspect.CITATION

    def grade(self, case: GoldCase, exchange: Exchange) -> Abstained:
        """Return an abstention."""
        del case, exchange
        return abstain_as_not_needed(self, "not checked, because the log does not contain the sources of answers")


class TrafficPanel:
    """Select the graders that apply to a reply.

    Small talk needs no source. If a question has fewer than three words, the language of its reply is not graded.
    """

    def __init__(self, settings: GraderSettings) -> None:
        self.settings = settings
        self._disclosure = DisclosureGrader(settings.account_patterns, settings.public_contacts)
        self._always: tuple[Grader, ...] = (self._disclosure, ErrorLeakGrader())
        self._citations = CitationGrader(settings.citation_patterns, required=settings.citation_required)
        self._language = LanguageGrader()
        self._reports = build_triage_graders(settings.triage)

    def select_graders(self, turn: Turn) -> tuple[Grader, ...]:
        """Return the graders that apply to this reply, the safety graders first.

        A reply that states a figure must cite a source.
        """
        if turn.is_report:
            return (*self._always, *self._reports)
        states = any(character.isdigit() for character in turn.reply_text) and not turn.is_question
        cites: tuple[Grader, ...] = (self._citations,) if states or turn.citations else ()
        speaks: tuple[Grader, ...] = (self._language,) if _has_enough_user_words(turn) else ()
        return (*self._always, *cites, *speaks)

    def shows_citations(self, conversation: Conversation) -> bool:
        """Return whether the log of a conversation has a field for citations, or a reply names a source."""
        return any(
            turn.lists_citations
            or turn.citations
            or find_citations(turn.reply_text, self.settings.citation_patterns)
            for turn in conversation.turns
        )

    def find_first_failure_of_each_kind(self, conversation: Conversation) -> CensusOfOne:
        """Return the first finding of each kind in a conversation, and the kinds that could be graded."""
        gradable, findings = {CensusKind.NO_ANSWER}, dict[CensusKind, CensusFinding]()
        turns = conversation.turns
        for number, turn in enumerate(turns):
            if not has_answer(turn):
                continue
            gradable |= {CensusKind.DISCLOSURE, CensusKind.ERROR_LEAK}
            for kind, start, detail in self._find_failures_and_add_graded_kinds(turns, number, gradable):
                findings.setdefault(kind, CensusFinding(number, start, detail))
        if not has_answer(turns[-1]):
            findings[CensusKind.NO_ANSWER] = CensusFinding(len(turns) - 1, 0, NOTHING_CAME)
        return CensusOfOne(frozenset(gradable), findings)

    def _find_failures_and_add_graded_kinds(
        self, turns: Sequence[Turn], number: int, graded: set[CensusKind]
    ) -> list[tuple[CensusKind, int, str]]:
        turn, findings = turns[number], list[tuple[CensusKind, int, str]]()
        reply, asked = turn.reply_text, turn.user_text
        leaks = self._disclosure.find_leaks_not_from_user(
            reply, [earlier_turn.user_text for earlier_turn in turns[: number + 1]]
        )
        if leaks:
            findings.append((CensusKind.DISCLOSURE, leaks[0].start, self._disclosure.format_leak_counts(leaks)))
        error = find_error_leak(reply, asked)
        if error is not None:
            findings.append((CensusKind.ERROR_LEAK, error.start, str(error.kind)))
        # The language and refusals of an error or a report are not graded: both quote other texts.
        if error is not None or turn.is_report:
            return findings
        refusal, spoken = classify_refusal(reply), identify_language(reply)
        if refusal.refused or spoken.is_english_hindi_or_hinglish:
            graded.add(CensusKind.REFUSAL)
        if refusal.refused:
            findings.append((CensusKind.REFUSAL, refusal.start, "the reply declines"))
        if _has_enough_user_words(turn) and has_enough_words_for_language(reply):
            graded.add(CensusKind.WRONG_LANGUAGE)
            wanted = identify_language(asked)
            is_known = Language.OTHER not in {spoken, wanted}
            if spoken is not wanted and (
                is_known or spoken.is_english_hindi_or_hinglish or wanted.is_english_hindi_or_hinglish
            ):
                findings.append(
                    (CensusKind.WRONG_LANGUAGE, 0, f"the reply is in {spoken}, but the question is in {wanted}")
                )
        return findings


def has_answer(turn: Turn) -> bool:
    """Return whether a reply has text besides the list of sources that the application adds to its answers."""
    return bool(turn.reply_text.strip()) and not is_unrequested_source_list(turn.reply_text, turn.user_text)


def _has_enough_user_words(turn: Turn) -> bool:
    return len(turn.user_text.split()) >= MIN_TOKENS
