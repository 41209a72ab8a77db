"""Convert issues of software projects to gold cases.

Two formats are supported: rows with ``issue_url``, ``issue_title``, ``issue_body`` and ``reference``, and rows of
SWE-bench. A row of SWE-bench contains a patch, and the files in the patch become the relevant files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from monitors.facts.language import identify_language
from monitors.records.base import Language
from monitors.records.cases import Pipeline
from monitors.records.triage import ISSUE_PLACE, IssueSeverity, TriageReference, TriageTask

ISSUE_KEYS: Final = ("issue_url", "issue_title", "issue_body", "repository_files", "reference")
"""The keys that describe an issue in a line of a suite. Their values become the case's ``triage``."""
TRIAGE_TYPE: Final = "triage"
"""The type of a case about an issue if its row has no type."""

_CHANGED_FILE: Final = re.compile(
    r'^--- (?:"?a/(?P<before>[^\t\r\n"]+)"?|/dev/null)\t?\r?\n'
    r'\+\+\+ (?:"?b/(?P<after>[^\t\r\n"]+)"?|/dev/null)\t?\r?$',
    re.MULTILINE,
)
_RENAMED_FILE: Final = re.compile(r'^rename from "?(?P<before>[^\r\n"]+)"?\r?$', re.MULTILINE)
_UNFIT_FOR_ID: Final = re.compile(r"[^A-Za-z0-9_@:+-]+")


def is_issue_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row is about an issue: it has the title or the address of an issue, or is from SWE-bench."""
    fields = {**row, **_drop_nulls(row.get("inputs"))}
    return any(key in fields for key in ("issue_title", "issue_url", "problem_statement"))


def build_case_fields_from_issue(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a gold case for a row about an issue. Other keys of the row stay unchanged."""
    other_fields = {key: value for key, value in row.items() if key not in ISSUE_KEYS}
    reference = _normalise_reference(row.get("reference"))
    issue = {key.removeprefix("issue_"): row[key] for key in ISSUE_KEYS[:4] if row.get(key) is not None}
    return _build_case_fields(other_fields, issue, reference)


def flatten_issue_to_line_keys(task: TriageTask) -> dict[str, Any]:
    """Return the keys and values that describe an issue in a line of a suite."""
    issue = task.issue.model_dump(mode="json", exclude_defaults=True)
    files = {"repository_files": issue.pop("repository_files")} if "repository_files" in issue else {}
    reference = task.reference.model_dump(mode="json", exclude_defaults=True)
    return {f"issue_{key}": value for key, value in issue.items()} | files | {"reference": reference}


def convert_issue_row_to_line_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of another format to the keys of a suite's line. Unknown keys are dropped."""
    if "problem_statement" in row:
        return _convert_swe_bench_row(row)
    fields = _drop_nulls({**row, **_drop_nulls(row.get("inputs"))})
    reference = _normalise_reference(fields.get("reference", fields.get("outputs")))
    imported: dict[str, Any] = {key: fields[key] for key in ISSUE_KEYS[:4] if key in fields}
    imported["reference"] = {key: reference[key] for key in TriageReference.model_fields if key in reference}
    shared = {key: fields[key] for key in ("id", "severity", "type", "language", "cluster") if key in fields}
    return {
        "id": _make_issue_case_id(fields.get("issue_url"), fields.get("issue_title")),
        "type": TRIAGE_TYPE,
        **imported,
        **shared,
    }


def _convert_swe_bench_row(row: Mapping[str, Any]) -> dict[str, Any]:
    text, files = str(row["problem_statement"] or ""), _list_patched_files(str(row.get("patch") or ""))
    title, _, body = text.partition("\n")
    return {
        "id": row.get("instance_id") or _make_issue_case_id(None, title),
        "type": TRIAGE_TYPE,
        "cluster": _UNFIT_FOR_ID.sub(":", str(row.get("repo") or "")) or None,
        "issue_title": title.strip() or text[:200],
        "issue_body": body.strip(),
        "reference": {"relevant_files": files},
        **({"severity": row["severity"]} if "severity" in row else {}),
    }


def _list_patched_files(patch: str) -> list[str]:
    """List the files that a patch changes, removes or renames, with their names before the patch.

    Created files do not exist before the patch, and are listed only if the patch does nothing else.
    """
    changed = list(_CHANGED_FILE.finditer(patch))
    before = [match["before"] for match in changed if match["before"]]
    files = [*before, *(match["before"] for match in _RENAMED_FILE.finditer(patch))]
    return list(dict.fromkeys(files or [match["after"] for match in changed if match["after"]]))


def _build_case_fields(
    other_fields: dict[str, Any], issue: dict[str, Any], reference: dict[str, Any]
) -> dict[str, Any]:
    question = issue.get("url") or f"{issue.get('title', '')}\n\n{issue.get('body', '')}".strip()
    language = identify_language(f"{issue.get('title', '')} {issue.get('body', '')}")
    fields: dict[str, Any] = {
        "id": _make_issue_case_id(issue.get("url"), issue.get("title")),
        "turns": [question],
        "gold": format_reference_as_report(reference),
        "type": TRIAGE_TYPE,
        "language": (language if language.is_english_hindi_or_hinglish else Language.ENGLISH).value,
        "provenance": {"pipeline": Pipeline.TRIAGE.value},
        "triage": {"issue": issue, "reference": reference},
    }
    if "turns" in other_fields or "question" in other_fields:
        del fields["turns"]
    return fields | other_fields


def _make_issue_case_id(url: object, title: object) -> str:
    place = ISSUE_PLACE.search(str(url))
    name = ":".join(place.groups()) if place else str(title)[:60]
    return _UNFIT_FOR_ID.sub("-", name).strip("-:+@") or "issue"


def _normalise_reference(value: object) -> dict[str, Any]:
    reference = _drop_nulls(value)
    if reference.get("root_cause") == "":
        del reference["root_cause"]
    level = reference.get("severity")
    if isinstance(level, str) and level.lower() in {severity.value for severity in IssueSeverity}:
        reference["severity"] = level.lower()
    return reference


def _drop_nulls(value: object) -> dict[str, Any]:
    """Return the object without the keys whose value is ``null``."""
    if not isinstance(value, dict):
        return {}
    return {key: entry for key, entry in cast("Mapping[str, Any]", value).items() if entry is not None}


def format_reference_as_report(reference: Mapping[str, Any]) -> str:
    """Format a reference as the text of a report. People and the judge compare an agent's report with this text."""
    files: object = reference.get("relevant_files")
    names = [str(name) for name in cast("list[object]", files)] if isinstance(files, list) else []
    raw_keywords: object = reference.get("expected_keywords")
    keywords = [str(name) for name in cast("list[object]", raw_keywords)] if isinstance(raw_keywords, list) else []
    parts = [
        f"Severity: {reference['severity']}" if reference.get("severity") else "",
        f"Root cause: {reference['root_cause']}" if reference.get("root_cause") else "",
        "Relevant files:\n" + "\n".join(f"- {name}" for name in names) if names else "",
        f"Keywords: {', '.join(keywords)}" if keywords else "",
    ]
    return "\n\n".join(part for part in parts if part) or "there are no known facts about this issue"
