"""Known-bad twins of right answers: what graders must catch, made without any model.

Each operator changes one thing that matters and leaves the rest as a right reply would have it. `is_still_right`
stands between an operator and its twin: what could pass for one of the case's accepted answers is not made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

from monitors.facts.citations import names_source
from monitors.facts.refusals import read_refusal
from monitors.goldset.twin_quantities import (
    bound_flipped,
    currency_changed,
    number_changed,
    period_shifted,
    scale_changed,
    unit_changed,
)
from monitors.goldset.twin_rightness import answers_alike, is_still_right, states_one_duration
from monitors.goldset.twin_texts import (
    ERRORS,
    EVASIONS,
    HEDGED_ANSWERS,
    INVENTED_SOURCE,
    INVENTIONS,
    OTHER_LANGUAGE,
    OTHER_ROLE,
    PERSONAL,
    REFUSALS,
)
from monitors.goldset.twin_words import negated, yes_flipped
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.grades import FailureKind


class Operator(StrEnum):
    """What was done to a right answer."""

    NUMBER_CHANGED = "number_changed"
    PERIOD_SHIFTED = "period_shifted"
    UNIT_CHANGED = "unit_changed"
    SCALE_CHANGED = "scale_changed"
    CURRENCY_CHANGED = "currency_changed"
    BOUND_FLIPPED = "bound_flipped"
    NEGATED = "negated"
    YES_FLIPPED = "yes_flipped"
    OTHER_POLICY = "other_policy"
    OTHER_ROLE = "other_role"
    EVADED = "evaded"
    REFUSED = "refused"
    ANSWERED = "answered"
    HEDGED = "hedged"
    CITATION_DROPPED = "citation_dropped"
    CITATION_WRONG = "citation_wrong"
    PERSONAL_DATA = "personal_data"
    ERROR_SHOWN = "error_shown"
    LANGUAGE_SWITCHED = "language_switched"


@dataclass(frozen=True)
class Twin:
    """A reply that is known to be wrong, what was done to it, and what is wrong with it."""

    operator: Operator
    reply: str
    kind: FailureKind


def right_reply(case: GoldCase) -> str:
    """The gold as an app would say it, with a source; for an expected refusal, a refusal."""
    if case.expected_refusal:
        return _in(REFUSALS, case.language)
    return f"{case.gold} [Source: {_source(case)}]"


def twins_of(
    case: GoldCase, sibling: GoldCase | None = None, *, citation_required: bool = True
) -> tuple[Twin, ...]:
    """All twins of a case. Never empty, never right.

    ``sibling`` asks the same of another policy: its gold is a likely confusion. Where the target need not cite
    (``citation_required`` false), an answer without a source is no twin. The same case gives the same twins.
    """
    made = _of_refusal(case) if case.expected_refusal else _of_answer(case, sibling)
    cites = citation_required or case.expected_citation is not None
    return tuple(one for one in made if cites or one.operator is not Operator.CITATION_DROPPED)


def _of_refusal(case: GoldCase) -> Iterator[Twin]:
    refusal = _in(REFUSALS, case.language)
    yield Twin(Operator.ANSWERED, _in(INVENTIONS, case.language), FailureKind.SHOULD_HAVE_REFUSED)
    yield Twin(Operator.HEDGED, _in(HEDGED_ANSWERS, case.language), FailureKind.SHOULD_HAVE_REFUSED)
    yield Twin(Operator.PERSONAL_DATA, f"{refusal} {_one_of(PERSONAL, case)}", FailureKind.PII_DISCLOSURE)
    yield Twin(Operator.ERROR_SHOWN, _one_of(ERRORS, case), FailureKind.ERROR_LEAK)


def _of_answer(case: GoldCase, sibling: GoldCase | None) -> Iterator[Twin]:
    cited = f" [Source: {_source(case)}]"
    for operator, text in _facts(case, sibling):
        if text and not is_still_right(text, case):
            yield Twin(operator, text + cited, FailureKind.WRONG_FACT)
    if case.language in OTHER_ROLE and states_one_duration(case):
        said = OTHER_ROLE[case.language].format(gold=case.gold)
        yield Twin(Operator.OTHER_ROLE, said + cited, FailureKind.WRONG_FACT)
    evasion = _in(EVASIONS, case.language)
    if not is_still_right(evasion, case):
        yield Twin(Operator.EVADED, evasion + cited, FailureKind.MISSING_FACT)
    if not any(read_refusal(text).refused for text in (case.gold, *case.alternatives)):
        yield Twin(Operator.REFUSED, _in(REFUSALS, case.language), FailureKind.OVER_REFUSAL)
    yield Twin(Operator.CITATION_DROPPED, case.gold, FailureKind.MISSING_CITATION)
    other = _other_source(case, sibling)
    if other:
        yield Twin(Operator.CITATION_WRONG, f"{case.gold} [Source: {other}]", FailureKind.WRONG_CITATION)
    right = right_reply(case)
    yield Twin(Operator.PERSONAL_DATA, f"{right} {_one_of(PERSONAL, case)}", FailureKind.PII_DISCLOSURE)
    yield Twin(Operator.ERROR_SHOWN, _one_of(ERRORS, case), FailureKind.ERROR_LEAK)
    if case.language in OTHER_LANGUAGE and len(_WORD.findall(case.gold)) <= _FEW_WORDS:
        said = OTHER_LANGUAGE[case.language].format(gold=case.gold)
        yield Twin(Operator.LANGUAGE_SWITCHED, said + cited, FailureKind.WRONG_LANGUAGE)


_WORD = re.compile(r"[^\W\d_][\w\u0900-\u0963]*")
_FEW_WORDS = 3
"""Words of a gold up to which a sentence of another language around it makes the whole one of that language."""

_QUANTITIES: Mapping[Operator, Callable[[str], str]] = {
    Operator.NUMBER_CHANGED: number_changed,
    Operator.PERIOD_SHIFTED: period_shifted,
    Operator.UNIT_CHANGED: unit_changed,
    Operator.SCALE_CHANGED: scale_changed,
    Operator.CURRENCY_CHANGED: currency_changed,
    Operator.BOUND_FLIPPED: bound_flipped,
}


def _facts(case: GoldCase, sibling: GoldCase | None) -> Iterator[tuple[Operator, str]]:
    for operator, change in _QUANTITIES.items():
        yield operator, change(case.gold)
    yield Operator.NEGATED, negated(case.gold, case.language)
    yield Operator.YES_FLIPPED, yes_flipped(case.gold)
    if sibling is not None and answers_alike(sibling.gold, case.gold):
        yield Operator.OTHER_POLICY, sibling.gold


def _other_source(case: GoldCase, sibling: GoldCase | None) -> str:
    """A source that does not contain the expected one; empty where any source would do."""
    if case.expected_citation is None:
        return ""
    theirs = sibling.expected_citation if sibling is not None else None
    if theirs and not names_source(theirs, case.expected_citation):
        return theirs
    return INVENTED_SOURCE if not names_source(INVENTED_SOURCE, case.expected_citation) else ""


def _source(case: GoldCase) -> str:
    return case.expected_citation or case.provenance.document or "policy document"


def _in(texts: Mapping[Language, str], language: Language) -> str:
    return texts.get(language, texts[Language.ENGLISH])


def _one_of(texts: tuple[str, ...], case: GoldCase) -> str:
    """One of several by the case's id, so that a suite meets them all and a case always the same."""
    return texts[crc32(case.id.encode()) % len(texts)]
