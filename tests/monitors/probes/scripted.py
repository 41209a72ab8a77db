"""A driver that answers by a script, so that the runner can be tested without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from monitors.probes.driver import Answer, EvidenceFilter, SelectEvidence, select_no_evidence
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Evidence, Timings

Script = Callable[[str, int], str | Exception]


class ScriptedDriver:
    """A driver that calls ``script(question, n)`` when a question is asked for the ``n``-th time.

    The script returns the text of the answer or the error to raise.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[str] = []
        self.wanted: list[EvidenceFilter] = []
        self.at_once = 0
        self.most_at_once = 0

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        question = turns[-1]
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            reply = self._script(question, self.asked.count(question))
        finally:
            self.at_once -= 1
        if isinstance(reply, Exception):
            raise reply
        answer = Answer(visible_text=reply, timings=Timings(total_ms=1))
        evidence = await select_evidence(answer)
        self.wanted.append(evidence)
        picture = f"evidence/{name}.jpg" if evidence.screenshot else None
        return answer.model_copy(update={"evidence": Evidence(screenshot=picture)})


class Ticking:
    """A clock that advances one second at each call."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 31, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def case(name: str, severity: int = 1, *, turns: tuple[str, ...] | None = None) -> GoldCase:
    """Return a case whose question is its name."""
    return GoldCase(
        id=name,
        turns=turns or (name,),
        gold="24 months",
        severity=Severity(severity),
        language=Language.ENGLISH,
        type="waiting_period",
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
    )
