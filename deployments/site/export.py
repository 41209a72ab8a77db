"""A copy of the site in files: redacted, without forms, for a static Space or any web server, or just a folder.

It follows its own links: what a page leads to is written too, until there is no more or there are too many. Filters
have no place in files, so a link with one leads to the page without it. Exporting again replaces what the last
export wrote, and touches nothing else.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from starlette.routing import Match, Route

from deployments.site.access import Visitor
from deployments.site.application import PAGES, PageRoute
from deployments.site.figures import badge_word, cards_of, metrics_text
from deployments.site.page import PageRefused, PageRequest, Site, StaticAddress
from deployments.site.rendering import ASSETS, Renderer, asset_text
from deployments.site.tokens import Role
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.reports.badge import badge
from monitors.storage import write_atomically

MANIFEST: Final = "lookout-site.json"
"""Says which files an export wrote: the next one may replace these, and no others."""
MOST_PAGES: Final = 2_000


class ExportedFiles(Record):
    """What was written. ``left_out`` counts pages beyond `MOST_PAGES`."""

    files: tuple[str, ...]
    pages: int
    left_out: int


@dataclass
class FolderLinks:
    """Relative ways between the pages of a folder; what is led to is noted, to be written as well."""

    noted: dict[StaticAddress, None] = field(default_factory=dict[StaticAddress, None])

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """The way from one page to another, relative. What is no page is one folder down from the first."""
        if route_of(address) is None:
            return _relative(here, address.lstrip("/"))
        page = filters.get("page")
        goal = StaticAddress("/" if address == "/now" else address, "" if page in (None, "", 1, "1") else str(page))
        self.noted.setdefault(goal)
        return _relative(here, file_of(goal))


def route_of(address: str) -> tuple[PageRoute, Mapping[str, str]] | None:
    """The page at an address, with what stands in it."""
    for page in PAGES:
        match, scope = Route(page.path, _nothing).matches({"type": "http", "method": "GET", "path": address})
        if match is Match.FULL:
            return page, scope["path_params"]
    return None


def _nothing() -> None:
    """Only addresses are compared."""


def file_of(page: StaticAddress) -> str:
    """Where a page is written."""
    parts = [*filter(None, page.address.split("/")), *([f"_page-{page.part}"] if page.part else []), "index.html"]
    return "/".join(parts)


def _relative(here: StaticAddress, goal: str) -> str:
    return posixpath.relpath(goal, posixpath.dirname(file_of(here)) or ".")


def export_site(site: Site, renderer: Renderer, folder: Path) -> ExportedFiles:
    """Write the pages, their JSON, the figures and a badge for each target below ``folder``.

    Raises `ConfigError` for a folder with files that are not an export's, `WarehouseUnwritable`.
    """
    before = _before(folder)
    files = dict(_figures(site))
    links = FolderLinks({StaticAddress("/"): None})
    done = 0
    while done < min(len(links.noted), MOST_PAGES):
        files |= _page_files(site, renderer, links, list(links.noted)[done])
        done += 1
    files |= {f"assets/{name}": asset_text(name) for name in ASSETS}
    left_out = len(links.noted) - done
    written = ExportedFiles(files=tuple(sorted({*files, MANIFEST})), pages=done, left_out=left_out)
    for name, text in files.items():
        write_atomically(folder / name, text)
    write_atomically(folder / MANIFEST, written.model_dump_json(indent=1))
    for old in {*before} - {*written.files}:
        (folder / old).unlink(missing_ok=True)
    return written


def _page_files(site: Site, renderer: Renderer, links: FolderLinks, goal: StaticAddress) -> dict[str, str]:
    """A page and its JSON; nothing for one that is no more."""
    found = route_of(goal.address)
    if found is None:
        return {}
    route, inside = found
    asked = request_for(site, goal, inside, links)
    try:
        page = route.make(asked)
    except PageRefused:
        return {}
    file = file_of(goal)
    return {
        file: renderer.static(page, asked),
        f"{file.removesuffix('index.html')}index.json": renderer.json_text(page),
    }


def request_for(
    site: Site, goal: StaticAddress, inside: Mapping[str, str], links: FolderLinks | None = None
) -> PageRequest:
    """A look at a page by somebody who may see nothing personal."""
    return PageRequest(
        site=site,
        visitor=Visitor("export", Role.READ, sees_personal_data=False, session=""),
        address=goal.address,
        path=inside,
        query={"page": goal.part} if goal.part else {},
        static=links,
    )


def _figures(site: Site) -> dict[str, str]:
    cards = cards_of(request_for(site, StaticAddress("/"), {}))
    badges = {f"badge/{card.target}.svg": str(badge(card.target, badge_word(card))) for card in cards}
    return {"metrics": metrics_text(cards).decode(), **badges}


def _before(folder: Path) -> tuple[str, ...]:
    """What the last export wrote there. A manifest may name nothing outside its folder."""
    file = folder / MANIFEST
    try:
        names = ExportedFiles.model_validate_json(file.read_bytes()).files
    except FileNotFoundError:
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(
                f"{folder} has files that are not of an export: name an empty folder, or a new one"
            ) from None
        return ()
    except (OSError, ValidationError):
        raise ConfigError(f"{file} cannot be read: name an empty folder, or a new one") from None
    return tuple(name for name in names if not name.startswith("/") and ".." not in name.split("/"))
