"""Tests with two real runs over a page. A new version of the page is deployed between the runs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from monitors.explain.what_changed import find_run_changes
from monitors.records.snapshots import RunSnapshot
from tests.monitors.explain.changed_demo import Setup, Variant, recorded_run

ON_A_PAGE = Setup(cases=4, driver="browser", concurrency=2)


@pytest.mark.whole_only
def test_scripts_and_browser_are_read_off_the_page_that_is_asked_anyway(tmp_path):
    """The scripts of a page and the browser are recorded when the page is asked, without an additional request.

    A changed bundle is attributed to the page. Nonces that differ with each load are not reported.
    """
    before = recorded_run(tmp_path / "before", Variant(), ON_A_PAGE, 1)
    newer = replace(Variant(), page={"script": "app-9f8e.js"})
    now = recorded_run(tmp_path / "now", newer, ON_A_PAGE, 2)
    assert isinstance(now.snapshot, RunSnapshot)
    assert now.snapshot.bundles == {"app-9f8e.js": 4, "app-3c4d.css": 4}
    assert (len(now.snapshot.shells), now.snapshot.frameworks) == (1, {"DemoChat 1.2": 4})
    assert (now.snapshot.browser or "").startswith("Chromium ")
    (change,) = find_run_changes(now.snapshot, before).changes
    assert change.kind == "page"
    assert re.findall(r"(app-\w+\.js) (\w+)", change.evidence) == [("app-1a2b.js", "gone"), ("app-9f8e.js", "new")]
