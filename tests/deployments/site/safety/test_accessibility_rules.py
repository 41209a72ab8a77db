"""The rules for accessibility find what they are for: each planted violation, and nothing in a page that has none."""

from __future__ import annotations

import pytest

from tests.deployments.site.browser_pages import DESKTOP, RULES, opened
from tests.deployments.site.site_server import config_of, filled, serving_site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PLANTED = [
    ("<p lang=english>x</p>", "no such language"),
    ("<main>again</main>", "not one main part"),
    ("<h1>again</h1>", "not one h1"),
    ("<h4>deep</h4>", "heading skips"),
    ("<h2></h2>", "empty heading"),
    ("<p id=main>twice</p>", "occurs twice"),
    ("<div style='width:3000px;height:1px'></div>", "wider than the window"),
    ("<nav>a</nav><nav>b</nav>", "landmarks nav have the same name"),
    ("<div role=banner>x</div>", "two landmarks are body > header"),
    ("<button></button>", "no name"),
    ("<a href=/></a>", "no name"),
    ("<span role=button tabindex=0></span>", "no name"),
    ("<details><summary></summary></details>", "no name"),
    ("<progress></progress>", "no name"),
    ("<meter></meter>", "no name"),
    ("<button aria-label=other>Send</button>", "named other than it reads"),
    ("<input name=x>", "no label"),
    ("<select><option>x</select>", "no label"),
    ("<textarea></textarea>", "no label"),
    ("<label for=two>a</label><label for=two>b</label><input id=two>", "several labels"),
    ("<img src='data:,'>", "no alt"),
    ("<iframe srcdoc=x></iframe>", "no title"),
    ("<svg role=img width=30 height=30></svg>", "graphic without a title"),
    ("<svg width=30 height=30></svg>", "neither an image nor hidden"),
    ("<label>x <input autocomplete=whatever></label>", "no such autocomplete"),
    ("<p aria-lable=x>x</p>", "no such attribute"),
    ("<p aria-hidden=yes>x</p>", "cannot be yes"),
    ("<a href=/ aria-current=here>x</a>", "cannot be here"),
    ("<button aria-describedby=nowhere>x</button>", "leads nowhere"),
    ("<label for=nowhere>x</label>", "leads nowhere"),
    ("<p role=butter>x</p>", "no such role"),
    ("<p role=checkbox tabindex=0>x</p>", "without its state"),
    ("<p role=tab tabindex=0>x</p>", "outside of what holds it"),
    ("<button role=presentation>x</button>", "has no role"),
    ("<span aria-label=x>x</span>", "cannot have a name"),
    ("<p aria-hidden=true><a href=/>x</a></p>", "hidden, and can be reached"),
    ("<a href=/>x <span tabindex=0>y</span></a>", "one control in another"),
    ("<p tabindex=3>x</p>", "tab order forced"),
    ("<button accesskey=k>a</button><button accesskey=k>b</button>", "same access key"),
    ("<marquee>x</marquee>", "moves by itself"),
    ("<ul><p>x</p></ul>", "list with other parts"),
    ("<dl><p>x</p></dl>", "definitions with other parts"),
    ("<div><li>x</li></div>", "item of no list"),
    ("<div><dd>x</dd></div>", "definition of no list"),
    ("<dl><dt>x</dt></dl>", "without a pair"),
    ("<table><tr><td>x</td></tr></table>", "table without heads"),
    (
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td><td>c</td></tr></tbody></table>",
        "cells without",
    ),
    ("<table><tr><th></th></tr></table>", "empty head"),
    ("<table><tr><th scope=up>x</th></tr></table>", "no such scope"),
    ("<button style='min-height:0;min-width:0;height:12px;width:12px;padding:0'>x</button>", "smaller than 24"),
    ("<ul style='font-size:8px;line-height:1'><li><a href=/a>a</a></li><li><a href=/b>b</a></li></ul>", "too near"),
    ("<button style='outline:none;box-shadow:none;transition:none'>x</button>", "focus cannot be seen"),
    ("<div style='height:30px;overflow:auto'><div style='height:90px'>x</div></div>", "cannot be reached"),
    ("<p style='color:#999;background:#fff'>pale</p>", "contrast"),
    ("<p style='opacity:0.4'>faint</p>", "contrast"),
    ("<svg role=img width=90 height=30><title>t</title><text y=20 style='fill:#999'>pale</text></svg>", "contrast"),
    ("<p>see <a href=/ style='color:inherit;text-decoration:none'>this</a> too</p>", "by colour alone"),
]
OF_THE_PAGE = [
    ("document.documentElement.lang = ''", "no language"),
    ("document.documentElement.lang = 'English'", "no such language"),
    ("document.title = ' '", "no title"),
    ("document.querySelector('main').outerHTML = document.querySelector('main').innerHTML", "not one main part"),
    ("document.querySelector('h1').remove()", "not one h1"),
    ("document.querySelector('meta[name=viewport]').content += ', maximum-scale=1'", "nobody can zoom"),
    ("document.querySelector('.skip').remove()", "past the bar"),
    ("document.body.insertAdjacentHTML('beforeend', '<p>lost</p>')", "outside of every landmark"),
    (
        "document.head.append(Object.assign(document.createElement('meta'), {httpEquiv: 'refresh', content: '999'}))",
        "reloads",
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    with serving_site(config_of(folder), filled(folder, runs=1)) as served:
        yield served


async def test_each_rule_finds_what_is_planted(chromium, site):
    """A rule that finds nothing anywhere would hold for every page; one that finds what it is not for, for none."""
    async with opened(chromium, f"{site.address}/runs", without_policy=True) as (page, _):
        assert await page.evaluate(RULES) == []
        missed, beside = [], []
        for markup, rule in PLANTED:
            await page.evaluate(
                "markup => document.querySelector('h1').insertAdjacentHTML('afterend', `<div id=planted>${markup}</div>`)",
                markup,
            )
            found = await page.evaluate(RULES)
            await page.evaluate("() => document.getElementById('planted').remove()")
            missed += [] if any(rule in line for line in found) else [(markup, rule, found)]
            beside += [(markup, found)] if len(found) > 3 else []
        assert missed == []
        assert beside == []
        assert await page.evaluate(RULES) == []


@pytest.mark.parametrize(("change", "rule"), OF_THE_PAGE)
async def test_each_rule_of_the_page_finds_what_is_planted(chromium, site, change, rule):
    """What a page has once, or must have."""
    async with opened(chromium, f"{site.address}/runs", width=DESKTOP) as (page, _):
        await page.evaluate(f"() => {{ {change} }}")
        assert any(rule in line for line in await page.evaluate(RULES))
