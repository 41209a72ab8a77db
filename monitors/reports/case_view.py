"""One case as the page shows it: every text already masked, marked and cut; nothing left to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, assert_never

from monitors.records.base import Blame
from monitors.records.exchanges import Attempt, Channel, Exchange, NoAnswer
from monitors.records.grades import Abstained, Assessment, FailureKind, Grade, Judged
from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult
from monitors.reports.drawing import Pieces, TextDrawer
from monitors.reports.history import since_words
from monitors.reports.masking import Redact, secrets_of
from monitors.reports.screenshots import Picture, PictureAlbum
from monitors.reports.wording import BLAME_WORDS, KIND_WORDS, NO_ANSWER_WORDS, moment, seconds

_GRADE_ORDER: Final = ("failed", "passed", "abstained")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One text that came back: what the user saw, what was sent, or both when they are the same."""

    title: str
    pieces: Pieces
    graded: bool


@dataclass(frozen=True, slots=True)
class GradeView:
    """One grader's verdict in words. ``result`` is ``failed``, ``passed`` or ``abstained``.

    ``about`` is the failure kind, or the question that was not failed; ``note`` is the judge, or whose fault.
    """

    result: str
    about: str
    grader: str
    reason: Pieces
    note: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """An earlier turn of a conversation."""

    asked: Pieces
    answered: Pieces


@dataclass(frozen=True, slots=True)
class CaseView:
    """A case, what came back, and what it came to."""

    anchor: str
    id: str
    severity: int
    raised_from: int | None
    policy_row: str
    kinds: tuple[str, ...]
    type: str
    language: str
    cluster: str
    app_path: str
    unconfirmed: bool
    blame: str
    since: str
    reason: Pieces
    earlier: tuple[TurnView, ...]
    question: Pieces
    gold: Pieces
    alternatives: tuple[Pieces, ...]
    must_refuse: bool
    must_cite: str
    answers: tuple[AnswerView, ...]
    no_answer: str
    detail: Pieces
    grades: tuple[GradeView, ...]
    facts: tuple[str, ...]
    attempts: tuple[Pieces, ...]
    console_errors: tuple[Pieces, ...]
    picture: Picture
    trace_href: str


def anchor_of(result: CaseResult) -> str:
    """The fragment under which the page shows the case: ``case-<id>``, then ``/2`` for its third time of asking."""
    repeat = result.result.repeat
    return f"case-{result.case.id}" + (f"/{repeat}" if repeat else "")


@dataclass(frozen=True, slots=True)
class CaseViewer:
    """Turns case results into views: the run's pictures, redaction, known incidents and limits in one place."""

    album: PictureAlbum
    redact: Redact
    incidents: Mapping[str, Incident]
    commit: str | None
    limit: int

    def view(self, result: CaseResult) -> CaseView:
        """The whole of one case."""
        case, came, found = result.case, result.result, result.assessment
        draw = TextDrawer(self.redact, secrets_of(result), self.limit)
        return CaseView(
            anchor=anchor_of(result),
            id=case.id,
            severity=found.severity,
            raised_from=found.case_severity if found.case_severity != found.severity else None,
            policy_row=found.policy_row,
            kinds=tuple(KIND_WORDS[kind] for kind in found.failure_kinds),
            type=found.type,
            language=found.language,
            cluster=found.cluster or "",
            app_path=found.app_path or "",
            unconfirmed=found.unconfirmed,
            blame=BLAME_WORDS[found.blame] if found.blame else "",
            since=since_words(self.incidents.get(case.id), self.commit),
            reason=draw.plain(found.reason),
            earlier=_earlier(result, draw),
            question=draw.plain(case.question),
            gold=draw.marked(case.gold, "gold", found.grades),
            alternatives=tuple(draw.plain(text) for text in case.alternatives),
            must_refuse=case.expected_refusal,
            must_cite=case.expected_citation or "",
            answers=_answers(came, found.grades, draw),
            no_answer=NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "",
            detail=draw.plain(came.detail) if isinstance(came, NoAnswer) else (),
            grades=_grades(found.grades, draw),
            facts=_facts(came),
            attempts=tuple(draw.plain(_attempt(attempt)) for attempt in came.failed_attempts),
            console_errors=tuple(draw.plain(text, 400) for text in came.evidence.console_errors[:20]),
            picture=self.album.picture(came.evidence.screenshot, personal=self._is_personal(came, found)),
            trace_href="" if self._is_personal(came, found) else self.album.link(came.evidence.trace),
        )

    def _is_personal(self, came: Exchange | NoAnswer, found: Assessment) -> bool:
        """Whether its picture would show what the page's text hides."""
        text = came.visible_text if isinstance(came, Exchange) else came.partial_text
        return FailureKind.PII_DISCLOSURE in found.failure_kinds or self.redact(text) != text


