"""A copy of the site in files: redacted, without forms, for a static Space or any web server, or just a folder.

It follows its own links: what a page leads to is written too, until there is no more or there are too many. Of the
filters only those of `OWN_PAGES` have files of their own: a link with another leads to the page without it.
Exporting again replaces what the last export wrote, and touches nothing else.

All is written beside first, in `STAGED`, and takes its place file by file when everything is there: what is new
first, then what replaces an older file, and what is no more goes last. So whoever reads meanwhile, or after a kill,
finds every file whole and every link alive; before that point the former copy is as it was.
"""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from starlette.routing import Match, Route

from deployments.site.access import Visitor
from deployments.site.application import PAGES, PageRoute
from deployments.site.figures import format_badge_word, format_metrics, load_cards
from deployments.site.page import PageRefused, PageRequest, Site, StaticAddress
from deployments.site.rendering import ASSETS, Renderer, load_asset
from deployments.site.tokens import Role
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.reports.badge import render_badge
from monitors.storage import build_unwritable_error, move, write_atomically

MANIFEST: Final = "lookout-site.json"
"""Says which files an export wrote: the next one may replace these, and no others."""
STAGED: Final = ".lookout-site-new"
"""In the folder of an export while it is written. One that is killed leaves it, and the next removes it."""
MAX_PAGES: Final = 2_000
OWN_PAGES: Final = ("target", "night", "page")
"""Filters of which each value has a file of its own; their order is that of the parts of its name."""
LEFT_OUT_PAGE: Final = StaticAddress("/_left-out")
_TOO_MANY: Final = (
    "This page is not in this copy: a copy in files has {most:,} pages, and there are more. The site itself has it."
)
_ASSETS_OF_FOLDERS: Final = frozenset({"index.html", "index.json"})


class ExportedFiles(Record):
    """What was written. ``left_out`` counts pages beyond `MAX_PAGES`."""

    files: tuple[str, ...]
    pages: int
    left_out: int


@dataclass
class FolderLinks:
    """Relative ways between the pages of a folder; ``most`` of those that are led to are noted, to be written."""

    most: int = MAX_PAGES
    noted: dict[StaticAddress, None] = field(default_factory=dict[StaticAddress, None])
    left_out: set[StaticAddress] = field(default_factory=set[StaticAddress])

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """The way from one page to another, relative. What is no page is one folder down from the first."""
        if find_route(address) is None:
            return _build_relative_path(here, address.lstrip("/"))
        chosen = {name: str(filters[name]) for name in OWN_PAGES if filters.get(name) not in (None, "")}
        if chosen.get("page") == "1":
            del chosen["page"]
        return _build_relative_path(here, build_file_name(self.note("/" if address == "/now" else address, chosen)))

    def note(self, address: str, filters: Mapping[str, str]) -> StaticAddress:
        """The page to lead to: the one that is wanted, or where there are too many the one that says so."""
        goal = StaticAddress(address, tuple(filters.items()))
        if goal not in self.noted and len(self.noted) >= self.most:
            self.left_out.add(goal)
            return LEFT_OUT_PAGE
        self.noted.setdefault(goal)
        return goal


def find_route(address: str) -> tuple[PageRoute, Mapping[str, str]] | None:
    """The page at an address, with what stands in it."""
    for page in PAGES:
        match, scope = Route(page.path, _ignore_request).matches({"type": "http", "method": "GET", "path": address})
        if match is Match.FULL:
            return page, scope["path_params"]
    return None


def _ignore_request() -> None:
    """Only addresses are compared."""


def build_file_name(page: StaticAddress) -> str:
    """Where a page is written. No name of a page begins with ``_``, so none is taken for another's part."""
    parts = [f"_{part}" if part in _ASSETS_OF_FOLDERS else part for part in page.address.split("/") if part]
    return "/".join([*parts, *(f"_{name}-{value}" for name, value in page.parts), "index.html"])


def _build_relative_path(here: StaticAddress, goal: str) -> str:
    """The way to a file; one that begins with a name with a colon would be read as a scheme (``data:``)."""
    way = posixpath.relpath(goal, posixpath.dirname(build_file_name(here)) or ".")
    return f"./{way}" if ":" in way.partition("/")[0] else way


