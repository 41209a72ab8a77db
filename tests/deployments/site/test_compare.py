"""The comparison of two runs: flips first, the result of McNemar's test, and all other differences."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx
import pytest

from deployments.site.pages.compare import TOO_FEW
from monitors.records.cases import Suite
from monitors.records.runs import JudgeState, Judging
from monitors.records.snapshots import RunSnapshot
from tests.deployments.site.site_server import config_of, serving_site
from tests.deployments.site.test_cases import run_rows
from tests.warehouse.sample_rows import grades, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import CaseRow, RunRow, SuiteCase

OTHER_SUITE = hashlib.sha256(b"another suite").hexdigest()
MANY = {f"case-{number:02}": "r" for number in range(40)}
BROKEN = {**MANY, **{f"case-{number:02}": "w" for number in range(8)}, "case-39": "u"}
RUNS = [MANY, BROKEN, {"only": "r", "case-00": "r", "case-08": "w"}, {"only": "w", "case-00": "r", "case-08": "r"}]
"""The outcomes of four runs. Between the first two, eight of forty cases broke and one became ungraded.

The other two runs have few cases.
"""


def store_of(folder: Path) -> Store:
    store = store_in(folder)
    for number, outcomes in enumerate(RUNS):
        store.journal.append(run_rows(number, outcomes), run_id=f"run-{number}")
    other = run_rows(4, {"case-0": "w", "case-1": "w", "gone": "r"})
    report = other[-1]
    assert isinstance(report, RunRow)
    lineage = next(lineage for one in grades() if (lineage := getattr(one, "lineage", None)))
    judging = Judging(state=JudgeState.ON, lineages=(lineage,))
    changed = report.row.model_copy(update={"suite_sha256": OTHER_SUITE, "judging": judging, "commit": "other"})
    store.journal.append([*other[:-1], RunRow(row=changed)], run_id="run-4")
    base = suite(2)
    edited = base.cases[1].model_copy(update={"gold": "Three years."})
    store.journal.append(case_rows(base), run_id=None)
    store.journal.append(
        case_rows(Suite(name="gold", sha256=OTHER_SUITE, cases=(base.cases[0], edited))), run_id=None
    )
    first = run_rows(5, {"case-0": "r", "case-1": "r"})
    store.journal.append(first, run_id="run-5")
    store.load_pending(30)
    return store


def case_rows(asked: Suite) -> list[CaseRow]:
    return [
        CaseRow(row=SuiteCase(suite_name=asked.name, suite_sha256=asked.sha256, case=case)) for case in asked.cases
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    with serving_site(config_of(folder), store_of(folder)) as served:
        yield served


def compared(site, query: str) -> dict:
    answer = httpx.get(f"{site.address}/compare.json?{query}", trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_the_flips_stand_first_and_mcnemar_says_what_they_show(site, snapshot):
    """Cases that changed are listed first, with the result of McNemar's test.

    In this test, eight of 39 pairs broke and none was fixed, so the second run is worse.
    """
    data = compared(site, "before=run-0&now=run-1")
    assert [flip["case_id"] for flip in data["flips"]] == [f"case-{number:02}" for number in range(8)]
    everything = data["sums"][0]
    assert (everything["pairs"], everything["broke"], everything["fixed"]) == (39, 8, 0)
    assert everything["p_value"] == pytest.approx(2 / 2**8)
    assert everything["says"].startswith("worse")
    assert everything["says"] == snapshot
    assert data["left_out"] == {"only_before": 0, "only_now": 0, "ungraded": 1, "other_case": 0}


def test_the_reverse_is_better(site):
    """With the two runs swapped, broken cases are fixed cases, and the result is better.

    The p-value is the same.
    """
    data = compared(site, "before=run-1&now=run-0")
    assert data["sums"][0]["says"].startswith("better")
    assert not any(flip["broke"] for flip in data["flips"])
    assert compared(site, "before=run-1&now=run-0&way=broke")["flips"] == []


def test_too_few_pairs_say_so(site):
    """If the runs share only a few cases, the page says that there are too few pairs for a result.

    Broken cases come before fixed cases.
    """
    data = compared(site, "before=run-2&now=run-3")
    assert [(flip["case_id"], flip["broke"]) for flip in data["flips"]] == [("only", True), ("case-08", False)]
    assert data["sums"][0]["says"].startswith(TOO_FEW)
    assert data["sums"][0]["smallest_drop"] is None


def test_differences_are_named_and_edited_cases_are_not_paired(site):
    """A different suite or commit of the two runs is reported. A judge that was not recorded is shown as unknown.

    A case whose gold was edited is not compared.
    """
    data = compared(site, "before=run-5&now=run-4")
    differs = {row["what"]: row["differs"] for row in data["differences"]}
    assert differs["suite"] is True
    assert differs["commit"] is True
    assert differs["target"] is False
    assert differs["judges"] is None
    assert [flip["case_id"] for flip in data["flips"]] == ["case-0"]
    assert data["left_out"] == {"only_before": 0, "only_now": 1, "ungraded": 0, "other_case": 1}
    assert data["recorded"] is None
    assert any("suites differ" in warning for warning in data["warnings"])


def test_without_an_address_the_newest_run_stands_against_the_one_before(site):
    """Without a selection in the address, the page compares the two newest runs, and its fields show them."""
    data = compared(site, "")
    assert (data["before"]["run_id"], data["now"]["run_id"]) == ("run-4", "run-5")
    page = httpx.get(f"{site.address}/compare", trust_env=False).text
    assert 'name="before" value="run-4"' in page


def test_texts_are_masked_and_inert(site):
    """The answers of both runs are shown side by side, with redacted addresses and without markup."""
    page = httpx.get(f"{site.address}/compare?before=run-0&now=run-1", trust_env=False).text
    assert "asha@example.org" not in page
    assert "<script>alert" not in page


def test_an_unknown_run_is_a_404_that_says_which(site):
    """An unknown run is answered with HTTP 404, and the page contains its id."""
    answer = httpx.get(f"{site.address}/compare.json?now=nowhere", trust_env=False)
    assert answer.status_code == 404
    assert "Run nowhere is not in the warehouse" in answer.json()["error"]


def test_one_run_alone_is_no_data(tmp_path):
    """A single run cannot be compared, and the page says how to create another."""
    store = store_in(tmp_path)
    store.journal.append(run_rows(0, MANY), run_id="run-0")
    store.load_pending(30)
    with serving_site(config_of(tmp_path), store) as alone:
        page = httpx.get(f"{alone.address}/compare", trust_env=False).text
    assert "no data" in page
    assert "lookout verify" in page


def test_recorded_facts_that_differ_are_named(tmp_path, snapshot):
    """If both runs recorded their settings, a fact that differs is reported, here the version of a grader."""
    store = store_in(tmp_path)
    for number in range(2):
        *rows, report = run_rows(number, MANY)
        assert isinstance(report, RunRow)
        known = RunSnapshot(suite_sha256=OTHER_SUITE, cases=40, graders={"quantities": str(number)})
        store.journal.append(
            [*rows, RunRow(row=report.row.model_copy(update={"snapshot": known}))], run_id=f"run-{number}"
        )
    store.load_pending(30)
    with serving_site(config_of(tmp_path), store) as served:
        data = compared(served, "")
    assert data["recorded"] == snapshot
