"""The accessibility checks find planted faults, and report nothing on a page without faults."""

from __future__ import annotations

import pytest

from tests.deployments.site.browser_pages import DESKTOP, find_broken_rules, opened
from tests.deployments.site.site_server import config_of, filled, serving_site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
BY_AXE = [
    ("<button></button>", "button-name"),
    ("<input name=x>", "label"),
    ("<h4>deep</h4>", "heading-order"),
    ("<p role=checkbox tabindex=0>x</p>", "aria-required-attr"),
    ("<p style='color:#999;background:#fff'>pale</p>", "color-contrast"),
    ("<button aria-label=other>Send</button>", "label-content-name-mismatch"),
    (
        "<ul style='font-size:8px;line-height:1'><li><a href=/a>a</a></li><li><a href=/b>b</a></li></ul>",
        "target-size",
    ),
    ("<button aria-describedby=nowhere>x</button>", "aria-valid-attr-value"),  # axe-core is not sure: incomplete
]
BY_OUR_OWN = [
    ("<h1>again</h1>", "several h1"),
    ("<p id=main>twice</p>", "occurs twice"),
    ("<div style='width:3000px;height:1px'></div>", "wider than the window"),
    ("<label for=nowhere>x</label>", "leads nowhere"),
    ("<progress></progress>", "no name"),
    ("<meter></meter>", "no name"),
    ("<svg width=30 height=30></svg>", "neither an image nor hidden"),
    ("<a href=/>x <span tabindex=0>y</span></a>", "a control inside a control"),
    ("<table><tr><td>x</td></tr></table>", "table without headers"),
    (
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td><td>c</td></tr></tbody></table>",
        "cells without",
    ),
    ("<button style='min-height:0;min-width:0;height:12px;width:12px;padding:0'>x</button>", "smaller than 24"),
    ("<button style='outline:none;box-shadow:none;transition:none'>x</button>", "focus cannot be seen"),
    ("<div style='height:30px;overflow:auto'><div style='height:90px'>x</div></div>", "cannot be reached"),
    ("<svg role=img width=90 height=30><title>t</title><text y=20 style='fill:#999'>pale</text></svg>", "contrast"),
    ("<p>see <a href=/ style='color:inherit;text-decoration:none'>this</a> too</p>", "by colour alone"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    with serving_site(config_of(folder), filled(folder, runs=1)) as served:
        yield served


async def test_each_rule_finds_what_is_planted(chromium, site):
    """Each rule finds the fault that is planted for it. Without a planted fault, no rule reports anything."""
    async with opened(chromium, f"{site.address}/runs", without_policy=True) as (page, _):
        assert await find_broken_rules(page) == []
        missed, beside = [], []
        for markup, rule in (*BY_AXE, *BY_OUR_OWN):
            await page.evaluate(
                "markup => document.querySelector('h1').insertAdjacentHTML('afterend', `<div id=planted>${markup}</div>`)",
                markup,
            )
            broken = await find_broken_rules(page, axe=(markup, rule) in BY_AXE)
            await page.evaluate("() => document.getElementById('planted').remove()")
            missed += [] if any(rule in line for line in broken) else [(markup, rule, broken)]
            beside += [(markup, broken)] if len(broken) > 3 else []
        assert missed == []
        assert beside == []
        assert await find_broken_rules(page) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("document.documentElement.lang = ''", "html-has-lang"),
        ("document.querySelector('meta[name=viewport]').content += ', maximum-scale=1'", "meta-viewport"),
        ("document.body.insertAdjacentHTML('beforeend', '<p>lost</p>')", "region"),
        ("document.querySelector('.skip').remove()", "no link past"),
    ],
)
async def test_each_rule_of_the_page_finds_what_is_planted(chromium, site, change, rule):
    """Each rule about the page as a whole, such as its language, finds the fault that is planted for it."""
    async with opened(chromium, f"{site.address}/runs", width=DESKTOP) as (page, _):
        await page.evaluate(f"() => {{ {change} }}")
        assert any(rule in line for line in await find_broken_rules(page))
