"""Tests of the pages Judge and Suite.

They show figures only from reviews or recorded runs, and otherwise "no data".
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from deployments.site.memory import CopyMemory, ReviewMemory
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import compute_suite_balance
from monitors.records.base import Severity
from monitors.records.comparisons import DetectableDrop
from monitors.records.grades import Aspect, Judged
from monitors.records.incidents import Redacted
from monitors.records.operator_actions import HumanLabel
from monitors.records.reviews import AnswerVerdict, LabelSource
from monitors.records.runs import JudgeState, Judging, MutantCount, MutationScores
from tests.deployments.site.page_text import page_text
from tests.deployments.site.site_server import config_of, serving_site
from tests.warehouse.queries.test_reviews import judged_store, label
from tests.warehouse.sample_nights import night_report
from tests.warehouse.sample_repeats import session as repeats_session
from tests.warehouse.sample_repeats import some_figures
from tests.warehouse.sample_rows import NOON, assessment, exchange, grades, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.database.snapshot import build_snapshot_and_store
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, LabelRow, NightlyRunRow, RepeatabilityRow, ResultRow, RunRow
from warehouse.queries.reviews import list_answers_judged_and_reviewed

JUDGE = next(one.lineage for one in grades() if isinstance(one, Judged) and one.lineage)
CASES = 12


def judged_run(number: int) -> list[ResultRow | AssessmentRow | RunRow]:
    """Build a run in which the judge passed every case, and the other grader failed the first case."""
    run_id = f"run-{number}"
    rows: list[ResultRow | AssessmentRow | RunRow] = []
    for case in range(CASES):
        given = tuple(
            one.model_copy(update={"aspect": Aspect.FACTUAL_MATCH})
            if isinstance(one, Judged) and one.lineage
            else one.model_copy(update={"passed": case > 0})
            if isinstance(one, Judged)
            else one
            for one in grades()
        )
        known = assessment(run_id, f"case-{case}").model_copy(update={"grades": given})
        rows += [ResultRow(row=exchange(run_id, f"case-{case}")), AssessmentRow(row=known)]
    judging = Judging(
        state=JudgeState.ON,
        models=(JUDGE.model,),
        answers=CASES,
        left_open=CASES,
        judged=CASES,
        groups=4,
        void_groups=number,
        void_grades=3 * number,
        lineages=(JUDGE,),
        calls=9,
        cost_usd=Decimal("1.25"),
    )
    at = NOON + timedelta(hours=number)
    return [*rows, RunRow(row=run_report(run_id).model_copy(update={"finished_at": at, "judging": judging}))]


def site_of(folder: Path, store: Store):
    store.load_pending(30)
    return serving_site(config_of(folder), store, now=lambda: NOON + timedelta(days=1))


def asked(site, path: str) -> dict:
    answer = httpx.get(f"{site.address}{path}", trust_env=False, headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path)


def review(case: int, answer: AnswerVerdict) -> LabelRow:
    """Build a person's review of the answer to a case of the first run."""
    return LabelRow(
        row=HumanLabel(
            id=f"review-{case}",
            at=NOON,
            by="asha",
            target="helpdesk",
            run_id="run-0",
            case_id=f"case-{case}",
            reason=Redacted("the judge says so"),
            source=LabelSource.REVIEW,
            answer=answer,
            inclusion_probability=0.5,
        )
    )


def test_the_judge_stands_beside_people_rules_and_canaries(tmp_path, store, snapshot):
    """The page Judge compares the judge's verdicts with those of people, rules and canaries.

    In this test, the judge passed two wrong answers of ten reviewed ones. The list of runs includes a nightly run,
    and a run with a missed canary.
    """
    for number in range(2):
        store.journal.append(judged_run(number), run_id=f"run-{number}")
    answers = [AnswerVerdict.WRONG] * 2 + [AnswerVerdict.RIGHT] * 8
    store.journal.append([review(case, answer) for case, answer in enumerate(answers)], run_id=None)
    store.journal.append([NightlyRunRow(row=night_report(nights=-1))], run_id="night-1")
    with site_of(tmp_path, store) as served:
        data = asked(served, "/judge")
        page = httpx.get(f"{served.address}/judge", trust_env=False).text
    (people,) = data["calibrations"]
    assert (people["agreed"], people["both_graded"], people["judged"]) == (8, 10, 2 * CASES)
    assert people["false_pass_rate"] is None  # only two answers; a rate needs five
    (rules,) = data["agreement"]
    assert (rules["both_graded"], rules["agreed"], rules["too_mild"]) == (2 * CASES, 2 * CASES - 2, 2)
    assert [(row["run_id"], row["is_nightly"]) for row in data["rows"]] == [
        ("run-1", False),
        ("run-0", False),
        ("night-1", True),
    ]
    assert data["few"] > people["both_graded"]
    assert [row["judging"]["void_groups"] for row in data["rows"][:2]] == [1, 0]
    assert page_text(page) == snapshot


def test_without_reviews_and_records_there_is_no_data(tmp_path, store, snapshot):
    """Without reviews, the page asks for reviews of the judge's verdicts.

    A run that did not record how it was judged is listed as such.
    """
    store.journal.append(judged_run(0), run_id="run-0")
    old = run_report("old").model_copy(update={"finished_at": NOON - timedelta(days=1)})
    store.journal.append([RunRow(row=old)], run_id="old")
    with site_of(tmp_path, store) as served:
        data = asked(served, "/judge")
        page = httpx.get(f"{served.address}/judge", trust_env=False).text
        suite_page = httpx.get(f"{served.address}/suite", trust_env=False).text
    assert data["calibrations"][0]["both_graded"] == 0
    assert [row["judging"] is None for row in data["rows"]] == [False, True]
    assert data["paging"]["total"] == 2
    assert data["cost"][0]["value"] is None
    assert page_text(page) == snapshot
    assert page_text(suite_page) == snapshot


