r"""Find names of source files as people, diffs, tools and tracebacks write them, and compare two lists of files.

``a/src\auth.py:12`` and ``./src/auth.py`` are one file. A file that is named twice counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath
from typing import Final, NamedTuple
from urllib.parse import unquote

_QUOTES: Final = " \t\r\n`'\"<>*,;"
_REMOTE: Final = re.compile(
    r"https?://(?:www\.)?github\.com/[^/\s]+/[^/\s]+/(?:blob|blame|raw|tree|edit)/[^/\s]+/"
    r"|https?://raw\.githubusercontent\.com/[^/\s]+/[^/\s]+/[^/\s]+/"
    r"|file://"
)
_PLACE: Final = re.compile(
    r"(?:::[\w.\[\]<>$~-]+|#[\w.-]+|:\d+(?:[-:]\d+)*|\(\d+(?:[,:-]\s?\d+)*\)"
    r"|,?\s+\(?lines?\s+\d+(?:\s?[-–]\s?\d+)?\)?|\(\))$",
    re.IGNORECASE,
)
"""A position in a file, after its path: ``::Class.method``, ``#L10-L20``, ``:12:3``, ``(12,3)``, ``, line 12``."""
_DRIVE: Final = re.compile(r"[A-Za-z]:(?=[\\/])")


def to_canonical_path(written: str) -> str:
    """Return a file's path relative to the repository root, without positions such as line numbers.

    Letter case is not changed. An absolute path stays absolute; `compute_agreement` matches it with a file of the
    repository.
    """
    path = written.strip(_QUOTES)
    remote = _REMOTE.match(path)
    if remote:
        path = unquote(path[remote.end() :].partition("?")[0])
    path = _DRIVE.sub("", path)
    for _ in range(3):  # a place may have parts: "x.py::f, line 3"
        path = _PLACE.sub("", path).strip(_QUOTES)
    path = path.replace("\\", "/")
    path = normpath(path) if path else ""
    path = path[1:] if path.startswith("//") else path
    return path[2:] if path.startswith(("a/", "b/")) else "" if path == "." else path


class FileAgreement(NamedTuple):
    """A comparison of the files that a report names with the wanted files.

    It has three sorted lists: files that are named and wanted, wanted but not named, and named but not wanted.
    """

    found: tuple[str, ...]
    missed: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def precision(self) -> float:
        """Return the share of the named files that are wanted, or 0 if no files are named."""
        named = len(self.found) + len(self.extra)
        return len(self.found) / named if named else 0.0

    @property
    def recall(self) -> float:
        """Return the share of the wanted files that are named, or 0 if no files are wanted."""
        wanted = len(self.found) + len(self.missed)
        return len(self.found) / wanted if wanted else 0.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall, or 0 if no named file is wanted."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def compute_agreement(named: Iterable[str], wanted: Iterable[str]) -> FileAgreement:
    """Compare a list of named files with the wanted files.

    An absolute path matches a wanted file in a folder if the absolute path ends with the path of that file. The
    folder of the checkout is unknown, so the beginning of an absolute path is ignored.
    """
    want = {path for path in map(to_canonical_path, wanted) if path}
    given = {_shorten_to_wanted_path(path, want) for path in map(to_canonical_path, named) if path}
    return FileAgreement(tuple(sorted(given & want)), tuple(sorted(want - given)), tuple(sorted(given - want)))


def _shorten_to_wanted_path(path: str, wanted: set[str]) -> str:
    if not path.startswith("/"):
        return path
    ends = (path[at + 1 :] for at, sign in enumerate(path) if sign == "/")
    return next((end for end in ends if "/" in end and end in wanted), path)


_ENDINGS: Final = (
    "py pyi pyx ipynb js jsx mjs cjs ts tsx vue svelte go rs java kt kts scala groovy c h cc cpp cxx hpp hh m "
    "mm cs fs rb erb php swift dart lua pl pm r jl hs ml ex exs erl clj cljs sh bash zsh ps1 bat sql proto "
    "graphql html htm css scss sass less xml json jsonc yaml yml toml ini cfg conf properties gradle tf md rst "
    "txt lock mod sum j2 tpl tmpl env csv tsv service"
)
SUFFIXES: Final = frozenset(_ENDINGS.split())
"""File extensions of source files.

A name is read as a file only if it has one of these extensions, or is a name such as "Makefile".
"""
_BARE_NAMES: Final = frozenset(
    {"Makefile", "Dockerfile", "Jenkinsfile", "Gemfile", "Rakefile", "Procfile", "CODEOWNERS"}
)
_PRODUCTS: Final = re.compile(
    r"(?:node|next|nuxt|vue|react|three|d3|express|ember|angular|socket|chart|asp)\.(?:js|io|net)", re.IGNORECASE
)
"""Product names that look like file names, such as "Node.js". They are not files."""
_NAME: Final = r"[\w@+.~-]+"
_WRITTEN: Final = re.compile(
    rf"https?://[^\s<>()\[\]`\"']+|(?:[A-Za-z]:)?[\\/]?(?:{_NAME}[\\/])*{_NAME}(?:::[\w.]+|:\d+|#L\d+)?"
)


def find_files_named_in_text(text: str) -> tuple[str, ...]:
    """Return the files that a text names, as written in the text. Each file is returned once.

    A name must have the extension of a source file, or be a name such as "Makefile". A link counts only if it leads
    to a file in a repository.
    """
    files: dict[str, str] = {}
    for match in _WRITTEN.finditer(text):
        written = match[0].rstrip(".,:;")
        if _is_path_of_file(written):
            files.setdefault(to_canonical_path(written), written)
    return tuple(files.values())


def _is_path_of_file(written: str) -> bool:
    if "://" in written and not _REMOTE.match(written):
        return False
    path = to_canonical_path(written)
    folder, _, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if name in _BARE_NAMES:
        return True
    return bool(dot and stem) and ending.lower() in SUFFIXES and bool(folder or not _PRODUCTS.fullmatch(name))
