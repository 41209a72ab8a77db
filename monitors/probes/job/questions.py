"""Track the questions of an agent. Each question must be answered only once.

The app may repeat a question that was already answered, in a later state or in an event stream that starts again.
The same text counts as a new question only if the agent continued its work in between.
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
    """The questions of one job.

    - ``open_question`` is the question that has no answer yet. It is an empty string if the app does not show the
      words of the question, and ``None`` if the agent does not wait for an answer.
    - ``earlier_questions`` contains the questions that an earlier process answered.
    - ``delivered`` is True if the app has accepted the last answer.
    """

    def __init__(
        self, settings: JobSettings, earlier_questions: Sequence[AgentQuestion] = (), *, delivered: bool = True
    ) -> None:
        self.open_question: str | None = None
        self.delivered = delivered
        self.stumbles = 0
        self._settings = settings
        self._answered = list(earlier_questions)
        self._repeatable_questions = [question.question for question in earlier_questions]
        self._last_answered = earlier_questions[-1].question if earlier_questions and delivered else None
        self._repeat_count = 0

    @property
    def answered(self) -> tuple[AgentQuestion, ...]:
        """Return all questions that were answered, with their answers, in order."""
        return tuple(self._answered)

    def update_from(self, document: Any, event: str | None = None) -> None:
        """Update the open question from ``document``.

        The document is a state of the job, or the data of the event named ``event``.
        """
        text = self.extract_agent_question(document, event)
        if text is None:
            self.open_question = self._last_answered = None
        elif event is not None and text in self._repeatable_questions:
            self._repeatable_questions.remove(text)
        else:
            if text == self._last_answered:
                self._repeat_count += 1
            if text != self._last_answered or self._repeat_count > self._settings.stumbles:  # it could continue
                self.open_question, self._last_answered = text, None

    def extract_agent_question(self, document: Any, event: str | None = None) -> str | None:
        """Return the question in a document, or ``None`` if there is no question.

        The text is empty if the document only says that the agent waits.
        """
        settings = self._settings
        waiting_flags = collect_items(document, settings.awaiting)
        if any(value is False for value in waiting_flags):
            return None
        texts = collect_items(document, settings.question) if settings.question else []
        questions = [value.strip() for value in texts if isinstance(value, str) and value.strip()]
        states = [value for value in (*collect_items(document, settings.state), event) if isinstance(value, str)]
        asking_states = {name.casefold() for name in settings.asking}
        is_waiting = any(value is True for value in waiting_flags) or any(
            state.casefold() in asking_states for state in states
        )
        if questions:
            return replace_surrogates(questions[-1])[:MAX_QUESTION_CHARACTERS]
        return "" if is_waiting else None

    def choose_and_store_answer(self, text: str, scripted: str | None, at_ms: float) -> AgentQuestion:
        """Choose the answer to the agent's question, store it, and return the question with the answer.

        ``text`` is the question. The answer is ``scripted``, or the default answer if ``scripted`` is ``None``.

        If the app may not have accepted the last answer, the last answer is returned again. Raises
        `PageNotUnderstood` if no address for answers is configured, and `AnswerIncomplete` if the agent asks too
        many questions.
        """
        settings = self._settings
        if settings.answer_url is None:
            raise PageNotUnderstood(
                f"the agent asked {text or 'a question'!r} and waits for an answer. Set probe.job.answer_url to "
                'the address for answers, such as "{start}/{job}/answer"'
            )
        if not self.delivered and self._answered:
            return self._answered[-1]
        if len(self._answered) >= settings.most_questions:
            raise AnswerIncomplete(
                f"the agent asked more than {plural(settings.most_questions, 'question')} "
                f"(probe.job.most_questions). The last question is: {text or 'not shown'!r}"
            )
        answered_question = AgentQuestion(
            question=text, answer=scripted or settings.default_answer, scripted=scripted is not None, at_ms=at_ms
        )
        self._answered.append(answered_question)
        self.delivered = False
        return answered_question

    def mark_answer_as_delivered(self) -> None:
        """Mark the last answer as accepted by the app."""
        self.open_question, self._last_answered = None, self._answered[-1].question
        self.delivered, self.stumbles, self._repeat_count = True, 0, 0
