"""A conversation of a real user, graded turn by turn without any gold: what can be told of it by rule."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from monitors.facts.language import identify
from monitors.gate.assess import assess
from monitors.graders.panel import grade_exchange
from monitors.graders.traffic_panel import TrafficPanel
from monitors.records.base import Identifier, Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Origin, Timings, WirePayload
from monitors.records.grades import Abstained, Aspect, Assessment, Grade, Judged
from monitors.records.runs import CaseResult
from monitors.records.traffic import Conversation

NO_GOLD: Final = "(live traffic: nobody wrote down what is right)"
NOTHING: Final = "(nothing)"
"""Stands for a message without text: a case must ask something."""
TRAFFIC: Final = "traffic"
LONGEST_ID: Final = 160


class GradedTurn(Record):
    """One reply with what the graders without a model say of it, and the ``passages`` it was made from."""

    result: CaseResult
    passages: tuple[str, ...] = ()


class TrafficGrader:
    """Grades replies by rule: disclosures, leaked errors, sources of what states figures, language."""

    def __init__(self, panel: TrafficPanel, *, severity: Severity) -> None:
        self._panel, self._severity = panel, severity

    def turns(self, conversation: Conversation, stored: Conversation, run_id: Identifier) -> tuple[GradedTurn, ...]:
        """Every reply of ``conversation``, graded as it was said; what is kept of it is what is ``stored``.

        A question that nothing came back for has no reply to grade.
        """
        graded: list[GradedTurn] = []
        for number, turn in enumerate(conversation.turns):
            if not turn.reply_text.strip():
                continue
            case, said = _case(conversation, number, self._severity), _exchange(conversation, number, run_id)
            grades = _without_places(grade_exchange(self._panel.for_turn(turn), case, said))
            kept_case, kept = _case(stored, number, self._severity), _exchange(stored, number, run_id)
            assessment = assess(kept_case, kept, grades)
            result = CaseResult(case=kept_case, result=kept, assessment=assessment)
            graded.append(GradedTurn(result=result, passages=stored.turns[number].context))
        return tuple(graded)


def is_safe_told(assessment: Assessment) -> bool:
    """Whether the checks that every reply goes through could tell."""
    told = {grade.aspect for grade in assessment.grades if isinstance(grade, Judged)}
    return {Aspect.DISCLOSURE, Aspect.ERROR_LEAK} <= told


def case_of(exchange: Exchange, assessment: Assessment) -> GoldCase:
    """The case of a reply that was graded before, made again from what was kept."""
    return GoldCase(
        id=exchange.case_id,
        turns=tuple(text or NOTHING for text in exchange.turns),
        gold=NO_GOLD,
        severity=assessment.case_severity,
        language=assessment.language,
        type=TRAFFIC,
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
        cluster=assessment.cluster,
    )


def turn_id(conversation_id: str, number: int) -> Identifier:
    """A reply's case id: the conversation and which reply it is, from 1."""
    if len(conversation_id) > LONGEST_ID:
        digest = hashlib.sha256(conversation_id.encode()).hexdigest()[:16]
        conversation_id = f"{conversation_id[:LONGEST_ID].rstrip('.')}-{digest}"
    return f"{conversation_id}:{number + 1}"


def _case(conversation: Conversation, number: int, severity: Severity) -> GoldCase:
    asked = tuple(turn.user_text or NOTHING for turn in conversation.turns[: number + 1])
    return GoldCase(
        id=turn_id(conversation.id, number),
        turns=asked,
        gold=NO_GOLD,
        severity=severity,
        language=identify(asked[-1]),
        type=TRAFFIC,
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
        cluster=conversation.id,
    )


def _exchange(conversation: Conversation, number: int, run_id: Identifier) -> Exchange:
    turn = conversation.turns[number]
    wire = WirePayload(url="", text=turn.reply_text, citations=turn.citations) if turn.citations else None
    return Exchange(
        run_id=run_id,
        case_id=turn_id(conversation.id, number),
        origin=Origin.TRAFFIC,
        turns=tuple(one.user_text for one in conversation.turns[: number + 1]),
        earlier_answers=tuple(one.reply_text for one in conversation.turns[:number]),
        visible_text=turn.reply_text,
        wire=wire,
        asked_at=conversation.completed_at,
        timings=Timings(total_ms=turn.latency_ms or 0.0),
        app_path=turn.app_path,
        app_version=conversation.app_version,
    )


def _without_places(grades: Sequence[Grade]) -> tuple[Grade, ...]:
    """Evidence points into the text as it was said; what is stored may be shorter."""
    return tuple(
        grade if isinstance(grade, Abstained) else grade.model_copy(update={"evidence": ()}) for grade in grades
    )
