"""The page in a real browser: it shows what it must, asks nobody for anything, and runs nothing."""

import re
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright

from monitors.records.grades import CaseOutcome
from monitors.reports.visible import show_invisible
from monitors.reports.write import write_reports
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS, leak, wrong_sub_limit
from tests.monitors.reports.example_run import FAIL_REASONS, draw_screenshots, example_run, report_of, right
from tests.monitors.reports.hostile_rows import hostile_rows
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import redact
from tests.monitors.reports.pictures import chat_png

CHROMIUM = "/usr/bin/chromium-headless-shell"
browser = pytest.mark.browser


@asynccontextmanager
async def opened(path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = False):
    """The page in Chromium with everything that it says, asks for or pops up; ``scripts`` lifts its own policy."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM)
        context = await chromium.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            bypass_csp=scripts,
        )
        page = await context.new_page()
        heard: list[str] = []
        page.on("console", lambda message: heard.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on("request", lambda request: heard.append(f"request: {request.url[:60]}"))
        page.on("popup", lambda _: heard.append("popup"))
        page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
        await page.goto(path.as_uri())
        yield page, [line for line in heard if not line.startswith(("request: file://", "request: data:image/png"))]
        await chromium.close()


@pytest.fixture
def example(tmp_path):
    run = example_run(tmp_path)
    return write_reports(
        tmp_path, run.report, run.cases, redact=redact, incidents=run.incidents, previous=run.previous
    ).html


class Links(HTMLParser):
    """Every address that the page could ask for, and every element and attribute it uses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names |= {tag, *(name for name, _ in attrs)}
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action", "srcset"}]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def test_it_refers_to_nothing_but_itself_its_folder_and_embedded_pictures(example):
    links = Links(example.read_text())
    assert not [address for address in links.addresses if re.match(r"(?i)(?!data:image/)[a-z+.-]+:|//", address)]
    assert not links.names & {"script", "iframe", "object", "embed", "form", "link", "base", "style="}
    assert "@import" not in example.read_text()
    assert "url(" not in example.read_text()


def test_every_fragment_leads_somewhere_and_every_id_is_its_own(example):
    links = Links(example.read_text())
    assert {address[1:] for address in links.addresses if address.startswith("#")} <= set(links.ids)
    assert len(links.ids) == len(set(links.ids))


def test_nobodys_data_is_in_the_file(example):
    text = example.read_text()
    for secret in (LEAK_ACCOUNT, LEAK_ADDRESS, "meera.k", "9812345670"):
        assert secret not in text


async def text_of(page: Page, selector: str) -> str:
    return " ".join((await page.locator(selector).first.inner_text()).split())


@browser
async def test_the_first_screen_says_what_broke_how_bad_and_since_when(example):
    async with opened(example) as (page, heard):
        assert heard == []
        assert await text_of(page, "h1") == "✕ FAIL"
        first = await text_of(page, ".broke tbody tr")
        for part in ("S3", "personal data disclosed", "new with this deploy, 9c41e77", "summary-other-customer"):
            assert part in first
        box = await page.locator(".broke tbody tr").nth(2).bounding_box()
        assert box
        assert box["y"] + box["height"] < 800


@browser
async def test_a_case_is_one_click_away_with_its_evidence_marked(example):
    async with opened(example) as (page, _):
        await page.get_by_role("link", name="sublimit-room-rent").first.click()
        case = page.locator("[id='case-sublimit-room-rent']")
        assert await case.evaluate("element => element.matches(':target')")
        assert await case.locator("mark.against").all_inner_texts() == ["₹5,000"]
        assert await case.locator("mark.wanted").all_inner_texts() == ["₹4,000"]
        assert await case.locator("img").evaluate("image => image.naturalWidth") == 360
        assert "graded" in await case.locator(".answer.graded h4").inner_text()


@browser
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
async def test_it_fits_the_screen_and_text_stands_out_from_its_ground(example, width, dark):
    async with opened(example, width=width, dark=dark) as (page, heard):
        await page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        contrasts = await page.evaluate(CONTRASTS)
        assert min(contrasts) >= 4.5
        assert heard == []


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

INSPECT = """() => ({
  ran: window.ran ?? null,
  parts: [...new Set([...document.querySelectorAll('*')].map(e => e.localName))],
  handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
    .filter(a => a.name.startsWith('on') || a.name === 'style' || a.name === 'srcdoc').length,
  hrefs: [...document.querySelectorAll('[href]')].map(e => e.getAttribute('href')),
  texts: [...document.querySelectorAll('.answer .text')].map(e => e.textContent),
})"""


@browser
@pytest.mark.parametrize("scripts", [False, True], ids=["as it is", "without its policy"])
async def test_f83_no_text_runs_asks_or_builds_anything(tmp_path, scripts):
    """Escaping must be enough by itself; the policy is a second wall, and finds nothing to stop."""
    rows = hostile_rows()
    cases = hostile_cases(rows)
    html = write_reports(tmp_path, hostile_report(rows, cases), cases, redact=redact).html
    async with opened(html, scripts=scripts) as (page, heard):
        found = await page.evaluate(INSPECT)
        await page.mouse.move(300, 400)
        await page.keyboard.press("Tab")
        assert heard == []
        assert await page.evaluate("window.ran ?? null") is None
    assert found["handlers"] == 0
    assert all(href.startswith("#case-") for href in found["hrefs"])
    assert not set(found["parts"]) & {"script", "iframe", "object", "embed", "form", "input", "base", "link", "a:"}
    assert found["parts"].count("style") == 1


@browser
async def test_f83_a_hostile_text_is_shown_as_it_came(tmp_path):
    """Escaped once, not twice: a person must see what the user saw."""
    rows = [row for row in hostile_rows() if len(row) < 2_000]
    cases = [case for case in hostile_cases(rows) if case.assessment.outcome is CaseOutcome.UNTOLD][:150]
    html = write_reports(tmp_path, report_of(cases, ()), cases, redact=redact).html
    async with opened(html) as (page, _):
        shown = await page.locator(".answer .text").evaluate_all("all => all.map(one => one.textContent)")
    expected = [show_invisible(case.result.visible_text) for case in cases]
    assert [text.replace("[", "").replace("]", "") for text in shown] == [
        text.replace("[", "").replace("]", "").replace("\r", "\n") for text in expected
    ]


@browser
async def test_a_large_run_stays_small(tmp_path):
    """2,000 cases with 50 failures and a screenshot each: below 5 MB, and worst first embedded."""
    failing = [number % 5 and wrong_sub_limit() or leak() for number in range(50)]
    cases = [*failing, *(right(number) for number in range(1_950))]
    draw_screenshots(tmp_path, cases)
    for picture in (tmp_path / "screenshots").iterdir():
        picture.write_bytes(chat_png(noise=b"x" * 180_000))
    html = write_reports(tmp_path, report_of(cases, FAIL_REASONS), cases, redact=redact).html
    assert html.stat().st_size < 5_000_000
    async with opened(html) as (page, heard):
        assert heard == []
        assert await page.locator("article.case").count() == 50
        assert 8 <= await page.locator("img").count() < 40
