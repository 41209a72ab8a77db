"""Decisions and reviews in a real browser, on a phone and a desktop, by button, by key, and without scripts."""

from __future__ import annotations

import re
from contextlib import chdir

import pytest

from monitors.goldset.drafts import read_drafts
from monitors.goldset.versions import read_suite_cases
from monitors.records.incidents import IncidentState
from tests.deployments.cli.test_review_ratings import RATINGS, useful
from tests.deployments.site.browser_pages import DESKTOP, PHONE, find_broken_rules_everywhere, opened
from tests.deployments.site.people_server import (
    compute_fingerprint,
    wanted_case,
    with_drafts,
    with_people,
    with_reports,
)
from tests.deployments.site.site_server import config_of, serving_site
from warehouse.queries.incidents import list_all_silences
from warehouse.queries.operator_actions import append_draft
from warehouse.queries.site.incidents import find_incident

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
INCIDENT = f"/incidents/{compute_fingerprint('user-0')}"
BOTH = pytest.mark.parametrize("width", [PHONE, pytest.param(DESKTOP, marks=pytest.mark.whole_only)])
JUDGES_WORD = "the judge says so"


@pytest.fixture
def site(tmp_path):
    """Serve a site on loopback with drafts. The reviewer is asha."""
    with_drafts(tmp_path)
    store = with_people(tmp_path)
    (tmp_path / "reviewer").write_text("asha\n")
    with chdir(tmp_path), serving_site(config_of(tmp_path), store) as served:
        yield served


def labels(site):
    found = site.store.query("select done_by, answer, failure_kind, note, rating from labels order by given_at")
    return list(found.rows)


@BOTH
@pytest.mark.parametrize(
    ("button", "state"),
    [
        ("Acknowledge", IncidentState.ACKNOWLEDGED),
        ("False alarm", IncidentState.RESOLVED),
        ("Resolve", IncidentState.RESOLVED),
        ("Add to gold", IncidentState.OPEN),
    ],
)
async def test_each_decision_is_one_press(chromium, site, width, button, state):
    """Each decision is one press of a button.

    The person goes from the list to the incident, enters a reason, and presses. The page and its history show
    the result.
    """
    async with opened(chromium, f"{site.address}/incidents", width=width) as (page, heard):
        await page.locator("tbody a").first.click()
        await page.get_by_label("Reason, for later readers").fill("looked at it")
        await page.get_by_role("button", name=button, exact=True).click()
        await page.locator(".flash").wait_for()
        assert "looked at it" in await page.locator(".story").inner_text()
        assert heard == []
    incident = find_incident(site.store, compute_fingerprint("user-0"))
    assert incident is not None
    assert incident.state is state


@BOTH
async def test_a_silence_is_made_and_ended(chromium, site, width):
    """A silence is created and ended without leaving the incident."""
    async with opened(chromium, site.address + INCIDENT, width=width) as (page, _):
        await page.get_by_text("Silence this incident").click()
        await page.get_by_label("Send no alerts about this incident for").select_option("7d")
        await page.get_by_role("button", name="Silence", exact=True).click()
        await page.get_by_role("button", name="End this silence").click()
        assert "me ended the silence" in await page.locator(".flash").inner_text()
    (silence,) = list_all_silences(site.store)
    assert silence.ended_by == "me"


@BOTH
async def test_an_answer_is_reviewed_by_keys(chromium, site, width):
    """An answer is reviewed by keys: skip, back, help, a verdict, undo, and a digit for the kind.

    The judge's verdict appears only after Enter.
    """
    async with opened(chromium, f"{site.address}/review", width=width) as (page, heard):
        first = await page.locator(".item").inner_text()
        await page.keyboard.press("?")
        assert await page.locator("details.keys[open]").count() == 1
        await page.keyboard.press("?")
        assert await page.locator("details.keys[open]").count() == 0
        await page.keyboard.press("ArrowRight")
        await page.wait_for_url("**/review?page=2")
        assert await page.locator(".item").inner_text() != first
        await page.keyboard.press("ArrowLeft")
        await page.wait_for_url("**/review")
        await page.keyboard.press("y")
        await page.get_by_text("Your verdict: right").wait_for()
        await page.keyboard.press("z")
        await page.wait_for_url("**/review")
        assert labels(site) == []
        await page.keyboard.press("n")
        await page.get_by_text("Your verdict: wrong").wait_for()
        await page.keyboard.press("2")
        assert await page.get_by_role("radio", name="needed fact missing").is_checked()
        assert JUDGES_WORD not in await page.content()
        await page.keyboard.press("Enter")
        await page.locator(".before").wait_for()
        assert JUDGES_WORD in await page.locator(".before").inner_text()
        assert "1 of 2 reviewed" in await page.locator(".progress").inner_text()
        assert heard == []
    assert labels(site) == [("asha", "wrong", "missing_fact", "", None)]