def test_the_suite_shows_how_often_answers_flip_or_that_no_case_was_asked_twice(tmp_path, store, snapshot):
    """The page Suite shows how often the verdict differs if a case is asked twice.

    Without a repeatability session, the page shows no rate. If the last session is void, it shows the reason.
    """
    store.journal.append(judged_run(0), run_id="run-0")
    with site_of(tmp_path, store) as served:
        assert asked(served, "/suite")["repeatability"] is None
    session = repeats_session(hours=1, figures=some_figures())
    store.journal.append([RepeatabilityRow(row=session)], run_id=session.run_id)
    with site_of(tmp_path, store) as served:
        page = httpx.get(f"{served.address}/suite", trust_env=False).text
        data = asked(served, "/suite")
    assert data["repeatability"]["figures"]["rates"][0]["flips"] == 1
    assert page_text(page) == snapshot
    reason = "a deploy came in between"
    void = repeats_session("session-2", hours=2, void=reason)
    store.journal.append([RepeatabilityRow(row=void)], run_id="session-2")
    with site_of(tmp_path, store) as served:
        page = httpx.get(f"{served.address}/suite", trust_env=False).text
    assert reason in page
    assert "2.5 %" not in page


def test_the_suite_shows_balance_mutants_and_what_it_cannot_see(tmp_path, store, snapshot):
    """The page Suite shows the suite's balance, its mutants and its gaps.

    The counts are those of the newest run, and the gaps are described in sentences.
    """

    def mutants(name: str, caught: int) -> MutantCount:
        return MutantCount(name=name, mutants=20, caught=caught, passed=1, low=0.5, high=0.9, by_grader={})

    report = run_report("run-1").model_copy(
        update={
            "balance": compute_suite_balance(suite(12).cases, GateSettings()),
            "mutation_score": MutationScores(
                cases=12,
                whole=mutants("all", 15),
                severe=mutants("severe", 12),
                severe_without_personal_data=mutants("severe_without_personal_data", 11),
                by_operator=(mutants("number_changed", 19),),
                by_severity=(),
            ),
            "sights": (
                DetectableDrop(
                    severity=Severity.CRITICAL,
                    cases=4,
                    not_correct=0,
                    failing_at_most=0.5,
                    pairs=4,
                    smallest_drop=None,
                ),
            ),
        }
    )
    store.journal.append([RunRow(row=report)], run_id="run-1")
    with site_of(tmp_path, store) as served:
        data = asked(served, "/suite")
        page = httpx.get(f"{served.address}/suite", trust_env=False).text
    assert {(one["group"], one["key"]): one["cases"] for one in data["balance"]["groups"]}["severity", "2"] == 12
    assert data["gaps"] == snapshot
    assert page_text(page) == snapshot


@pytest.mark.parametrize("path", ["/judge", "/suite"])
def test_an_empty_warehouse_names_the_command(tmp_path, store, path):
    """Without a run, the page shows no data and the command that creates data."""
    with site_of(tmp_path, store) as served:
        page = httpx.get(f"{served.address}{path}", trust_env=False).text
    assert "no data" in page
    assert "lookout verify" in page


def test_cached_reviews_equal_the_warehouse(tmp_path):
    """The cached review figures equal those of the warehouse view after each new review.

    The reviews include changed verdicts and unsure answers.
    """
    store, memory = judged_store(tmp_path), ReviewMemory()
    steps = [
        ("case-0", AnswerVerdict.RIGHT, "asha"),
        ("case-1", AnswerVerdict.WRONG, "asha"),
        ("case-1", AnswerVerdict.WRONG, "bina"),
        ("case-0", AnswerVerdict.WRONG, "bina"),
        ("case-2", AnswerVerdict.UNSURE, "asha"),
        ("case-2", AnswerVerdict.RIGHT, "bina"),
    ]
    seen = []
    for number, (case, said, by) in enumerate(steps):
        given = label(case, said, by=by, probability=1.0 if number == 2 else 0.5)
        store.journal.append([LabelRow(row=given)], run_id=None)
        store.load_pending(5)
        answers = memory.load_reviewed_judged_answers(store, None, NOON)
        assert sorted(answers, key=lambda one: one.answer_id.case_id) == list(
            list_answers_judged_and_reviewed(store)
        )
        assert memory.load_reviewed_judged_answers(store, "another", NOON) == ()
        seen.append(len(answers))
    assert seen == [1, 2, 2, 1, 1, 2]


def test_a_figure_is_computed_once_for_a_copy(tmp_path):
    """A figure is computed only once as long as the site reads the same copy of the warehouse."""
    store = judged_store(tmp_path)
    snapshot, _ = build_snapshot_and_store(store)
    snapshot.refresh(5)
    memory, asked = CopyMemory(snapshot), iter(range(10))
    first = [memory.get_or_compute("a", lambda: next(asked)), memory.get_or_compute("a", lambda: next(asked))]
    store.journal.append([LabelRow(row=label("case-0", AnswerVerdict.RIGHT))], run_id=None)
    store.load_pending(5)
    snapshot.refresh(5)
    assert [*first, memory.get_or_compute("a", lambda: next(asked))] == [0, 0, 1]
    snapshot.close()
