"""Test the report page in a real browser: it shows its content, sends no requests and runs no scripts."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from monitors.records.grades import CaseOutcome
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.reports.write import write_reports
from tests.monitors.reports.example_failures import leak, wrong_sub_limit
from tests.monitors.reports.example_run import FAIL_REASONS, draw_screenshots, example_run, report_of, right
from tests.monitors.reports.example_triage import triage_run
from tests.monitors.reports.hostile_rows import hostile_rows
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import redact
from tests.monitors.reports.pictures import chat_png

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SYSTEM_CHROMIUM = Path("/usr/bin/chromium-headless-shell")
# As everywhere in the project: what CHROMIUM_PATH names, else the system's, else Playwright's own.
CHROMIUM = os.environ.get("CHROMIUM_PATH") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        await browser.close()


@asynccontextmanager
async def opened(
    chromium: Browser, path: Path, *, width: int = 1280, without_policy: bool = False
) -> AsyncIterator[tuple[Page, list[str]]]:
    """Open the page and yield it, with a list to which its console messages, requests and pop-ups are appended."""
    context = await chromium.new_context(
        viewport={"width": width, "height": 800},
        bypass_csp=without_policy,
    )
    page = await context.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("request", lambda request: heard.extend(asked_elsewhere(request.url, path)))
    page.on("popup", lambda _: heard.append("popup"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    await page.goto(path.as_uri())
    yield page, heard
    await context.close()


def asked_elsewhere(url: str, path: Path) -> list[str]:
    """Return the request to ``url`` in a list, or an empty list if the page may send this request.

    The page at ``path`` may request only itself and its embedded pictures.
    """
    own = url == path.as_uri() or url.startswith("data:image/png;base64,")
    return [] if own else [f"request: {url[:80]}"]


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    run = example_run(folder)
    return write_reports(
        folder, run.report, run.cases, redact=redact, incidents=run.incidents, previous=run.previous
    ).html


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    rows = hostile_rows()
    cases = hostile_cases(rows)
    folder = tmp_path_factory.mktemp("hostile")
    return write_reports(folder, hostile_report(rows, cases), cases, redact=redact).html


@pytest.fixture(scope="module")
def issues(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("issues")
    run = triage_run()
    return write_reports(folder, run.report, run.cases, redact=redact).html


async def words_of(page: Page, selector: str) -> str:
    return " ".join((await page.locator(selector).first.inner_text()).split())


async def test_the_first_screen_says_what_broke_how_bad_and_since_when(chromium, example):
    async with opened(chromium, example) as (page, heard):
        assert heard == []
        assert await words_of(page, "h1") == "✕ FAIL"
        assert "PASS, weighted 0.996" in await words_of(page, ".deploy")
        first = await words_of(page, ".broke tbody tr")
        for part in ("S3", "personal data disclosed", "new with this deploy, 9c41e77", "summary-other-customer"):
            assert part in first
        box = await page.locator(".broke tbody tr").nth(2).bounding_box()
        assert box
        assert box["y"] + box["height"] < 800


async def test_a_case_is_one_click_away_with_its_evidence_marked(chromium, example):
    async with opened(chromium, example) as (page, _):
        await page.get_by_role("link", name="sublimit-room-rent").first.click()
        case = page.locator("[id='case-sublimit-room-rent']")
        assert await case.evaluate("element => element.matches(':target')")
        assert await case.locator("mark.against").all_inner_texts() == ["₹5,000"]
        assert await case.locator("mark.wanted").all_inner_texts() == ["₹4,000"]
        assert await case.locator("img").evaluate("image => image.naturalWidth") == 360
        assert "graded" in await case.locator(".answer.graded h4").inner_text()
        assert await case.locator("details").get_attribute("open") is None


# WCAG's contrast of every element's own text against the first ground below it that is not transparent.
CONTRASTS = """() => {
  const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return light(colour);
    }
    return 1;
  };
  return [...document.querySelectorAll('main *')]
    .filter(e => !e.closest('svg') && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => { const a = light(parse(getComputedStyle(e).color)), b = ground(e);
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
}"""


SCREENS = [(390, False), (390, True), (1280, False), (1280, True)]
"""The widths of a phone and of a desktop screen, and whether the system prefers dark colours."""


async def fits_each_screen(page: Page) -> None:
    """Check that nothing is wider than the screen and that the contrast of text is at least 4.5 (WCAG AA)."""
    await page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    for width, dark in SCREENS:
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme="dark" if dark else "light")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        contrasts = await page.evaluate(CONTRASTS)
        assert len(contrasts) > 300
        assert min(contrasts) >= 4.5


async def test_the_page_fits_the_screen_with_enough_contrast(chromium, example):
    async with opened(chromium, example) as (page, heard):
        await fits_each_screen(page)
        assert heard == []


async def test_reports_on_issues_fit_the_screen_too(chromium, issues):
    """Reports on issues fit the screen, even with a long path, 51 files, 60 steps and an empty report."""
    async with opened(chromium, issues) as (page, heard):
        await fits_each_screen(page)
        await page.set_viewport_size({"width": 390, "height": 800})
        assert min(await page.locator("svg.path").evaluate_all("all=>all.map(one=>one.clientWidth)")) > 20
        assert heard == []


async def test_a_report_is_one_click_away_beside_its_issue_with_quotes_and_repeats_marked(chromium, issues):
    async with opened(chromium, issues) as (page, _):
        await page.locator("#reports").get_by_role("link", name="Confirmation mail is sent twice").click()
        case = page.locator("[id='case-acme:lamps:9']")
        assert await case.evaluate("element => element.matches(':target')")
        assert "2 of 5" in await case.locator(".rating").inner_text()
        await case.locator("summary").first.click()
        quote, again = await case.locator("mark.against").all_inner_texts()
        assert quote == again
        assert "nothing to do with it" in quote
        assert "↺ repeats step 1" in await words_of(page, "[id='case-acme:lamps:9'] .steps .again")
        assert await case.locator(".files-found code").all_inner_texts() == ["shop/mail.py"]


async def test_long_words_do_not_widen_the_page(chromium, hostile):
    async with opened(chromium, hostile, width=390) as (page, _):
        await page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


INSPECT = """() => ({
  parts: [...document.querySelectorAll('*')].map(e => e.localName),
  handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
    .filter(a => a.name.startsWith('on') || a.name === 'style' || a.name === 'srcdoc').length,
  hrefs: [...document.querySelectorAll('[href]')].map(e => e.getAttribute('href')),
})"""


@pytest.mark.parametrize("without_policy", [False, True], ids=["as it is", "without its policy"])
async def test_f83_no_text_runs_asks_or_builds_anything(chromium, hostile, without_policy):
    """Escaping alone prevents hostile text from running scripts, sending requests or adding elements.

    The test also runs without the content security policy.
    """
    async with opened(chromium, hostile, without_policy=without_policy) as (page, heard):
        found = await page.evaluate(INSPECT)
        await page.mouse.move(300, 400)
        await page.keyboard.press("Tab")
        assert await page.evaluate("window.ran ?? null") is None
        assert heard == []
    assert found["handlers"] == 0
    assert found["hrefs"]
    assert all(href.startswith("#case-") for href in found["hrefs"])
    assert not set(found["parts"]) & {
        "script",
        "iframe",
        "object",
        "embed",
        "form",
        "input",
        "base",
        "link",
        "math",
    }
    assert found["parts"].count("style") == 1


async def test_the_policy_is_a_wall_by_itself(chromium, tmp_path, example):
    """If a text were written unescaped, the page's content security policy would still block scripts and requests."""
    planted = "<script>window.ran = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.ran = 2'></main>"
    broken = tmp_path / "broken.html"
    broken.write_text(example.read_text().replace("</main>", planted))
    async with opened(chromium, broken) as (page, heard):
        assert await page.evaluate("window.ran ?? null") is None
        assert sum("Content Security Policy" in line for line in heard) >= 2


def bare(text: str) -> str:
    """Return ``text`` without the brackets around code points, because the page shows a frame in their place."""
    return text.replace("[", "").replace("]", "")


async def test_f83_a_hostile_text_is_shown_as_it_came(chromium, tmp_path):
    """A hostile text is escaped once, not twice, so that the report shows the text that the user saw."""
    rows = [row for row in hostile_rows() if len(row) < 2_000][:150]
    cases = [case for case in hostile_cases(rows) if case.assessment.outcome is CaseOutcome.UNGRADED]
    html = write_reports(tmp_path, report_of(cases, ()), cases, redact=str).html
    async with opened(chromium, html) as (page, _):
        shown = await page.locator(".answer .text").evaluate_all("all => all.map(one => one.textContent)")
    assert [bare(text) for text in shown] == [bare(replace_invisible_by_code_points(row)) for row in rows]


async def test_a_large_run_stays_small(chromium, tmp_path):
    """The page of a run with 2,000 cases, 50 failures and large screenshots is below 5 MB.

    It contains the transcripts of all failures.
    """
    failing = [wrong_sub_limit() if number % 5 else leak() for number in range(50)]
    cases = [*failing, *(right(number) for number in range(1_950))]
    draw_screenshots(tmp_path, cases)
    for picture in (tmp_path / "screenshots").iterdir():
        picture.write_bytes(chat_png(noise=b"x" * 180_000))
    html = write_reports(tmp_path, report_of(cases, FAIL_REASONS), cases, redact=redact).html
    assert html.stat().st_size < 5_000_000
    async with opened(chromium, html) as (page, heard):
        assert heard == []
        assert await page.locator("article.case").count() == 50
        assert 8 <= await page.locator("img").count() < 40
