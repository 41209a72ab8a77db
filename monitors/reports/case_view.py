"""Builds the view of one case for the report page.

All texts in the view are already masked, marked and cut, so the template only prints them. All tables and
pages show cases in the same order. Small screenshots without personal data are embedded. All other
screenshots are linked.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never
from urllib.parse import quote

from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.exchanges import Channel, Exchange, NoAnswer, Origin
from monitors.records.grades import (
    FAILURE_WORDS,
    Abstained,
    Assessment,
    CaseOutcome,
    FailureKind,
    Grade,
    Judged,
    format_policy_row,
)
from monitors.records.incidents import Incident, IncidentState
from monitors.records.runs import CaseResult
from monitors.reports.format import BLAME_WORDS, NO_ANSWER_WORDS, format_moment, format_seconds
from monitors.reports.marked_text import Pieces, Redact, TextMarker, collect_disclosed_personal_data
from monitors.reports.triage_view import TriageView, build_triage_view
from monitors.request_headers import HIDDEN

_BLAME_ORDER = (Blame.APP, Blame.PROVIDER, Blame.MONITOR)
_KIND_ORDER = (FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION)


def select_by_outcome_worst_first(cases: Iterable[CaseResult], outcome: CaseOutcome) -> list[CaseResult]:
    """Return the cases with ``outcome``, the worst first.

    The sorting criteria are, in this order: severity; disputed cases first; disclosures and unsafe actions first;
    confirmed failures first; failures that the application caused first.
    """
    return sorted((case for case in cases if case.assessment.outcome is outcome), key=_rank_case)


def _rank_case(result: CaseResult) -> tuple[int, bool, int, bool, int]:
    assessment = result.assessment
    worst_kind = min(
        (_compute_rank(_KIND_ORDER, kind) for kind in assessment.failure_kinds), default=len(_KIND_ORDER)
    )
    blame = _compute_rank(_BLAME_ORDER, assessment.blame)
    return (-assessment.severity, not assessment.is_disputed, worst_kind, assessment.unconfirmed, blame)


def _compute_rank(order: Sequence[object], value: object) -> int:
    return order.index(value) if value in order else len(order)


def map_open_incidents_by_case(incidents: Iterable[Incident]) -> dict[str, Incident]:
    """Map each case id to the case's unresolved incident.

    If a case has several incidents, the oldest one is used.
    """
    current = [incident for incident in incidents if incident.state is not IncidentState.RESOLVED]
    newest_first = sorted(current, key=lambda incident: incident.opened_at, reverse=True)
    return {incident.case_id: incident for incident in newest_first if incident.case_id}


def format_failing_since(incident: Incident | None, commit: str | None) -> str:
    """Format the time and the deploy since which a case has been failing. Without an incident, the result is empty.

    ``commit`` is the commit of this run.
    """
    if incident is None:
        return ""
    if commit is not None and incident.first_commit == commit:
        return f"new with this deploy, {commit}"
    deploy = f"deploy {incident.first_commit}" if incident.first_commit else "an unknown deploy"
    return f"since {deploy}, {format_moment(incident.opened_at)}, seen in {plural(incident.occurrences, 'run')}"


@dataclass(frozen=True, slots=True)
class CaseLink:
    """The id of a case, and its anchor on the page. ``anchor`` is empty if the page does not show the case."""

    id: str
    anchor: str


def build_case_links(case_ids: Iterable[str], anchors: Mapping[str, str]) -> tuple[CaseLink, ...]:
    """Build the links to the cases ``case_ids``. ``anchors`` maps case ids to anchors on the page."""
    return tuple(CaseLink(case_id, anchors.get(case_id, "")) for case_id in case_ids)


_MEDIA_SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_MAX_SIGNATURE_BYTES: Final = max(len(magic) for magic in _MEDIA_SIGNATURES)


class PictureMode(StrEnum):
    """How the page shows a screenshot."""

    NONE = "none"
    EMBEDDED = "embedded"
    LINKED_PERSONAL = "linked_personal"
    LINKED_MASKED = "linked_masked"
    LINKED_LARGE = "linked_large"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot on the page. ``href`` is relative to the folder of the run."""

    shown: PictureMode
    href: str = ""
    data_uri: str = ""


