"""A worker process of the census, which classifies conversations with rules. One worker runs on each core.

The command is `python -m flows.nightly.census_worker`. The first line of the standard input contains the settings.
Groups of conversations follow: a line with the number of conversations, and one line for each conversation. The
worker answers each group with one line of results. The worker stores nothing. It ends when its input ends, for
example because the process that started the worker has ended.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import BinaryIO, Final, NamedTuple

from monitors.graders.base import GraderSettings
from monitors.graders.traffic_panel import CensusFinding, TrafficPanel
from monitors.records.base import Record
from monitors.records.nightly import CensusKind
from monitors.records.traffic import Conversation
from monitors.sources.question_quality import QuestionTally, tally_app_questions
from monitors.sources.sampling.settings import SamplingSettings
from monitors.sources.sampling.strata import TargetFacts, find_stratum_name

KINDS: Final = tuple(CensusKind)
MODULE: Final = "flows.nightly.census_worker"


class CensusSettings(Record):
    """The settings of a target that a census worker needs."""

    graders: GraderSettings
    sampling: SamplingSettings
    counts_citations: bool = False
    """Whether this nightly run grades citations. If true, the census checks whether a source contains citations."""


class CensusResult(NamedTuple):
    """The census result of one conversation. ``graded`` and ``found`` have one bit for each kind in `KINDS`.

    The stratum is the risk group of the conversation. The sample is taken from each stratum separately.
    """

    stratum: str
    graded: int
    found: int
    findings: Sequence[tuple[int, CensusFinding]]
    asked: QuestionTally
    """The number of clarifying questions that the application asked, by kind."""
    cites: bool
    """Whether the conversation shows the sources of its answers. False if citations are not graded."""


class CensusScanner:
    """Classifies conversations in this process."""

    def __init__(self, settings: CensusSettings) -> None:
        graders = settings.graders
        self._panel = TrafficPanel(graders)
        self._counts_citations = settings.counts_citations
        self._facts = TargetFacts(settings.sampling, graders.account_patterns, graders.public_contacts)

    def scan(self, written: bytes) -> CensusResult:
        """Classify one conversation, which is given as JSON."""
        conversation = Conversation.model_validate_json(written)
        census = self._panel.find_first_failure_of_each_kind(conversation)
        findings = [(place, census.found[kind]) for place, kind in enumerate(KINDS) if kind in census.found]
        return CensusResult(
            find_stratum_name(conversation, self._facts),
            sum(1 << place for place, kind in enumerate(KINDS) if kind in census.graded),
            sum(1 << place for place, _ in findings),
            findings,
            tally_app_questions(conversation),
            self._counts_citations and self._panel.shows_citations(conversation),
        )


def pack_conversations(conversations: Sequence[bytes]) -> bytes:
    """Build the message to a worker from conversations that are encoded as JSON."""
    return b"%d\n" % len(conversations) + b"".join(conversation + b"\n" for conversation in conversations)


def parse_worker_answer(line: bytes) -> list[CensusResult]:
    """Parse the line that a worker sends as the answer to a message."""
    return [
        CensusResult(
            stratum,
            graded,
            found,
            [(place, CensusFinding(*finding)) for place, finding in findings],
            QuestionTally(*asked),
            cites,
        )
        for stratum, graded, found, findings, asked, cites in json.loads(line)
    ]


def run_census_worker(source: BinaryIO, answers: BinaryIO) -> None:
    """Classify the conversations in ``source`` and write the results to ``answers`` until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    census = CensusScanner(CensusSettings.model_validate_json(source.readline()))
    while count := int(source.readline() or 0):
        results = [census.scan(source.readline()) for _ in range(count)]
        try:
            answers.write(json.dumps(results).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:
            return


if __name__ == "__main__":
    run_census_worker(sys.stdin.buffer, sys.stdout.buffer)
