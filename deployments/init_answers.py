"""The four answers that ``lookout init`` needs: what each accepts, and what it becomes.

An answer that is none is refused with what would be accepted. Secrets are refused without being repeated.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError

from monitors.config_words import USER
from monitors.errors import ConfigError
from monitors.judge.families import family_named, known_families
from monitors.records.base import Record
from monitors.records.targets import Environment, Target

UNKNOWN: Final = "unknown"
NOWHERE: Final = "none"
LONGEST_NAME: Final = 60
PLAIN_NAME: Final = "bot"
"""For an address of which no name can be made."""
_SPACE_PAGE: Final = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/spaces/([^/?#]+/[^/?#]+)")
_CHANNEL_ID: Final = re.compile(r"[CG][A-Z0-9]{8,}")
_CHANNEL_NAME: Final = re.compile(r"#?([^\s#.,;:<>@&'\"!?/\\A-Z]{1,80})")
"""Slack's own rule: no capitals, spaces, or punctuation but - and _; letters of every script."""
_SECRET: Final = re.compile(r"hooks\.slack\.com|^xox[a-z]-|^xapp-|^hf_|^sk-")


class Answers(Record):
    """What was answered. ``target`` holds the first three; without a ``channel`` nobody is told by Slack."""

    target: Target
    channel: str | None = None


class Question(NamedTuple):
    """One question. ``default`` is what an empty answer means; without one it must be answered."""

    flag: str
    words: str
    accepted: str
    check: Callable[[str], object]
    default: str | None = None


def target_of(answer: str) -> Target:
    """The page or Space that an answer names, with a name of its own. Raises `ConfigError`."""
    _refuse_secret(answer, "the address opens the page without one; what signs in is LOOKOUT_API_TOKEN or HF_TOKEN")
    page = _SPACE_PAGE.match(answer)
    written = page.group(1) if page else answer
    if not written.startswith(("http://", "https://")):
        return _space(written)
    if USER.search(written):
        raise ConfigError("an address without user and password is needed: this file is shown to people")
    try:
        parts = urlsplit(written)
        return Target(name=_name(parts), url=written)
    except (ValidationError, ValueError):
        raise ConfigError(f"{written!r} is no address that can be opened") from None


def _space(answer: str) -> Target:
    owner, _, name = answer.partition("/")
    if "." in owner or owner.split(":")[0] == "localhost":
        raise ConfigError(f"{answer!r} looks like an address: write it with https:// or http:// in front")
    try:
        return Target(name=_plain(name), space=answer)
    except ValidationError:
        raise ConfigError(f"{answer!r} is neither an address with https:// in front nor a Space") from None


def _name(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _plain(host.removeprefix("www.").removesuffix(".hf.space")) if host != "localhost" else PLAIN_NAME
    return PLAIN_NAME


def _plain(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:LONGEST_NAME].strip("-") or PLAIN_NAME


def environment_of(answer: str) -> Environment:
    """``staging`` or ``production``. Raises `ConfigError`."""
    try:
        return Environment(answer.lower())
    except ValueError:
        raise ConfigError(f"{answer!r} is neither staging nor production") from None


def family_of(answer: str) -> str | None:
    """A family, or a model's own name that tells it; ``None`` for an unknown one. Raises `ConfigError`."""
    if answer.lower() == UNKNOWN:
        return None
    _refuse_secret(answer, "a key stands in the environment and never in lookout.toml")
    if not family_named(answer):
        raise ConfigError(f"{answer!r} names no family that is known: {', '.join(known_families())}")
    return answer


def channel_of(answer: str) -> str | None:
    """A channel's id, or its name with ``#``; ``None`` for nowhere. Raises `ConfigError`."""
    if answer.lower() == NOWHERE:
        return None
    _refuse_secret(answer, "put it into SLACK_WEBHOOK_URL or SLACK_BOT_TOKEN, and give a channel, or none")
    if _CHANNEL_ID.fullmatch(answer):
        return answer
    name = _CHANNEL_NAME.fullmatch(answer)
    if name is None:
        raise ConfigError(
            f"{answer!r} is no channel: names are in lower case, have no spaces, 80 characters at most"
        )
    return f"#{name.group(1)}"


def _refuse_secret(answer: str, instead: str) -> None:
    if not answer.isprintable():
        raise ConfigError("that holds a character that nobody can see")
    if _SECRET.search(answer):
        raise ConfigError(f"that is a secret: {instead}")


TARGET: Final = Question(
    "--target",
    "What is to be watched?",
    "the address of a chat page, or a Hugging Face Space as owner/name",
    target_of,
)
ENVIRONMENT: Final = Question(
    "--environment",
    "Where does it stand?",
    "staging or production; a CI run never asks production anything",
    environment_of,
    Environment.STAGING.value,
)
FAMILY: Final = Question(
    "--model-family",
    "Which model answers there?",
    "its family (claude, gpt, gemini, llama, mistral, qwen, …), its name, or unknown; a judge must be of another",
    family_of,
    UNKNOWN,
)
CHANNEL: Final = Question(
    "--slack-channel",
    "Where do alerts go?",
    "a Slack channel (#alerts, or its id C0123456789), or none: then they are printed and stored",
    channel_of,
    NOWHERE,
)
QUESTIONS: Final = (TARGET, ENVIRONMENT, FAMILY, CHANNEL)
