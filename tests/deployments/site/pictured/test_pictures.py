"""Tests of the site's screenshots in the documentation.

The screenshots are small and in use, and the pages still contain the texts that the screenshots show.
"""

from __future__ import annotations

import re

import httpx
import pytest

from tests.conftest import ROOT
from tests.deployments.site.pictured.draw import MAX_BYTES, PICTURED_PAGES, PICTURES, pictured_site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pictured_site(tmp_path_factory.mktemp("pictured")) as served:
        yield served


@pytest.mark.parametrize("one", PICTURED_PAGES, ids=lambda one: one.name)
def test_a_page_says_what_its_picture_shows(site, one):
    """A page still contains the texts that its screenshot shows. If not, renew the screenshot or fix the page."""
    answer = httpx.get(f"{site.address}{one.address}", trust_env=False)
    assert answer.status_code == 200
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text))
    assert [text for text in one.says if text not in shown] == []


@pytest.mark.parametrize("one", PICTURED_PAGES, ids=lambda one: one.name)
@pytest.mark.parametrize("page", ["README.md", "docs/site.md"])
def test_each_picture_is_shown_and_small(one, page):
    """README.md and docs/site.md show each screenshot. The files are small, so that a clone stays small."""
    file = PICTURES / f"{one.name}.png"
    assert 5_000 < file.stat().st_size < MAX_BYTES
    assert f"pictures/{one.name}.png" in (ROOT / page).read_text(encoding="utf-8")
