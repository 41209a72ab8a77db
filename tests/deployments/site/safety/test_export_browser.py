"""An export is opened from disk in a browser: every link works, no request is sent, and no page is missing."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from deployments.site import export
from deployments.site.export import MANIFEST, STAGED, export_site
from deployments.site.serve import SiteEnvironment, open_site
from monitors.config.file import parse_config
from monitors.errors import ConfigError
from tests.deployments.site.browser_pages import find_broken_rules_everywhere, opened
from tests.deployments.site.page_text import page_text
from tests.deployments.site.safety.texts_from_outside import HOSTILE, compute_fingerprint, store_of
from tests.deployments.site.site_server import config_of, filled, run_rows
from tests.soak.forked_process import forked
from tests.warehouse.sample_rows import run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import RunRow

OUTSIDE = SiteEnvironment(lambda: datetime.now(UTC), "me")
IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="session")
LOOKED_AT = [
    *("index.html", "runs/index.html", "runs/run-0/index.html", "cases/index.html", "suite/index.html"),
    *("incidents/index.html", f"incidents/{compute_fingerprint(0)}/index.html", "hallucinations/index.html"),
    *("nightly/index.html", "judge/index.html", "review/index.html", "_left-out/index.html"),
]


def exported(config, goal: Path, most: int = export.MAX_PAGES):
    with open_site(config, OUTSIDE) as (site, renderer):
        return export_site(site, renderer, goal, most)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Export a site with hostile texts. The site has more pages than the page limit of the export."""
    folder, goal = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("copies") / "copy"
    store_of(folder, HOSTILE)
    with chdir(folder):
        return exported(config_of(folder), goal, 125), goal


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.forms = 0

    def handle_starttag(self, tag, attrs):
        self.found |= {value for name, value in attrs if name in {"href", "src", "action", "formaction"} and value}
        self.forms += tag in {"form", "input", "button", "select", "textarea"}


def dead_links(goal: Path) -> list[tuple[str, str]]:
    """Return the links of all pages to files that are missing in the folder. Check that no page has a form."""
    dead = []
    for page in goal.rglob("*.html"):
        if page.is_dir() or STAGED in page.parts:
            continue
        links = _Links()
        links.feed(page.read_text(encoding="utf-8"))
        dead += [(str(page), "a form")] if links.forms else []
        for link in links.found:
            where = urlsplit(urljoin(page.as_uri(), link))
            if where.scheme != "data" and not (where.scheme == "file" and Path(unquote(where.path)).is_file()):
                dead.append((str(page), link))
    return dead


@pytest.mark.whole_only
def test_every_link_of_every_page_leads_to_a_file(copy, snapshot):
    """Every link of every page leads to a file of the export.

    Links to pages beyond the limit lead to a page that explains the limit.
    """
    written, goal = copy
    assert dead_links(goal) == []
    assert (written.pages, written.left_out > 0) == (125, True)
    assert page_text((goal / "_left-out" / "index.html").read_text(encoding="utf-8")) == snapshot
    assert all(json.loads(page.read_text(encoding="utf-8")) for page in goal.rglob("index.json"))


@pytest.mark.browser
@IN_ONE_LOOP
@pytest.mark.parametrize("path", LOOKED_AT)
async def test_a_page_from_disk_can_be_read_and_asks_for_nothing(chromium, copy, path):
    """A page opened as a file is styled and runs its script. No request leaves the folder.

    Texts of the application are not executed.
    """
    _, goal = copy
    address = (goal / path).as_uri()
    async with opened(chromium, address) as (page, heard):
        assert await find_broken_rules_everywhere(page) == []
        assert await page.evaluate("() => [window.ran, document.styleSheets.length]") == [None, 1]
        styled = await page.evaluate("() => getComputedStyle(document.querySelector('header.bar')).display")
        assert styled == "flex"
        zoned = await page.evaluate(
            "() => [...document.querySelectorAll('time')].every(t => !t.textContent.endsWith('UTC'))"
        )
        assert zoned
        assert heard == []


