"""The work of one nightly run, step by step; each step is saved before the next begins."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from flows.alerting.faults import Fault, notify_fault, resolve_faults, resolve_other_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, resolve_incidents
from flows.nightly.alerts import (
    BY_CENSUS,
    GRADED_AGAIN,
    JUDGE_SILENT,
    METRIC,
    NIGHT_FAULTS,
    SCORES_UNWRITTEN,
    WEEK_WITHOUT,
    cleared_by,
    drift_ended,
    drifted,
    fault_observations,
    faults,
    over_by_census,
    seen_by_census,
    seen_in_traffic,
    traffic_over,
    void,
)
from flows.nightly.census import Census, census_of, census_pool
from flows.nightly.census_worker import CensusSettings
from flows.nightly.checkpoint import NightlyCheckpoint, reading_of
from flows.nightly.context import NightlyContext
from flows.nightly.estimate import (
    RULES,
    STANDS,
    NightlyEstimates,
    drift_after,
    expected_grading,
    reports_rated,
    wanted_rates,
)
from flows.nightly.feedback import write_scores
from flows.nightly.grading import GradedTurn, graded_by, judge_traffic, why_unchecked
from flows.nightly.read import NightlyRead, read_traffic, watermarks_of, window
from flows.nightly.state import IntakeCheckpoint, NightlyState
from flows.process_lock import alone
from flows.waiting import doing
from monitors.alerts.observe import ObservationContext, fingerprint
from monitors.alerts.resolve import ResolutionScope
from monitors.alerts.traffic_census import Ending
from monitors.judge.calibration import FEW
from monitors.records.estimates import DriftReading, DriftState, NightlyPlan, RateEstimate
from monitors.records.grades import Assessment
from monitors.records.incidents import IncidentKind
from monitors.records.nightly import CensusKind, CensusRate, NightlyReport, SeenConversation
from monitors.records.runs import Judging
from monitors.records.traffic import Conversation, SampledConversation
from monitors.sources.privacy import protected
from monitors.sources.sampling.plan import plan_nightly
from monitors.sources.sampling.sample import Candidates, Sample, expected_rates
from monitors.stats.agreement import effective
from warehouse.queries.reviews import reviewed

GRADED_AHEAD: Final = "GradedAhead"


class NightlyRun:
    """Grades one nightly run. Its state is saved after each step, and read back only to resume a killed run."""

    def __init__(self, context: NightlyContext) -> None:
        self._context = context
        self._notifier: Notifier = context.notifier
        self._began_at = context.notifier.now()
        self._checkpoint = NightlyCheckpoint(
            context.notifier.store, context.target, context.run_id, context.folder, context.grader
        )
        self._earlier: tuple[NightlyReport, ...] = ()

    async def work(self) -> NightlyReport:
        """Do what is left of the nightly run; return the report of one graded before. Raises `MonitorError`."""
        with alone(self._context.folder.parent, f"nights of {self._context.target}", wait_s=1):
            self._earlier = await asyncio.to_thread(self._checkpoint.earlier)
            done = await asyncio.to_thread(self._checkpoint.report)
            if done is not None:
                await self._notify_of_future(done)
                return done
            doing(f"{self._context.target}: reading and grading what users asked")
            state = await asyncio.to_thread(self._checkpoint.resume)
            if state is None:
                state = await asyncio.to_thread(self._grade, await self._read())
            doing(f"{self._context.target}: judging the sample")
            if state.judged is None:
                state = await self._judge(state)
            doing(f"{self._context.target}: estimating, recording, notifying")
            estimates = await asyncio.to_thread(self._estimates, state)
            report = await asyncio.to_thread(self._report, state, estimates)
            await self._notify(report, state)
            await self._write_back(report, state, estimates)
            await asyncio.to_thread(self._checkpoint.finish, report)
            return report

    async def _notify_of_future(self, report: NightlyReport) -> None:
        """Report a nightly run that was graded before its night was over: the clock was ahead then."""
        if report.finished_at <= self._began_at:
            return
        detail = (
            "The nightly run that is due now was graded while the clock was ahead: its report says "
            f"{report.finished_at:%Y-%m-%d %H:%M} UTC. What users asked since then is graded with the next one, "
            f"which reads {self._context.settings.late_h:g} hours further back (traffic.late_h)."
        )
        await notify_fault(self._notifier, Fault(GRADED_AHEAD, detail))

    def stored(self) -> NightlyReport | None:
        """The report, once all is done; ``None`` before. Raises `WarehouseError`."""
        return self._checkpoint.report()

    async def plan(self) -> tuple[NightlyPlan | None, IntakeCheckpoint]:
        """The plan of the nightly run, if it had a conversation, and the result of reading. Stores nothing."""
        self._earlier = await asyncio.to_thread(self._checkpoint.earlier)
        read = await self._read()
        reading = await asyncio.to_thread(reading_of, read)
        return await self._plan(read) if read.count else None, reading

    async def _plan(self, read: NightlyRead) -> NightlyPlan:
        sampled = await asyncio.to_thread(self._sample, read)
        estimates = await asyncio.to_thread(self._by_rules, read, sampled)
        judge = self._context.judge
        grading = expected_grading(judge, [one.conversation for one in sampled.sampled], self._earlier)
        wanted = wanted_rates(estimates, sampled.strata, judge, self._earlier)
        return plan_nightly(sampled.strata, wanted, grading, self._context.settings.sampling)

    def _by_rules(self, read: NightlyRead, sampled: Sample) -> NightlyEstimates:
        """What rules say of a sample, in memory alone: a plan stores nothing."""
        said: dict[str, list[Assessment]] = {}
        for one in sampled.sampled:
            graded = self._context.grader.turns(one.conversation, one.conversation, self._context.run_id)
            said[one.conversation.id] = [turn.result.assessment for turn in graded]
        return NightlyEstimates(
            sampled.strata, sampled.sampled, said, disclosing=_disclosing(self._census(read).rates, read.count)
        )

    def _census(self, read: NightlyRead) -> Census:
        return census_of(tuple(read.tallies.values()), self._stored, self._context.facts.account_patterns)

    # --- reading, sampling, grading by rule: one step -------------------------------------------------------

    async def _read(self) -> NightlyRead:
        context = self._context
        past = [one for one in self._earlier if one.finished_at <= self._began_at]  # else the clock was ahead
        marks = watermarks_of(past)
        spans = {name: window(marks.get(name), context.due_at, context.reach) for name in context.sources}
        known = await asyncio.to_thread(self._checkpoint.known, {name: span.since for name, span in spans.items()})
        sampling = context.settings.sampling
        census = CensusSettings(graders=context.grader.panel.settings, sampling=sampling)
        async with census_pool(census) as pool:
            new_sample = partial(Candidates, sampling, context.seed)
            return await read_traffic(context.sources, marks, known, spans, new_sample=new_sample, pool=pool)

    def _sample(self, read: NightlyRead) -> Sample:
        earlier = [one for nightly in self._earlier for one in nightly.strata]
        return read.candidates.sample(expected_rates(read.candidates.members(), earlier))

    def _grade(self, read: NightlyRead) -> NightlyState:
        """Sample what was read, grade the sample by rule, and save that."""
        context, sample = self._context, self._sample(read)
        stored_samples, turns = dict[str, SampledConversation](), list[GradedTurn]()
        for sampled in sample.sampled:
            stored = self._stored(sampled.conversation)
            stored_samples[sampled.conversation.id] = sampled.store_as(stored)
            turns += context.grader.turns(sampled.conversation, stored, context.run_id)
        state = NightlyState(
            reading=reading_of(read, self._census(read), sample.strata),
            sample=tuple(row for row in self._seen(read, stored_samples) if row.sampled is not None),
            turns=tuple(turns),
        )
        counted = (row for row in self._seen(read, stored_samples) if row.sampled is None)
        self._checkpoint.save_reading(state, counted)
        return state

    def _stored(self, conversation: Conversation) -> Conversation:
        """The version of a conversation that may be stored."""
        context = self._context
        return protected(
            conversation, context.settings.privacy, context.key, account_patterns=context.facts.account_patterns
        )

    def _seen(self, read: NightlyRead, sampled: Mapping[str, SampledConversation]) -> Iterator[SeenConversation]:
        """Every conversation that was read. A new iterator each time: a list of a million would not fit."""
        for source, tally in read.tallies.items():
            for one in tally.taken():
                yield SeenConversation(
                    target=self._context.target,
                    source=source,
                    run_id=self._context.run_id,
                    id=one.id,
                    completed_at=one.completed_at,
                    stratum=one.stratum,
                    sampled=sampled.get(one.id),
                )

    # --- judging --------------------------------------------------------------------------------------------

    async def _judge(self, state: NightlyState) -> NightlyState:
        context = self._context
        plan = context.judge
        known = await asyncio.to_thread(context.gold) if plan.settings and not plan.why_off else ()
        judged, settled = await judge_traffic(
            plan, state.turns, known, seed=context.run_id, environment=context.environment, nonce=context.nonce
        )
        await asyncio.to_thread(self._checkpoint.save_judged, judged, settled)
        return state.complete(judged, settled)

    # --- evaluating -----------------------------------------------------------------------------------------

    def _estimates(self, state: NightlyState) -> NightlyEstimates:
        reading, assessments = state.reading, defaultdict[str, list[Assessment]](list)
        for result in state.results:
            assessments[result.case.cluster or ""].append(result.assessment)
        found = self._reviews(state.judging.judging)
        confusion = effective(found) if len(found) >= FEW else None
        return NightlyEstimates(
            reading.strata,
            state.conversations,
            assessments,
            why_unchecked=why_unchecked(state.judging),
            confusion=confusion,
            disclosing=_disclosing(reading.census, reading.read),
            failing=_failing(reading.census, reading.read),
        )

    def _reviews(self, judging: Judging) -> list[tuple[bool, bool, float]]:
        """What people said of the verdicts of the judges that spoke, on this target, whenever that was."""
        judges = frozenset(judging.lineages)
        return [
            (one.judge_passed, one.people_right, one.inclusion_probability)
            for one in (reviewed(self._notifier.store, target=self._context.target) if judges else ())
            if one.lineage in judges
        ]

    def _report(self, state: NightlyState, estimates: NightlyEstimates) -> NightlyReport:
        context, reading, judging = self._context, state.reading, state.judging.judging
        who = graded_by(judging, RULES)
        drift, drift_reading = self._drift_after(judging, estimates, who)
        failed = estimates.failed()
        corrected = isinstance(failed, RateEstimate) and failed.corrected
        return NightlyReport(
            since=reading.since,
            until=reading.until,
            read=reading.read,
            known=reading.known,
            repeated=reading.repeated,
            questions=reading.questions,
            watermarks=reading.watermarks,
            issues=reading.issues,
            issue_count=reading.issue_count,
            interrupted=reading.interrupted,
            census=reading.census,
            run_id=context.run_id,
            target=context.target,
            due_at=context.due_at,
            finished_at=self._notifier.now(),
            sampled=len(state.sample),
            strata=estimates.severe_found(),
            fact_strata=estimates.facts(),
            severe=estimates.severe(),
            failed=failed,
            kinds=estimates.kinds(),
            facts=estimates.checked(),
            known_questions=estimates.against_gold(),
            reports=reports_rated(state.results),
            reviews=len(self._reviews(judging)) if corrected else 0,
            graded_by=who,
            drift=drift,
            drift_reading=drift_reading,
            judging=judging,
        )

    def _drift_after(
        self, judging: Judging, estimates: NightlyEstimates, who: str
    ) -> tuple[DriftState | None, DriftReading | None]:
        """The drift test after this run, where all that it follows was graded; else unchanged, without a reading.

        With a judge the test follows the facts, without any what rules find: a judge that did not speak changes
        neither.
        """
        if judging.judged and not judging.is_short and not judging.void_groups:
            counts = estimates.facts()
        elif self._context.judge.settings is None:
            counts = estimates.found_by_rules(besides=BY_CENSUS)
        else:
            return self._drift(), None
        if not any(one.graded for one in counts):
            return self._drift(), None
        return drift_after(self._drift(), self._context.due_at, counts, who)

    def _drift(self) -> DriftState | None:
        """The drift test after the nightly runs before this one; a run graded late ignores later ones."""
        before = (one for one in self._earlier if one.due_at < self._context.due_at)
        return next((one.drift for one in before if one.drift is not None), None)

    # --- notifying ------------------------------------------------------------------------------------------

    async def _notify(self, report: NightlyReport, state: NightlyState) -> None:
        notifier, now = self._notifier, self._notifier.now()
        at = ObservationContext(
            target=notifier.target,
            run_id=notifier.run_id,
            seen_at=now,
            account_patterns=tuple(self._context.facts.account_patterns),
            owner=notifier.owner,
        )
        wrong = faults(report)
        seen = [
            *seen_by_census(
                report,
                self._earlier,
                state.reading.examples,
                at=at,
                settings=notifier.settings,
                severity=self._context.settings.severity,
            ),
            *seen_in_traffic(state.results, report, at, notifier.settings),
            *drifted(report, state.results, at, notifier.settings),
            *void(state.judging.void, at),
            *fault_observations(wrong, at),
        ]
        open_ones = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
        over = traffic_over(open_ones, report, self._earlier, now)
        scope = ResolutionScope(
            target=notifier.target,
            run_id=notifier.run_id,
            began_at=report.until,
            ended_at=now,
            cleared=cleared_by(report),
        )
        await notify(notifier, seen, scope=scope)
        endings = [
            *over_by_census(report, self._earlier, open_ones),
            *(Ending(case, WEEK_WITHOUT) for case in sorted(over)),
        ]
        for case, text in endings:
            await notify(notifier, [], scope=scope.narrow_to(cases={case}, text=text))
        await self._end_drift(report, scope)
        still = {SCORES_UNWRITTEN, *(fault.what for fault in wrong)}
        if not (report.judging.judged or report.judging.void_grades):  # what is void was an answer too
            still.add(JUDGE_SILENT)
        gone = {what: text for what, text in NIGHT_FAULTS.items() if what not in still}
        await resolve_faults(notifier, gone, began_at=report.until)
        await resolve_other_faults(notifier, but=NIGHT_FAULTS, ending=GRADED_AGAIN, began_at=self._began_at)

    async def _end_drift(self, report: NightlyReport, scope: ResolutionScope) -> None:
        """Report a rate that is back. A new rate that stood for a week is no news and no success."""
        text = drift_ended(report)
        if text:
            await notify(self._notifier, [], scope=scope.narrow_to(cleared={IncidentKind.DRIFT}, text=text))
        elif report.drift_reading is not None and report.drift_reading.reason == STANDS:
            drift = fingerprint(self._notifier.target, IncidentKind.DRIFT, METRIC)
            await resolve_incidents(self._notifier, {drift: None}, began_at=self._notifier.now())

    async def _write_back(self, report: NightlyReport, state: NightlyState, estimates: NightlyEstimates) -> None:
        """Write scores to the sources of the conversations, where that is wanted; report trouble with it."""
        if not self._context.settings.write_back:
            return
        written = await write_scores(self._context.sources, state.conversations, state.sources, estimates)
        if written.fault is not None:
            await notify_fault(self._notifier, written.fault)
        elif written.conversations:
            text = NIGHT_FAULTS[SCORES_UNWRITTEN]
            await resolve_faults(self._notifier, {SCORES_UNWRITTEN: text}, began_at=report.until)


def _disclosing(census: Sequence[CensusRate], read: int) -> tuple[int, int] | None:
    """How many of all conversations disclose something, where rules checked them all."""
    found = next((one.found for one in census if one.kind is CensusKind.DISCLOSURE), None)
    return None if found is None else (found, read)


def _failing(census: Sequence[CensusRate], read: int) -> float:
    """The share of all conversations that rules alone show to have failed, at the least."""
    return max((one.found for one in census if one.kind.always_fails), default=0) / read if read else 0.0
