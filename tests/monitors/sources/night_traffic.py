"""Synthetic nights of traffic: conversations with known risk signs, and strata with planted failure rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime

from monitors.records.traffic import Conversation, Feedback, Thumb, Turn
from monitors.sources.sampling.sample import ExpectedRate, Sample, Seed, group_latest_by_stratum, sample_strata
from monitors.sources.sampling.settings import RiskSign, SamplingMode, SamplingSettings
from monitors.sources.sampling.strata import TargetFacts

NIGHT = Seed("demo", date(2026, 3, 1))
CLOSED_AT = datetime(2026, 3, 1, 1, 0, tzinfo=UTC)
PLAIN = "You have thirty days to renew the policy."
SIGNED: dict[RiskSign | None, Turn] = {
    RiskSign.DISCLOSURE: Turn(
        user_text="Who else?", reply_text="Write to asha.verma.1987@gmail.com about her claim."
    ),
    RiskSign.ERROR_LEAK: Turn(user_text="And then?", reply_text="Error code: 429 - rate limit reached"),
    RiskSign.THUMBS_DOWN: Turn(
        user_text="How long do I have?", reply_text=PLAIN, feedback=Feedback(thumb=Thumb.DOWN, comment="no")
    ),
    RiskSign.FALLBACK: Turn(user_text="How long do I have?", reply_text=PLAIN, app_path="fallback"),
    RiskSign.LANGUAGE: Turn(user_text="मुझे पॉलिसी कब तक नवीनीकृत करनी है?", reply_text=PLAIN),
    RiskSign.SLOW: Turn(user_text="How long do I have?", reply_text=PLAIN, latency_ms=9_000),
    None: Turn(user_text="How long do I have?", reply_text=PLAIN, app_path="primary", latency_ms=900),
}
"""For each risk sign, a turn that shows only this sign."""


def conversation(number: int | str, *signs: RiskSign | None) -> Conversation:
    """Return a conversation with one turn for each of ``signs``, or with one plain turn if there are none."""
    turns = tuple(SIGNED[sign] for sign in signs or (None,))
    return Conversation(id=f"c{number}", origin_id=str(number), completed_at=CLOSED_AT, turns=turns)


def stratified(**settings: object) -> TargetFacts:
    """Return a target whose traffic is sampled by risk."""
    asked = {"mode": SamplingMode.STRATIFIED, "primary_path": "primary", **settings}
    return TargetFacts(SamplingSettings.model_validate(asked))


def simple(**settings: object) -> TargetFacts:
    """Return a target whose traffic is sampled uniformly."""
    return TargetFacts(SamplingSettings.model_validate(settings))


def night(counts: dict[RiskSign | None, int]) -> Sequence[Conversation]:
    """Return the numbered conversations of one night.

    ``counts`` states how many conversations show each risk sign.
    """
    signs = [sign for sign, count in counts.items() for _ in range(count)]
    return [conversation(number, sign) for number, sign in enumerate(signs)]


def sample_conversations(
    conversations: Iterable[Conversation],
    facts: TargetFacts,
    seed: Seed,
    expected: Mapping[str, ExpectedRate] | None = None,
) -> Sample:
    """Sample the conversations of a nightly run.

    Calls `group_latest_by_stratum` and `sample_strata` in one step.
    """
    return sample_strata(group_latest_by_stratum(conversations, facts), facts.settings, seed, expected)
