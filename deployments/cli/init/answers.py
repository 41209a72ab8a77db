"""Ask for, check and parse the five answers that ``lookout init`` needs.

An answer that is not accepted is refused with what would be; then the question is asked again. Secrets are refused
without being repeated.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError

from monitors.domains.pack import DEFAULT_DOMAINS, list_packs
from monitors.errors import ConfigError
from monitors.judge.families import list_families, resolve_family
from monitors.problems import URL_CREDENTIALS
from monitors.records.base import Record
from monitors.records.targets import Environment, Target

UNKNOWN: Final = "unknown"
NOWHERE: Final = "none"
WEBHOOK: Final = "webhook"
MAX_NAME_CHARACTERS: Final = 60
DEFAULT_NAME: Final = "bot"
"""For an address that gives no name."""
_SPACE_PAGE: Final = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/spaces/([^/?#]+/[^/?#]+)")
_CHANNEL_ID: Final = re.compile(r"[CG][A-Z0-9]{8,}")
_CHANNEL_NAME: Final = re.compile(r"#?([^\s#.,;:<>@&'\"!?/\\A-Z]{1,80})")
"""Slack's own rule: no capitals, spaces, or punctuation but - and _; letters of every script."""
_SECRET: Final = re.compile(r"hooks\.slack\.com|^xox[a-z]-|^xapp-|^hf_|^sk-")


class Answers(Record):
    """The answers. ``target`` holds the first three; without a ``channel`` a webhook's is taken, if any."""

    target: Target
    domains: tuple[str, ...] = DEFAULT_DOMAINS
    channel: str | None = None
    by_webhook: bool = False


class InitQuestion(NamedTuple):
    """One question. An empty answer means ``default``; without one it must be answered."""

    flag: str
    text: str
    accepted: str
    check: Callable[[str], object]
    default: str | None = None


def parse_target(answer: str) -> Target:
    """Parse the page or Space that an answer names, and derive its name. Raises `ConfigError`."""
    _refuse_secret(answer, "the page must open without it; put tokens in LOOKOUT_API_TOKEN or HF_TOKEN")
    page = _SPACE_PAGE.match(answer)
    written = page.group(1) if page else answer
    if not written.startswith(("http://", "https://")):
        return _parse_space(written)
    if URL_CREDENTIALS.search(written):
        raise ConfigError("write the address without user and password, because people can see this file")
    try:
        parts = urlsplit(written)
        return Target(name=_name_from_address(parts), url=written)
    except (ValidationError, ValueError):
        raise ConfigError(f"{written!r} is not a valid address") from None


def _parse_space(answer: str) -> Target:
    owner, _, name = answer.partition("/")
    if "." in owner or owner.split(":")[0] == "localhost":
        raise ConfigError(f"{answer!r} looks like an address without a scheme; write https:// or http:// before it")
    try:
        return Target(name=_simplify_name(name), space=answer)
    except ValidationError:
        raise ConfigError(f"{answer!r} is neither an address with https:// nor a Space (owner/name)") from None


def _name_from_address(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return (
            _simplify_name(host.removeprefix("www.").removesuffix(".hf.space"))
            if host != "localhost"
            else DEFAULT_NAME
        )
    return DEFAULT_NAME


def _simplify_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_NAME_CHARACTERS].strip("-") or DEFAULT_NAME


def parse_environment(answer: str) -> Environment:
    """Parse ``staging`` or ``production``. Raises `ConfigError`."""
    try:
        return Environment(answer.lower())
    except ValueError:
        raise ConfigError(f"{answer!r} is neither staging nor production") from None


def parse_family(answer: str) -> str | None:
    """Parse a model family or a model's name that shows it; ``None`` for unknown. Raises `ConfigError`."""
    if answer.lower() == UNKNOWN:
        return None
    _refuse_secret(answer, "write a key in the environment, never in lookout.toml")
    if not resolve_family(answer):
        raise ConfigError(f"{answer!r} is not a known family or model; accepted: {', '.join(list_families())}")
    return answer


def parse_domains(answer: str) -> tuple[str, ...]:
    """Parse the names of domain packs, with commas between them; empty for none. Raises `ConfigError`."""
    if answer.lower() == NOWHERE:
        return ()
    packs = tuple(dict.fromkeys(name.strip() for name in answer.split(",")))
    if unknown := [name for name in packs if name not in list_packs()]:
        raise ConfigError(f"{unknown[0]!r} is not a domain pack: {', '.join(list_packs())}")
    return packs


