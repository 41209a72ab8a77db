"""`lookout review` of reports: a person rates from 1 to 5, and then sees the judge's rating."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deployments.cli.exit_codes import ExitCode
from deployments.cli.reviews.answers import review_command
from monitors.goldset.lines import parse_case_object
from monitors.goldset.load import build_suite
from monitors.records.cases import GoldCase, Suite
from monitors.records.grades import Aspect, Criterion, Judged, UsefulnessCriterion
from tests.deployments.cli.gate.test_triage_gate import issue, reports
from tests.warehouse.queries.test_reviews import LINEAGE
from tests.warehouse.sample_rows import NOON, assessment, exchange, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow

SINCE_NOON = (datetime.now(UTC) - NOON).days + 2
JUDGES_WORD = "the judge finds it so"
RATINGS = (5, 4, 3, 5, 2, 1)


def useful(rating: int) -> Judged:
    """Build a rating of a report that is helpful but not complete."""
    met = {Criterion.HELPFULNESS: 1, Criterion.COMPLETENESS: 0, Criterion.ACCURACY: int(rating > 2)}
    return Judged(
        grader="judge",
        version="1",
        aspect=Aspect.USEFULNESS,
        passed=rating > 2,
        failure_kind=None if rating > 2 else "poor_triage",
        rubric=rating,
        criteria=tuple(UsefulnessCriterion(name=name, score=score) for name, score in met.items()),
        reason=JUDGES_WORD,
        lineage=LINEAGE,
    )


def issues() -> Suite:
    cases = [parse_case_object(json.loads(issue(number)) | {"id": f"i{number}"}) for number in range(len(RATINGS))]
    assert all(isinstance(case, GoldCase) for case in cases), cases
    return build_suite(cases, name="issues", source="here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with six reports. The rules passed all of them, and the judge rated them as in `RATINGS`."""
    store, suite = store_in(tmp_path), issues()
    store.journal.append_suite(suite)
    written = list(reports([4] * len(RATINGS)).values())
    rule = Judged(grader="relevant_files", version="1", aspect=Aspect.RELEVANT_FILES, passed=True, reason="named")
    for number, rating in enumerate(RATINGS):
        came = exchange(case_id=f"i{number}", text=json.dumps(written[number]))
        grades = assessment(case_id=f"i{number}").model_copy(update={"grades": (rule, useful(rating))})
        store.journal.append([ResultRow(row=came), AssessmentRow(row=grades)], run_id="run-1")
    report = run_report().model_copy(update={"suite_sha256": suite.sha256})
    store.journal.append([RunRow(row=report)], run_id="run-1")
    store.load_pending(1)
    return tmp_path


@pytest.fixture
def review(folder, monkeypatch, capsys):
    """Return a function that runs the command in this process and returns its output.

    Keys are read as from a pipe.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def run(*, keys: str = "", **options) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        code = review_command(config=folder / "lookout.toml", data_folder=folder, days=SINCE_NOON, **options)
        assert code is ExitCode.PASS
        return capsys.readouterr().out

    return run


def rows(folder: Path, sql: str):
    store = store_in(folder)
    store.load_pending(1)
    return store.query(sql).rows


def keys_for(review, *, by: str, rating_of) -> str:
    """Return the keys that review each report as right and rate it with ``rating_of``.

    The reports are in the order in which they are shown.
    """
    listed = [json.loads(line) for line in review(share=1, by=by, as_json=True).splitlines()]
    return "".join(f"y\n{rating_of(int(one['case_id'][1:]))}\n" for one in listed)


def test_the_judges_rating_shows_after_the_persons_and_the_issue_before(review, snapshot):
    shown = review(share=1, by="asha", keys="y\n4\nq\n")
    assert shown.index("Something hangs") < shown.index(JUDGES_WORD)
    assert shown == snapshot
    listed = review(share=1, by="asha", as_json=True)
    assert JUDGES_WORD not in listed
    assert "Something hangs" in listed


def test_ratings_are_stored_and_resumed_and_any_other_key_skips_one(folder, review):
    """Ratings are stored, and a session is resumed. Any other key leaves a report without a rating.

    The answers are: right and 5; wrong with kind, rating and note; right and unrated; skipped; unsure and 3; quit.
    """
    review(share=1, by="asha", keys="y\n5\nn\n7\n2\nno cause\ny\nx\ns\nu\n3\nq\n")
    found = rows(folder, "select answer, rating, failure_kind, note from labels order by answer, rating")
    assert found == (
        ("right", 5, None, ""), ("right", None, None, ""), ("unsure", 3, None, ""), ("wrong", 2, "poor_triage", ("no "
"cause")),
    )  # fmt: skip
    assert "1 of 2" in review(share=1, by="asha", keys="q\n")
    assert not (folder / "drafts").exists(), "the issue is in the suite: a second case of it would count twice"


@pytest.mark.whole_only
def test_figures_are_kappa_and_differences_with_intervals(folder, review, snapshot):
    """The figures are kappa and the rating differences, each with an interval.

    The person rates every report one lower than the judge, except for the worst report.
    """
    review(share=1, by="asha", keys=keys_for(review, by="asha", rating_of=lambda n: max(1, RATINGS[n] - 1)))
    assert review(figures=True) == snapshot
    found = [json.loads(line) for line in review(figures=True, as_json=True).splitlines()]
    (ratings,) = [each for each in found if "absolute_difference" in each]
    assert (ratings["judged"], ratings["reports"], ratings["same"]) == (6, 6, 1)
    assert ratings["absolute_difference"]["value"] == pytest.approx(5 / 6)
    assert ratings["difference"]["value"] == pytest.approx(5 / 6)
    assert ratings["difference"]["low"] < 5 / 6 < ratings["difference"]["high"]
    assert rows(folder, "select both_rated, same, mean_absolute_difference from judge_ratings_against_people") == (
        (6, 1, 0.8333),
    )


@pytest.mark.whole_only
def test_a_report_that_two_people_rated_counts_once(folder, review):
    review(share=1, by="asha", keys=keys_for(review, by="asha", rating_of=lambda n: RATINGS[n]))
    review(share=1, by="ravi", keys="y\n1\nq\n")
    (twice,) = rows(folder, "select case_id, judge_rating from reviewed_ratings where done_by = 'ravi'")
    found = [json.loads(line) for line in review(figures=True, as_json=True).splitlines()]
    (ratings,) = [each for each in found if "absolute_difference" in each]
    assert (ratings["ratings"], ratings["reports"]) == (7, 6)
    assert ratings["absolute_difference"]["value"] == pytest.approx((twice[1] - 1) / 2 / 6)


def test_without_a_rating_of_a_person_it_is_said(review, snapshot):
    assert review(figures=True) == snapshot
