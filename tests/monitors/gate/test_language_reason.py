"""Replies in an unexpected language are reported; if most English questions get such replies, the run fails."""

from __future__ import annotations

import pytest

from monitors.gate.assess import assess_case
from monitors.records.base import Language
from monitors.records.grades import Aspect, FailureKind
from monitors.records.runs import CaseResult, ReasonKind, Verdict
from tests.builders import exchange, gold_case, grades, judged
from tests.monitors.gate.runs import reason, report


def replies(language: Language, right: int, wrong: int):
    """Return ``right`` results in ``language``, and ``wrong`` results whose reply is in another language.

    All replies are correct in every other respect.
    """
    results = []
    for number in range(right + wrong):
        case = gold_case(f"{language}-{number}", language=language)
        reply = exchange(case)
        spoken = judged(Aspect.LANGUAGE, FailureKind.WRONG_LANGUAGE if number >= right else None)
        results.append(
            CaseResult(case=case, result=reply, assessment=assess_case(case, reply, (*grades(), spoken)))
        )
    return results


@pytest.mark.parametrize(
    ("results", "wrong", "verdict"),
    [
        (replies(Language.ENGLISH, 4, 5), 5, Verdict.FAIL),
        (replies(Language.ENGLISH, 5, 5), 5, Verdict.PASS),
        (replies(Language.ENGLISH, 0, 4), 4, Verdict.PASS),
        (replies(Language.HINGLISH, 0, 9), 9, Verdict.PASS),
        ([*replies(Language.HINDI, 20, 0), *replies(Language.ENGLISH, 0, 5)], 5, Verdict.FAIL),
    ],
)
def test_most_english_questions_decide_and_all_others_are_named(results, wrong, verdict):
    run = report(results)
    named = reason(run, ReasonKind.LANGUAGE)
    assert (run.verdict, len(named.case_ids), named.decisive) == (verdict, wrong, verdict is Verdict.FAIL)


def test_replies_in_the_expected_language_need_no_reason():
    assert reason(report(replies(Language.ENGLISH, 9, 0)), ReasonKind.LANGUAGE) is None