def _earlier(result: CaseResult, draw: TextDrawer) -> tuple[TurnView, ...]:
    answers = result.result.earlier_answers if isinstance(result.result, Exchange) else ()
    turns = result.case.turns[:-1]
    padded = (*answers, *("" for _ in turns[len(answers) :]))
    return tuple(
        TurnView(draw.plain(asked), draw.plain(answered)) for asked, answered in zip(turns, padded, strict=False)
    )


def _answers(came: Exchange | NoAnswer, grades: Sequence[Grade], draw: TextDrawer) -> tuple[AnswerView, ...]:
    match came:
        case Exchange():
            return _whole_answers(came, grades, draw)
        case NoAnswer():
            partial = draw.marked(came.partial_text, Channel.VISIBLE, grades)
            return (AnswerView("Partial text", partial, graded=False),) if partial else ()
        case _:
            assert_never(came)


def _whole_answers(came: Exchange, grades: Sequence[Grade], draw: TextDrawer) -> tuple[AnswerView, ...]:
    seen = draw.marked(came.visible_text, Channel.VISIBLE, grades)
    if came.wire is None:
        return (AnswerView("Seen by the user", seen, graded=True),)
    sent = draw.marked(came.wire.text, Channel.WIRE, grades)
    wire_graded = came.graded_channel is Channel.WIRE
    if came.wire.text == came.visible_text:
        return (AnswerView("Seen by the user, sent the same", sent if wire_graded else seen, graded=True),)
    views = (
        AnswerView("Seen by the user", seen, graded=not wire_graded),
        AnswerView("Sent over the wire", sent, graded=wire_graded),
    )
    return views[::-1] if wire_graded else views


def _grades(grades: Sequence[Grade], draw: TextDrawer) -> tuple[GradeView, ...]:
    views = (_grade(grade, draw) for grade in grades)
    return tuple(sorted(views, key=lambda view: _GRADE_ORDER.index(view.result)))


def _grade(grade: Grade, draw: TextDrawer) -> GradeView:
    aspect, grader = grade.aspect.replace("_", " "), f"{grade.grader} {grade.version}"
    reason = draw.plain(grade.reason)
    match grade:
        case Judged():
            about = KIND_WORDS[grade.failure_kind] if grade.failure_kind else aspect
            return GradeView("passed" if grade.passed else "failed", about, grader, reason, _lineage(grade))
        case Abstained():
            note = "" if grade.blame is Blame.MONITOR else f"because of {BLAME_WORDS[grade.blame]}"
            return GradeView("abstained", aspect, grader, reason, note)
        case _:
            assert_never(grade)


def answer_text(result: CaseResult) -> str:
    """What came back and was graded, or the partial text; raw."""
    came = result.result
    match came:
        case Exchange():
            return came.graded_text
        case NoAnswer():
            return came.partial_text
        case _:
            assert_never(came)


def _lineage(grade: Judged) -> str:
    parts: list[str] = []
    if grade.score is not None:
        parts.append(f"score {grade.score:.2f}")
    if grade.lineage is not None:
        parts.append(f"{grade.lineage.model}, rubric {grade.lineage.rubric_version}")
    if grade.cost_usd > Decimal(0):
        parts.append(f"${grade.cost_usd:.4f}")
    return ", ".join(parts)


def _attempt(attempt: Attempt) -> str:
    return f"{attempt.started_at:%H:%M:%S} {attempt.reason} ({attempt.blame}): {attempt.detail}"


def _facts(came: Exchange | NoAnswer) -> tuple[str, ...]:
    asked = f"asked {moment(came.asked_at)}"
    beside = f"{came.concurrency} at once"
    if isinstance(came, NoAnswer):
        return (asked, beside)
    took = f"answered in {seconds(came.timings.total_ms)}"
    first = came.timings.first_token_ms
    version = f"app version {came.app_version}" if came.app_version else ""
    cited = f"wire citations: {', '.join(came.wire.citations)}" if came.wire and came.wire.citations else ""
    return tuple(
        fact
        for fact in (
            took,
            f"first token {seconds(first)}" if first is not None else "",
            asked,
            beside,
            version,
            cited,
        )
        if fact
    )
