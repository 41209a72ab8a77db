"""The mutation score of a suite: which known-bad mutants of right answers the graders catch.

The real panel grades every mutant; no model is needed. The score counts catches by operator, by grader and by
severity. For one case, the graders must pass its gold and fail its bad reply.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from monitors.facts.quantities.scan import scan
from monitors.facts.refusals.detect import read_refusal
from monitors.gate.assess import assess, severity_of
from monitors.graders.base import CONDITION, SAYS_MORE, SENTENCE, STATEMENT, UNCLEAR, UNREAD_GOLD, Grader, not_read
from monitors.graders.panel import grade_exchange
from monitors.mutations.mutants import (
    LEFT_TO_JUDGE,
    MISPLACED,
    Mutant,
    MutationOperator,
    contradictions_of,
    mutants_of,
    right_reply,
    source_tag,
)
from monitors.plural import plural
from monitors.records.base import Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Aspect, Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.runs import MutantCount, MutationScores
from monitors.stats.intervals import wilson

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""No grader reads the time of a reply."""


class GradedMutant(Record):
    """A mutant and what the graders said of it. ``caught_by`` are the graders that failed it.

    ``severity`` is that of the failure it stands for. Where nobody failed it, ``passed`` separates a mutant that
    was graded correct from one that was left to the judge.
    """

    case_id: str
    operator: MutationOperator
    kind: FailureKind
    severity: Severity
    reply: str
    caught_by: tuple[str, ...]
    passed: bool


class RightReply(Record):
    """What the graders made of a right answer: ``wrong`` is why they failed it, ``open`` why none could pass it.

    ``open_otherwise`` is why a reply is left open that is right in words of its own: the gold passes word for word.
    """

    case_id: str
    wrong: str = ""
    open: str = ""
    open_otherwise: str = ""


def grade_right(case: GoldCase, panel: Sequence[Grader]) -> RightReply:
    """Grade a case's own gold. A right answer that fails is a fault of the gold, or of a grader."""
    found = assessed(case, right_reply(case), panel)
    match found.outcome:
        case CaseOutcome.FAILED:
            return RightReply(case_id=case.id, wrong=found.reason)
        case CaseOutcome.CORRECT:
            return RightReply(case_id=case.id, open_otherwise=_open_otherwise(case, panel))
        case _:
            return RightReply(case_id=case.id, open=_why_open(found))


def _why_open(found: Assessment) -> str:
    """Why the facts stay open; what was not looked for (citations, where none are needed) does not belong here."""
    facts = [one for one in found.grades if isinstance(one, Abstained) and one.aspect is Aspect.FACTUAL_MATCH]
    return "; ".join(one.reason for one in facts) or found.reason


_WORD_FOR_WORD: Final = frozenset({STATEMENT, SENTENCE, not_read(UNREAD_GOLD)})
"""Why graders that pass a gold word for word leave it open in other words."""

_UNRELATED: Final = "Gladly."
"""A reply that has no word of a gold."""

_OPENER: Final = re.compile(r"(?i)\s*(yes|no|haan|nahi|नहीं|हाँ|हां)\s*[,.:;!।–—-]\s*")
"""The yes or no that a gold opens with, and the sign behind it: "No cover is given" opens with none."""


def _open_otherwise(case: GoldCase, panel: Sequence[Grader]) -> str:
    """Why a right reply in other words stays open: none of the gold's, its figures alone, or without its yes or no.

    What has no word of a gold may be wrong as well: only the reason that it may be right counts. The other two are
    right where nothing but the gold's words is missing.
    """
    left_open = _reasons_left_open(case, _UNRELATED, panel) & _WORD_FOR_WORD
    opener, rest = _split_opener(case.gold)
    figures = _figures_of(case.gold)
    if figures:
        left_open |= _reasons_left_open(case, f"{opener} It is {figures}", panel) & {SAYS_MORE}
    if opener and len(rest.split()) >= _SENTENCE:
        left_open |= _reasons_left_open(case, rest, panel) & {UNCLEAR, CONDITION}
    return min(left_open, default="")


