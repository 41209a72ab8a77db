"""Do the graders bite? Every twin of every right answer, graded by the real panel. No model is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from monitors.gate.assess import assess
from monitors.gate.policy import severity_of
from monitors.goldset.twins import Operator, Twin, right_reply, twins_of
from monitors.graders.base import Grader
from monitors.graders.panel import grade_exchange
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Assessment, CaseOutcome, FailureKind, Judged

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""No grader looks at when a reply came."""


class GradedTwin(Record):
    """A twin and what the graders said of it. ``caught_by`` are the graders that failed it.

    ``severity`` is that of the failure it stands for. Where nobody failed it, ``passed`` tells a twin that was
    called right from one that was left to the judge.
    """

    case_id: str
    operator: Operator
    kind: FailureKind
    severity: Severity
    reply: str
    caught_by: tuple[str, ...]
    passed: bool


class RightReply(Record):
    """What the graders made of a right answer: ``wrong`` is why they failed it, ``open`` why none could pass it."""

    case_id: str
    wrong: str = ""
    open: str = ""


def grade_right(case: GoldCase, panel: Sequence[Grader]) -> RightReply:
    """Grade a case's own gold. A right answer that fails is a fault of the gold, or of a grader."""
    found = assessed(case, right_reply(case), panel)
    match found.outcome:
        case CaseOutcome.FAILED:
            return RightReply(case_id=case.id, wrong=found.reason)
        case CaseOutcome.CORRECT:
            return RightReply(case_id=case.id)
        case _:
            return RightReply(case_id=case.id, open=found.reason)


def grade_twins(
    cases: Sequence[GoldCase], panel: Sequence[Grader], *, citation_required: bool = True
) -> Iterator[GradedTwin]:
    """All twins of ``cases`` graded, in order. A sibling is the next case of another policy that asks the same."""
    siblings = siblings_of(cases)
    for case in cases:
        already = _failing(assessed(case, right_reply(case), panel))
        for twin in twins_of(case, siblings.get(case.id), citation_required=citation_required):
            yield _graded(case, twin, panel, already)


def siblings_of(cases: Iterable[GoldCase]) -> dict[str, GoldCase]:
    """For each case the next one, in a ring, that asks for the same field in the same language elsewhere."""
    alike: dict[tuple[str, str], list[GoldCase]] = {}
    for case in cases:
        if case.provenance.field and case.cluster and not case.expected_refusal:
            alike.setdefault((case.provenance.field, case.language), []).append(case)
    found: dict[str, GoldCase] = {}
    for group in alike.values():
        for at, case in enumerate(group):
            ring = (*group[at + 1 :], *group[:at])
            other = next((one for one in ring if one.cluster != case.cluster and one.gold != case.gold), None)
            if other is not None:
                found[case.id] = other
    return found


def _failing(found: Assessment) -> tuple[str, ...]:
    return tuple(grade.grader for grade in found.grades if isinstance(grade, Judged) and not grade.passed)


def _graded(case: GoldCase, twin: Twin, panel: Sequence[Grader], already: Sequence[str]) -> GradedTwin:
    """A grader that fails the right reply too catches nothing."""
    found = assessed(case, twin.reply, panel)
    failed = [grader for grader in _failing(found) if grader not in already]
    return GradedTwin(
        case_id=case.id,
        operator=twin.operator,
        kind=twin.kind,
        severity=severity_of(case.severity, (twin.kind,))[0],
        reply=twin.reply,
        caught_by=tuple(failed),
        passed=not failed and found.outcome is CaseOutcome.CORRECT,
    )


def assessed(case: GoldCase, reply: str, panel: Sequence[Grader]) -> Assessment:
    """What the graders would say of a reply that nobody gave."""
    said = Exchange(
        run_id="twins",
        case_id=case.id,
        turns=case.turns,
        earlier_answers=("",) * (len(case.turns) - 1),
        visible_text=reply,
        asked_at=_LONG_AGO,
        timings=Timings(total_ms=0),
    )
    return assess(case, said, grade_exchange(panel, case, said))
