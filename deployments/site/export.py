"""Export of the site as static files, with masked personal data and without forms.

The export follows links and writes each linked page, up to a limit. Only the filters in `OWN_PAGES` have their own
files. A link with another filter leads to the page without that filter.

All files are first written to the folder `STAGED` and then moved into place: first new files, then replaced files.
Old files are removed last. If the export is interrupted, all files are still complete and all links valid.
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
from deployments.site.figures import format_badge_verdict, format_metrics, load_target_cards
from deployments.site.page import PageRefused, PageRequest, Site, StaticAddress
from deployments.site.rendering import ASSETS, Renderer, load_asset
from deployments.site.tokens import Role
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.reports.badge import render_badge
from monitors.storage import build_unwritable_error, move, write_atomically

MANIFEST: Final = "lookout-site.json"
"""The name of the file with the list of exported files. The next export may replace only these files."""
STAGED: Final = ".lookout-site-new"
"""A temporary folder inside the export's folder. If an export is interrupted, the next export removes it."""
MAX_PAGES: Final = 2_000
OWN_PAGES: Final = ("target", "night", "page")
"""The filters whose values have their own files, in the order in which they appear in a file name."""
LEFT_OUT_PAGE: Final = StaticAddress("/_left-out")
_TOO_MANY: Final = (
    "This page is not in this copy, because a copy has at most {most:,} pages. Open this page on the site itself."
)
_ASSETS_OF_FOLDERS: Final = frozenset({"index.html", "index.json"})


class ExportedFiles(Record):
    """The exported files. ``left_out`` is the number of pages that were not written because of the page limit."""

    files: tuple[str, ...]
    pages: int
    left_out: int


@dataclass
class FolderLinks:
    """Builds relative links between exported pages, and collects up to ``most`` linked pages to write."""

    most: int = MAX_PAGES
    noted: dict[StaticAddress, None] = field(default_factory=dict[StaticAddress, None])
    left_out: set[StaticAddress] = field(default_factory=set[StaticAddress])

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """Return the relative link from one page to another page or file."""
        if find_page_route(address) is None:
            return _build_relative_path(here, address.lstrip("/"))
        chosen = {name: str(filters[name]) for name in OWN_PAGES if filters.get(name) not in (None, "")}
        if chosen.get("page") == "1":
            del chosen["page"]
        return _build_relative_path(
            here, build_file_name(self.register_page_up_to_limit("/" if address == "/now" else address, chosen))
        )

    def register_page_up_to_limit(self, address: str, filters: Mapping[str, str]) -> StaticAddress:
        """Add a page to the pages to write, and return it.

        At the limit, return the page that explains missing pages.
        """
        goal = StaticAddress(address, tuple(filters.items()))
        if goal not in self.noted and len(self.noted) >= self.most:
            self.left_out.add(goal)
            return LEFT_OUT_PAGE
        self.noted.setdefault(goal)
        return goal


def find_page_route(address: str) -> tuple[PageRoute, Mapping[str, str]] | None:
    """Return the page at an address and the parameters in this address, or ``None`` if there is no such page."""
    for page in PAGES:
        match, scope = Route(page.path, _ignore_request).matches({"type": "http", "method": "GET", "path": address})
        if match is Match.FULL:
            return page, scope["path_params"]
    return None


def _ignore_request() -> None:
    """A placeholder for the function of a route. It is never called, because only addresses are compared."""


def build_file_name(page: StaticAddress) -> str:
    """Return the file name of a page, with a folder such as ``_page-2`` for each filter.

    The ``_`` distinguishes these folders from the folders of other pages.
    """
    parts = [f"_{part}" if part in _ASSETS_OF_FOLDERS else part for part in page.address.split("/") if part]
    return "/".join([*parts, *(f"_{name}-{value}" for name, value in page.parts), "index.html"])


def _build_relative_path(here: StaticAddress, goal: str) -> str:
    """Return the relative path from a page to a file.

    If a browser would read the beginning of the path as a scheme such as ``http:``, the path begins with ``./``.
    """
    way = posixpath.relpath(goal, posixpath.dirname(build_file_name(here)) or ".")
    return f"./{way}" if ":" in way.partition("/")[0] else way


