"""Hostile texts stay plain text on every page, and are shown character by character."""

from __future__ import annotations

import json
from contextlib import chdir

import httpx
import pytest

from deployments.site.application import PAGES
from monitors.alerts.redact import redact
from monitors.reports.invisible import replace_invisible_by_code_points
from tests.deployments.site.browser_pages import DESKTOP, PHONE, find_broken_rules, opened
from tests.deployments.site.safety.texts_from_outside import HOSTILE, compute_fingerprint, plain, store_of
from tests.deployments.site.site_server import config_of, serving_site

pytestmark = pytest.mark.browser
IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="session")
EXAMPLES = {"run": "run-0", "case": "h0", "incident": compute_fingerprint(0)}
ADDRESSES = [
    *(route.path.format(**EXAMPLES) for route in PAGES if route.path != "/now"),
    *("/runs?rows=200", "/cases?rows=200", "/cases/h0?rows=200", "/cases/n0?rows=200", "/cases/r0?rows=200"),
    *("/compare?before=run-1&now=run-0", "/incidents?rows=200", "/hallucinations?rows=200", "/judge?rows=200"),
    *("/review?page=2", "/review?page=3&said=wrong", "/review?who=change", "/review/drafts?said=yes"),
    *(f"/runs/run-{number}" for number in (3, 7)),
    *(f"/incidents/{compute_fingerprint(number)}" for number in (41, 43, 45)),
]
SHOWN = {
    "/cases/h0?rows=200": "section.answer blockquote",
    "/hallucinations?rows=200": "main",
    "/incidents?rows=200": "tbody th a",
    "/compare?before=run-1&now=run-0": "main",
    "/review/drafts": "main",
}
SKELETON = """() => [...document.querySelectorAll('*')].map(
  node => node.tagName + [...node.attributes].map(each => each.name).sort().join())"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Serve a site with hostile texts, and the same site with plain texts."""
    folders = [tmp_path_factory.mktemp(name) for name in ("hostile", "plain")]
    stores = [store_of(folder, rows) for folder, rows in zip(folders, (HOSTILE, plain(HOSTILE)), strict=True)]
    sites = [serving_site(config_of(*pair[:1]), pair[1]) for pair in zip(folders, stores, strict=True)]
    with chdir(folders[1]), sites[1] as harmless, chdir(folders[0]), sites[0] as hostile:
        yield hostile, harmless


@pytest.mark.whole_only
@IN_ONE_LOOP
@pytest.mark.parametrize("with_policy", [True, False], ids=["as served", "without the policy"])
@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.a_slice(8)
async def test_nothing_runs_nothing_is_asked_for_and_the_page_stays_itself(chromium, both, path, with_policy):
    """Hostile texts run no script, open no dialog and send no request, even without a content security policy.

    With the policy, there is nothing to block. Every element and attribute equals that of the page with plain
    texts.
    """
    hostile, harmless = both
    width = PHONE if with_policy else DESKTOP
    async with opened(chromium, hostile.address + path, width=width, without_policy=not with_policy) as (
        page,
        heard,
    ):
        elements = await page.evaluate(SKELETON)
        await page.evaluate("() => document.querySelectorAll('main details').forEach(one => one.open = true)")
        await page.locator("main").hover(position={"x": 5, "y": 5})
        assert await page.evaluate("() => [window.ran, document.title.includes('Lookout')]") == [None, True]
        assert await find_broken_rules(page, axe=with_policy) == []  # axe-core is slow, and ignores the policy
        assert heard == []
        if with_policy:
            await page.goto(harmless.address + path)
            assert await page.evaluate(SKELETON) == elements


@IN_ONE_LOOP
@pytest.mark.parametrize(("path", "where"), SHOWN.items())
async def test_texts_are_shown_to_the_character(chromium, both, path, where):
    """A text of the application is shown unchanged, character by character.

    The exceptions are redaction, and invisible characters, which become visible.
    """
    async with opened(chromium, both[0].address + path) as (page, _):
        shown = "\n".join(await page.locator(where).all_text_contents())
    for row in HOSTILE[:2] if path.startswith("/compare") else HOSTILE:
        assert replace_invisible_by_code_points(redact(row)).replace("\r", "") in shown, row


def test_the_same_texts_are_exact_in_json(both):
    """The JSON is valid for any text, has its own content type, and contains the redacted texts unchanged."""
    hostile, _ = both
    for path in {address.partition("?")[0] for address in ADDRESSES} - {"/"}:
        answer = httpx.get(f"{hostile.address}{path}.json?rows=200", trust_env=False)
        assert answer.status_code == 200, (path, answer.text)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert set(json.loads(answer.text)) == {"as_of", "data"}
    answers = httpx.get(f"{hostile.address}/cases/h0.json?rows=200", trust_env=False).json()["data"]["answers"]
    assert [one["row"]["answer"] for one in answers] == [str(redact(row)) for row in HOSTILE]


@pytest.mark.whole_only
def test_an_address_with_a_hostile_text_answers_with_text(both):
    """A hostile text in a filter, in a path or in an unsigned message is refused, ignored or escaped."""
    hostile, _ = both
    with httpx.Client(base_url=hostile.address, trust_env=False) as client:
        for row in HOSTILE:
            for path, query in (
                ("/runs", {"commit": row[:200]}),
                ("/runs", {"verdict": row, "done": row, "seal": row}),
                ("/compare", {"before": row[:200], "now": row[:200]}),
                ("/login", {"next": row}),
                ("/nightly", {"night": row}),
            ):
                answer = client.get(path, params=query)
                assert answer.status_code in {200, 400, 404}, (path, row)
                assert "window.ran" not in answer.text or "<script>window" not in answer.text
                assert "onerror=window" not in answer.text.replace("&lt;", "").partition("<img")[2], (path, row)
