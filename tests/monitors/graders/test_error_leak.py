"""Tests of the error-leak grader."""

from __future__ import annotations

from monitors.graders.conduct import ErrorLeakGrader
from monitors.records.grades import FailureKind
from tests.builders import exchange, gold_case


def test_a_providers_error_shown_as_an_answer_is_a_leak() -> None:
    case = gold_case()
    grade = ErrorLeakGrader().grade(case, exchange(case, "429 Too Many Requests: rate limit exceeded"))
    assert grade.failure_kind is FailureKind.ERROR_LEAK
    assert grade.evidence[0].label == "provider error"


def test_an_answer_is_none() -> None:
    case = gold_case()
    assert ErrorLeakGrader().grade(case, exchange(case)).passed


def test_an_error_quoted_from_the_question_is_not_a_leak() -> None:
    case = gold_case(turns=("Your page said 429 Too Many Requests, why?",))
    assert (
        ErrorLeakGrader()
        .grade(case, exchange(case, "429 Too Many Requests means that you asked too often."))
        .passed
    )
