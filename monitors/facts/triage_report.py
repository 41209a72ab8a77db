"""Read an agent's report on an issue: a JSON object, or prose with a heading for each part.

A part that is not in the report is missing and is never guessed. If no part of a report in prose lists the files,
the whole report is searched for them, because a path is recognisable without a heading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

from monitors.facts.source_files import find_files_named_in_text
from monitors.facts.text import normalise
from monitors.records.triage import IssueSeverity, TriageReport

_PARTS: Final[Mapping[str, str]] = {
    "severity": r"(?:issue )?severity|priority|urgency",
    "root_cause": r"(?:probable |likely |suspected |the )?(?:root )?cause(?: analysis)?|why (?:it|this) happens",
    "files": r"(?:relevant|affected|involved|related|suspect(?:ed)?|changed|key) (?:source )?files?(?: to change)?"
    r"|files?(?: (?:involved|affected|to change|to look at))?|code locations?",
    "recommended_fix": r"(?:recommended|suggested|proposed|possible) (?:fix|solution|change|action)s?|fix|solution"
    r"|remedy|recommendations?|next steps?",
    "confidence": r"confidence(?: level| score)?",
}
"""The names that each part of a report may have in headings, labels and keys."""
_CALLED: Final = {part: re.compile(names, re.IGNORECASE) for part, names in _PARTS.items()}
_SEVERITIES: Final = (
    (
        IssueSeverity.CRITICAL,
        re.compile(r"\b(?:critical|blocker|sev(?:erity)?[ -]?[01]|p0|urgent)\b", re.IGNORECASE),
    ),
    (IssueSeverity.HIGH, re.compile(r"\b(?:high|major|severe|sev(?:erity)?[ -]?2|p1)\b", re.IGNORECASE)),
    (IssueSeverity.MEDIUM, re.compile(r"\b(?:medium|moderate|normal|sev(?:erity)?[ -]?3|p2)\b", re.IGNORECASE)),
    (IssueSeverity.LOW, re.compile(r"\b(?:low|minor|trivial|cosmetic|sev(?:erity)?[ -]?4|p[34])\b", re.IGNORECASE)),
)
_LABEL: Final = re.compile(
    r"^[ \t>]{0,8}(?P<hashes>\#{1,6}[ \t]+)?(?:[-*+][ \t]+)?(?:\d{1,2}[.)][ \t]+)?(?P<bold>\*\*|__)?"
    r"(?P<name>[^\W\d_][^:*_\n]{0,38}[^\s:*_])[ \t]*(?P<colon>:)?(?P<end>\*\*|__)?[ \t]*(?P<late>:)?"
    r"[ \t]*(?P<rest>.*)$"
)
_UNDERLINE: Final = re.compile(r"^[ \t]{0,3}(?:=+|-{2,})[ \t]*$")
_FENCE: Final = re.compile(r"^[ \t]{0,3}(?:```|~~~)")
_NOTHING: Final = re.compile(
    r"[\s*_`>.-]*(?:n/?a|none|unknown|tbd|to ?do|to be determined|not (?:known|applicable|available)|\?+|-+|"
    r"[<\[{][^>\]}\n]{0,80}[>\]}])?[\s*_`.]*",
    re.IGNORECASE,
)
"""A pattern for the content of an empty field in a report template, such as "N/A"."""
_SHARE: Final = re.compile(
    r"(?<![\d.])(?P<number>\d{1,3}(?:\.\d{1,4})?)\s*(?P<percent>%)?(?:\s*/\s*(?P<of>\d{1,3})\b)?"
)


def read_report(text: str) -> TriageReport:
    """Read the parts of a report from a JSON object (with or without a code fence), or from prose."""
    fields = _parse_json_object_or_none(text)
    return _build_report_from_fields(fields) if fields is not None else _build_report_from_prose(text)


@lru_cache(maxsize=32)
def fold_case(text: str) -> str:
    """Return a text in one letter case and with single spaces, for the search for keywords."""
    return " ".join(normalise(text).text.casefold().split())


def has_keyword(keyword: str, text: str) -> bool:
    """Return whether a text contains a keyword as whole words, singular or plural: "lock" is not in "block"."""
    pattern = rf"(?<!\w){re.escape(fold_case(keyword))}(?:e?s)?(?!\w)"
    return re.search(pattern, fold_case(text)) is not None


def _parse_json_object_or_none(text: str) -> Mapping[str, object] | None:
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].rpartition("```")[0].strip()
    if not bare.startswith("{"):
        return None
    try:
        value: object = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


def _build_report_from_fields(fields: Mapping[str, object]) -> TriageReport:
    """Build a report from the keys of a JSON object in any spelling (`rootCause`, `root_cause`).

    If no key is known and there is exactly one nested object, the keys of this object are read.
    """
    parts = dict(_iterate_known_report_parts(fields))
    inner = [cast("Mapping[str, object]", value) for value in fields.values() if isinstance(value, dict)]
    if not parts and len(inner) == 1:
        return _build_report_from_fields(inner[0])
    files = parts.get("files")
    named = _parse_files(files) if files is not None else None
    return TriageReport(
        severity=_parse_severity(_convert_to_text_or_empty(parts.get("severity"))),
        root_cause=_strip_text_or_none(_convert_to_text_or_empty(parts.get("root_cause"))),
        files=named,
        functions=tuple(file for file in named or () if "::" in file),
        recommended_fix=_strip_text_or_none(_convert_to_text_or_empty(parts.get("recommended_fix"))),
        confidence=_parse_confidence(_convert_to_text_or_empty(parts.get("confidence"))),
    )


def _iterate_known_report_parts(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in fields.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", key)
        part = _find_report_part_by_name(name)
        if part and value is not None:
            yield part, value


def _convert_to_text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _parse_files(value: object) -> tuple[str, ...]:
    """Read files from a text, or from a list of paths or of objects with a key such as `path` or `file`."""
    if isinstance(value, str):
        return find_files_named_in_text(value)
    if not isinstance(value, list):
        return ()
    return tuple(path for value_in_list in cast("Sequence[object]", value) if (path := _parse_path(value_in_list)))


def _parse_path(value: object) -> str:
    if isinstance(value, dict):
        entry = cast("Mapping[str, object]", value)
        value = next((entry[key] for key in ("path", "file", "filename", "name") if key in entry), "")
    return value.strip() if isinstance(value, str) else ""


def _build_report_from_prose(text: str) -> TriageReport:
    parts: dict[str, list[str]] = {}
    prose: list[str] = []
    under: str | None = None
    for part, line, fenced in _detect_report_part_per_line(text):
        under = part if part is not None else under
        if under:
            parts.setdefault(under, []).append(line)
        prose += [] if fenced else [line]
    texts = {part: "\n".join(lines).strip() for part, lines in parts.items()}
    named = find_files_named_in_text(texts["files"] if "files" in texts else "\n".join(prose))
    return TriageReport(
        severity=_parse_severity(texts.get("severity", "")),
        root_cause=_strip_text_or_none(texts.get("root_cause", "")),
        files=named if named or "files" in texts else None,
        functions=tuple(file for file in named if "::" in file),
        recommended_fix=_strip_text_or_none(texts.get("recommended_fix", "")),
        confidence=_parse_confidence(texts.get("confidence", "")),
    )


def _detect_report_part_per_line(text: str) -> Iterator[tuple[str | None, str, bool]]:
    """Yield the part that begins at each line, the text of the line, and whether the line is code.

    The part is ``None`` if the line is not a heading, and empty for the heading of an unknown part.
    """
    lines = text.splitlines()
    fenced = False
    for at, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        if fence or fenced:
            fenced = fenced != fence
            yield None, line, True
            continue
        if _UNDERLINE.match(line):
            continue
        below = lines[at + 1] if at + 1 < len(lines) else ""
        yield (*_parse_report_part_heading(line, underlined=bool(line.strip() and _UNDERLINE.match(below))), False)


def _parse_report_part_heading(line: str, *, underlined: bool) -> tuple[str | None, str]:
    """Return the part of the report that begins at a line, and the text of the line after the heading."""
    label = _LABEL.match(line)
    if label is None:
        return None, line
    part = _find_report_part_by_name(label["name"])
    heading = bool(label["hashes"]) or underlined
    marked = heading or label["colon"] or label["late"] or (label["bold"] and label["end"] and not label["rest"])
    if part and marked and (not label["rest"] or label["colon"] or label["late"]):
        return part, label["rest"].removeprefix("**").strip()
    return ("" if heading or (label["bold"] and label["colon"] and label["end"]) else None), line


def _find_report_part_by_name(name: str) -> str | None:
    name = " ".join(name.split())
    return next((part for part, called in _CALLED.items() if called.fullmatch(name)), None)


def _strip_text_or_none(text: str) -> str | None:
    return None if _NOTHING.fullmatch(text) else text.strip()


def _parse_severity(text: str) -> IssueSeverity | None:
    """Return the severity that a text names.

    Return ``None`` if the text names two severities: "between high and critical".
    """
    named = [severity for severity, pattern in _SEVERITIES if pattern.search(text)]
    return named[0] if len(named) == 1 else None


def _parse_confidence(text: str) -> float | None:
    """Parse a confidence from 0 to 1: "85 %", "0.85", "8.5/10". Return ``None`` for words such as "high"."""
    share = _SHARE.search(text)
    if share is None:
        return None
    scale = float(share["of"]) if share["of"] else 100.0 if share["percent"] else 1.0
    value = float(share["number"]) / scale if scale else 2.0
    return value if value <= 1.0 else None