class PictureAlbum:
    """Embeds screenshots until a size limit in bytes is reached. All further screenshots are linked."""

    def __init__(self, folder: Path, *, max_each_bytes: int, max_total_bytes: int) -> None:
        self._folder = folder.resolve()
        self._max_each_bytes = max_each_bytes
        self._remaining_bytes = max_total_bytes

    def embed_or_link_picture(self, relative: str | None, *, withheld: PictureMode | None = None) -> Picture:
        """Build the picture for the screenshot at the path ``relative``.

        If ``withheld`` is not ``None``, the screenshot is not embedded, but linked in this mode.

        A screenshot counts as missing if its path is outside the run's folder, or if it is not a PNG or JPEG file.
        """
        if relative is None:
            return Picture(PictureMode.NONE)
        path = self._resolve_file_in_folder(relative)
        media_type = path and _detect_media_type(path)
        if path is None or not media_type:
            return Picture(PictureMode.MISSING)
        href = quote(path.relative_to(self._folder).as_posix())
        if withheld is not None:
            return Picture(withheld, href)
        size = path.stat().st_size
        if size > min(self._max_each_bytes, self._remaining_bytes):
            return Picture(PictureMode.LINKED_LARGE, href)
        self._remaining_bytes -= size
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
        return Picture(PictureMode.EMBEDDED, href, f"data:{media_type};base64,{encoded}")

    def build_link_if_file_exists(self, relative: str | None) -> str:
        """Return the link to a file in the run's folder, or an empty string if the file does not exist."""
        path = self._resolve_file_in_folder(relative) if relative else None
        return quote(path.relative_to(self._folder).as_posix()) if path else ""

    def _resolve_file_in_folder(self, relative: str) -> Path | None:
        try:
            path = (self._folder / relative).resolve()
            return path if path.is_relative_to(self._folder) and path.is_file() else None
        except (OSError, ValueError):  # e.g. a null byte, a name that is too long, a loop of links
            return None


def _detect_media_type(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_MAX_SIGNATURE_BYTES)
    except OSError:
        return ""
    return next((media_type for magic, media_type in _MEDIA_SIGNATURES.items() if head.startswith(magic)), "")


_GRADE_ORDER: Final = ("failed", "passed", "abstained")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One of the texts of a reply, such as the text that the user saw or the text that the app sent.

    ``graded`` is true if the graders judged this text.
    """

    title: str
    pieces: Pieces
    graded: bool


@dataclass(frozen=True, slots=True)
class GradeView:
    """A grader's verdict as text. ``result`` is ``failed``, ``passed`` or ``abstained``.

    ``about`` is the kind of failure, or the question that the grader answers. ``note`` names the judge, or who
    caused the failure.
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
    """A case with its reply and its assessment."""

    anchor: str
    id: str
    severity: int
    raised_from: int | None
    severity_reason: str
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
    refused: tuple[Pieces, ...]
    picture: Picture
    trace_href: str
    triage: TriageView | None


def build_case_anchor(result: CaseResult) -> str:
    """Return the anchor of a result on the page: ``case-<id>``, and ``case-<id>/2`` for its first repeat."""
    repeat = result.result.repeat
    return f"case-{result.case.id}" + (f"/{repeat}" if repeat else "")


