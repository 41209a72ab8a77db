"""Functions that ask for, check and parse the five answers that ``lookout init`` needs.

If an answer is not valid, the accepted values are printed and the question is repeated. An answer that looks like a
secret is never printed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError

from monitors.domains.pack import DEFAULT_DOMAINS, list_shipped_packs
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
"""The name of a target if no name can be derived from its address."""
_SPACE_PAGE: Final = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/spaces/([^/?#]+/[^/?#]+)")
_CHANNEL_ID: Final = re.compile(r"[CG][A-Z0-9]{8,}")
_CHANNEL_NAME: Final = re.compile(r"#?([^\s#.,;:<>@&'\"!?/\\A-Z]{1,80})")
"""Slack's rule for channel names: no capitals, no spaces, and no punctuation except - and _."""
_SECRET: Final = re.compile(r"hooks\.slack\.com|^xox[a-z]-|^xapp-|^hf_|^sk-")


class Answers(Record):
    """The five answers.

    ``target`` contains the first three answers. ``by_webhook`` is true if the user chose a Slack webhook.
    ``channel`` is then ``None``, because Slack sets the channel of a webhook.
    """

    target: Target
    domains: tuple[str, ...] = DEFAULT_DOMAINS
    channel: str | None = None
    by_webhook: bool = False


class InitQuestion(NamedTuple):
    """One question. An empty answer means ``default``. A question without a default must be answered."""

    flag: str
    text: str
    accepted: str
    check: Callable[[str], object]
    default: str | None = None


def parse_target(answer: str) -> Target:
    """Parse the address of a page, an API or a Space, and derive the target's name. Raises `ConfigError`."""
    _refuse_unsafe_answer(answer, "put tokens into LOOKOUT_API_TOKEN or HF_TOKEN instead")
    page = _SPACE_PAGE.match(answer)
    written = page.group(1) if page else answer
    if not written.startswith(("http://", "https://")):
        return _parse_space_target(written)
    if URL_CREDENTIALS.search(written):
        raise ConfigError(
            "write the address without user name and password, because other people can read lookout.toml"
        )
    try:
        parts = urlsplit(written)
        return Target(name=_derive_name_from_host(parts), url=written)
    except (ValidationError, ValueError):
        raise ConfigError(f"{written!r} is not a valid address") from None


def _parse_space_target(answer: str) -> Target:
    owner, _, name = answer.partition("/")
    if "." in owner or owner.split(":")[0] == "localhost":
        raise ConfigError(f"{answer!r} looks like an address. Write https:// or http:// before the address")
    try:
        return Target(name=_convert_to_target_name(name), space=answer)
    except ValidationError:
        raise ConfigError(f"{answer!r} is neither an address with https:// nor a Space (owner/name)") from None


def _derive_name_from_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return (
            _convert_to_target_name(host.removeprefix("www.").removesuffix(".hf.space"))
            if host != "localhost"
            else DEFAULT_NAME
        )
    return DEFAULT_NAME


def _convert_to_target_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_NAME_CHARACTERS].strip("-") or DEFAULT_NAME


def parse_target_environment(answer: str) -> Environment:
    """Parse ``staging`` or ``production``. Raises `ConfigError`."""
    try:
        return Environment(answer.lower())
    except ValueError:
        raise ConfigError(f"{answer!r} is neither staging nor production") from None


def parse_family_or_model(answer: str) -> str | None:
    """Parse the family or the name of a model. Returns ``None`` for ``unknown``. Raises `ConfigError`."""
    if answer.lower() == UNKNOWN:
        return None
    _refuse_unsafe_answer(answer, "put keys into environment variables, never into lookout.toml")
    if not resolve_family(answer):
        raise ConfigError(
            f"{answer!r} is not a known family or model. Known families: {', '.join(list_families())}"
        )
    return answer


def parse_domain_packs(answer: str) -> tuple[str, ...]:
    """Parse a list of domain packs. ``none`` gives an empty list. Raises `ConfigError`."""
    if answer.lower() == NOWHERE:
        return ()
    packs = tuple(dict.fromkeys(name.strip() for name in answer.split(",")))
    if unknown := [name for name in packs if name not in list_shipped_packs()]:
        raise ConfigError(f"{unknown[0]!r} is not a domain pack. Accepted: {', '.join(list_shipped_packs())}")
    return packs


def parse_slack_channel(answer: str) -> str | None:
    """Parse the id or the name of a Slack channel. Returns ``None`` for no channel or a webhook.

    Raises `ConfigError`.
    """
    if answer.lower() in {NOWHERE, WEBHOOK}:
        return None
    _refuse_unsafe_answer(
        answer,
        "put the secret into the environment variable SLACK_WEBHOOK_URL or SLACK_BOT_TOKEN, and enter a channel or "
        '"none" here',
    )
    if _CHANNEL_ID.fullmatch(answer):
        return answer
    name = _CHANNEL_NAME.fullmatch(answer)
    if name is None:
        raise ConfigError(
            f"{answer!r} is not a valid channel name. Use at most 80 lower-case letters, digits, - and _"
        )
    return f"#{name.group(1)}"