@pytest.mark.whole_only
@pytest.mark.browser
@IN_ONE_LOOP
async def test_a_reader_finds_the_way_by_clicking(chromium, copy):
    """In an export, a reader can click from page to page to every page of the menu, to a run and to older runs.

    No link leads outside the folder.
    """
    _, goal = copy
    async with opened(chromium, (goal / "index.html").as_uri()) as (page, heard):
        for name in ("Runs", "Cases", "Incidents", "Nightly", "Hallucinations", "Review", "Judge", "Suite", "Now"):
            await page.get_by_label("pages", exact=True).get_by_role("link", name=name, exact=True).click()
            assert await page.locator("h1").inner_text() == name or name in {"Cases", "Hallucinations", "Suite"}
        await page.get_by_role("link", name="Runs", exact=True).click()
        await page.locator("tbody th a").first.click()
        await page.go_back()
        await page.get_by_role("link", name="older").click()
        assert page.url.endswith("runs/_page-2/index.html")
        assert heard == []


def test_ids_that_look_like_something_else_have_their_pages(tmp_path):
    """An id that looks like a URL scheme or like a page's file name becomes an ordinary folder.

    The pages of two targets do not mix.
    """
    (tmp_path / "data").mkdir()
    store = store_in(tmp_path / "data")
    for number, target in enumerate(("helpdesk", "data:x", "index.html")):
        rows = run_rows(f"run-{number}", 2, hours_ago=number)
        report = rows[-1].row.model_copy(update={"target": run_report().target.model_copy(update={"name": target})})
        named = {"case-0": "javascript:x", "case-1": "index.json"}
        rows = [type(row)(row=row.row.model_copy(update={"case_id": named[row.row.case_id]})) for row in rows[:-1]]
        store.journal.append([*rows, RunRow(row=report)], run_id=f"run-{number}")
    store.load_pending(5)
    targets = {
        name: {"url": "http://127.0.0.1:1/", "suite": "s.jsonl"} for name in ("helpdesk", "data:x", "index.html")
    }
    config = parse_config({"data_folder": str(tmp_path / "data"), "targets": targets}, "lookout.toml")
    goal = tmp_path / "copy"
    exported(config, goal)
    assert dead_links(goal) == []
    for target in targets:
        page = (goal / "cases" / "javascript:x" / f"_target-{target}" / "index.html").read_text(encoding="utf-8")
        assert f'</a> <span class="dim">/</span> {target}</p>' in page


def test_a_copy_of_nothing_says_what_to_do(tmp_path):
    """Without a run, every page says what is missing and which command creates it. No badge or figure is invented."""
    (tmp_path / "data").mkdir()
    store_in(tmp_path / "data").load_pending(5)
    goal = tmp_path / "copy"
    exported(config_of(tmp_path / "data"), goal)
    assert dead_links(goal) == []
    pages = {page.parent.name: page.read_text(encoding="utf-8") for page in goal.rglob("index.html")}
    for name in ("runs", "cases", "nightly", "judge", "suite", "incidents"):
        assert re.search(r"<code>lookout \w[\w ]*</code>", pages[name]), name
    assert "no data" in (goal / "badge" / "helpdesk.svg").read_text()
    assert "lookout_weighted_score{" not in (goal / "metrics").read_text()


@pytest.mark.parametrize(
    ("name", "made", "word"),
    [
        ("letter.txt", lambda place: place.write_text("mine"), "not written by an export"),
        ("runs", lambda place: place.symlink_to("/tmp"), "not written by an export"),
    ],
)
def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path, name, made, word):
    """A folder with other files is refused before anything is written."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=1)
    goal = tmp_path / "theirs"
    goal.mkdir()
    made(goal / name)
    with pytest.raises(ConfigError, match=word):
        exported(config_of(tmp_path / "data"), goal)
    assert [one.name for one in goal.iterdir()] == [name]


@pytest.mark.parametrize("what", ["a link to a folder", "a link to a file", "a file of the same name"])
def test_user_files_in_a_copy_are_neither_followed_nor_replaced(tmp_path, what):
    """An export refuses a folder with a user's symbolic link, or with a user's file in the place of a page.

    The target of the link is unchanged, and so is the former export.
    """
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=2)
    goal, theirs = tmp_path / "copy", tmp_path / "theirs"
    exported(config_of(tmp_path / "data"), goal)
    theirs.mkdir()
    (theirs / "index.html").write_text("mine")
    before = (goal / "index.html").read_text()
    match what:
        case "a link to a folder":
            (goal / "runs").rename(tmp_path / "away")
            (goal / "runs").symlink_to(theirs)
        case "a link to a file":
            (goal / "suite" / "index.html").unlink()
            (goal / "suite" / "index.html").symlink_to(theirs / "index.html")
        case _:
            known = json.loads((goal / MANIFEST).read_text())
            known["files"].remove("suite/index.html")
            (goal / MANIFEST).write_text(json.dumps(known))
    with pytest.raises(ConfigError):
        exported(config_of(tmp_path / "data"), goal)
    assert (theirs / "index.html").read_text() == "mine"
    assert (goal / "index.html").read_text() == before


def test_a_web_servers_own_user_can_read_a_copy(tmp_path):
    """Another user, such as the user of a web server, can read the export. Its permissions follow the umask."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=1)
    old = os.umask(0o022)
    try:
        exported(config_of(tmp_path / "data"), tmp_path / "copy")
    finally:
        os.umask(old)
    places = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert {oct(place.stat().st_mode & 0o777) for place in places if place.is_dir()} == {"0o755"}
    assert {oct(place.stat().st_mode & 0o777) for place in places if place.is_file()} == {"0o644"}


