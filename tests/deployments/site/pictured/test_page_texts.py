"""Snapshots of the text of every page of the site, with made-up data and at a fixed time."""

from __future__ import annotations

import httpx
import pytest

from deployments.site.application import PAGES
from tests.deployments.site.page_text import page_text
from tests.deployments.site.pictured.draw import pictured_site
from tests.deployments.site.pictured.example_site import LEAK, RUNS
from tests.polling import wait_until

EXAMPLES = {"run": f"run-{RUNS - 1}", "case": "maternity", "incident": LEAK}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with (
        pytest.MonkeyPatch.context() as patched,  # the texts must not depend on this machine's disk
        pictured_site(tmp_path_factory.mktemp("texts")) as served,
    ):
        patched.setattr("deployments.site.health.MIN_FREE_DISK_GB", 0.0)
        wait_until(lambda: is_health_known(served), what="the site has asked how the monitor is")
        yield served


def is_health_known(site) -> bool:
    """Return whether the page Now shows the monitor's health, which is loaded in the background."""
    data = httpx.get(f"{site.address}/now.json", trust_env=False).json()["data"]
    return all(line["ok"] is not None for line in data["monitor"] if line["what"] == "journal segments not loaded")


@pytest.mark.parametrize("path", [route.path for route in PAGES if route.path != "/now"])
def test_the_text_of_a_page(site, path, snapshot):
    """The text of a page equals its snapshot. A change in the wording of one page changes only that snapshot."""
    answer = httpx.get(site.address + path.format(**EXAMPLES), trust_env=False)
    assert answer.status_code == 200
    assert page_text(answer.text) == snapshot