def export_site(site: Site, renderer: Renderer, folder: Path, max_pages: int = MAX_PAGES) -> ExportedFiles:
    """Write at most ``max_pages`` pages, their JSON, the metrics and a badge for each target to ``folder``.

    Raises `ConfigError` for a folder with files that were not written by an export, and `WarehouseUnwritable`.
    """
    previous = _load_files_of_last_export(folder)
    cards = load_target_cards(build_export_request(site, StaticAddress("/"), {}))
    badges = {
        f"badge/{card.target}.svg": str(render_badge(card.target, format_badge_verdict(card))) for card in cards
    }
    files = {"metrics": format_metrics(cards).decode(), **badges}
    links, done = FolderLinks(max_pages), 0
    links.register_page_up_to_limit("/", {})
    while done < len(links.noted):
        files |= _render_page_files(site, renderer, links, list(links.noted)[done])
        done += 1
    if links.left_out:
        request = build_export_request(site, LEFT_OUT_PAGE, {}, links)
        files |= _build_page_files(
            LEFT_OUT_PAGE, *renderer.render_static_refusal(request, _TOO_MANY.format(most=max_pages))
        )
    files |= {f"assets/{name}": load_asset(name) for name in ASSETS}
    written = ExportedFiles(files=tuple(sorted({*files, MANIFEST})), pages=done, left_out=len(links.left_out))
    _replace_files_of_last_export(folder, previous, files, written)
    return written


def _replace_files_of_last_export(
    folder: Path, previous: Sequence[str], files: Mapping[str, str], written: ExportedFiles
) -> None:
    """Replace the files of the last export. If an error is raised, the old files still exist."""
    _refuse_to_replace_foreign_files(folder, previous, written)
    _make_readable_folder(folder)
    staged = folder / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    try:
        for name, text in files.items():
            write_atomically(staged / name, text, within=folder)
    except BaseException:  # also for a cancellation
        shutil.rmtree(staged, ignore_errors=True)
        raise
    combined = written.model_copy(update={"files": tuple(sorted({*written.files, *previous}))})
    write_atomically(folder / MANIFEST, combined.model_dump_json(indent=1))
    for name in sorted(files, key=set(previous).__contains__):
        _make_readable_folder((folder / name).parent)
        move(staged / name, folder / name, within=folder)
    for old in {*previous} - {*written.files}:
        (folder / old).unlink(missing_ok=True)
    write_atomically(folder / MANIFEST, written.model_dump_json(indent=1))
    shutil.rmtree(staged, ignore_errors=True)


def _make_readable_folder(place: Path) -> None:
    """Create a folder with default permissions, so that a web server can read it."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_unwritable_error(place, error) from None


def _refuse_to_replace_foreign_files(folder: Path, previous: Sequence[str], written: ExportedFiles) -> None:
    """Raise `ConfigError` if the export would write through a symbolic link or replace a foreign file.

    A foreign file is a file that was not written by an export.
    """
    for name in (*written.files, *previous):
        place = folder / name
        links = (part for part in (place, *place.parents) if part.is_relative_to(folder) and part != folder)
        if any(part.is_symlink() for part in links):
            raise ConfigError(
                f"{place} is a symbolic link, and an export does not write through links. Remove it, or choose "
                "another folder"
            )
        if name not in previous and name != MANIFEST and place.exists():
            raise ConfigError(f"{place} was not written by an export. Move it away, or choose another folder")


def _render_page_files(site: Site, renderer: Renderer, links: FolderLinks, goal: StaticAddress) -> dict[str, str]:
    """Render a page and its JSON. If the page is refused, for example as not found, render the reason instead."""
    match = find_page_route(goal.address)
    request = build_export_request(site, goal, match[1] if match else {}, links)
    try:
        page = match[0].make(request) if match else None
    except PageRefused as refusal:
        return _build_page_files(goal, *renderer.render_static_refusal(request, refusal.text))
    return (
        _build_page_files(goal, renderer.render_static_page(page, request), renderer.format_page_json(page))
        if page
        else {}
    )


def _build_page_files(goal: StaticAddress, html: str, json: str) -> dict[str, str]:
    file = build_file_name(goal)
    return {file: html, f"{file.removesuffix('index.html')}index.json": json}


def build_export_request(
    site: Site, goal: StaticAddress, path_parameters: Mapping[str, str], links: FolderLinks | None = None
) -> PageRequest:
    """Build the request of a visitor who may not see personal data."""
    return PageRequest(
        site=site,
        visitor=Visitor("export", Role.READ, sees_personal_data=False, session=""),
        address=goal.address,
        path=path_parameters,
        query=dict(goal.parts),
        static=links,
    )


def _load_files_of_last_export(folder: Path) -> tuple[str, ...]:
    """Return the files that the last export wrote. Paths outside the folder are refused."""
    file = folder / MANIFEST
    try:
        names = ExportedFiles.model_validate_json(file.read_bytes()).files
    except FileNotFoundError:
        if folder.exists() and any(path.name != STAGED for path in folder.iterdir()):
            raise ConfigError(
                f"{folder} has files that were not written by an export. Choose an empty or new folder"
            ) from None
        return ()
    except (OSError, ValidationError):
        raise ConfigError(f"{file} cannot be read. Choose an empty or new folder") from None
    return tuple(name for name in names if not name.startswith("/") and ".." not in name.split("/"))