@BOTH
async def test_typing_a_reason_presses_nothing(chromium, site, width):
    """Letters and digits in a text field are text, not keys. Enter in the field stores the review."""
    async with opened(chromium, f"{site.address}/review?said=wrong", width=width) as (page, _):
        await page.get_by_label("Why?").press_sequentially("zny 12 ?")
        assert await page.locator("input:checked").count() == 0
        await page.keyboard.press("Enter")
        await page.locator(".before").wait_for()
    assert labels(site) == [("asha", "wrong", None, "zny 12 ?", None)]


@BOTH
async def test_buttons_are_large_enough_for_a_thumb(chromium, site, width):
    """The buttons for each item are at least 44 pixels high and visible without scrolling."""
    for path in ("/review", "/review/drafts"):
        async with opened(chromium, site.address + path, width=width) as (page, _):
            for button in await page.locator(".thumb .button").all():
                box = await button.bounding_box()
                assert box is not None
                assert box["height"] >= 44
                assert box["y"] + box["height"] <= 800


@pytest.mark.parametrize("key", ["1", *(pytest.param(key, marks=pytest.mark.whole_only) for key in "234"), "5"])
async def test_a_report_is_rated_by_its_digit(chromium, tmp_path, key):
    """A person also rates how useful a report on an issue is, before they see the judge's rating."""
    store = with_reports(tmp_path)
    (tmp_path / "reviewer").write_text("asha\n")
    with serving_site(config_of(tmp_path), store) as served:
        async with opened(chromium, f"{served.address}/review", width=PHONE) as (page, _):
            reason = useful(RATINGS[0]).reason
            assert reason not in await page.content()
            await page.keyboard.press("u")
            await page.get_by_text("Your verdict: unsure").wait_for()
            await page.keyboard.press(key)
            await page.keyboard.press("Enter")
            await page.locator(".before").wait_for()
            assert re.search(rf"\d of 5.*: {reason}", await page.locator(".before").inner_text())
        assert labels(served) == [("asha", "unsure", None, "", int(key))]


@BOTH
async def test_drafts_are_decided_by_keys(chromium, site, width, tmp_path):
    """Keys accept one draft with a severity and reject another. A decision can be undone until it is stored."""
    async with opened(chromium, f"{site.address}/review/drafts", width=width) as (page, heard):
        await page.keyboard.press("y")
        await page.get_by_text("Your decision: yes").wait_for()
        await page.keyboard.press("z")
        await page.wait_for_url("**/review/drafts")
        await page.keyboard.press("y")
        await page.get_by_text("Your decision: yes").wait_for()
        await page.keyboard.press("3")
        await page.keyboard.press("e")
        assert await page.get_by_label("Question").is_visible()
        await page.keyboard.press("e")
        await page.keyboard.press("Enter")
        await page.locator(".flash").wait_for()
        await page.keyboard.press("n")
        await page.get_by_text("Your decision: no").wait_for()
        await page.keyboard.press("Enter")
        await page.get_by_text("2 of 3 decided: 1 gold, 1 rejected").wait_for()
        assert heard == []
    states = [
        (draft.state.value, int(draft.case.severity)) for draft in read_drafts(tmp_path / "gold-drafts.jsonl")
    ]
    assert states == [("accepted", 3), ("rejected", 2), ("drafted", 2)]


