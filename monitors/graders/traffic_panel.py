"""The graders of a reply that a real user got: nobody wrote down what is right, so these ask what needs no gold."""

from __future__ import annotations

from typing import Final

from monitors.graders.base import Grader
from monitors.graders.citations import CitationGrader
from monitors.graders.disclosure import DisclosureGrader
from monitors.graders.error_leak import ErrorLeakGrader
from monitors.graders.language import LanguageGrader
from monitors.graders.settings import GraderSettings
from monitors.records.traffic import Turn

FEWEST_WORDS: Final = 3
"""Of a question whose language is told: of fewer nobody can say it."""


class TrafficPanel:
    """Which graders look at a reply. Small talk needs no source, and a single word has no language."""

    def __init__(self, settings: GraderSettings) -> None:
        self._always: tuple[Grader, ...] = (
            DisclosureGrader(settings.account_patterns, settings.public_contacts),
            ErrorLeakGrader(),
        )
        self._citations = CitationGrader(settings.citation_patterns, required=settings.citation_required)
        self._language = LanguageGrader()

    def for_turn(self, turn: Turn) -> tuple[Grader, ...]:
        """The graders of this reply, safety first. A reply that states a figure must say where that stands."""
        states = any(character.isdigit() for character in turn.reply_text) and not turn.is_question
        cites: tuple[Grader, ...] = (self._citations,) if states or turn.citations else ()
        speaks: tuple[Grader, ...] = (self._language,) if len(turn.user_text.split()) >= FEWEST_WORDS else ()
        return (*self._always, *cites, *speaks)
