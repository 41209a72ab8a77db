"""Track the agent's questions from its states and events; answer each question once.

An app may still report that the agent waits after it got the answer. An event stream may restart and repeat its
questions. Neither is a new question. The same text is a new question only if the agent continued in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitors.errors import AnswerIncomplete, PageNotUnderstood
from monitors.json_path import collect_items
from monitors.plural import plural
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.settings import JobSettings
from monitors.records.exchanges import AgentQuestion

MAX_QUESTION_CHARACTERS = 2000


class AgentQuestions:
    """The questions of one job. ``open`` waits for an answer; it is empty if the app does not show its text.

    ``noted`` are questions that an earlier process answered. ``delivered``: the last answer surely arrived.
    """

    def __init__(
        self, settings: JobSettings, noted: Sequence[AgentQuestion] = (), *, delivered: bool = True
    ) -> None:
        self.open_question: str | None = None
        self.delivered = delivered
        self.stumbles = 0
        self._settings = settings
        self._answered = list(noted)
        self._repeated = [question.question for question in noted]
        self._last = noted[-1].question if noted and delivered else None
        self._seen_again = 0

    @property
    def answered(self) -> tuple[AgentQuestion, ...]:
        """All questions with their answers, in order."""
        return tuple(self._answered)

    def update_from(self, document: Any, event: str | None = None) -> None:
        """Update from a state, or from an event with its name."""
        text = self.extract_question(document, event)
        if text is None:
            self.open_question = self._last = None
        elif event is not None and text in self._repeated:
            self._repeated.remove(text)
        elif text != self._last or self._is_asked_again():
            self.open_question, self._last = text, None

    def _is_asked_again(self) -> bool:
        """Whether the app still waits although it had time to continue."""
        self._seen_again += 1
        return self._seen_again > self._settings.stumbles

    def extract_question(self, document: Any, event: str | None = None) -> str | None:
        """Return the question in a document: ``None`` if absent, empty if the app only shows that it waits."""
        settings = self._settings
        waiting_flags = collect_items(document, settings.awaiting)
        if any(value is False for value in waiting_flags):
            return None
        texts = collect_items(document, settings.question) if settings.question else []
        questions = [value.strip() for value in texts if isinstance(value, str) and value.strip()]
        states = [value for value in (*collect_items(document, settings.state), event) if isinstance(value, str)]
        is_waiting = any(value is True for value in waiting_flags) or any(map(self._is_question_state, states))
        if questions:
            return replace_surrogates(questions[-1])[:MAX_QUESTION_CHARACTERS]
        return "" if is_waiting else None

    def _is_question_state(self, state: str) -> bool:
        return state.casefold() in {name.casefold() for name in self._settings.asking}

    def choose_answer(self, text: str, scripted: str | None, at_ms: float) -> AgentQuestion:
        """Return the question with its answer: an earlier one that may not have arrived, else the scripted one.

        Raises `PageNotUnderstood` if no address for answers is configured, `AnswerIncomplete` if the agent asks
        too many questions.
        """
        settings = self._settings
        if settings.answer_url is None:
            raise PageNotUnderstood(
                f"the agent stopped to ask {text or 'a question'!r} and waits for an answer. Set the address for "
                'the answer: probe.job.answer_url, such as "{start}/{job}/answer"'
            )
        if not self.delivered and self._answered:
            return self._answered[-1]
        if len(self._answered) >= settings.most_questions:
            raise AnswerIncomplete(
                f"the agent asked more than {plural(settings.most_questions, 'question')} "
                f"(probe.job.most_questions), the last: {text or 'not shown'!r}"
            )
        answered_question = AgentQuestion(
            question=text, answer=scripted or settings.default_answer, scripted=scripted is not None, at_ms=at_ms
        )
        self._answered.append(answered_question)
        self.delivered = False
        return answered_question

    def confirm_delivery(self) -> None:
        """Note that the app accepted the answer."""
        self.open_question, self._last = None, self._answered[-1].question
        self.delivered, self.stumbles, self._seen_again = True, 0, 0
