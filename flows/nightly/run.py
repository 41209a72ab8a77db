"""Runs one nightly run step by step. The result of each step is stored before the next step starts."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from flows.alerting.faults import Fault, notify_fault, resolve_faults, resolve_other_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, resolve_incidents_and_send_alerts
from flows.nightly.alerts import (
    CENSUS_FAILURE_KINDS,
    GRADED_AGAIN_TEXT,
    JUDGE_SILENT,
    METRIC,
    NIGHT_FAULTS,
    RESOLVED_TEXT,
    SCORES_UNWRITTEN,
    USEFULNESS_METRIC,
    build_drift_observations,
    build_fault_observations,
    build_low_rating_observations,
    build_nightly_census_observations,
    build_traffic_observations,
    build_unreliable_judge_observations,
    find_incident_kinds_to_resolve,
    find_incidents_resolved_by_census,
    find_nightly_faults,
    find_resolved_case_ids,
    format_drift_recovery,
    has_low_ratings,
)
from flows.nightly.census import Census, CensusPool, build_census
from flows.nightly.census_worker import CensusSettings
from flows.nightly.checkpoint import NightlyCheckpoint, build_intake_checkpoint
from flows.nightly.context import NightlyContext
from flows.nightly.estimate import (
    NEW_REFERENCE_REASON,
    RULES,
    NightlyEstimates,
    compute_average_report_rating,
    estimate_judge_calls_and_cost,
    predict_reportable_rates,
    update_drift,
)
from flows.nightly.feedback import write_scores_to_sources
from flows.nightly.format import build_nightly_report_text, format_report_ratings
from flows.nightly.grading import GradedTurn, explain_unchecked_facts, format_grader_identity, judge_traffic
from flows.nightly.read import NightlyRead, build_intake_window, collect_newest_watermarks, read_traffic
from flows.nightly.state import IntakeCheckpoint, NightlyState
from flows.process_lock import hold_job_lock_without_waiting
from flows.waiting import update_waiting
from monitors.alerts.message import NIGHT_LABEL
from monitors.alerts.observe import ObservationContext, compute_fingerprint
from monitors.alerts.redact import build_redactor
from monitors.alerts.resolve import ResolutionScope
from monitors.alerts.traffic_census import Ending
from monitors.judge.calibration import MIN_REVIEWS
from monitors.records.estimates import DriftReading, DriftState, NightlyPlan, RateEstimate
from monitors.records.grades import Assessment
from monitors.records.incidents import IncidentKind, Link, RunSummary
from monitors.records.nightly import CensusKind, CensusRate, NightlyReport, SeenConversation
from monitors.records.runs import Judging
from monitors.records.traffic import Conversation, SampledConversation
from monitors.reports.night import write_night_reports
from monitors.reports.write import build_report_paths
from monitors.sources.privacy import protect_conversation
from monitors.sources.sampling.plan import plan_nightly
from monitors.sources.sampling.sample import Candidates, Sample, compute_expected_failure_rates
from monitors.stats.agreement import compute_effective_counts
from warehouse.queries.reviews import list_answers_judged_and_reviewed

GRADED_AHEAD_FAULT: Final = "GradedAhead"


class NightlyRun:
    """Executes one nightly run. The state is stored after each step, so that a killed run can be resumed."""

    def __init__(self, context: NightlyContext) -> None:
        self._context = context
        self._notifier: Notifier = context.notifier
        self._began_at = context.notifier.now()
        self._checkpoint = NightlyCheckpoint(
            context.notifier.store, context.target, context.run_id, context.folder, context.grader
        )
        self._earlier: tuple[NightlyReport, ...] = ()

    async def run(self) -> NightlyReport:
        """Run or resume the nightly run, and return its report. A finished run is not run again.

        Raises `MonitorError`. Raises `AlreadyRuns` while another process grades this target.
        """
        with hold_job_lock_without_waiting(self._context.folder.parent, f"a nightly run of {self._context.target}"):
            self._earlier = await asyncio.to_thread(self._checkpoint.load_journal_and_earlier_reports)
            done = await asyncio.to_thread(self._checkpoint.load_report)
            if done is not None:
                await self._notify_if_graded_too_early(done)
                return done
            update_waiting(f"{self._context.target}: reading and grading conversations")
            state = await asyncio.to_thread(self._checkpoint.load_state_to_resume)
            if state is None:
                state = await asyncio.to_thread(self._sample_and_grade_by_rules, await self._read_new_traffic())
            update_waiting(f"{self._context.target}: judging the sample")
            if state.judged is None:
                state = await self._judge_open_replies(state)
            update_waiting(f"{self._context.target}: estimating, recording, notifying")
            estimates = await asyncio.to_thread(self._build_estimates, state)
            report = await asyncio.to_thread(self._build_report, state, estimates)
            await asyncio.to_thread(self._write_reports, report, state)
            await self._notify_of_results(report, state)
            await self._write_scores_back_if_enabled(report, state, estimates)
            await asyncio.to_thread(self._checkpoint.store_report_and_finish, report)
            return report

    async def _notify_if_graded_too_early(self, report: NightlyReport) -> None:
        """Report a fault if ``report`` was finished after this `NightlyRun` was created.

        Such a finish time shows that the nightly run was graded too early, because the clock was ahead.
        """
        if report.finished_at <= self._began_at:
            return
        detail = (
            "The nightly run that is due now ran too early, because the clock was ahead. The time in its report "
            f"is {report.finished_at:%Y-%m-%d %H:%M} UTC. The next nightly run also grades the later "
            f"conversations: it reads {self._context.settings.late_h:g} hours further back (traffic.late_h)."
        )
        await notify_fault(self._notifier, Fault(GRADED_AHEAD_FAULT, detail))

    def load_report(self) -> NightlyReport | None:
        """Load the report, or ``None`` if the run is not finished. Raises `WarehouseError`."""
        return self._checkpoint.load_report()

    async def plan(self) -> tuple[NightlyPlan | None, IntakeCheckpoint]:
        """Return the plan of the nightly run, and the result of reading the sources. Nothing is stored.

        The plan is ``None`` if there is no new conversation.
        """
        self._earlier = await asyncio.to_thread(self._checkpoint.load_journal_and_earlier_reports)
        read = await self._read_new_traffic()
        reading = await asyncio.to_thread(build_intake_checkpoint, read)
        return await self._build_plan(read) if read.count else None, reading

    async def _build_plan(self, read: NightlyRead) -> NightlyPlan:
        sampled = await asyncio.to_thread(self._draw_sample, read)
        estimates = await asyncio.to_thread(self._estimate_rates_by_rules, read, sampled)
        judge = self._context.judge
        grading = estimate_judge_calls_and_cost(
            judge, [sampled_conversation.conversation for sampled_conversation in sampled.sampled], self._earlier
        )
        wanted = predict_reportable_rates(estimates, sampled.strata, judge, self._earlier)
        return plan_nightly(sampled.strata, wanted, grading, self._context.effective_sampling)

    def _estimate_rates_by_rules(self, read: NightlyRead, sampled: Sample) -> NightlyEstimates:
        """Grade a sample with rules, and build the estimates from it, without storing anything."""
        assessments: dict[str, list[Assessment]] = {}
        census = self._build_census(read)
        unseen = [read.tallies[name].intake for name, cites in census.citing.items() if not cites]
        for sampled_conversation in sampled.sampled:
            conversation = sampled_conversation.conversation
            graded = self._context.grader.grade_turns(
                conversation,
                conversation,
                self._context.run_id,
                checks_citations=not any(conversation.id in intake for intake in unseen),
            )
            assessments[sampled_conversation.conversation.id] = [turn.result.assessment for turn in graded]
        return NightlyEstimates(
            sampled.strata,
            sampled.sampled,
            assessments,
            disclosing=_count_disclosing_conversations(census.rates, read.count),
        )

    def _build_census(self, read: NightlyRead) -> Census:
        context = self._context
        census = build_census(
            tuple(read.tallies.values()), self._protect_for_storage, context.facts.account_patterns
        )
        if not context.grader.grades_citations:
            return census
        cited = {name for nightly in self._earlier for name, cites in nightly.citations_checked.items() if cites}
        return census._replace(
            citing={name: tally.shows_citations or name in cited for name, tally in read.tallies.items()}
        )

    # --- reading, sampling, grading by rule: one step -------------------------------------------------------

    async def _read_new_traffic(self) -> NightlyRead:
        context = self._context
        past = [
            nightly for nightly in self._earlier if nightly.finished_at <= self._began_at
        ]  # a run whose finish time is in the future ran while the clock was ahead
        marks = collect_newest_watermarks(past)
        spans = {
            name: build_intake_window(marks.get(name), context.due_at, context.lookback_window)
            for name in context.sources
        }
        known_ids = await asyncio.to_thread(
            self._checkpoint.load_known_conversation_ids, {name: span.since for name, span in spans.items()}
        )
        sampling = context.effective_sampling
        census = CensusSettings(
            graders=context.grader.panel.settings,
            sampling=sampling,
            counts_citations=context.grader.grades_citations,
        )
        async with aclosing(CensusPool(census)) as pool:
            new_sample = partial(Candidates, sampling, context.seed)
            return await read_traffic(context.sources, marks, known_ids, spans, new_sample=new_sample, pool=pool)

    def _draw_sample(self, read: NightlyRead) -> Sample:
        earlier = [stratum for nightly in self._earlier for stratum in nightly.strata]
        return read.candidates.sample(
            compute_expected_failure_rates(read.candidates.sort_candidates_by_place(), earlier)
        )

    def _sample_and_grade_by_rules(self, read: NightlyRead) -> NightlyState:
        """Draw the sample, grade it with rules, and store the state."""
        context, sample = self._context, self._draw_sample(read)
        census = self._build_census(read)
        unseen = [read.tallies[name].intake for name, cites in census.citing.items() if not cites]
        stored_samples, turns = dict[str, SampledConversation](), list[GradedTurn]()
        for sampled in sample.sampled:
            stored = self._protect_for_storage(sampled.conversation)
            stored_samples[sampled.conversation.id] = sampled.with_conversation(stored)
            turns += context.grader.grade_turns(
                sampled.conversation,
                stored,
                context.run_id,
                checks_citations=not any(sampled.conversation.id in intake for intake in unseen),
            )
        state = NightlyState(
            reading=build_intake_checkpoint(read, census, sample.strata),
            sample=tuple(
                row for row in self._iterate_conversations(read, stored_samples) if row.sampled is not None
            ),
            turns=tuple(turns),
        )
        counted = (row for row in self._iterate_conversations(read, stored_samples) if row.sampled is None)
        self._checkpoint.store_read_conversations(state, counted)
        return state

    def _protect_for_storage(self, conversation: Conversation) -> Conversation:
        """Return the version of a conversation that may be stored, according to the privacy setting."""
        context = self._context
        return protect_conversation(
            conversation, context.settings.privacy, context.key, account_patterns=context.facts.account_patterns
        )

    def _iterate_conversations(
        self, read: NightlyRead, sampled: Mapping[str, SampledConversation]
    ) -> Iterator[SeenConversation]:
        """Yield each conversation that was read. A list of all conversations may not fit in memory."""
        for source, tally in read.tallies.items():
            for taken in tally.iterate_taken_conversations():
                yield SeenConversation(
                    target=self._context.target,
                    source=source,
                    run_id=self._context.run_id,
                    id=taken.id,
                    completed_at=taken.completed_at,
                    stratum=taken.stratum,
                    sampled=sampled.get(taken.id),
                )

    # --- judging --------------------------------------------------------------------------------------------

    async def _judge_open_replies(self, state: NightlyState) -> NightlyState:
        context = self._context
        plan = context.judge
        judged, results = await judge_traffic(
            plan,
            state.turns,
            context.grader.gold_cases,
            seed=context.run_id,
            environment=context.environment,
            nonce=context.nonce,
        )
        await asyncio.to_thread(self._checkpoint.save_judged_replies, judged, results)
        return state.with_judging(judged, results)

    # --- evaluating -----------------------------------------------------------------------------------------

    def _build_estimates(self, state: NightlyState) -> NightlyEstimates:
        reading, assessments = state.reading, defaultdict[str, list[Assessment]](list)
        for result in state.results:
            assessments[result.case.cluster or ""].append(result.assessment)
        reviews = self._load_reviews_of_this_judge(state.judging.judging)
        confusion = compute_effective_counts(reviews) if len(reviews) >= MIN_REVIEWS else None
        return NightlyEstimates(
            reading.strata,
            state.conversations,
            assessments,
            why_unchecked=explain_unchecked_facts(state.judging),
            confusion=confusion,
            disclosing=_count_disclosing_conversations(reading.census, reading.read),
            failing=_compute_min_failed_share(reading.census, reading.read),
        )

    def _load_reviews_of_this_judge(self, judging: Judging) -> list[tuple[bool, bool, float]]:
        """Load the human reviews of the verdicts that this run's judges gave on this target."""
        judges = frozenset(judging.lineages)
        return [
            (review.judge_passed, review.people_right, review.inclusion_probability)
            for review in (
                list_answers_judged_and_reviewed(self._notifier.store, target=self._context.target)
                if judges
                else ()
            )
            if review.lineage in judges
        ]

    def _build_report(self, state: NightlyState, estimates: NightlyEstimates) -> NightlyReport:
        context, reading, judging = self._context, state.reading, state.judging.judging
        graders = format_grader_identity(judging, RULES)
        drift, drift_reading = self._update_drift(judging, estimates, graders)
        failed = estimates.estimate_failed_rate()
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
            unusable=reading.unusable,
            interrupted=reading.interrupted,
            citations_checked=reading.citations_checked,
            census=reading.census,
            run_id=context.run_id,
            target=context.target,
            due_at=context.due_at,
            finished_at=self._notifier.now(),
            sampled=len(state.sample),
            strata=estimates.count_severe_failures_by_stratum(),
            fact_strata=estimates.count_fact_failures_by_stratum(),
            severe=estimates.estimate_severe_rate(),
            failed=failed,
            kinds=estimates.estimate_kind_rates(),
            facts=estimates.count_facts_checked(),
            known_questions=estimates.count_conversations_with_known_question(),
            reports=compute_average_report_rating(state.results),
            reviews=len(self._load_reviews_of_this_judge(judging)) if corrected else 0,
            graded_by=graders,
            drift=drift,
            drift_reading=drift_reading,
            judging=judging,
        )

    def _write_reports(self, report: NightlyReport, state: NightlyState) -> None:
        """Write the report files of the nightly run. The alerts link to these files."""
        context, text = self._context, build_nightly_report_text(report, state.reading.examples)
        redact = build_redactor(context.facts.account_patterns, context.grader.gold_cases)
        write_night_reports(context.folder, report, state.results, text, redact=redact, settings=context.reports)

    def _update_drift(
        self, judging: Judging, estimates: NightlyEstimates, graders: str
    ) -> tuple[DriftState | None, DriftReading | None]:
        """Add this run to the drift test. If this run lacks grades, return the state of the test unchanged.

        With a judge, the test compares the rate of wrong facts. Without a judge, the test compares the rate of
        failures that rules found. If a judge is configured and gave no valid verdict, the state does not change.
        """
        if judging.judged and not judging.has_too_few_verdicts and not judging.void_groups:
            counts = estimates.count_fact_failures_by_stratum()
        elif self._context.judge.settings is None:
            counts = estimates.count_rule_failures_by_stratum(except_kinds=CENSUS_FAILURE_KINDS)
        else:
            return self._find_earlier_drift_state(), None
        if not any(stratum.graded for stratum in counts):
            return self._find_earlier_drift_state(), None
        return update_drift(self._find_earlier_drift_state(), self._context.due_at, counts, graders)

    def _find_earlier_drift_state(self) -> DriftState | None:
        """Find the state of the drift test after the nightly runs that were due before this run."""
        before = (nightly for nightly in self._earlier if nightly.due_at < self._context.due_at)
        return next((nightly.drift for nightly in before if nightly.drift is not None), None)

    # --- notifying ------------------------------------------------------------------------------------------

    async def _notify_of_results(self, report: NightlyReport, state: NightlyState) -> None:
        notifier, now = self._notifier, self._notifier.now()
        context = ObservationContext(
            target=notifier.target,
            run_id=notifier.run_id,
            seen_at=now,
            account_patterns=tuple(self._context.facts.account_patterns),
            owner=notifier.owner,
        )
        faults = find_nightly_faults(report)
        observations = [
            *build_nightly_census_observations(
                report,
                self._earlier,
                state.reading.examples,
                context=context,
                settings=notifier.settings,
                severity=self._context.settings.severity,
            ),
            *build_traffic_observations(state.results, report, context, notifier.settings),
            *build_drift_observations(report, state.results, context, notifier.settings),
            *build_low_rating_observations(report, context, floor=self._context.min_rubric),
            *build_unreliable_judge_observations(state.judging.void, context),
            *build_fault_observations(faults, context),
        ]
        open_incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
        resolved = find_resolved_case_ids(open_incidents, report, self._earlier, now)
        scope = ResolutionScope(
            target=notifier.target,
            run_id=notifier.run_id,
            began_at=report.until,
            ended_at=now,
            cleared=find_incident_kinds_to_resolve(report),
        )
        summary = RunSummary(
            links=(Link(label=NIGHT_LABEL, href=str(build_report_paths(self._context.folder).html)),)
        )
        await notify(notifier, observations, summary=summary, scope=scope)
        endings = [
            *find_incidents_resolved_by_census(report, self._earlier, open_incidents),
            *(Ending(case, RESOLVED_TEXT) for case in sorted(resolved)),
        ]
        for case, text in endings:
            await notify(notifier, [], summary=summary, scope=scope.narrow_to(cases={case}, text=text))
        if (
            report.reports is not None
            and report.reports.rated
            and not has_low_ratings(report, self._context.min_rubric)
        ):
            low = compute_fingerprint(notifier.target, IncidentKind.DRIFT, USEFULNESS_METRIC)
            await resolve_incidents_and_send_alerts(
                notifier, {low: format_report_ratings(report.reports)}, began_at=report.until
            )
        if not has_low_ratings(report, self._context.min_rubric):
            await self._resolve_drift_incident_if_over(report, scope, summary)
        open_names = {SCORES_UNWRITTEN, *(fault.name for fault in faults)}
        if not (report.judging.judged or report.judging.void_grades):  # a void verdict is an answer too
            open_names.add(JUDGE_SILENT)
        resolved_texts = {name: text for name, text in NIGHT_FAULTS.items() if name not in open_names}
        await resolve_faults(notifier, resolved_texts, began_at=report.until)
        await resolve_other_faults(
            notifier, except_names=NIGHT_FAULTS, ending=GRADED_AGAIN_TEXT, began_at=self._began_at
        )

    async def _resolve_drift_incident_if_over(
        self, report: NightlyReport, scope: ResolutionScope, summary: RunSummary
    ) -> None:
        """Resolve the drift incident if the rate is normal again, or if the changed rate is the new normal.

        An alert is sent only in the first case.
        """
        text = format_drift_recovery(report)
        if text:
            ended = scope.narrow_to(cleared={IncidentKind.DRIFT}, text=text)
            await notify(self._notifier, [], summary=summary, scope=ended)
        elif report.drift_reading is not None and report.drift_reading.reason == NEW_REFERENCE_REASON:
            drift = compute_fingerprint(self._notifier.target, IncidentKind.DRIFT, METRIC)
            await resolve_incidents_and_send_alerts(self._notifier, {drift: None}, began_at=self._notifier.now())

    async def _write_scores_back_if_enabled(
        self, report: NightlyReport, state: NightlyState, estimates: NightlyEstimates
    ) -> None:
        """Write the scores to the sources of the conversations, if `write_back` is set.

        An error is reported to Lookout's owners as an internal fault.
        """
        if not self._context.settings.write_back:
            return
        written = await write_scores_to_sources(
            self._context.sources, state.conversations, state.sources, estimates
        )
        if written.fault is not None:
            await notify_fault(self._notifier, written.fault)
        elif written.conversations:
            text = NIGHT_FAULTS[SCORES_UNWRITTEN]
            await resolve_faults(self._notifier, {SCORES_UNWRITTEN: text}, began_at=report.until)


def _count_disclosing_conversations(census: Sequence[CensusRate], read: int) -> tuple[int, int] | None:
    """Return how many conversations disclose personal data, and how many conversations were read.

    Return ``None`` without a census.
    """
    disclosures = next((rate.found for rate in census if rate.kind is CensusKind.DISCLOSURE), None)
    return None if disclosures is None else (disclosures, read)


def _compute_min_failed_share(census: Sequence[CensusRate], read: int) -> float:
    """Compute the minimum share of failed conversations from the census.

    Some kinds in the census always fail a conversation. The result is the share of the most frequent of these
    kinds.
    """
    return max((rate.found for rate in census if rate.kind.always_fails), default=0) / read if read else 0.0
