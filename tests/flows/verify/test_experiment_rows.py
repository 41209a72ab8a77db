"""Test the rows of an experiment: they yield the weighted score of the run, and contain no personal data."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.verify.experiment_rows import CaseWeights, build_experiment_rows, split_into_batches
from monitors.alerts.redact import redact
from monitors.gate.assess import assess_case
from monitors.gate.settings import Weights
from monitors.platforms.platform import ExperimentRow
from monitors.records.base import Blame, Severity
from monitors.records.exchanges import Channel
from monitors.records.grades import Aspect, Criterion, Span, UsefulnessCriterion
from monitors.records.runs import CaseResult, RunReport
from tests.builders import exchange, gold_case, grades, judged, no_answer
from tests.monitors.gate.runs import LEAK, WRONG, asked, report, times

MANY = st.lists(
    st.tuples(st.sampled_from(list(Severity)), st.integers(0, 3), st.integers(0, 3)).filter(
        lambda one: sum(one[1:]) > 0
    ),
    min_size=1,
    max_size=12,
)


def rows(results: Sequence[CaseResult], whole: RunReport | None = None) -> list[ExperimentRow]:
    """Return the rows of an experiment for ``results``, with an example in the dataset for each case."""
    weights = CaseWeights(whole or report(results), (one.assessment for one in results), Weights())
    return list(
        build_experiment_rows(results, {one.case.id: f"of {one.case.id}" for one in results}, weights, redact)
    )


def score(row: ExperimentRow, key: str) -> float | None:
    """Return the score of ``row`` with this key, or ``None`` if there is none."""
    return next((one.value for one in row.scores if one.key == key), None)


@given(MANY)
def test_earned_of_weight_is_the_run_s_weighted_score(planned: list[tuple[Severity, int, int]]) -> None:
    """The earned points of all rows divided by their total weight equal the weighted score of the run."""
    results = [
        one
        for number, (severity, right, wrong) in enumerate(planned)
        for one in times(gold_case(f"case-{number}", severity=severity), right, wrong)
    ]
    whole = report(results)
    found = rows(results, whole)
    earned, weight = (sum(score(row, key) or 0 for row in found) for key in ("lookout_earned", "lookout_weight"))
    assert whole.scores.weighted.value == pytest.approx(earned / weight)


@given(st.integers(0, 30), st.integers(1, 7))
def test_parts_are_all_rows_in_their_order(count: int, size: int) -> None:
    results = [asked(gold_case(f"case-{number}")) for number in range(count)] or [asked(gold_case())]
    found = rows(results)
    parts = list(split_into_batches(iter(found), size))
    assert [row for part in parts for row in part] == found
    assert all(0 < len(part) <= size for part in parts)


def test_a_rating_of_5_is_1_and_of_1_is_0() -> None:
    found = rows([asked(gold_case(f"case-{rubric}"), rubric=rubric) for rubric in (1, 3, 5)])
    assert [score(row, "lookout_usefulness") for row in found] == [0, 0.5, 1]


def test_unanswered_cases_are_errors_with_the_apps_cost_only() -> None:
    case, other = gold_case("case-1"), gold_case("case-2")
    results = [
        CaseResult(case=one, result=came, assessment=assess_case(one, came, ()))
        for one, came in ((case, no_answer(case)), (other, no_answer(other, blame=Blame.MONITOR)))
    ]
    answered = [asked(gold_case(f"answered-{number}")) for number in range(20)]  # else the app was down
    app, monitor = rows([*results, *answered])[:2]
    assert app.outputs is None
    assert str(app.error).startswith("answer_timeout: ")
    assert [score(row, "lookout_correct") for row in (app, monitor)] == [0, None]
    assert [score(row, "lookout_weight") is None for row in (app, monitor)] == [False, True]


def test_no_personal_data_is_in_any_text_of_a_row() -> None:
    """Personal data is removed from the questions, answers and errors of a row."""
    secret = "asha.verma@example.com"
    case = gold_case(turns=(f"I am {secret}, who else?", f"And {secret}?"), severity=Severity.CRITICAL)
    came = exchange(case, f"It is {secret}.", earlier_answers=(f"Hello {secret}",))
    silent = no_answer(case, detail=f"the page says {secret}", repeat=1)
    found = rows(
        [
            CaseResult(case=case, result=came, assessment=assess_case(case, came, grades(LEAK, WRONG))),
            CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ())),
        ]
    )
    assert len(found) == 2
    assert "asha.verma" not in json.dumps([row.model_dump(mode="json") for row in found])
    assert found[0].outputs is not None
    assert "It is" in str(found[0].outputs["answer"])


def test_a_criterion_has_its_quote_as_comment_without_the_personal_data_that_the_quote_cuts() -> None:
    case, text = gold_case(), "Write to asha.verma@example.com, who holds the lock."
    came = exchange(case, text)
    places = {"Write to asha.verma@exam": Criterion.HELPFULNESS, "holds the lock": Criterion.COMPLETENESS}
    spans = {text.index(quote): quote for quote in places}
    criteria = tuple(
        UsefulnessCriterion(
            name=places[quote],
            score=1,
            quote=Span(where=Channel.VISIBLE, start=start, end=start + len(quote), label="quoted by the judge"),
        )
        for start, quote in spans.items()
    )
    omitted = UsefulnessCriterion(name=Criterion.ACCURACY, score=0, reason="no cause")
    rated = judged(Aspect.USEFULNESS, grader="judge", rubric=4, criteria=(*criteria, omitted))
    assessment = assess_case(case, came, (*grades(), rated))
    (row,) = rows([CaseResult(case=case, result=came, assessment=assessment)])
    scores = {one.key: (one.value, one.comment) for one in row.scores if one.key.startswith("lookout_usefulness_")}
    assert "asha" not in str(scores)
    assert scores["lookout_usefulness_completeness"] == (1, "“holds the lock”")
    assert scores["lookout_usefulness_accuracy"] == (0, "no cause")


def test_a_case_without_an_example_is_left_out() -> None:
    results = [asked(gold_case("case-1")), asked(gold_case("case-2"))]
    weights = CaseWeights(report(results), (one.assessment for one in results), Weights())
    assert [row.case_id for row in build_experiment_rows(results, {"case-2": "e"}, weights, redact)] == ["case-2"]
