"""Tests of the page of cases by runs: each case's course (such as fixed or flaky), changes, and its answers."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.records.base import Blame
from monitors.records.grades import CaseOutcome, FailureKind
from tests.deployments.site.site_server import HOSTILE, config_of, serving_site
from tests.warehouse.sample_rows import NOON, assessment, exchange, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow
from warehouse.queries.site.cases import GridFilter, list_grid_runs, load_grid_page

COURSES = {
    "always": ("rrrrrr", "right"),
    "never": ("wwwwww", "failing"),
    "down": ("rrrrww", "broke"),
    "up": ("wrrrrr", "fixed"),
    "both": ("rwrrrr", "flaky"),
    "silent": ("rrrrrn", "broke"),
    "unknown": ("uuuuuu", "ungraded"),
    "gap": ("rru-rr", "right"),
    "late": ("-----w", "failing"),
    "monitor": ("rrrrrm", "right"),
}
"""The outcomes of each case in six runs of three deploys, and the course that follows from them, such as flaky.

The letters are r right, w wrong, n no answer, u ungraded, m not asked because of a fault of the monitor, - not
asked.
"""


def run_rows(number: int, outcomes: dict[str, str]) -> list[ResultRow | AssessmentRow | RunRow]:
    """Build the rows of a run in which each case has the given outcome. Two consecutive runs share a deploy."""
    run_id = f"run-{number}"
    rows: list[ResultRow | AssessmentRow | RunRow] = []
    for case_id, letter in outcomes.items():
        if letter == "-":
            continue
        failed = FailureKind.WRONG_FACT if letter == "w" else None
        known = assessment(run_id, case_id, failed=failed).model_copy(update={"reason": f"{case_id}: {letter}"})
        if letter in "num":
            outcome = CaseOutcome.UNGRADED if letter == "u" else CaseOutcome.NO_ANSWER
            blame = Blame.APP if letter == "n" else Blame.MONITOR
            known = known.model_copy(update={"outcome": outcome, "blame": blame})
        text = f"{letter} asha@example.org {HOSTILE}"
        rows += [ResultRow(row=exchange(run_id, case_id, text=text)), AssessmentRow(row=known)]
    at = NOON + timedelta(hours=number)
    report = run_report(run_id).model_copy(
        update={"started_at": at, "finished_at": at, "commit": f"deploy-{number // 2}"}
    )
    return [*rows, RunRow(row=report)]


def store_of(folder: Path, courses: dict[str, str]) -> Store:
    """Store cases with the given courses. Each letter of a course is the outcome in one run."""
    store = store_in(folder)
    for number in range(max(map(len, courses.values()))):
        rows = run_rows(number, {name: letters[number] for name, letters in courses.items()})
        store.journal.append(rows, run_id=f"run-{number}")
    store.load_pending(30)
    return store


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve a site with the cases of `COURSES`."""
    folder = tmp_path_factory.mktemp("cases")
    store = store_of(folder, {name: letters for name, (letters, _) in COURSES.items()})
    with serving_site(config_of(folder), store) as served:
        yield served


