"""Screenshots in the page: embedded where they are small and safe, else linked, never trusted."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote

_MAGIC: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_LONGEST_MAGIC: Final = max(len(magic) for magic in _MAGIC)


class Shown(StrEnum):
    """How a screenshot appears."""

    NONE = "none"
    EMBEDDED = "embedded"
    LINKED_PERSONAL = "linked_personal"
    LINKED_LARGE = "linked_large"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot as the page shows it. ``href`` is relative to the run's folder."""

    shown: Shown
    href: str = ""
    data_uri: str = ""


class PictureAlbum:
    """Hands out pictures of one run's folder within a budget of bytes: whoever asks first is served first."""

    def __init__(self, folder: Path, *, most_each: int, most_together: int) -> None:
        self._folder = folder.resolve()
        self._most_each = most_each
        self._left = most_together

    def picture(self, relative: str | None, *, personal: bool) -> Picture:
        """The screenshot at ``relative``. One that shows personal data is only ever linked.

        A path that leaves the folder, or that leads to no PNG or JPEG file, counts as missing.
        """
        if relative is None:
            return Picture(Shown.NONE)
        path = self._inside(relative)
        media_type = path and _media_type(path)
        if path is None or not media_type:
            return Picture(Shown.MISSING)
        href = quote(path.relative_to(self._folder).as_posix())
        if personal:
            return Picture(Shown.LINKED_PERSONAL, href)
        size = path.stat().st_size
        if size > min(self._most_each, self._left):
            return Picture(Shown.LINKED_LARGE, href)
        self._left -= size
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
        return Picture(Shown.EMBEDDED, href, f"data:{media_type};base64,{encoded}")

    def link(self, relative: str | None) -> str:
        """A link to a file of the run's folder (a trace), or nothing when it is not there."""
        path = self._inside(relative) if relative else None
        return quote(path.relative_to(self._folder).as_posix()) if path else ""

    def _inside(self, relative: str) -> Path | None:
        try:
            path = (self._folder / relative).resolve()
            return path if path.is_relative_to(self._folder) and path.is_file() else None
        except (OSError, ValueError):  # a null byte, a name that is too long, a loop of links
            return None


def _media_type(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST_MAGIC)
    except OSError:
        return ""
    return next((media_type for magic, media_type in _MAGIC.items() if head.startswith(magic)), "")