@dataclass(frozen=True, slots=True)
class CaseViewer:
    """Builds the views of a run's cases.

    All views use the same screenshots, redaction function, incidents and length limit.
    """

    album: PictureAlbum
    redact: Redact
    incidents: Mapping[str, Incident]
    commit: str | None
    limit: int
    ratings: Mapping[str, float]
    """The ratings of the agent's reports, by case id."""

    def build_case_view(self, result: CaseResult) -> CaseView:
        """Build the view of one case."""
        case, response, assessment = result.case, result.result, result.assessment
        marker = TextMarker(self.redact, collect_disclosed_personal_data(result), self.limit)
        views = (_build_grade_view(grade, marker) for grade in assessment.grades)
        withheld = self._choose_picture_link_mode(response, assessment)
        return CaseView(
            anchor=build_case_anchor(result),
            id=case.id,
            severity=assessment.severity,
            raised_from=assessment.case_severity if assessment.case_severity != assessment.severity else None,
            severity_reason=format_policy_row(assessment.policy_row),
            kinds=tuple(FAILURE_WORDS[kind] for kind in assessment.failure_kinds),
            type=assessment.type,
            language=assessment.language,
            cluster=assessment.cluster or "",
            app_path=assessment.app_path or "",
            unconfirmed=assessment.unconfirmed,
            blame=BLAME_WORDS[assessment.blame] if assessment.blame else "",
            since=format_failing_since(self.incidents.get(case.id), self.commit),
            reason=marker.build_pieces_without_evidence(assessment.reason),
            earlier=_build_earlier_turns(result, marker),
            question=marker.build_pieces_without_evidence(case.question),
            gold=marker.build_evidence_pieces(case.gold, "gold", assessment.grades),
            alternatives=tuple(marker.build_pieces_without_evidence(text) for text in case.alternatives),
            must_refuse=case.expected_refusal,
            must_cite=" or ".join(case.accepted_citations),
            answers=_build_answers(response, assessment.grades, marker),
            no_answer=NO_ANSWER_WORDS[response.reason] if isinstance(response, NoAnswer) else "",
            detail=marker.build_pieces_without_evidence(response.detail) if isinstance(response, NoAnswer) else (),
            grades=tuple(sorted(views, key=lambda view: _GRADE_ORDER.index(view.result))),
            facts=_list_answer_facts(response),
            attempts=tuple(
                marker.build_pieces_without_evidence(
                    f"{attempt.started_at:%H:%M:%S} {attempt.reason} ({attempt.blame}): {attempt.detail}"
                )
                for attempt in response.failed_attempts
            ),
            console_errors=tuple(
                marker.build_pieces_without_evidence(text, 400) for text in response.evidence.console_errors[:20]
            ),
            refused=tuple(
                marker.build_pieces_without_evidence(text, 400) for text in response.evidence.refused[:20]
            ),
            picture=self.album.embed_or_link_picture(response.evidence.screenshot, withheld=withheld),
            trace_href=self.album.build_link_if_file_exists(response.evidence.trace) if withheld is None else "",
            triage=build_triage_view(result, marker, self.ratings.get(case.id)),
        )

    def _choose_picture_link_mode(
        self, response: Exchange | NoAnswer, assessment: Assessment
    ) -> PictureMode | None:
        """Return how to link the screenshot, if it may show text that the report masks.

        Return ``None`` if the screenshot can be embedded.
        """
        if HIDDEN in response.model_dump_json():
            return PictureMode.LINKED_MASKED
        text = response.visible_text if isinstance(response, Exchange) else response.partial_text
        is_personal = FailureKind.PII_DISCLOSURE in assessment.failure_kinds or self.redact(text) != text
        return PictureMode.LINKED_PERSONAL if is_personal else None


def _build_earlier_turns(result: CaseResult, marker: TextMarker) -> tuple[TurnView, ...]:
    answers = result.result.earlier_answers if isinstance(result.result, Exchange) else ()
    turns = result.case.turns[:-1]
    padded = (*answers, *("" for _ in turns[len(answers) :]))
    return tuple(
        TurnView(marker.build_pieces_without_evidence(asked), marker.build_pieces_without_evidence(answered))
        for asked, answered in zip(turns, padded, strict=False)
    )


def _build_answers(
    response: Exchange | NoAnswer, grades: Sequence[Grade], marker: TextMarker
) -> tuple[AnswerView, ...]:
    match response:
        case Exchange():
            beside = marker.build_evidence_pieces(response.text_outside_answer, "beside", grades)
            parts = (AnswerView("Beside the answer", beside, graded=False),) if beside else ()
            return (*_build_exchange_answers(response, grades, marker), *parts)
        case NoAnswer():
            partial = marker.build_evidence_pieces(response.partial_text, Channel.VISIBLE, grades)
            return (AnswerView("Partial text", partial, graded=False),) if partial else ()
        case _:
            assert_never(response)