def export_site(site: Site, renderer: Renderer, folder: Path, max_pages: int = MAX_PAGES) -> ExportedFiles:
    """Write the pages, ``max_pages`` of them, their JSON, the figures and a badge for each target below ``folder``.

    Raises `ConfigError` for a folder with files that are not an export's, `WarehouseUnwritable`.
    """
    previous = _load_previous_files(folder)
    files, links, done = dict(_render_figures(site)), FolderLinks(max_pages), 0
    links.note("/", {})
    while done < len(links.noted):
        files |= _render_page_files(site, renderer, links, list(links.noted)[done])
        done += 1
    if links.left_out:
        request = build_export_request(site, LEFT_OUT_PAGE, {}, links)
        files |= _name_page_files(
            LEFT_OUT_PAGE, *renderer.render_static_refusal(request, _TOO_MANY.format(most=max_pages))
        )
    files |= {f"assets/{name}": load_asset(name) for name in ASSETS}
    written = ExportedFiles(files=tuple(sorted({*files, MANIFEST})), pages=done, left_out=len(links.left_out))
    _replace_files(folder, previous, files, written)
    return written


def _replace_files(folder: Path, previous: Sequence[str], files: Mapping[str, str], written: ExportedFiles) -> None:
    """Put the files in the place of those of before. Raises as `export_site`, and then leaves those of before."""
    _check_foreign_files(folder, previous, written)
    _make_folder(folder)
    staged = folder / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    try:
        for name, text in files.items():
            write_atomically(staged / name, text, within=folder)
    except BaseException:  # a cancellation, too, must leave no half-written pages
        shutil.rmtree(staged, ignore_errors=True)
        raise
    combined = written.model_copy(update={"files": tuple(sorted({*written.files, *previous}))})
    write_atomically(folder / MANIFEST, combined.model_dump_json(indent=1))
    for name in sorted(files, key=set(previous).__contains__):
        _make_folder((folder / name).parent)
        move(staged / name, folder / name, within=folder)
    for old in {*previous} - {*written.files}:
        (folder / old).unlink(missing_ok=True)
    write_atomically(folder / MANIFEST, written.model_dump_json(indent=1))
    shutil.rmtree(staged, ignore_errors=True)


def _make_folder(place: Path) -> None:
    """For whoever serves the copy: with the rights that the process's umask leaves, unlike folders of data."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_unwritable_error(place, error) from None


def _check_foreign_files(folder: Path, previous: Sequence[str], written: ExportedFiles) -> None:
    """Raise `ConfigError` where a file of somebody else, or a link to elsewhere, stands in the way."""
    for name in (*written.files, *previous):
        place = folder / name
        links = (part for part in (place, *place.parents) if part.is_relative_to(folder) and part != folder)
        if any(part.is_symlink() for part in links):
            raise ConfigError(f"{place}: a link leads out of the folder there; remove it, or name another folder")
        if name not in previous and name != MANIFEST and place.exists():
            raise ConfigError(f"{place} is not of an export: move it away, or name another folder")


def _render_page_files(site: Site, renderer: Renderer, links: FolderLinks, goal: StaticAddress) -> dict[str, str]:
    """A page and its JSON; for one that is no more, a page that says so."""
    match = find_route(goal.address)
    request = build_export_request(site, goal, match[1] if match else {}, links)
    try:
        page = match[0].make(request) if match else None
    except PageRefused as refusal:
        return _name_page_files(goal, *renderer.render_static_refusal(request, refusal.text))
    return (
        _name_page_files(goal, renderer.render_static_page(page, request), renderer.format_json(page))
        if page
        else {}
    )


def _name_page_files(goal: StaticAddress, html: str, json: str) -> dict[str, str]:
    file = build_file_name(goal)
    return {file: html, f"{file.removesuffix('index.html')}index.json": json}


def build_export_request(
    site: Site, goal: StaticAddress, path_parameters: Mapping[str, str], links: FolderLinks | None = None
) -> PageRequest:
    """A look at a page by somebody who may see nothing personal."""
    return PageRequest(
        site=site,
        visitor=Visitor("export", Role.READ, sees_personal_data=False, session=""),
        address=goal.address,
        path=path_parameters,
        query=dict(goal.parts),
        static=links,
    )


def _render_figures(site: Site) -> dict[str, str]:
    cards = load_cards(build_export_request(site, StaticAddress("/"), {}))
    badges = {f"badge/{card.target}.svg": str(render_badge(card.target, format_badge_word(card))) for card in cards}
    return {"metrics": format_metrics(cards).decode(), **badges}


def _load_previous_files(folder: Path) -> tuple[str, ...]:
    """What the last export wrote there. A manifest may name nothing outside its folder."""
    file = folder / MANIFEST
    try:
        names = ExportedFiles.model_validate_json(file.read_bytes()).files
    except FileNotFoundError:
        if folder.exists() and any(path.name != STAGED for path in folder.iterdir()):
            raise ConfigError(
                f"{folder} has files that are not of an export: name an empty folder, or a new one"
            ) from None
        return ()
    except (OSError, ValidationError):
        raise ConfigError(f"{file} cannot be read: name an empty folder, or a new one") from None
    return tuple(name for name in names if not name.startswith("/") and ".." not in name.split("/"))
