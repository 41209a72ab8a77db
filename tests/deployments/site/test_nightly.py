"""Tests of the page about nightly runs: samples, rates with intervals and methods, drift, and redacted examples."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from monitors.records.estimates import RateUnknown
from monitors.records.grades import FailureKind
from tests.deployments.site.site_server import HOSTILE, config_of, serving_site
from tests.warehouse.sample_nights import drift_reading, night_report, rate
from tests.warehouse.sample_rows import assessment, exchange
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, NightlyRunRow, ResultRow

NIGHTS = 4


def store_of(folder: Path) -> Store:
    """Store four nightly reports: the second with another grader, the third with drift, the last without a rate."""
    store = store_in(folder)
    for number in range(NIGHTS):
        night = f"night-{number}"
        changes: dict[str, object] = {"drift_reading": drift_reading(0.004, 0.012, drifted=number == 2)}
        if number == 1:
            changes["graded_by"] = "another-judge"
        if number == 3:
            unknown = RateUnknown(conversations=1000, sampled=100, why="no judge was asked")
            changes |= {"severe": unknown, "drift_reading": None}
        if number == 0:
            changes["severe"] = rate(0.004).model_copy(update={"judged": True, "corrected": True})
            changes["reviews"] = 45
        report = night_report(night, nights=number).model_copy(update=changes)
        store.journal.append([NightlyRunRow(row=report), *failures(night)], run_id=night)
    store.load_pending(30)
    return store


def failures(night: str) -> list[ResultRow | AssessmentRow]:
    """Build five conversations with a wrong fact. One of them also contains a disclosure."""
    rows: list[ResultRow | AssessmentRow] = []
    for number in range(5):
        said = assessment(night, f"talk-{number}", failed=FailureKind.WRONG_FACT)
        kinds = (FailureKind.PII_DISCLOSURE, FailureKind.WRONG_FACT) if number == 4 else said.failure_kinds
        answer = exchange(night, f"talk-{number}", text=f"write to asha@example.org {HOSTILE}")
        rows += [ResultRow(row=answer), AssessmentRow(row=said.model_copy(update={"failure_kinds": kinds}))]
    return rows


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nightly")
    with serving_site(config_of(folder), store_of(folder)) as served:
        yield served


def asked(site, path: str) -> dict:
    answer = httpx.get(f"{site.address}{path}", trust_env=False, headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_the_newest_night_is_shown_above_all_nights(site, snapshot):
    """The newest night is shown above the list of all nights.

    A rate that is unknown is shown as unknown with its reason, and not as zero.
    """
    data = asked(site, "/nightly")
    assert data["shown"]["run_id"] == "night-3"
    rates = [rate["text"] for rate in data["shown"]["rates"]]
    assert rates == snapshot
    assert [row["run_id"] for row in data["runs"]] == [f"night-{n}" for n in (3, 2, 1, 0)]
    assert data["runs"][0]["severe_rate"] is None
    page = httpx.get(f"{site.address}/nightly", trust_env=False).text
    assert rates[0] in page


def test_a_night_says_what_was_sampled_and_how_its_rates_were_corrected(site, snapshot):
    """The page of a night says how many conversations of each stratum were sampled.

    The page also shows the rate with its interval, and how the rate was corrected, for example by reviews.
    """
    night = asked(site, "/nightly?night=night-0")["shown"]
    assert [(one["stratum"], one["conversations"], one["sampled"]) for one in night["strata"]] == [
        ("disclosure", 100, 50),
        ("rest", 900, 50),
    ]
    assert [rate["text"] for rate in night["rates"]] == snapshot
    assert night["rates"][0]["method"] == "stratified"


def test_drift_is_a_filter_and_a_word(site):
    """The filter for drift finds a night that drifted.

    A night that was not tested for drift is shown as untested.
    """
    assert [row["run_id"] for row in asked(site, "/nightly?drift=worse")["runs"]] == ["night-2"]
    assert "worse since" in " ".join(asked(site, "/nightly?night=night-2")["shown"]["facts"])
    assert "not tested" in httpx.get(f"{site.address}/nightly", trust_env=False).text


def test_nights_of_another_grader_are_not_in_the_trend(site):
    """Nights of another judge are in the list but not in the trend line, because their rates are not comparable."""
    trend = asked(site, "/nightly")["trend"]
    assert [point["value"] for point in trend] == [0.004, 0.004, None]


def test_examples_stand_by_kind_masked_inert_and_few(site):
    """Each failure kind has at most three examples, which are redacted and shown as text.

    A conversation with several kinds is listed under each of them.
    """
    examples = asked(site, "/nightly")["shown"]["examples"]
    assert sorted(one["kind"] for one in examples) == ["pii_disclosure"] + ["wrong_fact"] * 3
    page = httpx.get(f"{site.address}/nightly", trust_env=False).text
    assert "personal data disclosed" in page
    assert "asha@example.org" not in page
    assert "<script>alert" not in page


def test_an_unknown_night_is_a_404_and_none_at_all_names_the_command(site, tmp_path):
    """An unknown night is answered with HTTP 404, and the page contains its name.

    If there is no night at all, the page contains the command that grades one.
    """
    answer = httpx.get(f"{site.address}/nightly.json?night=nowhere", trust_env=False)
    assert answer.status_code == 404
    assert "Nightly run nowhere is not in the warehouse" in answer.json()["error"]
    store = store_in(tmp_path)
    store.load_pending(5)
    with serving_site(config_of(tmp_path), store) as empty:
        page = httpx.get(f"{empty.address}/nightly", trust_env=False).text
    assert "no data" in page
    assert "lookout nightly" in page


def test_a_night_links_to_its_report_and_the_site_serves_it(site):
    folder = site.config.data_folder / "runs" / "night-1"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<p>the night's report</p>", encoding="utf-8")
    address = "/runs/night-1/report"
    with httpx.Client(base_url=site.address, trust_env=False) as browser:
        assert f'href="{address}"' in browser.get("/nightly", params={"night": "night-1"}).text
        served = browser.get(address)
        assert (served.status_code, "night's report" in served.text) == (200, True)
        assert "sandbox" in served.headers["content-security-policy"]
        assert "/runs/night-2/report" not in browser.get("/nightly", params={"night": "night-2"}).text
        assert browser.get("/runs/night-2/report").status_code == 404
