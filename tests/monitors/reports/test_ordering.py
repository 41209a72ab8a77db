from hypothesis import given
from hypothesis import strategies as st

from monitors.records.base import Blame, Severity
from monitors.records.grades import Aspect, CaseOutcome, FailureKind
from monitors.reports.case_view import select_by_outcome_worst_first
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import case_result, exchange, failed, gold_case

CASES = example_run(correct=20).cases


def failure(case_id, kind, severity, *, unconfirmed=False):
    case = gold_case(case_id, "q", "g")
    grade = failed("g", Aspect.FACTUAL_MATCH, kind, "r")
    changes = {"severity": severity, "unconfirmed": unconfirmed}
    return case_result(case, exchange(case, "a"), CaseOutcome.FAILED, "r", grade, **changes)


def test_severity_then_disclosure_then_what_is_confirmed():
    cases = [
        failure("mild", FailureKind.TONE, Severity.MINOR),
        failure("unsure", FailureKind.WRONG_FACT, Severity.CRITICAL, unconfirmed=True),
        failure("sure", FailureKind.WRONG_FACT, Severity.CRITICAL),
        failure("leak", FailureKind.PII_DISCLOSURE, Severity.CRITICAL),
    ]
    assert [case.case.id for case in select_by_outcome_worst_first(cases, CaseOutcome.FAILED)] == [
        "leak",
        "sure",
        "unsure",
        "mild",
    ]


def test_the_applications_own_silence_comes_before_the_monitors():
    blames = [case.assessment.blame for case in select_by_outcome_worst_first(CASES[::-1], CaseOutcome.NO_ANSWER)]
    assert blames == [Blame.APP, Blame.APP, Blame.PROVIDER, Blame.MONITOR]


@given(st.permutations(CASES))
def test_every_case_is_in_exactly_one_list(cases):
    lists = [select_by_outcome_worst_first(cases, outcome) for outcome in CaseOutcome]
    assert sorted(case.case.id for each in lists for case in each) == sorted(case.case.id for case in CASES)
