"""Find citations of sources in a text, with the forms in `citations.toml` or with the patterns of a target."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from monitors.facts.text import Hinted, to_caseless
from monitors.records.base import Record

_DATA: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_LOCATOR_NAMES: Final[Sequence[str]] = _DATA["locators"]
_LOCATORS: Final = "|".join(sorted((re.escape(word) for word in _LOCATOR_NAMES), key=len, reverse=True))
_PLACE: Final = rf"(?:(?<![^\W_])(?:{_LOCATORS})\.?|§{{1,2}})\s{{0,2}}(?:no\.? ?)?\d[\d.]{{0,10}}"
_FORMS: Final = {
    form["name"]: Hinted(
        re.compile(form["pattern"].replace("LOCATOR", _PLACE), re.IGNORECASE), tuple(form["hints"])
    )
    for form in _DATA["forms"]
}
DEFAULT_PATTERNS: Final[tuple[str, ...]] = tuple(_FORMS)
"""The names of all citation forms in `citations.toml`."""

_HEADING: Final = re.compile(_DATA["heading"], re.IGNORECASE)
_ITEM: Final = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)]|\[\d{1,2}\])")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SPACES = re.compile(r"[\s_]+")
_LOCATED = re.compile(
    rf"(?:(?<![^\W_])(?:{_LOCATORS})\.?|§{{1,2}})\s{{0,2}}(?:no\.? ?)?(?P<number>\d+(?:\.\d+)*)(?![\d])",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)*")
_FILE = re.compile(r"\.(?:pdf|docx?|md|html?|txt|xlsx?|csv)$")


class Citation(Record):
    """A citation in a text. ``start`` and ``end`` (exclusive) are code-point offsets in the text.

    ``form`` is the pattern that matched: the name of a form in `citations.toml`, or a regular expression of the
    target.
    """

    source: str
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    form: str = ""


def find_citations(text: str, patterns: Sequence[str] = DEFAULT_PATTERNS) -> tuple[Citation, ...]:
    """Return all citations in order. A citation that overlaps an earlier citation is omitted.

    Each pattern is the name of a form or a regular expression; letter case is ignored. The source is the text of
    the group ``source``. If a pattern has no such group, the source is the first group or the whole match. A match
    without a source (``[Source: ]``) is not a citation. Raises ``re.error`` for an invalid pattern.
    """
    plain = to_caseless(text)
    marks = sorted(_find_all_citations(text, plain, patterns), key=lambda mark: (mark.start, -mark.end))
    outer = list[Citation]()
    for mark in marks:
        if not outer or mark.start >= outer[-1].end:
            outer.append(mark)
    return tuple(outer)


def _find_all_citations(text: str, plain: str, patterns: Sequence[str]) -> Iterator[Citation]:
    for written in patterns:
        form = _FORMS.get(written)
        if form is not None and not any(map(plain.__contains__, form.hints)):
            continue
        for match in (form.pattern if form else _compile_pattern(written)).finditer(text):
            if name := _extract_source_name(match):
                yield Citation(source=name, start=match.start(), end=match.end(), form=written)


def is_unrequested_source_list(text: str, question: str = "") -> bool:
    """Return whether a text is only a list of sources, and the question does not ask for sources."""
    heading = _HEADING.match(text)
    if heading is None or heading["word"].casefold().rstrip("s") in question.casefold():
        return False
    rest, at = "", heading.end()
    for mark in find_citations(text):
        listed = text[mark.start : mark.end].strip().splitlines()[1:]
        if mark.form != "list" or all(map(_ITEM.match, listed)):
            rest, at = rest + text[at : mark.start], max(at, mark.end)
    return re.search(r"[^\W_]", rest + text[at:]) is None


def is_citation_of(citation: str, expected: str) -> bool:
    """Return whether a citation names the expected source: in the same words, or by the same document and clauses.

    Letter case, spacing, invisible characters and the word for a clause are ignored: ``§ 4.2`` equals ``clause
    4.2``, but not ``clause 4.20``.
    """
    plain, wanted = _to_comparable(citation), _to_comparable(expected)
    if wanted in plain:
        at = plain.find(wanted) + len(wanted)
        return not (wanted[-1:].isdigit() and re.match(r"\d|\.\d", plain[at:]))
    document, clauses = _split_document_and_clauses(wanted)
    numbers = set(_NUMBER.findall(plain)) if document and clauses else set[str]()
    return bool(clauses) and document in plain and clauses <= numbers


def has_source_in_text(text: str, expected: str) -> bool:
    """Return whether a text names the document and all clauses of the expected source.

    If the expected source has no clause, it must be a file name, and the text must contain this name.
    """
    plain, wanted = _to_comparable(text), _to_comparable(expected)
    document, clauses = _split_document_and_clauses(wanted)
    if not clauses:
        return _FILE.search(wanted) is not None and wanted in plain
    return bool(document) and document in plain and clauses <= {mark["number"] for mark in _LOCATED.finditer(plain)}


def _split_document_and_clauses(wanted: str) -> tuple[str, frozenset[str]]:
    """Return the document of an expected source, and the numbers of its clauses."""
    clauses = frozenset(mark["number"] for mark in _LOCATED.finditer(wanted))
    return _LOCATED.sub("", wanted).strip(" ,;:-–()"), clauses


def is_citation_form_or_raise(written: str) -> bool:
    """Return True for the name of a citation form and False for a regular expression.

    Raises ``ValueError`` for a plain word that is not the name of a form.
    """
    if written in _FORMS:
        return True
    if re.fullmatch(r"[a-z-]+", written):
        raise ValueError(f"a citation form ({', '.join(_FORMS)}) or a regular expression, not {written!r}")
    return False


@lru_cache(maxsize=64)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _extract_source_name(match: re.Match[str]) -> str:
    groups = match.groupdict()
    name = groups.get("source") or (match[1] if match.re.groups else match[0])
    return re.sub(r"\s+", " ", _INVISIBLE.sub("", name or "").replace("](", " ")).strip(" .,;:-–*_>•")


def _to_comparable(text: str) -> str:
    folded = _INVISIBLE.sub("", text).casefold().replace("\u2011", "-").replace("\u2010", "-")
    return _SPACES.sub(" ", folded).strip()
