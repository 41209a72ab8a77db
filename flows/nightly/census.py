"""The census of a nightly run: rules check every conversation and count each failure kind.

The census also records the first and the last occurrence of each kind, and an example. One worker process runs on
each core. If there are few conversations, no worker starts. To save memory, the census stores only the id, the time
and the kinds of each conversation. The text is stored only if the conversation may be sampled or shown as an
example.
"""

from __future__ import annotations

import asyncio
import os
import sys
from array import array
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from flows.nightly.census_worker import (
    KINDS,
    MODULE,
    CensusResult,
    CensusScanner,
    CensusSettings,
    pack_conversations,
    parse_worker_answer,
)
from monitors.alerts.redact import build_redacted_excerpt
from monitors.graders.traffic_panel import CensusFinding
from monitors.records.nightly import CensusExample, CensusKind, CensusRate
from monitors.records.traffic import Conversation
from monitors.sources.intake import Intake, IntakeDecision
from monitors.sources.question_quality import QuestionTally
from monitors.sources.sampling.sample import Candidates

CHUNK_SIZE: Final = 500
"""The number of conversations in one message to a worker. A worker classifies one such message in about 0.1 s."""
MIN_CHUNKS_FOR_WORKERS: Final = 8
"""The number of chunks that this process classifies before workers start.

Workers start late, because most nightly runs have fewer chunks and a worker takes a second to start.
"""
MAX_WORKERS: Final = 8
"""Maximum number of worker processes. It is limited, because each worker needs about 60 MB of memory."""
MIN_CITING_SHARE: Final = 0.1
"""A log counts as a log with citations if more than this share of its conversations contain citations.

A smaller share can occur by chance, because a text such as "(see page 4)" may not be a citation.
"""
_LINE_LIMIT: Final = 1 << 26
"""Maximum size of a worker's answer in bytes. Answers contain no conversations and are far smaller."""

ConversationsJson = Sequence[bytes]
"""Conversations, each encoded as JSON."""


class CensusPool:
    """Classifies conversations with rules, in one worker process for each core.

    Use each pool in an ``aclosing`` block, which ends the workers. The results have the same order as the
    conversations.
    """

    def __init__(self, settings: CensusSettings, workers: int | None = None) -> None:
        self._settings = settings
        self._max_workers = workers or min(MAX_WORKERS, os.cpu_count() or 1)
        self._local_scanner = CensusScanner(settings)
        self._workers: list[_Worker] = []
        self._chunk_count = 0

    async def classify(
        self, chunks: AsyncIterator[ConversationsJson]
    ) -> AsyncGenerator[tuple[ConversationsJson, list[CensusResult]]]:
        """Yield each chunk with the results of its conversations.

        If you leave the loop early, close the generator, so that the chunks in progress are cancelled.
        """
        waiting: deque[tuple[ConversationsJson, asyncio.Future[list[CensusResult]]]] = deque()
        try:
            async for chunk in chunks:
                self._chunk_count += 1
                waiting.append((chunk, asyncio.ensure_future(self._classify_by_worker(chunk, self._chunk_count))))
                if len(waiting) > 2 * max(1, len(self._workers)):
                    done_chunk, answer = waiting.popleft()
                    yield done_chunk, await answer
            while waiting:
                done_chunk, answer = waiting.popleft()
                yield done_chunk, await answer
        finally:
            for _, answer in waiting:
                answer.cancel()
            await asyncio.gather(*(answer for _, answer in waiting), return_exceptions=True)

    async def aclose(self) -> None:
        """End all worker processes."""
        for worker in self._workers:
            await worker.stop()

    async def _classify_by_worker(self, chunk: ConversationsJson, number: int) -> list[CensusResult]:
        """Classify a chunk in a worker process.

        The first chunks, and the chunk of a killed worker, are classified in this process.
        """
        if self._max_workers > 1 and number > MIN_CHUNKS_FOR_WORKERS:  # a single worker would not be faster
            if not self._workers:
                self._workers = [_Worker(self._settings) for _ in range(self._max_workers)]
            # If the worker is killed, for example because memory ran out, this process classifies the chunk.
            with suppress(OSError, asyncio.IncompleteReadError, ValueError):
                return await self._workers[number % len(self._workers)].ask(chunk)
        return await asyncio.to_thread(self._classify_in_this_process, chunk)

    def _classify_in_this_process(self, chunk: ConversationsJson) -> list[CensusResult]:
        return [self._local_scanner.scan(conversation) for conversation in chunk]


