"""Tests of the data for other programs: figures for Prometheus, and a badge.

A value that was not counted is omitted.
"""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitors.reports.badge import render_badge
from tests.deployments.site.site_server import config_of, filled, serving_site
from tests.warehouse.temporary_stores import store_in


def figures(site):
    """Return every Prometheus sample of the site, keyed by name and labels."""
    text = httpx.get(f"{site.address}/metrics", trust_env=False).text
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_figures_are_those_of_the_last_run_and_of_open_incidents(tmp_path):
    """The figures are those of the last run and of the open incidents.

    The last run has a weighted score of 744 of 904. One incident has severity 3.
    """
    with serving_site(config_of(tmp_path), filled(tmp_path)) as site:
        found = figures(site)
        shown = httpx.get(f"{site.address}/badge/helpdesk.svg", trust_env=False)
        unknown = httpx.get(f"{site.address}/badge/other.svg", trust_env=False)
    assert found["lookout_weighted_score", "helpdesk"] == pytest.approx(744 / 904)
    assert found["lookout_verdict", "FAIL", "helpdesk"] == 1
    assert found["lookout_open_incidents", "3", "helpdesk"] == 1
    assert found["lookout_open_incidents", "1", "helpdesk"] == 0
    assert shown.headers["content-type"] == "image/svg+xml"
    assert "helpdesk: FAIL" in shown.text
    assert unknown.status_code == 404


def test_uncounted_rows_have_no_figure(tmp_path):
    """If a target has no run, its score and its rate are left out, and not reported as zero."""
    with serving_site(config_of(tmp_path), store_in(tmp_path)) as site:
        found = figures(site)
        shown = httpx.get(f"{site.address}/badge/helpdesk.svg", trust_env=False).text
    assert not [name for name, *_ in found if "score" in name or "rate" in name or "timestamp" in name]
    assert found["lookout_is_recent", "helpdesk"] == 0
    assert "no data" in shown


def test_a_badge_shows_names_as_text_alone():
    """A badge shows markup in a name as text."""
    assert "<script>" not in render_badge("<script>alert(1)</script>", "PASS")
