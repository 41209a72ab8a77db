"""One night's work, step by step, each kept before the next begins."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from flows.alone import alone
from flows.desk import Desk
from flows.fault_over import fault_over, faults_over
from flows.keys import nonce
from flows.monitor_fault import tell_fault
from flows.night_cost import expected_grading
from flows.night_judging import NightJudged, graded_by, judge_night
from flows.night_kept import NightKept, Reading, rows_of
from flows.night_reading import NightRead, read_night, watermarks_of, window
from flows.night_scores import write_scores
from flows.night_telling import (
    NIGHT_FAULTS,
    SCORES_UNWRITTEN,
    WEEK_WITHOUT,
    cleared_by,
    drifted,
    faults,
    seen_in_traffic,
    told_as_faults,
    traffic_over,
    void,
)
from flows.night_weighing import RULES, Weighing, drift_after, questions_of
from flows.night_wiring import WiredNight
from flows.notify import Notice, tell
from flows.wiring import environment
from monitors.alerts.events import Sighting
from monitors.alerts.scope import Scope
from monitors.estimators import estimate_rate
from monitors.records.drift import DriftState
from monitors.records.estimates import NightPlan
from monitors.records.grades import Assessment
from monitors.records.incidents import IncidentKind
from monitors.records.nights import NightReport, SeenConversation
from monitors.records.traffic import Conversation, Sampled, StratumCount
from monitors.sources.conversation_privacy import protected
from monitors.sources.expected_rates import ExpectedRate, expected_rates
from monitors.sources.night_plan import plan_night
from monitors.sources.sampling import Draw, Strata, draw_from, stratify
from warehouse.rows import ConversationRow, JournalRow


class NightShift:
    """Grades one night. All of its state is in the journal and one file."""

    def __init__(self, wired: WiredNight) -> None:
        self._wired = wired
        self._desk: Desk = wired.desk
        self._kept = NightKept(wired.desk.store, wired.target, wired.run_id, wired.folder)
        self._earlier: tuple[NightReport, ...] = ()

    async def work(self) -> NightReport:
        """Do what is left of the night; the report of a night that was graded before. Raises `MonitorError`."""
        with alone(self._wired.folder.parent, f"nights of {self._wired.target}", wait_s=1):
            self._earlier = await asyncio.to_thread(self._kept.earlier)
            done = await asyncio.to_thread(self._kept.report)
            if done is not None:
                return done
            reading = await asyncio.to_thread(self._kept.reading) or await self._read_and_keep()
            judged = await asyncio.to_thread(self._kept.judged) or await self._judge()
            weighing = await asyncio.to_thread(self._weighing, judged)
            report = await asyncio.to_thread(self._report, reading, judged, weighing)
            await self._tell(report, judged)
            await self._write_back(report, weighing)
            await asyncio.to_thread(self._kept.finish, report)
            return report

    async def plan(self) -> NightPlan:
        """What the night would take and buy. Reads, and keeps nothing."""
        self._earlier = await asyncio.to_thread(self._kept.earlier)
        read = await self._read()
        drawn = await asyncio.to_thread(self._draw, read)
        grading = expected_grading(self._wired.judge, [one.conversation for one in drawn.sampled], self._earlier)
        return plan_night(drawn.strata, self._expected(drawn.strata), grading, self._wired.settings.sampling)

    # --- reading, drawing, grading by rule: one step --------------------------------------------------------

    async def _read_and_keep(self) -> Reading:
        """All that was seen, and what was drawn with its grades, in one segment."""
        read = await self._read()
        rows = await asyncio.to_thread(self._drawn_and_graded, read)
        return await asyncio.to_thread(self._kept.keep_reading, read, rows)

    async def _read(self) -> NightRead:
        wired = self._wired
        marks = watermarks_of(self._earlier)
        since = {name: window(marks.get(name), wired.night, wired.reach).since for name in wired.sources}
        known = await asyncio.to_thread(self._kept.known, since)
        return await read_night(wired.sources, marks, known, wired.night, wired.reach)

    def _draw(self, read: NightRead) -> Draw:
        return self._drawn_from(stratify(read.conversations, self._wired.facts))

    def _drawn_from(self, members: Strata) -> Draw:
        sampling = self._wired.settings.sampling
        return draw_from(members, sampling, self._wired.seed, self._expected_of(members))

    def _expected(self, strata: Sequence[StratumCount]) -> Mapping[str, ExpectedRate]:
        return self._expected_of(one.stratum for one in strata)

    def _expected_of(self, strata: Iterable[str]) -> Mapping[str, ExpectedRate]:
        return expected_rates(strata, [one for night in self._earlier for one in night.strata])

    def _drawn_and_graded(self, read: NightRead) -> list[JournalRow]:
        members = stratify(read.conversations, self._wired.facts)
        stratum_of = {one.id: name for name, each in members.items() for one in each}
        rows: list[JournalRow] = []
        drawn = self._graded(self._drawn_from(members), rows)
        seen = (self._seen(one, read, stratum_of[one.id], drawn.get(one.id)) for one in read.conversations)
        rows.extend(ConversationRow(row=one) for one in seen)
        return rows

    def _graded(self, draw: Draw, rows: list[JournalRow]) -> Mapping[str, Sampled]:
        """Every drawn conversation as it may be stored, by the id that it came with; its grades go to ``rows``."""
        wired, kept = self._wired, dict[str, Sampled]()
        for one in draw.sampled:
            stored = protected(
                one.conversation, wired.settings.privacy, wired.key, account_patterns=wired.facts.account_patterns
            )
            kept[one.conversation.id] = one.model_copy(update={"conversation": stored})
            for turn in wired.grader.turns(one.conversation, stored, wired.run_id):
                rows += rows_of(turn.result)
        return kept

    def _seen(self, one: Conversation, read: NightRead, stratum: str, drawn: Sampled | None) -> SeenConversation:
        return SeenConversation(
            target=self._wired.target,
            source=read.source_of[one.id],
            run_id=self._wired.run_id,
            id=one.id,
            completed_at=one.completed_at,
            stratum=stratum,
            drawn=drawn,
        )

    # --- judging --------------------------------------------------------------------------------------------

    async def _judge(self) -> NightJudged:
        wired = self._wired
        turns = await asyncio.to_thread(self._kept.turns)
        plan = wired.judge
        known = await asyncio.to_thread(wired.gold) if plan.settings and not plan.why_off else ()
        judged, settled = await judge_night(
            plan, turns, known, seed=wired.run_id, environment=environment(), nonce=nonce
        )
        await asyncio.to_thread(self._kept.keep_judged, judged, settled)
        return judged

    # --- weighing -------------------------------------------------------------------------------------------

    def _weighing(self, judged: NightJudged) -> Weighing:
        said: dict[str, list[Assessment]] = defaultdict(list)
        for result in self._kept.results():
            said[result.case.cluster or ""].append(result.assessment)
        by_judge = bool(judged.judging.judged)
        return Weighing(self._kept.strata(), self._kept.sampled(), said, by_judge=by_judge)

    def _report(self, reading: Reading, judged: NightJudged, weighing: Weighing) -> NightReport:
        wired, sampled = self._wired, self._kept.sampled()
        severe, failed = weighing.severe(), weighing.failed()
        who = graded_by(judged.judging, RULES)
        state, told = drift_after(self._drift(), wired.night, failed, who)
        return NightReport(
            **reading.model_dump(),
            run_id=wired.run_id,
            target=wired.target,
            night=wired.night,
            finished_at=self._desk.now(),
            drawn=len(sampled),
            strata=severe,
            severe=estimate_rate(severe),
            failed=estimate_rate(failed),
            kinds=weighing.kinds(),
            graded_by=who,
            drift=state,
            drift_reading=told,
            questions=questions_of([one.conversation for one in sampled]),
            judging=judged.judging,
        )

    def _drift(self) -> DriftState | None:
        """What the nights before this one left of the test; one graded late knows nothing of later ones."""
        before = (one for one in self._earlier if one.night < self._wired.night)
        return next((one.drift for one in before if one.drift is not None), None)

    # --- telling --------------------------------------------------------------------------------------------

    async def _tell(self, report: NightReport, judged: NightJudged) -> None:
        desk, now = self._desk, self._desk.now()
        at = Sighting(
            target=desk.target,
            run_id=desk.run_id,
            seen_at=now,
            account_patterns=tuple(self._wired.facts.account_patterns),
        )
        wrong = faults(report)
        results = await asyncio.to_thread(self._kept.results)
        seen = [
            *seen_in_traffic(results, report, at, desk.settings),
            *drifted(report, at),
            *void(judged.void, at),
            *told_as_faults(wrong, at),
        ]
        open_ones = await asyncio.to_thread(desk.store.open_incidents, desk.target)
        over = traffic_over(open_ones, report, now)
        scope = Scope(
            target=desk.target,
            run_id=desk.run_id,
            began_at=report.until,
            ended_at=now,
            cleared=cleared_by(report),
        )
        await tell(desk, seen, notice=Notice(), scope=scope)
        if over:
            ended = {"told": over, "passed": over, "cleared": frozenset[IncidentKind](), "words": WEEK_WITHOUT}
            await tell(desk, [], notice=Notice(), scope=scope.model_copy(update=ended))
        still = {SCORES_UNWRITTEN, *(fault.what for fault in wrong)}
        gone = {what: words for what, words in NIGHT_FAULTS.items() if what not in still}
        await faults_over(desk, gone, began_at=report.until)

    async def _write_back(self, report: NightReport, weighing: Weighing) -> None:
        """Scores go to where the conversations were kept, where that is wished; trouble with it is told."""
        if not self._wired.settings.write_back:
            return
        sampled, source_of = await asyncio.to_thread(lambda: (self._kept.sampled(), self._kept.sources()))
        written = await write_scores(self._wired.sources, sampled, source_of, weighing)
        if written.fault is not None:
            await tell_fault(self._desk, written.fault)
        elif written.conversations:
            words = NIGHT_FAULTS[SCORES_UNWRITTEN]
            await fault_over(self._desk, SCORES_UNWRITTEN, began_at=report.until, words=words)
