"""A run fails if the average rating is below 4.0 or drops by more than 0.3, even with few reports."""

from __future__ import annotations

import pytest

from monitors.gate.assess import assess_case
from monitors.gate.settings import GateSettings
from monitors.records.comparisons import CriteriaCounts, RubricAverage
from monitors.records.grades import Aspect, Criterion, FailureKind, Judged, UsefulnessCriterion
from monitors.records.runs import CaseResult, ReasonKind, RunReport, Verdict
from monitors.records.triage import Issue, TriageReference, TriageTask
from tests.builders import exchange, gold_case, judged
from tests.monitors.gate.runs import WRONG, asked, baseline, reason, report

LAX = GateSettings(min_rubric=1)
ASKED_FOR = GateSettings(rating_needed=True)
PERFECT = (5,) * 40


def rated(*ratings: int, **changes):
    return [asked(gold_case(f"t-{n}", **changes), rubric=rating) for n, rating in enumerate(ratings)]


def mixed(fives: int, fours: int = 0, threes: int = 0) -> tuple[int, ...]:
    return (5,) * fives + (4,) * fours + (3,) * threes


def issue(number: int, repository: str = "acme/jobs"):
    url = f"https://github.com/{repository}/issues/{number}"
    task = TriageTask(issue=Issue(url=url, title="It hangs"), reference=TriageReference())
    return gold_case(f"i-{number}", triage=task)


def triaged(number: int, rubric: int = 0, repository: str = "acme/jobs", *, is_report: bool = True) -> CaseResult:
    """Return the result of an issue. If ``is_report`` is false, the reply is not a report.

    With ``rubric``, the judge rated it with this number.
    """
    case = issue(number, repository)
    form = judged(Aspect.REPORT_FORM, None if is_report else FailureKind.FORMAT)
    given = [form, judged(Aspect.RELEVANT_FILES), judged(Aspect.DISCLOSURE), judged(Aspect.ERROR_LEAK)]
    if rubric:
        given.append(judged(Aspect.USEFULNESS, grader="judge", rubric=rubric))
    came = exchange(case)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, given))


def decisive(found: RunReport) -> list[str]:
    """Return the texts of the reasons about ratings that decide the verdict."""
    return [one.text for one in found.reasons if one.decisive and one.kind is ReasonKind.RUBRIC]


def answer_criteria(number: int, *scores: int, problem: str = "") -> CaseResult:
    """Return a report that is rated 5, with ``scores`` for the criteria.

    ``problem`` says why the criteria are unknown.
    """
    criteria = tuple(UsefulnessCriterion(name=n, score=s) for n, s in zip(Criterion, scores, strict=bool(scores)))
    rated_case = triaged(number)
    rated_grade = judged(Aspect.USEFULNESS, grader="judge", rubric=5, criteria=criteria, criteria_problem=problem)
    grades = (*rated_case.assessment.grades, rated_grade)
    return rated_case.with_assessment(assess_case(rated_case.case, rated_case.result, grades))


def test_criteria_count_the_issues_that_meet_them_in_every_ask():
    """A criterion counts an issue if every answer to the issue meets it.

    A reply that is not a report meets no criterion. Answers whose criteria are unreadable are ignored, and an issue
    with only such answers counts as unrated.
    """
    asks = [answer_criteria(1, 1, 1, 0), answer_criteria(1, 1, 0, 0), answer_criteria(1, problem="unreadable")]
    met = report([*asks, answer_criteria(2, 1, 1, 1), answer_criteria(3, problem="unreadable")])
    assert met.rubric.criteria == CriteriaCounts(
        rated=2,
        unrated=1,
        met={Criterion.HELPFULNESS: 2, Criterion.COMPLETENESS: 1, Criterion.ACCURACY: 1},
    )
    with_empty = report([answer_criteria(1, 1, 1, 1), triaged(2, is_report=False)])
    assert with_empty.rubric.criteria == CriteriaCounts(rated=2, met=dict.fromkeys(Criterion, 1))
    none_read = report([answer_criteria(1, problem="unreadable"), triaged(2, is_report=False)])
    assert (none_read.rubric.criteria.rated, none_read.rubric.mean) == (1, 3.0)


def test_results_from_before_the_criteria_still_load_and_count_none():
    older = report([triaged(1, rubric=5), triaged(2, rubric=4)])
    stored = older.model_dump(mode="json")
    del stored["rubric"]["criteria"]
    assert RunReport.model_validate(stored) == older
    assert older.rubric.criteria is None
    grade = judged(Aspect.USEFULNESS, rubric=5).model_dump(mode="json", exclude={"criteria", "criteria_problem"})
    assert Judged.model_validate(grade).criteria == ()


def test_no_rated_report_has_no_average_and_decides_nothing():
    found = report(rated(0, 0))
    assert found.rubric is None
    assert reason(found, ReasonKind.RUBRIC) is None


def test_an_average_below_4_fails_with_the_low_ones_named_lowest_first(snapshot):
    found = report(rated(2, *mixed(0, 36, 3)))
    low = reason(found, ReasonKind.RUBRIC)
    assert low.text == snapshot
    assert found.rubric.mean == pytest.approx(3.875)
    assert low.case_ids == ("t-0", "t-37", "t-38", "t-39")
    assert found.verdict is Verdict.FAIL


def test_an_average_of_exactly_4_passes():
    assert report(rated(*mixed(5, 30, 5)), ASKED_FOR).verdict is Verdict.PASS