_SENTENCE: Final = 3
"""Words; "online" of "Yes, online" answers nothing by itself."""


def _reasons_left_open(case: GoldCase, reply: str, panel: Sequence[Grader]) -> frozenset[str]:
    grades = assessed(case, reply, panel).grades
    return frozenset(grade.reason for grade in grades if isinstance(grade, Abstained))


def _split_opener(gold: str) -> tuple[str, str]:
    """The yes or no that a gold opens with, empty where it opens with neither, and what stands behind it."""
    opened = _OPENER.match(gold)
    return (f"{opened[1]}.", gold[opened.end() :]) if opened else ("", gold)


def _figures_of(gold: str) -> str:
    """The quantities of a gold without its other words."""
    scanned = scan(gold)
    spans = (scanned.normalised.original_span(reading.start, reading.end) for reading in scanned.readings)
    return ", ".join(gold[start:end] for start, end in spans)


def grade_mutants(
    cases: Sequence[GoldCase], panel: Sequence[Grader], *, citation_required: bool = True
) -> Iterator[GradedMutant]:
    """Grade all mutants of ``cases``, in order. A sibling is the next case of another policy that asks the same."""
    siblings = siblings_of(cases)
    for number, case in enumerate(cases):
        already = _failing(assessed(case, right_reply(case), panel))
        other = cases[(number + 1) % len(cases)]
        for mutant in mutants_of(
            case,
            siblings.get(case.id),
            citation_required=citation_required,
            other=other if other.question != case.question else None,
        ):
            yield _graded(case, mutant, panel, already)


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


def _graded(case: GoldCase, mutant: Mutant, panel: Sequence[Grader], already: Sequence[str]) -> GradedMutant:
    """Grade one mutant. A grader that fails the right reply too catches nothing."""
    found = assessed(case, mutant.reply, panel)
    failed = [grader for grader in _failing(found) if grader not in already]
    return GradedMutant(
        case_id=case.id,
        operator=mutant.operator,
        kind=mutant.kind,
        severity=severity_of(case.severity, (mutant.kind,))[0],
        reply=mutant.reply,
        caught_by=tuple(failed),
        passed=not failed and found.outcome is CaseOutcome.CORRECT,
    )


def assessed(case: GoldCase, reply: str, panel: Sequence[Grader]) -> Assessment:
    """The graders' assessment of a reply that nobody gave."""
    said = Exchange(
        run_id="mutants",
        case_id=case.id,
        turns=case.turns,
        earlier_answers=("",) * (len(case.turns) - 1),
        visible_text=reply,
        asked_at=_LONG_AGO,
        timings=Timings(total_ms=0),
    )
    return assess(case, said, grade_exchange(panel, case, said))


