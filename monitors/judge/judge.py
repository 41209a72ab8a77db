"""The judges at work: each case gets as many opinions as it needs, and each group of cases is believed as a whole.

A group is judged together with canaries, known answers that nobody can tell from the others. Where a canary is
missed, all that was ruled in the group is void: neither pass nor fail, and the word about it is about the judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from monitors.errors import BudgetReached, GradingError
from monitors.judge.canaries import Canary, CanaryReport, canaries_for, make_canaries, weigh
from monitors.judge.consensus import Decision, Doubt, Opinion, decide, doubts_about, is_another_needed
from monitors.judge.model import Reply, RequestId
from monitors.judge.precheck import precheck
from monitors.judge.prompt import RUBRIC_VERSION, Asked, Subject, build_prompt, instructions
from monitors.judge.ruling import Cost, JudgeCase, Ruled, Ruling, Unruled
from monitors.judge.seat import Seat, Tally
from monitors.judge.settings import JudgeSettings
from monitors.records.base import Blame, Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.grades import JudgeLineage

VOID_REASON: Final = "the judge missed known answers that rode with this one: its grades are void"


class JudgedGroup(Record):
    """What a group came to. ``canaries`` is ``None`` where nothing was ruled, so that nothing had to be proved."""

    rulings: tuple[Ruling, ...]
    canaries: CanaryReport | None
    canary_cost: Cost

    @property
    def is_void(self) -> bool:
        """Whether the judge was not to be believed."""
        return self.canaries is not None and self.canaries.void


class Judge:
    """One judge or three with what they share. ``nonce`` gives 16 to 64 fresh hexadecimal digits each time."""

    def __init__(self, seats: Sequence[Seat], settings: JudgeSettings, *, nonce: Callable[[], str]) -> None:
        self.seats = tuple(seats)
        self._settings = settings
        self._nonce = nonce
        self._free = asyncio.Semaphore(settings.concurrency)

    def prompt(self, case: JudgeCase) -> Asked:
        """The prompt for a case, with a nonce of its own."""
        return build_prompt(
            case.subject, prompt_id=case.id, nonce=self._nonce(), max_tokens=self._settings.max_tokens
        )

    def riders(self, cases: Sequence[JudgeCase], known: Sequence[GoldCase], *, seed: str) -> tuple[Canary, ...]:
        """The canaries of a group, made from ``known`` cases. They carry what the group's answers say to judges."""
        count = canaries_for(len(cases), batch_size=self._settings.batch_size, canaries=self._settings.canaries)
        steering = [s for c in cases for s in precheck(c.subject.answer, c.subject.turns[-1]).steering]
        return make_canaries(known, count=count, seed=seed, steering=steering) if count else ()

    async def group(
        self,
        cases: Sequence[JudgeCase],
        riders: Sequence[Canary],
        *,
        prompts: Mapping[RequestId, Asked] | None = None,
        replies: Mapping[RequestId, Reply] | None = None,
    ) -> JudgedGroup:
        """Judge ``cases`` together with their canaries. Never raises for a judge that does not work.

        ``replies`` are what a batch brought for ``prompts``. Canaries are asked first, so that money that runs out
        leaves cases open and does not leave them judged by nobody knows whom.
        """
        ready, brought = prompts or {}, replies or {}

        async def one(case: JudgeCase, *, alone: bool) -> Ruling:
            async with self._free:
                return await self._rule(case, ready.get(case.id), brought.get(case.id), alone=alone)

        rulings = await asyncio.gather(
            *(one(canary_case(canary), alone=True) for canary in riders),
            *(one(case, alone=False) for case in cases),
        )
        return _believed(rulings[len(riders) :], rulings[: len(riders)], riders)

    async def _rule(self, case: JudgeCase, asked: Asked | None, first: Reply | None, *, alone: bool) -> Ruling:
        """As many opinions as the case needs; a canary gets one, of the first judge that answers."""
        asked = asked or self.prompt(case)
        tally, opinions, failures = Tally(), list[Opinion](), list[GradingError]()
        doubts: frozenset[Doubt] = frozenset()
        for number, seat in enumerate(self.seats):
            if not is_another_needed(opinions, doubts, seats_left=len(self.seats) - number):
                break
            try:
                opinions.append(await seat.opinion(asked, tally, first=None if number else first))
            except GradingError as error:
                failures.append(error)
            except Exception as error:  # noqa: BLE001 - a client's bug must cost one grade, not the run
                failures.append(GradingError(f"the judge broke: {type(error).__name__}"))
            if len(opinions) == 1 and not alone:
                doubts = doubts_about(opinions[0], severity=case.severity, rules=case.rules)
        return self._settled(case, opinions, doubts, failures, tally)

    def _settled(
        self,
        case: JudgeCase,
        opinions: Sequence[Opinion],
        doubts: frozenset[Doubt],
        failures: Sequence[GradingError],
        tally: Tally,
    ) -> Ruling:
        if not opinions and failures:
            return _unruled(case, failures, tally)
        decided = decide(opinions, doubts, seats=len(self.seats), severity=case.severity, rules=case.rules)
        if isinstance(decided, Decision):
            lineage = JudgeLineage(
                model=decided.speaker.judge,
                prompt_sha256=instructions(case.task).sha256,
                rubric_version=RUBRIC_VERSION,
            )
            return Ruled(case=case, decision=decided, lineage=lineage, cost=tally.cost)
        return Unruled(case=case, reason=decided.reason, blame=Blame.MONITOR, cost=tally.cost)


def canary_case(canary: Canary) -> JudgeCase:
    """A canary in the shape of every other case."""
    return JudgeCase(
        id=canary.id,
        subject=Subject(
            turns=canary.case.turns,
            expected=(canary.case.gold, *canary.case.alternatives),
            expects_refusal=canary.case.expected_refusal,
            answer=canary.answer,
            month_is_30_days=canary.case.month_is_30_days,
        ),
        severity=Severity.ANNOYING,
    )


def _unruled(case: JudgeCase, failures: Sequence[GradingError], tally: Tally) -> Unruled:
    """The first failure explains it; money that ran out is said before anything else."""
    spent = next((error for error in failures if isinstance(error, BudgetReached)), None)
    why = spent or failures[0]
    return Unruled(case=case, reason=str(why), blame=why.blame, cost=tally.cost, budget=spent is not None)


def _believed(rulings: Sequence[Ruling], known: Sequence[Ruling], riders: Sequence[Canary]) -> JudgedGroup:
    """The group with its canaries weighed. Where nothing was ruled, there is nothing to believe or not."""
    cost = sum((ruling.cost for ruling in known), Cost())
    ruled = [ruling for ruling in rulings if isinstance(ruling, Ruled)]
    if not ruled or not riders:
        return JudgedGroup(rulings=tuple(rulings), canaries=None, canary_cost=cost)
    report = weigh(riders, {k.case.id: _finding(k) for k in known}, judge=ruled[0].lineage.model)
    kept = tuple(_void(ruling) if report.void else ruling for ruling in rulings)
    return JudgedGroup(rulings=kept, canaries=report, canary_cost=cost)


def _finding(ruling: Ruling) -> Finding:
    if isinstance(ruling, Unruled):
        return Finding.UNTOLD
    return Finding.YES if ruling.decision.passed else Finding.NO


def _void(ruling: Ruling) -> Ruling:
    if isinstance(ruling, Unruled):
        return ruling
    return Unruled(case=ruling.case, reason=VOID_REASON, blame=Blame.PROVIDER, cost=ruling.cost)