def asked(site, path: str) -> dict:
    answer = httpx.get(f"{site.address}{path}", trust_env=False, headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_each_case_has_the_course_that_its_answers_had(site):
    """Each case has the course that follows from its answers: right, failing, broke, fixed, flaky or ungraded.

    A run without a verdict on the case changes nothing.
    """
    data = asked(site, "/cases")
    assert {row["case_id"]: row["course"] for row in data["cases"]} == {
        name: course for name, (_, course) in COURSES.items()
    }
    assert data["courses"] == {"right": 3, "failing": 2, "broke": 2, "fixed": 1, "flaky": 1, "ungraded": 1}


def test_the_flip_is_marked_in_the_run_that_brought_it(site):
    """The change of a broken case is marked in the first run in which the case was wrong."""
    row = next(row for row in asked(site, "/cases?course=broke")["cases"] if row["case_id"] == "down")
    assert [cell["place"] for cell in row["cells"] if cell["flipped"]] == [2]
    assert Counter(cell["outcome"] for cell in row["cells"]) == {"correct": 4, "failed": 2}
    page = httpx.get(f"{site.address}/cases?course=broke", trust_env=False).text
    assert "correct 4, failed 2" in page
    assert 'href="/runs/run-4"' in page


@pytest.mark.parametrize(
    ("query", "cases"),
    [
        ("course=broke", {"down", "silent"}),
        ("outcome=failed", {"down", "never", "late"}),
        ("severity=3", set()),
        ("severity=2&outcome=ungraded", {"unknown"}),
        ("type=waiting_period&language=en&course=flaky", {"both"}),
    ],
)
def test_filters_of_the_address_choose_cases(site, query, cases):
    """Each filter removes non-matching cases, and the count includes only the remaining cases."""
    data = asked(site, f"/cases?{query}")
    assert {row["case_id"] for row in data["cases"]} == cases
    assert data["paging"]["total"] == len(cases)


def test_pages_of_cases_are_disjoint_and_whole(site):
    """With three cases on a page, every case is on exactly one page."""
    found = [row["case_id"] for page in (1, 2, 3, 4) for row in asked(site, f"/cases?rows=3&page={page}")["cases"]]
    assert sorted(found) == sorted(COURSES)


def test_the_answers_of_a_case_stand_beside_each_other_masked_and_inert(site):
    """Answers are shown newest first, with run and outcome. Addresses are redacted, and markup is shown as text."""
    data = asked(site, "/cases/down")
    assert [one["row"]["run_id"] for one in data["answers"]] == [f"run-{n}" for n in (5, 4, 3, 2, 1, 0)]
    assert [one["row"]["flipped"] for one in data["answers"]] == [False, True, False, False, False, False]
    assert [one["as_before"] for one in data["answers"]] == [True, False, True, True, True, None]
    page = httpx.get(f"{site.address}/cases/down", trust_env=False).text
    assert "asha@example.org" not in page
    assert "<script>alert" not in page
    assert 'href="/runs/run-5"' in page


def test_a_case_that_was_never_asked_is_a_404(site, snapshot):
    """A case that was never asked is answered with HTTP 404. The page says which target was searched."""
    answer = httpx.get(f"{site.address}/cases/nobody.json", trust_env=False)
    assert answer.status_code == 404
    assert answer.json()["error"] == snapshot


def test_without_a_run_the_page_names_the_command(tmp_path):
    """Without a run, the page shows no data, and the command that creates data."""
    with serving_site(config_of(tmp_path), store_of(tmp_path, {"one": ""})) as empty:
        page = httpx.get(f"{empty.address}/cases", trust_env=False).text
    assert "no data" in page
    assert "lookout verify" in page


@settings(max_examples=12, deadline=None)
@given(st.lists(st.text("rwnum-", min_size=5, max_size=5), min_size=1, max_size=8))
@pytest.mark.whole_only
def test_courses_are_what_a_plain_count_says(sequences):
    """For any outcomes, the page shows the same courses as a simple count in the test.

    A flip is a change between two consecutive verdicts. The course follows from the flips.
    """
    courses = {f"case-{number}": letters for number, letters in enumerate(sequences)}
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(Path(folder), courses)
        wanted = GridFilter(target="helpdesk")
        rows, counts = load_grid_page(store, wanted, rows=50, offset=0)
        assert [run.run_id for run in list_grid_runs(store, wanted)] == [f"run-{n}" for n in (4, 3, 2, 1, 0)]
    found = {row.case_id: (row.course.value, row.flips) for row in rows}
    assert found == {name: plain(letters) for name, letters in courses.items() if letters.strip("-")}
    assert sum(counts.values()) == len(found)


def plain(letters: str) -> tuple[str, int]:
    """Compute the course of a case and its flips by a simple count."""
    graded = [(number // 2, letter == "r") for number, letter in enumerate(letters) if letter in "rwn"]
    flips = sum(one[1] != other[1] for one, other in pairwise(graded))
    if not graded:
        return "ungraded", 0
    if not flips:
        return ("right" if graded[0][1] else "failing"), 0
    if flips == 1:
        return ("fixed" if graded[-1][1] else "broke"), 1
    unlike = any({True, False} <= {right for at, right in graded if at == deploy} for deploy, _ in graded)
    return ("flaky" if unlike else "unsteady"), flips