class SuiteReach(Record):
    """How many golds of a suite rules can decide; ``left`` are the ids of the others, worst severity first."""

    golds: int
    by_rules: int
    left: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share that rules can decide; 1 of none."""
        return self.by_rules / self.golds if self.golds else 1.0

    def format_shortfall(self, floor: float) -> str:
        """Why a run without a judge may stay below the ``floor`` of coverage; empty where it should not."""
        if self.share >= floor:
            return ""
        return (
            f"rules can decide {self.by_rules} of {plural(self.golds, 'gold')} ({self.share:.0%}) in any wording, "
            f"and coverage_floor is {floor:.0%}: without a judge, a run may end INCONCLUSIVE"
        )


REACH_CASES: Final = 200
"""Golds that are tried: evenly spread over a larger suite, a second of work."""


def reach_of(cases: Sequence[GoldCase], panel: Sequence[Grader], *, most: int | None = None) -> SuiteReach:
    """Try which golds rules can decide; of a suite of more than ``most`` cases, as many spread over it."""
    step = max(1, -(-len(cases) // most)) if most else 1
    tried = cases[::step]
    left = sorted((case for case in tried if not is_decidable(case, panel)), key=lambda case: -case.severity)
    return SuiteReach(golds=len(tried), by_rules=len(tried) - len(left), left=tuple(case.id for case in left))


def is_decidable(case: GoldCase, panel: Sequence[Grader]) -> bool:
    """Whether rules pass right answers in other words than the gold's, and fail one that contradicts it.

    What says a case's `must_say` is right in any words.
    """
    right = grade_right(case, panel)
    if case.must_say:
        return not (right.wrong or right.open)
    natural = f"It is {case.gold[:1].lower()}{case.gold[1:]}{source_tag(case)}"
    if right.wrong or right.open_otherwise:
        return False
    if right.open and assessed(case, natural, panel).outcome is not CaseOutcome.CORRECT:
        return False
    outcomes = [assessed(case, mutant.reply, panel).outcome for mutant in contradictions_of(case)[:FEW]]
    return CaseOutcome.CORRECT not in outcomes and CaseOutcome.FAILED in outcomes


FEW: Final = 2
"""Contradictions that are tried of each gold: the first change its value, or its yes."""


CONTENT: Final = frozenset({Aspect.FACTUAL_MATCH, Aspect.REFUSAL, Aspect.DISCLOSURE, Aspect.ERROR_LEAK})
"""The content of a reply, not its form: a gold is written without citations, and may be shorter than any reply."""

CITATION_KINDS: Final = frozenset({FailureKind.MISSING_CITATION, FailureKind.WRONG_CITATION})

ABOUT_FACTS: Final = frozenset(
    {FailureKind.WRONG_FACT, FailureKind.MISSING_FACT, FailureKind.SHOULD_HAVE_REFUSED, FailureKind.OVER_REFUSAL}
)
"""Kinds of made-up wrong answers that show whether a gold catches them; leaks and errors are caught whatever the
gold."""


class MutationVerdict(StrEnum):
    """Whether the graders can use a case."""

    DETECTED = "detected"
    GOLD_FAILS = "gold_fails"
    """Its own gold would be called wrong."""
    MISSED = "missed"
    """The bad reply would pass."""
    UNDECIDABLE = "undecidable"
    """Graders without a model cannot decide; a judge would have to."""


class MutationOutcome(Record):
    """The graders' verdict on a case, in words."""

    detection: MutationVerdict
    reason: str


def fails_itself(case: GoldCase, panel: Sequence[Grader]) -> str:
    """Why the graders call the gold of ``case`` wrong, given as the reply to its question; empty if they do not.

    The gold of an expected refusal is no reply but a reason, so nothing is graded.
    """
    if case.expected_refusal:
        return ""
    if read_refusal(case.gold).refused:
        return "it declines to answer, and no refusal is expected"
    return "; ".join(_content_failures(assessed(case, case.gold, panel)))


def detect_bad_reply(
    case: GoldCase, bad_reply: str | None, panel: Sequence[Grader], kind: FailureKind | None
) -> MutationOutcome:
    """Whether the graders pass the gold and fail the bad reply; ``kind`` is what was wrong with it."""
    wrong = fails_itself(case, panel)
    if wrong:
        return MutationOutcome(
            detection=MutationVerdict.GOLD_FAILS, reason=f"the gold itself would be called wrong: {wrong}"
        )
    if not bad_reply:
        return _detect_mutants(case, panel)
    found = assessed(case, bad_reply, panel)
    failures = _content_failures(found) or (_citation_failures(found) if kind in CITATION_KINDS else ())
    if failures:
        gold = assessed(case, case.gold, panel)
        if case.expected_refusal or gold.factual_match is Finding.YES or _is_about_safety(found):
            return MutationOutcome(
                detection=MutationVerdict.DETECTED, reason=f"the bad reply fails: {'; '.join(failures)}"
            )
        return MutationOutcome(
            detection=MutationVerdict.UNDECIDABLE,
            reason=f"the bad reply fails ({'; '.join(failures)}), but no grader without a model can pass the gold: "
            f"{_abstentions(gold)}",
        )
    if found.factual_match is Finding.YES:
        return MutationOutcome(
            detection=MutationVerdict.MISSED, reason="the bad reply would pass: it says what the gold says"
        )
    return MutationOutcome(
        detection=MutationVerdict.UNDECIDABLE,
        reason=f"no grader without a model can fail the bad reply: {_abstentions(found)}",
    )


