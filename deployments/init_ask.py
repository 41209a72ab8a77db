"""Asks the four questions, and asks again where an answer is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from deployments.init_answers import (
    CHANNEL,
    ENVIRONMENT,
    FAMILY,
    QUESTIONS,
    TARGET,
    Answers,
    Question,
    channel_of,
    environment_of,
    family_of,
    target_of,
)
from monitors.errors import ConfigError

OPENING: Final = "Four questions. Enter takes what is in brackets, Ctrl-C leaves everything as it is."


class Asker:
    """Asks by ``say`` and reads by ``line``, which gives one line with its end, and nothing when no more will come.

    Where the answers are typed (``is_typed``) their line ends are seen already.

    ``given`` are answers of the command line, by their flags. With ``take_defaults`` nothing is asked.
    """

    def __init__(
        self,
        given: Mapping[str, str],
        *,
        take_defaults: bool,
        say: Callable[[str], None],
        line: Callable[[], str],
        is_typed: bool,
    ) -> None:
        self._given = given
        self._take_defaults = take_defaults
        self._say = say
        self._line = line
        self._is_typed = is_typed

    def answers(self) -> Answers:
        """All four. Raises `ConfigError` for a wrong flag before anything is asked, and when answers run out."""
        for question in QUESTIONS:
            self._check_given(question)
        open_ones = [one for one in QUESTIONS if one.flag not in self._given]
        if open_ones and not self._take_defaults:
            self._say(f"{OPENING}\n")
        told = {one.flag: self._answer(one, QUESTIONS.index(one) + 1) for one in QUESTIONS}
        about = {
            "environment": environment_of(told[ENVIRONMENT.flag]),
            "model_family": family_of(told[FAMILY.flag]),
        }
        target = target_of(told[TARGET.flag]).model_copy(update=about)
        return Answers(target=target, channel=channel_of(told[CHANNEL.flag]))

    def _check_given(self, question: Question) -> None:
        if (answer := self._given.get(question.flag)) is not None:
            try:
                question.check(answer.strip())
            except ConfigError as error:
                raise ConfigError(f"{question.flag}: {error}; accepted: {question.accepted}") from None
        elif self._take_defaults and question.default is None:
            raise ConfigError(f"{question.flag} is needed with --yes: {question.accepted}")

    def _answer(self, question: Question, number: int) -> str:
        if (given := self._given.get(question.flag)) is not None:
            return given.strip()
        if self._take_defaults and question.default is not None:
            return question.default
        default = f" [{question.default}]" if question.default else ""
        self._say(f"{number}. {question.words}{default}\n   {question.accepted}\n")
        while True:
            self._say("   > ")
            answer = self._read(question)
            try:
                question.check(answer)
            except ConfigError as error:
                self._say(f"   {error}\n   accepted: {question.accepted}\n")
            else:
                self._say("\n")
                return answer

    def _read(self, question: Question) -> str:
        """The next answer; an empty one is the default, or asked again."""
        while line := self._line():
            if not self._is_typed:
                self._say("\n")
            if answer := line.strip() or question.default:
                return answer
            self._say(f"   an answer is needed: {question.accepted}\n   > ")
        raise ConfigError(
            f"there is no answer to {question.words!r}, so nothing was written; give it as {question.flag}, "
            "and --yes for the defaults of the rest"
        )