class _Worker:
    """A worker process that classifies one chunk at a time. The worker ends when this process ends."""

    def __init__(self, settings: CensusSettings) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, chunk: ConversationsJson) -> list[CensusResult]:
        """Classify the conversations of a chunk.

        Raises `OSError` or `IncompleteReadError` if the process has ended.
        """
        async with self._turn:
            process = self._process = self._process or await self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(pack_conversations(chunk))
                await process.stdin.drain()
                return parse_worker_answer(await process.stdout.readuntil(b"\n"))
            except asyncio.CancelledError:
                await self.stop()  # the next chunk must not read the late answer
                raise

    async def stop(self) -> None:
        """End the process. The next chunk starts a new process."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", MODULE, stdin=pipe, stdout=pipe, limit=_LINE_LIMIT
        )
        assert process.stdin is not None
        process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        return process


MAX_EXAMPLE_CHARACTERS: Final = 1_000
"""Maximum number of characters of a question or reply in an example. A message may shorten the example further."""
MAX_EXAMPLES_PER_KIND: Final = 3
"""Maximum number of conversations that are stored as possible examples of a failure kind.

Several are stored, because an example is removed if a newer version of its conversation is read.
"""


class Census(NamedTuple):
    """For each failure kind in one nightly run's conversations: the number of occurrences, and an example."""

    rates: tuple[CensusRate, ...] = ()
    examples: tuple[CensusExample, ...] = ()
    citing: Mapping[str, bool] = MappingProxyType({})
    """Whether each source's conversations contain citations. Empty if this run does not grade citations."""


class TakenConversation(NamedTuple):
    """The data that the census stores about a conversation.

    ``graded_bits`` and ``found_bits`` have one bit for each failure kind in `KINDS`.
    """

    id: str
    completed_at: datetime
    stratum: str
    graded_bits: int
    found_bits: int


class _CensusHit(NamedTuple):
    """A conversation in which rules found a failure. Hits are sorted by time."""

    at: datetime
    id: str
    conversation: Conversation
    finding: CensusFinding