def _points(config, goal: Path) -> Iterator[int]:
    """Yield the numbers of steps after which an export is killed.

    An export first writes files and then moves them. For each of these two phases, there are numbers near its
    start, its middle and its end.
    """
    count = 2 * len(exported(config, goal).files)
    yield from sorted({0, 1, 2, count // 4, count // 2 - 1, count // 2, count // 2 + 1, 3 * count // 4, count - 3})


def _killed_after(steps: int, config, goal: Path) -> None:
    """Export in a child process that kills itself with SIGKILL after ``steps`` steps."""
    left = [steps]

    def counted(done, *given, **named):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return done(*given, **named)

    def job(_say):
        export.write_atomically = partial(counted, export.write_atomically)
        export.move = partial(counted, export.move)
        exported(config, goal)

    forked(job).rest()


@pytest.mark.whole_only
def test_an_export_that_is_killed_leaves_a_copy_that_can_be_read(tmp_path):
    """An export that is killed while it writes leaves the former copy unchanged.

    An export that is killed while it moves files leaves no dead link. The next export starts from the beginning and
    removes all files of the killed export.
    """
    data, goal = tmp_path / "data", tmp_path / "copy"
    data.mkdir()
    store = filled(data, runs=2, cases=2)
    config = config_of(data)
    points = list(_points(config, goal))
    former = {file: file.read_bytes() for file in goal.rglob("*") if file.is_file()}
    store.journal.append(run_rows("run-new", 3, hours_ago=0), run_id="run-new")
    store.load_pending(5)
    whole = 0
    for steps in points:
        _killed_after(steps, config, goal)
        now = {file: file.read_bytes() for file in goal.rglob("*") if file.is_file() and STAGED not in file.parts}
        whole += now == former
        assert dead_links(goal) == []
    assert whole >= 5
    exported(config, goal)
    assert (goal / "runs" / "run-new" / "index.html").is_file()
    assert not (goal / STAGED).exists()
    assert set(json.loads((goal / MANIFEST).read_text())["files"]) == {
        str(file.relative_to(goal)) for file in goal.rglob("*") if file.is_file()
    }


def test_a_first_export_that_is_killed_can_be_made_again(tmp_path):
    """A first export that was killed can be repeated: its files are recognised, so the folder is not refused."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=1)
    config, goal = config_of(tmp_path / "data"), tmp_path / "copy"
    for steps in (3, 40):
        _killed_after(steps, config, goal)
        assert goal.exists()
    exported(config, goal)
    assert dead_links(goal) == []


def test_a_full_disk_leaves_the_former_copy(tmp_path, monkeypatch):
    """If a write fails because the disk is full, the former export is unchanged, and no temporary file is left."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data", runs=1)
    config, goal = config_of(tmp_path / "data"), tmp_path / "copy"
    exported(config, goal)
    former = {file: file.read_bytes() for file in goal.rglob("*") if file.is_file()}
    done = []

    def full(path, *given, **named):
        done.append(path)
        if len(done) > 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_atomically", full)
    with pytest.raises(OSError, match="No space"):
        exported(config, goal)
    assert {file: file.read_bytes() for file in goal.rglob("*") if file.is_file()} == former
