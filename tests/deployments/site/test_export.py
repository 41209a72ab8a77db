"""An export of the site links only to itself, shows no personal data, and replaces only its own files."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from deployments.site.export import export_site
from deployments.site.serve import SiteEnvironment, open_site
from monitors.errors import ConfigError
from tests.deployments.site.site_server import config_of, filled

OUTSIDE = SiteEnvironment(lambda: datetime.now(UTC), "me")


def exported(folder, goal):
    with open_site(config_of(folder), OUTSIDE) as (site, renderer):
        return export_site(site, renderer, goal)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder, goal = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("copy")
    filled(folder, runs=60, cases=60)
    return exported(folder, goal), goal


@pytest.mark.whole_only
def test_every_page_that_a_page_leads_to_is_a_file(copy):
    """The export contains every page that a page links to: all runs, and both pages of long tables."""
    written, goal = copy
    assert {"index.html", "runs/index.html", "runs/_page-2/index.html", "runs/run-0/_page-2/index.html"} <= set(
        written.files
    )
    assert written.left_out == 0
    for name in written.files:
        if name.endswith(".html"):
            text = (goal / name).read_text(encoding="utf-8")
            for link in re.findall(r'(?:href|src)="([^"#?]*)', text):
                assert (
                    not link or link.startswith("data:") or (goal / name).parent.joinpath(link).resolve().is_file()
                ), (
                    name,
                    link,
                )


@pytest.mark.whole_only
def test_the_copy_shows_nothing_personal_and_has_no_forms(copy):
    """In an export, texts are redacted, and no page has a form."""
    written, goal = copy
    for name in written.files:
        text = (goal / name).read_text(encoding="utf-8")
        assert "ask@example.org" not in text, name
        assert not name.endswith(".html") or "<form" not in text, name


@pytest.mark.whole_only
def test_the_copy_has_json_figures_and_a_badge(copy):
    """The export also contains the machine-readable files: JSON, figures and a badge."""
    written, goal = copy
    assert json.loads((goal / "runs" / "index.json").read_text())["data"]["paging"]["total"] == 60
    assert "lookout_weighted_score" in (goal / "metrics").read_text()
    assert "badge/helpdesk.svg" in written.files


def test_a_second_export_replaces_what_the_first_wrote_and_nothing_else(tmp_path):
    """A second export removes an outdated page of the first one, but no file of the user.

    A folder that is the user's own is refused.
    """
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=1)
    goal = tmp_path / "copy"
    first = exported(tmp_path / "data", goal)
    (goal / "lookout-site.json").write_text(
        first.model_copy(update={"files": (*first.files, "old.html", "../theirs")}).model_dump_json()
    )
    for name in ("old.html", "own.html", "../theirs"):
        (goal / name).write_text("x")
    exported(tmp_path / "data", goal)
    assert not (goal / "old.html").exists()
    assert (goal / "own.html").exists()
    assert (tmp_path / "theirs").exists()
    with pytest.raises(ConfigError, match="not written by an export"):
        exported(tmp_path / "data", tmp_path / "data")
