"""Test which cases are rechecked and at which address, and how the build that answered is determined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.explain.recheck import (
    build_previous_address,
    count_recheck_outcomes_by_case,
    find_proof_of_previous_build,
    list_build_names_in_answer,
    plan_recheck,
    select_severe_failures,
)
from monitors.records.base import Severity
from monitors.records.exchanges import BuildInfo, Evidence, PageInfo, WirePayload
from monitors.records.explanations import RecheckAnswer, RecheckCount, RecheckPlace
from monitors.records.grades import Aspect, CaseOutcome, FailureKind
from tests.builders import NOON, case_result, exchange, gold_case

NOW, BEFORE = "9b1c003", "4f2a91c"
FACT = (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)
LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)
HERE, THERE = RecheckPlace.TARGET, RecheckPlace.PREVIOUS


def failure(case_id, severity, *failures):
    return case_result(gold_case(case_id, severity=severity), *(failures or (FACT,)))


def test_only_severe_failures_are_asked_again_the_worst_first():
    """Only severe failures are rechecked, the worst first.

    A failure of severity 1 and a right answer are skipped. A leak in a harmless case has severity 3.
    """
    results = [
        failure("b-wrong", Severity.MAJOR),
        case_result(gold_case("right", severity=Severity.CRITICAL)),
        failure("annoying", Severity.MINOR),
        failure("leak", Severity.MINOR, LEAK),
        failure("a-wrong", Severity.MAJOR),
    ]
    found = select_severe_failures(results)
    assert [(one.case.id, int(one.severity)) for one in found] == [("leak", 3), ("a-wrong", 2), ("b-wrong", 2)]
    assert select_severe_failures(reversed(results)) == found


@given(st.integers(0, 30), st.integers(1, 20), st.integers(1, 200), st.integers(1, 2))
def test_a_plan_never_asks_more_than_its_budget(cases, times, most, places):
    """A plan never asks more questions than its budget, and rechecks each chosen case as often as requested.

    If the budget is too small even for one case, the worst case is rechecked as often as the budget allows.
    """
    failed = select_severe_failures(failure(f"case-{number}", Severity.CRITICAL) for number in range(cases))
    plan = plan_recheck(failed, times=times, max_questions=most, places=places)
    assert len(plan.cases) * plan.times * places <= most
    assert len(plan.cases) + plan.left_out == cases
    assert plan.cases == failed[: len(plan.cases)]
    assert plan.times == times or plan.times * places > most - places
    assert plan.cases or most < places or not cases


def answer(case_id, place, outcome, *kinds):
    return RecheckAnswer(
        run_id="r",
        target="t",
        case_id=case_id,
        place=place,
        repeat=0,
        asked_at=NOON,
        outcome=outcome,
        severity=Severity.CRITICAL,
        failure_kinds=kinds,
        reason="",
    )


def test_each_outcome_is_counted_apart_and_by_place():
    """The outcomes of a recheck are counted for each case and each address.

    A failure of another kind than in the run is counted separately. A case that was not rechecked is omitted.
    """
    failed = select_severe_failures([failure("a", Severity.CRITICAL), failure("b", Severity.CRITICAL)])
    answers = [
        answer("a", HERE, CaseOutcome.FAILED, FailureKind.WRONG_FACT),
        answer("a", HERE, CaseOutcome.FAILED, FailureKind.PII_DISCLOSURE),
        answer("a", HERE, CaseOutcome.NO_ANSWER),
        answer("a", HERE, CaseOutcome.UNGRADED),
        answer("a", THERE, CaseOutcome.CORRECT),
    ]
    (found,) = count_recheck_outcomes_by_case(failed, answers, with_previous=True)
    assert found.here == RecheckCount(asked=4, failed=2, in_another_way=1, no_answer=1, ungraded=1)
    assert found.previous == RecheckCount(asked=1, right=1)
    (alone,) = count_recheck_outcomes_by_case(failed, answers, with_previous=False)
    assert alone.previous is None


@pytest.mark.parametrize(
    ("template", "commit", "own", "address"),
    [
        ("https://old.example.org", None, None, "https://old.example.org"),
        ("https://old.example.org", BEFORE, NOW, "https://old.example.org"),
        (
            "https://app-{commit}.example.org/c/{commit}",
            BEFORE,
            None,
            f"https://app-{BEFORE}.example.org/c/{BEFORE}",
        ),
    ],
)
def test_the_address_of_the_previous_build(template, commit, own, address):
    """The address of the previous build comes from a template.

    ``{commit}`` is replaced with the commit of the last accepted run.
    """
    assert build_previous_address(template, commit, own) == address


@pytest.mark.parametrize(
    ("commit", "own", "why"),
    [
        (None, NOW, "no accepted run has a commit"),
        (f"{NOW}aaaa", NOW, "tested the same commit 9b1c003aaaa"),
        ("x@evil.example", NOW, "characters that are not allowed in an address"),
        ("evil.example:80", NOW, "characters that are not allowed in an address"),
        ("a.b", NOW, "characters that are not allowed in an address"),
    ],
)
def test_no_address_is_made_up(commit, own, why):
    """No address is built if the commit is unknown, is the verified commit, or would change the host."""
    with pytest.raises(ValueError, match=why):
        build_previous_address("https://app-{commit}.example.org", commit, own)


@pytest.mark.parametrize(
    ("names", "commit", "proof", "named"),
    [
        ([], BEFORE, "unproved", None),
        (["1.4.2", "20261123"], BEFORE, "unproved", None),
        (["1.4.2", f"{BEFORE}0aa"], BEFORE, "proved", None),
        (["0123abc"], BEFORE, "another", "0123abc"),
        ([BEFORE, f"{NOW}77"], BEFORE, "another", f"{NOW}77"),
        ([NOW], None, "another", NOW),
        (["0123abc"], None, "unproved", None),
        (["v17"], "v17", "proved", None),
    ],
)
def test_a_build_is_proved_by_its_own_word_alone(names, commit, proof, named):
    """Only a commit that the build reports proves or disproves which build answered.

    A version number does neither. The verified build never counts as the previous build.
    """
    found = find_proof_of_previous_build(names, commit, NOW)
    assert (found.commit, found.proof, found.names) == (commit if named != NOW or commit else None, proof, named)


def test_the_build_named_in_an_answer_is_read():
    """The build that an answer names is read from its payload, its headers, or the headers of the page.

    The name of the server's software is not a build.
    """
    wire = WirePayload(url="http://a", text="", build=BuildInfo(versions={"x-commit": BEFORE, "server": "uvicorn"}))
    evidence = Evidence(page=PageInfo(shell="0", versions={"x-app-version": "1.4", "x-powered-by": "PHP"}))
    said = exchange(gold_case(), wire=wire, evidence=evidence, app_version="v9")
    assert list_build_names_in_answer(said) == ("v9", BEFORE, "1.4")