def parse_channel(answer: str) -> str | None:
    """Parse a channel's id or name (with ``#``); ``None`` for no channel or a webhook's. Raises `ConfigError`."""
    if answer.lower() in {NOWHERE, WEBHOOK}:
        return None
    _refuse_secret(
        answer,
        'set it in the environment as SLACK_WEBHOOK_URL or SLACK_BOT_TOKEN, and enter a channel or "none" here',
    )
    if _CHANNEL_ID.fullmatch(answer):
        return answer
    name = _CHANNEL_NAME.fullmatch(answer)
    if name is None:
        raise ConfigError(
            f"{answer!r} is not a valid channel name: use lower case, no spaces, at most 80 characters"
        )
    return f"#{name.group(1)}"


def _refuse_secret(answer: str, instead: str) -> None:
    if not answer.isprintable():
        raise ConfigError("your answer contains an invisible character")
    if _SECRET.search(answer):
        raise ConfigError(f"your answer looks like a secret: {instead}")


TARGET: Final = InitQuestion(
    "--target",
    "Which application do you want to monitor?",
    "the address of a chat page or of a chat API, or a Hugging Face Space as owner/name",
    parse_target,
)
ENVIRONMENT: Final = InitQuestion(
    "--environment",
    "Which environment is it?",
    "staging or production; a CI run never asks a production target",
    parse_environment,
    Environment.STAGING.value,
)
FAMILY: Final = InitQuestion(
    "--model-family",
    "Which model answers?",
    (
        "its family (claude, gpt, gemini, llama, mistral, qwen, …), its name, or unknown; a judge must be of "
        "another family"
    ),
    parse_family,
    UNKNOWN,
)
DOMAINS: Final = InitQuestion(
    "--domains",
    "What does it talk about?",
    "general (any shop or service) or health_insurance, several with a comma between them, or none; graders read "
    "an answer's figures in the words of this trade",
    parse_domains,
    ",".join(DEFAULT_DOMAINS),
)
CHANNEL: Final = InitQuestion(
    "--slack-channel",
    "Where do you want to receive alerts?",
    "a Slack channel (#alerts, or its id C0123456789), webhook (put its address into SLACK_WEBHOOK_URL), or none: "
    "alerts are then only printed and stored",
    parse_channel,
    NOWHERE,
)
QUESTIONS: Final = (TARGET, ENVIRONMENT, FAMILY, DOMAINS, CHANNEL)


OPENING: Final = "Enter takes what is in brackets, Ctrl-C leaves everything as it is."
_COUNTED: Final = ("", "One question.", "Two questions.", "Three questions.", "Four questions.", "Five questions.")


class Prompter:
    """Asks by ``say`` and reads by ``line``, which gives one line with its end, and nothing when no more will come.

    Where answers are typed (``is_typed``) the terminal shows their line ends already. ``given`` are answers of the
    command line, by their flags. With ``take_defaults`` it asks nothing.
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
        """Ask for all answers. Raises `ConfigError` for a wrong flag before asking, or when input ends."""
        for question in QUESTIONS:
            self._check_given(question)
        open_questions = [question for question in QUESTIONS if question.flag not in self._given]
        if open_questions and not self._take_defaults:
            self._say(f"{_COUNTED[len(open_questions)]} {OPENING}\n")
        numbers = {question.flag: number for number, question in enumerate(open_questions, 1)}
        answers = {question.flag: self._answer(question, numbers.get(question.flag, 0)) for question in QUESTIONS}
        updates = {
            "environment": parse_environment(answers[ENVIRONMENT.flag]),
            "model_family": parse_family(answers[FAMILY.flag]),
        }
        target = parse_target(answers[TARGET.flag]).model_copy(update=updates)
        channel = answers[CHANNEL.flag]
        return Answers(
            target=target,
            domains=parse_domains(answers[DOMAINS.flag]),
            channel=parse_channel(channel),
            by_webhook=channel.lower() == WEBHOOK,
        )

    def _check_given(self, question: InitQuestion) -> None:
        if (answer := self._given.get(question.flag)) is not None:
            try:
                question.check(answer.strip())
            except ConfigError as error:
                raise ConfigError(f"{question.flag}: {error}; accepted: {question.accepted}") from None
        elif self._take_defaults and question.default is None:
            raise ConfigError(f"{question.flag} is needed with --yes: {question.accepted}")

    def _answer(self, question: InitQuestion, number: int) -> str:
        if (given := self._given.get(question.flag)) is not None:
            return given.strip()
        if self._take_defaults and question.default is not None:
            return question.default
        default = f" [{question.default}]" if question.default else ""
        self._say(f"{number}. {question.text}{default}\n   {question.accepted}\n")
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

    def _read(self, question: InitQuestion) -> str:
        """Read the next answer; an empty one means the default, or is asked again."""
        while line := self._line():
            if not self._is_typed:
                self._say("\n")
            if answer := line.strip() or question.default:
                return answer
            self._say(f"   an answer is needed: {question.accepted}\n   > ")
        raise ConfigError(
            f"{question.text!r} has no answer, so nothing was written. Give the answer as {question.flag}, and "
            "--yes to use defaults for the other questions"
        )
