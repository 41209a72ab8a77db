"""Does a case bite? The real graders are asked: right on its gold, wrong on the bad reply. No model is needed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from flows.twin_catch import assessed, grade_twins
from monitors.facts.refusals import read_refusal
from monitors.graders.base import Grader
from monitors.records.base import Finding, Record
from monitors.records.cases import GoldCase
from monitors.records.grades import Abstained, Aspect, Assessment, FailureKind, Judged

CONTENT: Final = frozenset({Aspect.FACTUAL_MATCH, Aspect.REFUSAL, Aspect.DISCLOSURE, Aspect.ERROR_LEAK})
"""What a reply says, and not how: a gold is written without citations, and may be shorter than any reply."""

CITATION_KINDS: Final = frozenset({FailureKind.MISSING_CITATION, FailureKind.WRONG_CITATION})

ABOUT_FACTS: Final = frozenset(
    {FailureKind.WRONG_FACT, FailureKind.MISSING_FACT, FailureKind.SHOULD_HAVE_REFUSED, FailureKind.OVER_REFUSAL}
)
"""Kinds of made-up wrong answers that say whether a gold bites; leaks and errors are caught whatever the gold."""


class Bite(StrEnum):
    """Whether the graders can use a case."""

    BITES = "bites"
    GOLD_FAILS = "gold_fails"
    """Its own gold would be called wrong."""
    TOOTHLESS = "toothless"
    """The bad reply would pass."""
    UNDECIDABLE = "undecidable"
    """Graders without a model cannot tell; a judge would have to."""


class Bitten(Record):
    """What the graders made of a case, in words."""

    bite: Bite
    reason: str


def fails_itself(case: GoldCase, panel: Sequence[Grader]) -> str:
    """Why the graders call the gold of ``case`` wrong, given as the reply to its own question; empty when not.

    Of an expected refusal the gold is no reply but a reason, so nothing is asked.
    """
    if case.expected_refusal:
        return ""
    if read_refusal(case.gold).refused:
        return "it declines to answer, and no refusal is expected"
    return "; ".join(_content_failures(assessed(case, case.gold, panel)))


def bite_of(case: GoldCase, bad_reply: str | None, panel: Sequence[Grader], kind: FailureKind | None) -> Bitten:
    """Whether the graders pass the gold and fail the bad reply; ``kind`` is what was wrong with it."""
    wrong = fails_itself(case, panel)
    if wrong:
        return Bitten(bite=Bite.GOLD_FAILS, reason=f"the gold itself would be called wrong: {wrong}")
    if not bad_reply:
        return _bite_of_twins(case, panel)
    found = assessed(case, bad_reply, panel)
    failures = _content_failures(found) or (_citation_failures(found) if kind in CITATION_KINDS else ())
    if failures:
        gold = assessed(case, case.gold, panel)
        if case.expected_refusal or gold.factual_match is Finding.YES or _is_about_safety(found):
            return Bitten(bite=Bite.BITES, reason=f"the bad reply fails: {'; '.join(failures)}")
        return Bitten(
            bite=Bite.UNDECIDABLE,
            reason=f"the bad reply fails ({'; '.join(failures)}), but no grader without a model can pass the gold: "
            f"{_abstentions(gold)}",
        )
    if found.factual_match is Finding.YES:
        return Bitten(bite=Bite.TOOTHLESS, reason="the bad reply would pass: it says what the gold says")
    return Bitten(
        bite=Bite.UNDECIDABLE, reason=f"no grader without a model can fail the bad reply: {_abstentions(found)}"
    )


def _bite_of_twins(case: GoldCase, panel: Sequence[Grader]) -> Bitten:
    """Of a conversation that went well no bad reply is known: then made-up wrong answers must do."""
    twins = [twin for twin in grade_twins([case], panel) if twin.kind in ABOUT_FACTS]
    caught = sum(bool(twin.caught_by) for twin in twins)
    if twins and caught == len(twins):
        return Bitten(bite=Bite.BITES, reason=f"no bad reply is known; all {caught} made-up wrong ones fail")
    reason = f"no bad reply is known, and of {len(twins)} made-up wrong ones only {caught} fail"
    return Bitten(bite=Bite.UNDECIDABLE, reason=reason)


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
