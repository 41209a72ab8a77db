"""Find the stratum of a conversation by signs of risk that can be detected without a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from monitors.facts.disclosures.candidates import Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.values import KnownValues
from monitors.facts.error_leaks import find_error_leak
from monitors.facts.language import identify_language
from monitors.records.base import Language
from monitors.records.traffic import Conversation, Thumb
from monitors.sources.sampling.settings import RiskSign, SamplingMode, SamplingSettings

ALL_STRATUM: Final = "all"
"""The name of the only stratum in a simple sample."""
REST_STRATUM: Final = "rest"
"""The name of the stratum of conversations without a sign of risk."""


class Stratum(NamedTuple):
    """The name of a stratum and the sign of risk that its conversations show.

    ``sign`` is ``None`` for conversations without a sign.
    """

    name: str
    sign: RiskSign | None


class TargetFacts(NamedTuple):
    """The facts about a target that determine the strata of its conversations.

    These are its sampling settings, the patterns of its account numbers, and its public contacts.
    """

    settings: SamplingSettings
    account_patterns: Sequence[str] = ()
    public_contacts: Sequence[str] = ()


def list_strata(settings: SamplingSettings) -> tuple[Stratum, ...]:
    """List all possible strata, the most severe sign first. The stratum without a sign is the last one."""
    if settings.mode is SamplingMode.SIMPLE:
        return (Stratum(ALL_STRATUM, None),)
    signed = [stratum for sign in settings.signs for stratum in _list_sign_strata(sign, settings)]
    return (*signed, Stratum(REST_STRATUM, None))


def find_stratum_name(conversation: Conversation, target: TargetFacts) -> str:
    """Return the name of the stratum of a conversation.

    The stratum is determined by the first sign in ``settings.signs`` that the conversation shows.
    """
    if target.settings.mode is SamplingMode.SIMPLE:
        return ALL_STRATUM
    for sign in target.settings.signs:
        if _SIGN_CHECKS[sign](conversation, target):
            return (
                _name_language_stratum(_detect_language(conversation)) if sign is RiskSign.LANGUAGE else str(sign)
            )
    return REST_STRATUM


def _list_sign_strata(sign: RiskSign, settings: SamplingSettings) -> Sequence[Stratum]:
    if sign is not RiskSign.LANGUAGE:
        return (Stratum(str(sign), sign),)
    return [
        Stratum(_name_language_stratum(language), sign)
        for language in Language
        if language is not settings.main_language
    ]


def _name_language_stratum(language: Language) -> str:
    return f"{RiskSign.LANGUAGE}_{language}"


def _has_disclosure_by_app(conversation: Conversation, target: TargetFacts) -> bool:
    """Return whether a reply contains personal data or a secret that the user had not written before."""
    for number, turn in enumerate(conversation.turns):
        reply = turn.reply_text
        disclosures = [
            disclosure
            for disclosure in find_disclosures(reply, account_patterns=target.account_patterns)
            if disclosure.strength >= Strength.LIKELY
        ]
        user_texts = (earlier.user_text for earlier in conversation.turns[: number + 1])
        written = KnownValues((*target.public_contacts, *user_texts))
        if not all(written.contains(leak.kind, reply[leak.start : leak.end]) for leak in disclosures):
            return True
    return False


def _has_error_leak(conversation: Conversation, _target: TargetFacts) -> bool:
    return any(find_error_leak(turn.reply_text, turn.user_text) for turn in conversation.turns)


def _has_thumb_down(conversation: Conversation, _target: TargetFacts) -> bool:
    return any(turn.feedback and turn.feedback.thumb is Thumb.DOWN for turn in conversation.turns)


def _has_fallback_path(conversation: Conversation, target: TargetFacts) -> bool:
    primary = target.settings.primary_path
    return primary is not None and any(turn.app_path not in {None, primary} for turn in conversation.turns)


def _is_in_other_language(conversation: Conversation, target: TargetFacts) -> bool:
    return _detect_language(conversation) is not target.settings.main_language


def _detect_language(conversation: Conversation) -> Language:
    return identify_language("\n".join(turn.user_text for turn in conversation.turns))


def _is_slow(conversation: Conversation, target: TargetFacts) -> bool:
    objective = target.settings.latency_objective_ms
    return any(turn.latency_ms is not None and turn.latency_ms > objective for turn in conversation.turns)


_SIGN_CHECKS: Mapping[RiskSign, Callable[[Conversation, TargetFacts], bool]] = {
    RiskSign.DISCLOSURE: _has_disclosure_by_app,
    RiskSign.ERROR_LEAK: _has_error_leak,
    RiskSign.THUMBS_DOWN: _has_thumb_down,
    RiskSign.FALLBACK: _has_fallback_path,
    RiskSign.LANGUAGE: _is_in_other_language,
    RiskSign.SLOW: _is_slow,
}