def _detect_mutants(case: GoldCase, panel: Sequence[Grader]) -> MutationOutcome:
    """Whether the graders catch made-up wrong answers, for a conversation that has no known bad reply."""
    mutants = [
        mutant
        for mutant in grade_mutants([case], panel)
        if mutant.kind in ABOUT_FACTS and (mutant.caught_by or mutant.operator not in LEFT_TO_JUDGE)
    ]
    caught = sum(bool(mutant.caught_by) for mutant in mutants)
    if mutants and caught == len(mutants):
        return MutationOutcome(
            detection=MutationVerdict.DETECTED,
            reason=f"no bad reply is known; all {caught} made-up wrong ones fail",
        )
    reason = f"no bad reply is known, and of {len(mutants)} made-up wrong ones only {caught} fail"
    return MutationOutcome(detection=MutationVerdict.UNDECIDABLE, reason=reason)


def _failed(found: Assessment, aspects: frozenset[Aspect]) -> tuple[str, ...]:
    grades = [g for g in found.grades if isinstance(g, Judged) and not g.passed and g.aspect in aspects]
    return tuple(dict.fromkeys(grade.reason for grade in grades))


def _content_failures(found: Assessment) -> tuple[str, ...]:
    return _failed(found, CONTENT)


def _citation_failures(found: Assessment) -> tuple[str, ...]:
    return _failed(found, frozenset({Aspect.CITATION}))


def _is_about_safety(found: Assessment) -> bool:
    return bool(_failed(found, frozenset({Aspect.DISCLOSURE, Aspect.ERROR_LEAK})))


def _abstentions(found: Assessment) -> str:
    open_ones = [g.reason for g in found.grades if isinstance(g, Abstained) and g.aspect in CONTENT]
    return "; ".join(dict.fromkeys(open_ones)) or "it compares nothing"


MOST_CASES: Final = 60
"""Severity-3 cases whose mutants a run tries: about 500 mutants, a second or less."""


def severe_mutation_score(
    cases: Iterable[GoldCase], panel: Sequence[Grader], *, citation_required: bool
) -> MutationScores | None:
    """The mutation score of a suite's first severity-3 cases, for its run's report; ``None`` where it has none."""
    severe = [case for case in cases if case.severity is Severity.PAGE][:MOST_CASES]
    usable = [case for case in severe if not grade_right(case, panel).wrong]
    return (
        count_mutants(list(grade_mutants(usable, panel, citation_required=citation_required))) if usable else None
    )


def count_mutants(graded: Sequence[GradedMutant]) -> MutationScores:
    """Count the mutants and the catches."""
    severe = [one for one in graded if one.severity is Severity.PAGE]
    apart = {MutationOperator.PERSONAL_DATA, *LEFT_TO_JUDGE}
    plain = [one for one in severe if one.operator not in apart]
    hard = [one for one in graded if one.operator in MISPLACED]
    operators = [(one.value, [mutant for mutant in graded if mutant.operator is one]) for one in MutationOperator]
    severities = [
        (f"severity {one.value}", [mutant for mutant in graded if mutant.severity is one]) for one in Severity
    ]
    return MutationScores(
        cases=len({mutant.case_id for mutant in graded}),
        whole=_count("all", graded),
        severe=_count("severity 3", severe),
        severe_without_personal_data=_count("severity 3 that contradict", plain),
        misplaced=_count("right value in the wrong place", hard),
        by_operator=tuple(_count(name, mutants) for name, mutants in operators if mutants),
        by_severity=tuple(_count(name, mutants) for name, mutants in severities if mutants),
    )


def _count(name: str, mutants: Sequence[GradedMutant]) -> MutantCount:
    caught = sum(bool(one.caught_by) for one in mutants)
    low, high = wilson(caught, len(mutants)) if mutants else (0.0, 1.0)
    found = Counter(grader for one in mutants for grader in one.caught_by)
    return MutantCount(
        name=name,
        mutants=len(mutants),
        caught=caught,
        passed=sum(one.passed for one in mutants),
        low=low,
        high=high,
        by_grader=dict(sorted(found.items())),
    )