def _build_exchange_answers(
    exchange: Exchange, grades: Sequence[Grade], marker: TextMarker
) -> tuple[AnswerView, ...]:
    visible = marker.build_evidence_pieces(exchange.visible_text, Channel.VISIBLE, grades)
    if exchange.wire is None:
        return (AnswerView("Seen by the user", visible, graded=True),)
    sent = marker.build_evidence_pieces(exchange.wire.text, Channel.WIRE, grades)
    wire_graded = exchange.graded_channel is Channel.WIRE
    if exchange.wire.text == exchange.visible_text:
        pieces = sent if wire_graded else visible
        return (AnswerView("Seen by the user, and sent over the wire", pieces, graded=True),)
    views = (
        AnswerView("Seen by the user", visible, graded=not wire_graded),
        AnswerView("Sent over the wire", sent, graded=wire_graded),
    )
    return views[::-1] if wire_graded else views


def _build_grade_view(grade: Grade, marker: TextMarker) -> GradeView:
    aspect, grader = grade.aspect.replace("_", " "), f"{grade.grader} {grade.version}"
    reason = marker.build_pieces_without_evidence(grade.reason)
    match grade:
        case Judged():
            about = FAILURE_WORDS[grade.failure_kind] if grade.failure_kind else aspect
            return GradeView(
                "passed" if grade.passed else "failed", about, grader, reason, _format_score_model_and_cost(grade)
            )
        case Abstained():
            note = "" if grade.blame is Blame.MONITOR else f"because of {BLAME_WORDS[grade.blame]}"
            return GradeView("abstained", aspect, grader, reason, note)
        case _:
            assert_never(grade)


def extract_answer_text(result: CaseResult) -> str:
    """Return the graded text. If there is no complete answer, return the partial text. The text is not redacted."""
    response = result.result
    match response:
        case Exchange():
            return response.graded_text
        case NoAnswer():
            return response.partial_text
        case _:
            assert_never(response)


def _format_score_model_and_cost(grade: Judged) -> str:
    parts: list[str] = []
    if grade.score is not None:
        parts.append(f"score {grade.score:.2f}")
    if grade.lineage is not None:
        parts.append(f"{grade.lineage.model}, rubric {grade.lineage.rubric_version}")
    if grade.cost_usd > Decimal(0):
        parts.append(f"${grade.cost_usd:.4f}")
    return ", ".join(parts)


def _list_answer_facts(response: Exchange | NoAnswer) -> tuple[str, ...]:
    asked = f"asked {format_moment(response.asked_at)}"
    concurrency = f"{response.concurrency} at once"
    if isinstance(response, NoAnswer):
        return (asked, concurrency)
    if response.origin is Origin.TRAFFIC:  # a user asked, and some logs do not record durations
        concurrency = ""
    is_timed = response.origin is not Origin.TRAFFIC or response.timings.total_ms > 0
    took = f"answered in {format_seconds(response.timings.total_ms)}" if is_timed else ""
    first, opening, settling = (
        response.timings.first_token_ms,
        response.timings.opening_ms,
        response.timings.settling_ms,
    )
    opening_text = (
        f"in addition, Lookout took {format_seconds(opening)} to open the page" if opening is not None else ""
    )
    settling_text = (
        f"{format_seconds(settling)} to detect that the answer was complete" if settling is not None else ""
    )
    version = f"app version {response.app_version}" if response.app_version else ""
    cited = (
        f"wire citations: {', '.join(response.separately_sent_citations)}"
        if response.separately_sent_citations
        else ""
    )
    return tuple(
        fact
        for fact in (
            took,
            f"first token {format_seconds(first)}" if first is not None else "",
            " and ".join(part for part in (opening_text, settling_text) if part),
            asked,
            concurrency,
            version,
            cited,
        )
        if fact
    )