def _refuse_unsafe_answer(answer: str, advice: str) -> None:
    """Raise `ConfigError` if the answer contains an invisible character or looks like a secret.

    ``advice`` states where to put a secret.
    """
    if not answer.isprintable():
        raise ConfigError("your answer contains an invisible character. Type the answer again")
    if _SECRET.search(answer):
        raise ConfigError(f"your answer looks like a secret: {advice}")


TARGET: Final = InitQuestion(
    "--target",
    "Which application do you want to monitor?",
    "the address of a chat page or of a chat API, or a Hugging Face Space as owner/name",
    parse_target,
)
ENVIRONMENT: Final = InitQuestion(
    "--environment",
    "In which environment does the application run?",
    "staging or production. A CI run asks a production target only with --allow-production",
    parse_target_environment,
    Environment.STAGING.value,
)
FAMILY: Final = InitQuestion(
    "--model-family",
    "Which model does the application use?",
    (
        "the family (claude, gpt, gemini, llama, mistral, qwen, …) or the name of the model, or unknown. A judge "
        "must be of another family"
    ),
    parse_family_or_model,
    UNKNOWN,
)
DOMAINS: Final = InitQuestion(
    "--domains",
    "What is the subject of the application?",
    "general (any shop or service), health_insurance, both separated by a comma, or none. The graders use the "
    "words of this subject to read amounts and durations",
    parse_domain_packs,
    ",".join(DEFAULT_DOMAINS),
)
CHANNEL: Final = InitQuestion(
    "--slack-channel",
    "Where do you want to receive alerts?",
    "a Slack channel (#alerts, or its id C0123456789), webhook (put its address into SLACK_WEBHOOK_URL), or none. "
    "With none, Lookout only prints and stores alerts",
    parse_slack_channel,
    NOWHERE,
)
QUESTIONS: Final = (TARGET, ENVIRONMENT, FAMILY, DOMAINS, CHANNEL)


OPENING: Final = "Press Enter to accept the answer in brackets. Press Ctrl-C to stop without writing anything."
_COUNTED: Final = ("", "One question.", "Two questions.", "Three questions.", "Four questions.", "Five questions.")


class Prompter:
    """Asks the questions that have no answer on the command line.

    ``given`` maps option names to answers. If ``take_defaults`` is true, no question is asked. ``say`` prints a
    text. ``line`` reads a line, and returns "" at the end of the input. ``is_typed`` is true if a person types the
    answers; the terminal then already shows the line breaks.
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

    def ask_all(self) -> Answers:
        """Ask every question that has no given answer, and return all answers.

        Raises `ConfigError` for an invalid option, or if the input has ended.
        """
        for question in QUESTIONS:
            self._require_valid_option_answer(question)
        open_questions = [question for question in QUESTIONS if question.flag not in self._given]
        if open_questions and not self._take_defaults:
            self._say(f"{_COUNTED[len(open_questions)]} {OPENING}\n")
        numbers = {question.flag: number for number, question in enumerate(open_questions, 1)}
        answers = {
            question.flag: self._ask_question(question, numbers.get(question.flag, 0)) for question in QUESTIONS
        }
        channel = answers[CHANNEL.flag]
        return Answers(
            target=parse_target(answers[TARGET.flag]).with_environment_and_family(
                parse_target_environment(answers[ENVIRONMENT.flag]), parse_family_or_model(answers[FAMILY.flag])
            ),
            domains=parse_domain_packs(answers[DOMAINS.flag]),
            channel=parse_slack_channel(channel),
            by_webhook=channel.lower() == WEBHOOK,
        )

    def _require_valid_option_answer(self, question: InitQuestion) -> None:
        if (answer := self._given.get(question.flag)) is not None:
            try:
                question.check(answer.strip())
            except ConfigError as error:
                raise ConfigError(f"{question.flag}: {error}. Accepted: {question.accepted}") from None
        elif self._take_defaults and question.default is None:
            raise ConfigError(f"--yes needs {question.flag}: {question.accepted}")

    def _ask_question(self, question: InitQuestion, number: int) -> str:
        if (given := self._given.get(question.flag)) is not None:
            return given.strip()
        if self._take_defaults and question.default is not None:
            return question.default
        default = f" [{question.default}]" if question.default else ""
        self._say(f"{number}. {question.text}{default}\n   {question.accepted}\n")
        while True:
            self._say("   > ")
            answer = self._read_answer(question)
            try:
                question.check(answer)
            except ConfigError as error:
                self._say(f"   {error}\n   Accepted: {question.accepted}\n")
            else:
                self._say("\n")
                return answer

    def _read_answer(self, question: InitQuestion) -> str:
        """Read the next answer. An empty line gives the default; without a default, the question is asked again."""
        while line := self._line():
            if not self._is_typed:
                self._say("\n")
            if answer := line.strip() or question.default:
                return answer
            self._say(f"   Please give an answer: {question.accepted}\n   > ")
        raise ConfigError(
            f"nothing was written, because the question {question.text!r} has no answer. Give the answer with "
            f"{question.flag}, and use --yes to accept the defaults of the other questions"
        )
