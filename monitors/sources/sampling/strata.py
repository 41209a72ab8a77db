"""Which stratum a conversation belongs to, by what is known without a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from monitors.facts.disclosures.candidates import Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.error_leaks import find_error_leak
from monitors.facts.language import identify
from monitors.records.base import Language
from monitors.records.traffic import Conversation, Thumb
from monitors.sources.sampling.settings import RiskSign, SamplingMode, SamplingSettings

ALL: Final = "all"
"""The one stratum of a simple sample."""
REST: Final = "rest"
"""Conversations that show no sign."""


class Stratum(NamedTuple):
    """A stratum's name and the sign its conversations share, ``None`` for those without."""

    name: str
    sign: RiskSign | None


class TargetFacts(NamedTuple):
    """What a target says of itself: the settings, its account numbers' patterns, contacts that anyone may have."""

    settings: SamplingSettings
    account_patterns: Sequence[str] = ()
    public_contacts: Sequence[str] = ()


def strata(settings: SamplingSettings) -> tuple[Stratum, ...]:
    """All strata there can be, the gravest first, those without a sign last."""
    if settings.mode is SamplingMode.SIMPLE:
        return (Stratum(ALL, None),)
    signed = [stratum for sign in settings.signs for stratum in _of_sign(sign, settings)]
    return (*signed, Stratum(REST, None))


def stratum_of(conversation: Conversation, target: TargetFacts) -> str:
    """The name of the first stratum, in the order of ``settings.signs``, whose sign a conversation shows."""
    if target.settings.mode is SamplingMode.SIMPLE:
        return ALL
    for sign in target.settings.signs:
        if _SHOWS[sign](conversation, target):
            return _language_stratum(_language(conversation)) if sign is RiskSign.LANGUAGE else str(sign)
    return REST


def _of_sign(sign: RiskSign, settings: SamplingSettings) -> Sequence[Stratum]:
    if sign is not RiskSign.LANGUAGE:
        return (Stratum(str(sign), sign),)
    return [Stratum(_language_stratum(each), sign) for each in Language if each is not settings.main_language]


def _language_stratum(language: Language) -> str:
    return f"{RiskSign.LANGUAGE}_{language}"


def _discloses(conversation: Conversation, target: TargetFacts) -> bool:
    """Personal data or a secret that stands in a reply and in nothing that the user wrote before it."""
    for number, turn in enumerate(conversation.turns):
        found = find_disclosures(turn.reply_text, account_patterns=target.account_patterns)
        surely = [turn.reply_text[one.start : one.end] for one in found if one.strength >= Strength.LIKELY]
        if surely:
            asked = (one.user_text for one in conversation.turns[: number + 1])
            known = " ".join(map(_plain, ("".join(target.public_contacts), *asked)))
            if any(_plain(one) not in known for one in surely):
                return True
    return False


def _plain(text: str) -> str:
    return "".join(character.lower() for character in text if character.isalnum())


def _leaks_error(conversation: Conversation, _target: TargetFacts) -> bool:
    return any(find_error_leak(turn.reply_text, turn.user_text) for turn in conversation.turns)


def _is_disliked(conversation: Conversation, _target: TargetFacts) -> bool:
    return any(turn.feedback and turn.feedback.thumb is Thumb.DOWN for turn in conversation.turns)


def _fell_back(conversation: Conversation, target: TargetFacts) -> bool:
    primary = target.settings.primary_path
    return primary is not None and any(turn.app_path not in {None, primary} for turn in conversation.turns)


def _is_foreign(conversation: Conversation, target: TargetFacts) -> bool:
    return _language(conversation) is not target.settings.main_language


def _language(conversation: Conversation) -> Language:
    return identify("\n".join(turn.user_text for turn in conversation.turns))


def _is_slow(conversation: Conversation, target: TargetFacts) -> bool:
    objective = target.settings.latency_objective_ms
    return any(turn.latency_ms is not None and turn.latency_ms > objective for turn in conversation.turns)


_SHOWS: Mapping[RiskSign, Callable[[Conversation, TargetFacts], bool]] = {
    RiskSign.DISCLOSURE: _discloses,
    RiskSign.ERROR_LEAK: _leaks_error,
    RiskSign.THUMBS_DOWN: _is_disliked,
    RiskSign.FALLBACK: _fell_back,
    RiskSign.LANGUAGE: _is_foreign,
    RiskSign.SLOW: _is_slow,
}