def test_unrated_cases_may_lift_the_average():
    """A run with a low average is INCONCLUSIVE if unrated cases could still raise the average to the minimum.

    If half of the reports are rated 3 and the others could be rated 5, the average could reach 4.
    """
    found = report([triaged(n, 3 if n < 20 else 0) for n in range(40)])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "is 3.00, below" in decisive(found)[0]


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (mixed(28, 12), Verdict.PASS),  # a drop of exactly 0.3
        (mixed(27, 13), Verdict.FAIL),  # 0.325
    ],
)
def test_a_drop_above_0_3_on_shared_reports_fails(now, verdict):
    found = report(rated(*now), baseline=baseline(rated(*PERFECT)))
    assert found.verdict is verdict
    assert found.comparison.rubric.before == 5
    assert found.comparison.rubric.change == pytest.approx(sum(now) / 40 - 5)


@pytest.mark.parametrize("ratings", [(5, 5, 3, 2, 4), (3,), (4,) * 9 + (3,)])
def test_a_few_reports_are_measured_as_well_as_many(ratings):
    """The same limits for the average rating apply to few and to many reports.

    An average below the minimum fails, and so does a drop of 0.4 on ten shared reports.
    """
    assert report(rated(*ratings)).verdict is Verdict.FAIL
    assert report(rated(*mixed(6, 4)), baseline=baseline(rated(*[5] * 10))).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("ratings", "bound", "verdict"),
    [
        ((5,) * 20, 4.44, Verdict.PASS),
        ((5,) * 19 + (1,), 4.14, Verdict.PASS),
        ((4,) * 20, 3.18, Verdict.INCONCLUSIVE),
        ((5,), 1.2, Verdict.INCONCLUSIVE),
    ],
)
def test_the_bound_decides_only_where_it_is_asked_for(ratings, bound, verdict):
    found = report(rated(*ratings), ASKED_FOR)
    assert (found.verdict, found.rubric.bound) == (Verdict.PASS, pytest.approx(bound, abs=0.005))
    general = report(rated(*ratings), GateSettings(rubric_bound_needed=True))
    assert (general.verdict, len(decisive(general))) == (verdict, int(verdict is not Verdict.PASS))


@pytest.mark.parametrize(("left_out", "verdict"), [(1, Verdict.PASS), (2, Verdict.INCONCLUSIVE)])
def test_issues_without_a_rating_count_against_coverage(left_out, verdict):
    results = [triaged(n, 5 if n >= left_out else 0) for n in range(20)]
    found = report(results, ASKED_FOR)
    kind = ReasonKind.UNCOVERED if verdict is Verdict.PASS else ReasonKind.COVERAGE
    assert (found.verdict, len(found.rubric.ratings)) == (verdict, 20 - left_out)
    assert reason(found, kind).case_ids == tuple(f"i-{n}" for n in range(left_out))


def test_an_average_that_an_older_run_stored_is_read():
    """The average rating of an older run is read, although that run also stored the interval of the average."""
    stored = RubricAverage(mean=5, ratings=[{"case_id": "a", "rating": 5}]).model_dump()
    assert (
        RubricAverage.model_validate(stored | {"low": 4.4, "high": 5, "clusters": 1, "detectable": None}).mean == 5
    )


def test_the_drop_is_over_the_reports_that_both_runs_rated():
    before = baseline(rated(5, 5, 0, 0))
    found = report(rated(5, 5, 1, 1), LAX, before)
    assert (found.comparison.rubric.shared, found.comparison.rubric.change) == (2, 0)
    assert found.verdict is Verdict.PASS


def test_a_case_rated_several_times_counts_once_with_its_average():
    case = gold_case("t")
    found = report([asked(case, rubric=5), asked(case, rubric=3, repeat=1), *rated(4)], LAX)
    assert (len(found.rubric.ratings), found.rubric.mean) == (2, 4)


def test_the_reason_names_the_reports_that_fell_most(snapshot):
    now = [3, 4, 5, 2, *[4] * 26]
    found = report(rated(*now), LAX, baseline(rated(*[5] * 30)))
    assert decisive(found) == snapshot
    fell = reason(found, ReasonKind.RUBRIC).case_ids
    assert (len(fell), fell[:2]) == (29, ("t-3", "t-0"))


@pytest.mark.parametrize("judged_by", [0, 30])
def test_a_reply_that_is_no_report_is_rated_1_beside_those_that_a_judge_rated(judged_by):
    results = [triaged(n, 5) if n < judged_by else triaged(n, is_report=False) for n in range(40)]
    found = report(results, GateSettings(min_weighted_score=0))
    assert (found.rubric and found.rubric.mean) == ((30 * 5 + 10) / 40 if judged_by else None)


def test_a_flaky_case_alone_makes_no_average_low():
    """A single flaky report does not make the average low.

    In this test, the average without this report is 4, so the low average with it does not decide.
    """
    flaky = gold_case("flaky")
    results = [asked(flaky, WRONG, rubric=1), asked(flaky, rubric=1, repeat=1)]
    found = report(
        [*rated(*[4] * 39), *results], GateSettings(min_weighted_score=0, targets={"factual_accuracy": 0})
    )
    low = reason(found, ReasonKind.RUBRIC)
    assert (low.decisive, found.verdict) == (False, Verdict.PASS)
