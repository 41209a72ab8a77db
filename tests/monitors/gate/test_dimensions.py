"""Test the figures of a run on issues: the share of correct reports, the steps, and the repeated steps.

Also test how these figures change between two runs, over the issues that both runs contain.
"""

from __future__ import annotations

import pytest

from monitors.gate.assess import assess_case
from monitors.goldset.lines import parse_case_object
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Evidence, Step
from monitors.records.grades import Aspect, FailureKind
from monitors.records.runs import CaseResult
from monitors.stats.intervals import compute_wilson_interval
from tests.builders import exchange, gold_case, judged, no_answer
from tests.monitors.gate.runs import asked, baseline, report

SAFE = (judged(Aspect.DISCLOSURE), judged(Aspect.ERROR_LEAK))


def issue(number: int, shortest: int | None = 2) -> GoldCase:
    made = parse_case_object(
        {
            "issue_url": f"https://tracker.example/lamps/{number}",
            "issue_title": f"Lamp {number} flickers",
            "severity": 2,
            "id": f"lamp-{number}",
            "reference": {"relevant_files": ["lamp.py"]} | ({"shortest_path": shortest} if shortest else {}),
        }
    )
    assert isinstance(made, GoldCase), made
    return made


def reported(
    case: GoldCase, *, correct: bool = True, evidence: Evidence | None = None, repeat: int = 0
) -> CaseResult:
    """Return the result of a report, correct or not."""
    kind = None if correct else FailureKind.POOR_TRIAGE
    grades = (*SAFE, judged(Aspect.RELEVANT_FILES, kind))
    came = exchange(case, evidence=evidence or Evidence(), repeat=repeat)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, grades))


def steps(*calls: str) -> Evidence:
    return Evidence(steps=tuple(Step(name="search", detail=call) for call in calls))


def test_a_run_of_questions_has_no_dimensions():
    assert report([asked(gold_case("q-1"))]).triage is None


def test_accuracy_is_the_share_of_correct_reports_with_wilsons_interval():
    found = report([reported(issue(n), correct=n > 1) for n in range(8)]).triage
    assert (found.issues, found.accuracy.passed, found.accuracy.total) == (8, 6, 8)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(compute_wilson_interval(6, 8))


def test_questions_of_a_mixed_suite_are_not_among_the_reports():
    found = report([reported(issue(1)), asked(gold_case("q-1")), asked(gold_case("q-2"))]).triage
    assert (found.issues, found.accuracy.total) == (1, 1)


def test_no_report_counts_against_the_application_and_not_for_anybody_elses_fault():
    results = [reported(issue(1)), reported(issue(4))]
    for number, blame in ((2, Blame.APP), (3, Blame.PROVIDER)):
        case = issue(number)
        silent = no_answer(case, blame)
        results.append(CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ())))
    found = report(results).triage
    assert (found.issues, found.accuracy.passed, found.accuracy.total) == (4, 2, 3)


def test_nothing_graded_is_no_share():
    case = issue(1)
    came = exchange(case)
    found = report([CaseResult(case=case, result=came, assessment=assess_case(case, came, SAFE))]).triage
    assert (found.issues, found.accuracy.total) == (1, 0)


def test_steps_are_counted_with_repeats_and_the_shortest_path():
    (path,) = report([reported(issue(1), evidence=steps("a", "b", "a", "a"))]).triage.paths
    assert (path.case_id, path.steps, path.repeated, path.shortest_path) == ("lamp-1", 4, 2, 2)


def test_hops_that_the_application_counts_stand_before_the_steps_that_were_seen():
    evidence = steps("a", "b", "a").model_copy(update={"hops": 7})
    (path,) = report([reported(issue(1), evidence=evidence)]).triage.paths
    assert (path.steps, path.repeated) == (7, 1)


@pytest.mark.parametrize("evidence", [Evidence(), Evidence(hops=0)])
def test_steps_that_nobody_saw_are_not_zero(evidence):
    assert report([reported(issue(1), evidence=evidence)]).triage.paths == ()


def test_steps_that_broke_off_are_not_counted_as_all():
    cut = steps("a", "b").model_copy(update={"steps_cut": True})
    results = [reported(issue(1), evidence=cut), reported(issue(2), evidence=cut.model_copy(update={"hops": 3}))]
    assert [(path.case_id, path.steps) for path in report(results).triage.paths] == [("lamp-2", 3)]


def test_calls_of_which_only_the_beginning_is_known_repeat_nothing():
    evidence = Evidence(steps=(Step(name="search", detail="{", cut=True),) * 2)
    (path,) = report([reported(issue(1), evidence=evidence)]).triage.paths
    assert (path.steps, path.repeated) == (2, None)


def test_steps_without_detail_say_nothing_about_repeats():
    evidence = Evidence(steps=(Step(name="search"), Step(name="search")))
    (path,) = report([reported(issue(1), evidence=evidence)]).triage.paths
    assert (path.steps, path.repeated) == (2, None)


def test_an_issue_that_was_asked_twice_has_the_average_of_both():
    case = issue(1)
    asks = [reported(case, evidence=steps("a", "b")), reported(case, evidence=steps("a", "a", "a"), repeat=1)]
    (path,) = report(asks).triage.paths
    assert (path.steps, path.repeated) == (2.5, 1)


def test_score_changes_cover_the_issues_of_both_runs():
    before = baseline([reported(issue(n), evidence=steps("a", "b") if n else None) for n in range(10)])
    after = [reported(issue(n), correct=n > 1, evidence=steps("a", "b", "c") if n < 9 else None) for n in range(10)]
    moved = report(after, baseline=before).comparison.triage
    assert (moved.accuracy.shared, moved.accuracy.before, moved.accuracy.now) == (10, 1, pytest.approx(0.8))
    assert (moved.steps.shared, moved.steps.before, moved.steps.now) == (8, 2, 3)


def test_questions_of_a_mixed_suite_do_not_move_the_reports():
    questions = [asked(gold_case(f"q-{n}")) for n in range(4)]
    wrong = [asked(gold_case(f"q-{n}"), (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)) for n in range(4)]
    before = baseline([*questions, reported(issue(1))])
    moved = report([*wrong, reported(issue(1))], baseline=before).comparison.triage
    assert (moved.accuracy.shared, moved.accuracy.before, moved.accuracy.now) == (1, 1, 1)
    assert moved.steps is None


def test_a_baseline_of_before_the_dimensions_were_counted_moves_nothing():
    before = baseline([reported(issue(1))])
    older = before.model_copy(update={"report": before.report.model_copy(update={"triage": None})})
    assert report([reported(issue(1))], baseline=older).comparison.triage is None


def test_a_run_that_is_no_baseline_moves_nothing():
    before = baseline([reported(issue(1))], suite_sha256="f" * 64)
    compared = report([reported(issue(1))], baseline=before).comparison
    assert compared.refused
    assert compared.triage is None
