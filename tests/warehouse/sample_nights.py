"""Records about a night of live traffic, with which tests fill a warehouse."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from monitors.records.estimates import DriftReading, GradedStratum, RateEstimate
from monitors.records.nightly import NightlyReport, QuestionsAsked, SeenConversation
from monitors.records.runs import JudgeState, Judging
from monitors.records.traffic import Conversation, Feedback, SampledConversation, Thumb, Turn, Watermark
from tests.warehouse.sample_rows import NOON
from warehouse.database.store import Store
from warehouse.queries.traffic import list_recent_nightly_reports


def seen(
    name: str = "talk-1", run_id: str = "night-1", *, sampled_in: str | None = None, minutes: float = 0
) -> SeenConversation:
    """Return a conversation that a nightly run counted.

    If ``sampled_in`` is a text, the conversation was sampled, and each of its text fields contains this text.
    """
    moment = NOON + timedelta(minutes=minutes)
    sampled = None
    if sampled_in is not None:
        turn = Turn(
            user_text=sampled_in,
            reply_text=sampled_in,
            citations=(sampled_in,),
            context=(sampled_in,),
            app_path=sampled_in,
            latency_ms=800,
            feedback=Feedback(thumb=Thumb.DOWN, comment=sampled_in),
        )
        talk = Conversation(
            id=name, origin_id=f"{sampled_in} {name}", completed_at=moment, turns=(turn, turn), user_key=sampled_in
        )
        sampled = SampledConversation(conversation=talk, stratum="disclosure", inclusion_probability=0.1)
    return SeenConversation(
        target="helpdesk",
        source="chats",
        run_id=run_id,
        id=name,
        completed_at=moment,
        stratum="disclosure",
        sampled=sampled,
    )


def rate(value: float) -> RateEstimate:
    """Return a rate over a thousand conversations, of which 100 were sampled and 90 graded."""
    return RateEstimate(
        rate=value,
        low=value / 2,
        high=value * 2,
        low_if_ungraded_right=value / 3,
        high_if_ungraded_failed=value * 3,
        conversations=1000,
        sampled=100,
        graded=90,
        coverage=0.9,
        confidence=0.95,
        corrected=False,
        method="stratified",
    )


def drift_reading(before: float, after: float, *, drifted: bool) -> DriftReading:
    return DriftReading(
        drifted=drifted,
        e_value=25 if drifted else 1,
        since=NOON - timedelta(days=2),
        before=before,
        before_low=0,
        before_high=1,
        after=after,
        after_low=0,
        after_high=1,
        graded_before=500,
        graded_after=200,
        reason="one test for all nights",
    )


def night_report(run_id: str = "night-1", *, nights: int = 0, late_s: float = 0) -> NightlyReport:
    """Return the report of the nightly run that was due ``nights`` days after `NOON`."""
    begun = NOON + timedelta(days=nights)
    return NightlyReport(
        run_id=run_id,
        target="helpdesk",
        due_at=begun,
        since=begun - timedelta(days=1),
        until=begun,
        finished_at=begun + timedelta(hours=1, seconds=late_s),
        read=1000,
        known=20,
        sampled=100,
        watermarks=(Watermark(source="chats", completed_to=begun),),
        strata=(
            GradedStratum(stratum="disclosure", conversations=100, sampled=50, graded=45, failures=2),
            GradedStratum(stratum="rest", conversations=900, sampled=50, graded=45, failures=0),
        ),
        severe=rate(0.004),
        failed=rate(0.04),
        graded_by="claude-haiku-5-5",
        questions=QuestionsAsked(questions=0, up=0, down=0),
        judging=Judging(state=JudgeState.ON, cost_usd=Decimal("0.123456789")),
    )


def list_sampled_conversations(store: Store, run_id: str) -> tuple[SeenConversation, ...]:
    """Return the stored conversations that a nightly run sampled, in the order of their completion."""
    table = store.query(
        "select target, source, run_id, id, completed_at, stratum, record, inclusion_probability from conversations"
        " where run_id = ? and record is not null order by completed_at, source, id",
        [run_id],
    )
    return tuple(_build_conversation(row) for row in table.rows)


def _build_conversation(row: tuple[object, ...]) -> SeenConversation:
    target, source, run_id, key, completed_at, stratum, record, probability = row
    sampled = {
        "conversation": Conversation.model_validate_json(str(record)),
        "stratum": stratum,
        "inclusion_probability": probability,
    }
    return SeenConversation.model_validate(
        {
            "target": target,
            "source": source,
            "run_id": run_id,
            "id": key,
            "completed_at": completed_at,
            "stratum": stratum,
            "sampled": SampledConversation.model_validate(sampled),
        }
    )


def find_newest_report(store: Store, target: str = "helpdesk") -> NightlyReport | None:
    """Return a target's newest nightly report, or ``None`` if it has none."""
    return next(iter(list_recent_nightly_reports(store, target, 1)), None)