@BOTH
@pytest.mark.whole_only
async def test_drafts_of_incidents_are_decided_by_keys(chromium, site, width, tmp_path):
    """A draft is added to the suite only if its bad reply fails against the answer that the person enters.

    Otherwise, the draft is refused. A rejected draft is not shown again.
    """
    right = "It is ₹60,000 per year."
    for number in range(2):
        append_draft(site.store.journal, wanted_case(number))
    site.store.load_pending(5)
    async with opened(chromium, f"{site.address}/review/incidents", width=width) as (page, heard):
        await shows(page, "1 of 2 left")
        await page.keyboard.press("y")
        await page.get_by_text("Your decision: yes").wait_for()
        await page.keyboard.press("z")
        await page.wait_for_url("**/review/incidents")
        await page.keyboard.press("y")
        await page.get_by_text("Your decision: yes").wait_for()
        await page.keyboard.press("3")
        await page.get_by_role("textbox", name="The right answer").fill("It is ₹90,000 per year.")
        await page.get_by_role("button", name="Make it gold").click()
        await page.wait_for_load_state()
        assert any("409" in line for line in heard)
        assert not (tmp_path / "suite.jsonl").exists()
        await page.go_back()
        await page.get_by_role("textbox", name="The right answer").fill(right)
        await page.get_by_role("button", name="Make it gold").click()
        await page.get_by_text("Added to suite.jsonl as gold").wait_for()
        await page.keyboard.press("n")
        await page.get_by_text("Your decision: no").wait_for()
        await page.keyboard.press("Enter")
        await page.get_by_text("No drafts").wait_for()
        assert [line for line in heard if "409" not in line] == []
    (case,) = read_suite_cases(tmp_path / "suite.jsonl")
    assert (int(case.severity), case.gold, case.provenance.reviewed_by) == (3, right, "asha")
    outcomes = site.store.query("select joined, done_by from draft_outcomes order by joined").rows
    assert list(outcomes) == [(False, "asha"), (True, "asha")]


async def shows(page, text: str) -> None:
    """Reload the page until it contains ``text``. The page shows new data after the next copy of the warehouse."""
    while text not in await page.locator("main").inner_text():
        await page.reload()


async def test_everything_is_decided_without_script(chromium, site):
    """Without scripts, links and buttons do the same as the keys."""
    async with opened(chromium, f"{site.address}/review", script=False) as (page, _):
        await page.get_by_role("link", name="not you?").click()
        await page.get_by_label("Your name").fill("bina")
        await page.get_by_role("button", name="Start").click()
        await page.get_by_role("link", name="Wrong").click()
        await page.get_by_role("link", name="Undo").click()
        await page.get_by_role("link", name="Right").click()
        await page.get_by_role("button", name="Store it").click()
        assert JUDGES_WORD in await page.locator(".before").inner_text()
        await page.get_by_role("link", name="Gold drafts").click()
        await page.get_by_role("link", name="No", exact=True).click()
        await page.get_by_role("button", name="Reject it").click()
        await page.goto(site.address + INCIDENT)
        await page.get_by_role("button", name="Acknowledge").click()
        assert "acknowledged" in await page.locator(".flash").inner_text()
    assert [row[:2] for row in labels(site)] == [("bina", "right")]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Serve a site for tests that only view its pages."""
    folder = tmp_path_factory.mktemp("people")
    with_drafts(folder)
    store = with_people(folder)
    append_draft(store.journal, wanted_case())
    store.load_pending(5)
    (folder / "reviewer").write_text("asha\n")
    with chdir(folder), serving_site(config_of(folder), store) as served:
        yield served


@pytest.mark.parametrize(
    "path",
    [
        "/incidents",
        INCIDENT,
        "/hallucinations",
        "/review?said=wrong",
        "/review?who=change",
        "/review/drafts?said=yes",
        "/review/drafts?said=no",
        "/review/incidents?said=yes",
    ],
)
async def test_every_screen_can_be_read_and_used(chromium, shown, path):
    """Each screen meets the accessibility rules in both colours and at every width, with its folded parts open."""
    async with opened(chromium, shown.address + path) as (page, heard):
        await page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
        assert await find_broken_rules_everywhere(page) == []
        assert heard == []
