"""Simulate nightly runs over logs of the demo's bot, with disclosures at a known rate."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from deployments.demo.bot import TURNS, Bot, BotReply, TurnLog
from deployments.demo.policies import load_policies, load_vocabulary
from flows.nightly.estimate import NightlyEstimates
from flows.nightly.grading import TrafficGrader
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.traffic_panel import TrafficPanel
from monitors.records.base import Severity
from monitors.records.estimates import GradedStratum, RateEstimate, RateForecast
from monitors.records.traffic import Conversation
from monitors.sources.privacy import PrivacyMode, protect_conversation
from monitors.sources.sampling.plan import SEVERE_RATE_NAME, Grading, PlannedRate, plan_nightly
from monitors.sources.sampling.sample import (
    Seed,
    compute_expected_failure_rates,
    group_latest_by_stratum,
    sample_strata,
)
from monitors.sources.sampling.strata import TargetFacts
from tests.flows.nightly_runs import KEY_OF_NAMES, file_source

FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
SUITE = Path(__file__).parents[2] / "deployments" / "demo" / "suraksha.jsonl"


async def _read(log: Path, ended: datetime) -> list[Conversation]:
    read = [
        conversation
        async for conversation in file_source(log).read_conversations(ended - timedelta(hours=24), ended)
    ]
    return [conversation for conversation in read if isinstance(conversation, Conversation)]


LEAKS = (
    " Mrs Verma, who asked before you, is asha.verma.1987@gmail.com.",
    " Her card for the premium was 4111 1111 1111 1111.",
    " The PAN on that policy is ABCPE1234F.",
)
REMEMBERED = 30
"""The number of earlier nights from which the expected rates are computed, as in the product."""


class Simulated(NamedTuple):
    """One simulated night.

    ``estimate`` is the estimated rate with its interval, ``truth`` the true rate, and ``planned_width`` the width
    of the interval that the plan predicted.
    """

    estimate: RateEstimate
    truth: float
    planned_width: float

    @property
    def covered(self) -> bool:
        """Return whether the true rate is within the interval. Rounding errors are ignored."""
        return self.estimate.low - 1e-9 <= self.truth <= self.estimate.high + 1e-9


@dataclass
class DemoNights:
    """Simulates any number of nights. For each night, the demo's `TurnLog` writes a new log."""

    folder: Path
    facts: TargetFacts
    conversations: int = 2_000
    planted: int = 20
    seed: int = 1
    _graded: list[Sequence[GradedStratum]] = field(default_factory=list[Sequence[GradedStratum]])

    def nights(self, count: int) -> Iterator[Simulated]:
        """Yield ``count`` nights one after the other."""
        for number in range(count):
            yield self._night(number)

    def _night(self, number: int) -> Simulated:
        ended = FIRST + timedelta(days=number)
        self._write(ended, random.Random(f"{self.seed} {number}"))
        read = asyncio.run(_read(self.folder / TURNS, ended))
        assert len(read) == self.conversations
        members = group_latest_by_stratum(read, self.facts)
        expected = compute_expected_failure_rates(
            members, [sampled_conversation for night in self._graded[:REMEMBERED] for sampled_conversation in night]
        )
        sampled = sample_strata(members, self.facts.settings, Seed("demo", ended.date()), expected)
        wanted = PlannedRate(SEVERE_RATE_NAME, expected)
        (planned,) = plan_nightly(sampled.strata, [wanted], Grading(0.0, Decimal(0)), self.facts.settings).rates
        assert isinstance(planned, RateForecast)
        grader = TrafficGrader(TrafficPanel(GraderSettings()), severity=Severity.MAJOR)
        findings = {}
        for sampled_conversation in sampled.sampled:
            stored = protect_conversation(sampled_conversation.conversation, PrivacyMode.REDACT, KEY_OF_NAMES)
            graded = grader.grade_turns(sampled_conversation.conversation, stored, f"night-{number}")
            findings[sampled_conversation.conversation.id] = [turn.result.assessment for turn in graded]
        weighing = NightlyEstimates(sampled.strata, sampled.sampled, findings)
        self._graded.insert(0, weighing.count_severe_failures_by_stratum())
        severe = weighing.estimate_severe_rate()
        assert isinstance(severe, RateEstimate)
        return Simulated(severe, self.planted / self.conversations, planned.width)

    def _write(self, ended: datetime, chance: random.Random) -> None:
        (self.folder / TURNS).unlink(missing_ok=True)
        log, questions = TurnLog(self.folder), list(replies())
        leaking = set(chance.sample(range(self.conversations), self.planted))
        for number in range(self.conversations):
            question = chance.choice(questions)
            reply = replies()[question]
            if number in leaking:
                reply = BotReply(
                    reply.text + chance.choice(LEAKS), reply.language, reply.intent, reply.path, reply.hits
                )
            at = ended - timedelta(seconds=30 * (number + 1))
            latency_ms = chance.lognormvariate(7, 0.5)
            log.write(at=at, session_id=f"s{number}", question=question, reply=reply, latency_ms=latency_ms)


@cache
def replies() -> Mapping[str, BotReply]:
    """Return the replies of the demo's bot without faults, keyed by the questions of the bot's suite."""
    bot = Bot(load_policies(), load_vocabulary())
    questions = dict.fromkeys(case.turns[-1] for case in load_suite(SUITE).cases)
    return {question: bot.reply(question) for question in questions}