class SourceCensus:
    """The census of one source.

    The census needs about 250 bytes of memory for each conversation, plus memory for the samples and the examples.
    """

    def __init__(self, known_ids: Container[str], candidates: Candidates) -> None:
        self.intake, self.candidates = Intake(known_ids), candidates
        self.counts = dict.fromkeys(IntakeDecision, 0)
        self._names: list[str] = []
        self._strata, self._graded, self._found, self._cites = (array("B") for _ in range(4))
        self._question_counts = tuple(array("I") for _ in QuestionTally._fields)
        self.examples: dict[CensusKind, list[_CensusHit]] = {kind: [] for kind in CensusKind}
        """For each failure kind, the first few conversations with this kind."""

    def record(self, conversation: Conversation, offer: IntakeDecision, verdict: CensusResult) -> None:
        """Record the result of a conversation.

        Call this method in the order in which ``intake`` received conversations. ``offer`` is the decision of
        ``intake`` about the conversation. ``verdict`` is the result of the rules.
        """
        if offer is IntakeDecision.REPLACED:
            self._withdraw_earlier_version(conversation.id)
        if verdict.stratum not in self._names:
            self._names.append(verdict.stratum)
        place = self.intake.find_arrival_position(conversation.id)
        values = (self._names.index(verdict.stratum), verdict.graded, verdict.found, verdict.cites, *verdict.asked)
        for column, value in zip(
            (self._strata, self._graded, self._found, self._cites, *self._question_counts), values, strict=True
        ):
            if place < len(column):
                column[place] = value
            else:
                column.append(value)
        self.candidates.offer(verdict.stratum, conversation)
        for kind_place, finding in verdict.findings:
            kind = KINDS[kind_place]
            shown = _CensusHit(conversation.completed_at, conversation.id, conversation, finding)
            self.examples[kind] = sorted((*self.examples[kind], shown), key=lambda hit: hit[:2])[
                :MAX_EXAMPLES_PER_KIND
            ]

    def iterate_taken_conversations(self) -> Iterator[TakenConversation]:
        """Yield the stored data of each conversation."""
        for place, (key, at) in enumerate(self.intake.list_taken()):
            stratum = self._names[self._strata[place]]
            yield TakenConversation(key, at, stratum, self._graded[place], self._found[place])

    @property
    def shows_citations(self) -> bool:
        """Return whether more than `MIN_CITING_SHARE` of the conversations contain citations."""
        return sum(self._cites) > MIN_CITING_SHARE * len(self._cites)

    def count_clarifying_questions(self) -> QuestionTally:
        """Return the total number of clarifying questions in all conversations, and the totals of their ratings."""
        return QuestionTally(*map(sum, self._question_counts))

    def _withdraw_earlier_version(self, key: str) -> None:
        """Remove a conversation's earlier version from samples and examples, because a newer one replaces it."""
        place = self.intake.find_arrival_position(key)
        self.candidates.withdraw(self._names[self._strata[place]], key)
        for kind, hits in self.examples.items():
            self.examples[kind] = [hit for hit in hits if hit.id != key]


def build_census(
    tallies: Sequence[SourceCensus],
    protect_for_storage: Callable[[Conversation], Conversation],
    account_patterns: Sequence[str],
) -> Census:
    """Build the census of all sources.

    ``protect_for_storage`` returns the version of a conversation that may be stored.
    """
    counted = [_KindCount() for _ in KINDS]
    for tally in tallies:
        for taken in tally.iterate_taken_conversations():
            for place, kind_count in enumerate(counted):
                if taken.graded_bits >> place & 1:
                    kind_count.graded += 1
                if taken.found_bits >> place & 1:
                    kind_count.add(taken.completed_at)
    rates: list[CensusRate] = []
    examples: list[CensusExample] = []
    for kind, kind_count in zip(KINDS, counted, strict=True):
        first_hit = min(
            (hit for tally in tallies for hit in tally.examples[kind]), key=lambda hit: hit[:2], default=None
        )
        example = protect_for_storage(first_hit.conversation) if first_hit is not None else None
        if first_hit is not None and example is not None:
            examples.append(_build_example(kind, first_hit.finding, example, account_patterns))
        rates.append(
            CensusRate(
                kind=kind,
                found=kind_count.hits,
                graded=kind_count.graded,
                first_at=kind_count.first,
                last_at=kind_count.last,
                example_id=example.id if example is not None else None,
            )
        )
    return Census(tuple(rates), tuple(examples))


@dataclass
class _KindCount:
    graded: int = 0
    hits: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, at: datetime) -> None:
        self.hits += 1
        self.first = at if self.first is None else min(self.first, at)
        self.last = at if self.last is None else max(self.last, at)


def _build_example(
    kind: CensusKind, finding: CensusFinding, stored: Conversation, account_patterns: Sequence[str]
) -> CensusExample:
    turn = stored.turns[finding.turn]
    return CensusExample(
        kind=kind,
        asked=build_redacted_excerpt(
            turn.user_text, limit=MAX_EXAMPLE_CHARACTERS, account_patterns=account_patterns
        ),
        answered=build_redacted_excerpt(
            turn.reply_text,
            limit=MAX_EXAMPLE_CHARACTERS,
            account_patterns=account_patterns,
            evidence_at=finding.start or None,
        ),
        finding=build_redacted_excerpt(finding.detail, limit=MAX_EXAMPLE_CHARACTERS),
    )
