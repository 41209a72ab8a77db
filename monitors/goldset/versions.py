"""Change the file of a suite, freeze a version of the suite, and compare two versions.

A frozen version is a numbered copy of the suite that never changes. ``NAME-v3.jsonl`` contains the cases, and
``NAME-v3.json`` is its manifest, with the hash and the counts. The results of a run contain the same hash, which
identifies the version of the suite.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.lines import format_case_line, format_value
from monitors.goldset.load import hash_cases, load_suite, parse_suite_lines, read_text
from monitors.plural import plural
from monitors.records.base import Identifier, Record, Severity, Sha256, UtcTime
from monitors.records.cases import GoldCase, Pipeline, Suite
from monitors.storage import lock_parent_folder, read_text_or_empty, replace_gold_file


def read_suite_cases(path: Path) -> tuple[GoldCase, ...]:
    """Read the cases of a suite's file. The result is empty if the file does not exist.

    Raises `GoldSetError` for bad lines.
    """
    text = read_text_or_empty(path)
    return parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if text.strip() else ()


def append_case_if_new(path: Path, case: GoldCase, *, paired_with: str | None = None) -> bool:
    """Append ``case`` to the suite. Return False if the suite already has the case.

    If ``case`` is a translation, ``paired_with`` is the id of the original case. The original gets the value of
    ``pair`` that the translation has. Raises `GoldSetError` if the suite does not load, another case has the id, or
    ``case`` was not reviewed.
    """
    if not (case.provenance.reviewed_by or "").strip():
        raise GoldSetError(f"a person must review {case.id} before it can be added to {path}")
    with lock_parent_folder(path):
        text = read_text_or_empty(path)
        existing = next(
            (existing_case for existing_case in read_suite_cases(path) if existing_case.id == case.id), None
        )
        if existing is not None:
            _require_same_case(existing, case, path)
            return False
        lines = text.split("\n")
        if paired_with is not None and case.pair is not None:
            lines = [_add_pair_name_to_line(line, paired_with, case.pair) for line in lines]
        joined = "\n".join(lines)
        ended = joined if not joined or joined.endswith("\n") else f"{joined}\n"
        parse_suite_lines([format_case_line(case)], name="suite", source="the new case")
        replace_gold_file(path, f"{ended}{format_case_line(case)}\n")
    return True


def _require_same_case(existing: GoldCase, case: GoldCase, path: Path) -> None:
    """Raise `GoldSetError` unless ``existing`` is ``case`` or an edited form of ``case``."""
    same_origin = existing.provenance.pipeline is case.provenance.pipeline is not Pipeline.IMPORTED
    if not same_origin or (existing.turns != case.turns and existing.provenance.clause != case.provenance.clause):
        raise GoldSetError(
            f"{path} already has another case with the id {format_value(case.id)}; change one of the ids"
        )


def _add_pair_name_to_line(line: str, case_id: str, pair: str) -> str:
    """Add the key ``pair`` to the line of the case ``case_id``, unless the line has this key.

    Return other lines unchanged.
    """
    if f'"{case_id}"' not in line:
        return line
    fields = json.loads(line)
    if fields.get("id") != case_id or fields.get("pair") is not None:
        return line
    source = fields.pop("provenance", None)
    paired_fields = {**fields, "pair": pair, **({"provenance": source} if source is not None else {})}
    return json.dumps(paired_fields, ensure_ascii=False, allow_nan=False)


class SuiteEdit(Record):
    """The cases to change, to add and to remove in a suite's file."""

    changed: tuple[GoldCase, ...] = ()
    added: tuple[GoldCase, ...] = ()
    removed: tuple[Identifier, ...] = ()


def edit_suite_if_unchanged(path: Path, edit: SuiteEdit, *, known_sha256: Sha256) -> None:
    """Change, remove and append cases in a suite's file. All other lines stay unchanged.

    ``known_sha256`` is the hash of the cases that the edit is based on. If the file now has other cases, nothing is
    written, and `GoldSetError` is raised.
    """
    with lock_parent_folder(path):
        text = read_text_or_empty(path)
        if hash_cases(read_suite_cases(path)) != known_sha256:
            raise GoldSetError(f"another process changed {path}, so nothing was written; run the command again")
        changed, removed = {case.id: case for case in edit.changed}, set(edit.removed)
        lines = [_apply_edit_to_line(line, changed, removed) for line in text.split("\n")]
        rest = "\n".join(line for line in lines if line is not None)
        ended = rest if not rest or rest.endswith("\n") else f"{rest}\n"
        replace_gold_file(path, ended + "".join(f"{format_case_line(case)}\n" for case in edit.added))


def _apply_edit_to_line(line: str, changed: Mapping[str, GoldCase], removed: Collection[str]) -> str | None:
    if not line.strip():
        return line
    case_id: str = json.loads(line)["id"]
    if case_id in removed:
        return None
    return format_case_line(changed[case_id]) if case_id in changed else line


@dataclass(frozen=True)
class RenewReport:
    """The numbers of cases that were added, changed and removed when the template cases were built again."""

    sha256: str
    added: int
    changed: int
    removed: int
    same: int
    unchanged: int
    """Number of cases in the file that do not come from a template. These cases were not changed."""


def replace_template_generated_cases(path: Path, cases: Sequence[GoldCase]) -> RenewReport:
    """Replace the template cases of the file with ``cases``.

    All other cases are not changed, and come after the new cases.

    Raises `GoldSetError` if the file does not load, or if a case that is not from a template has the id of a new
    case.
    """
    with lock_parent_folder(path):
        text = read_text_or_empty(path)
        lines = [line for line in text.split("\n") if line.strip()]
        old_cases = parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if lines else ()
        other_cases = [
            (case, line)
            for case, line in zip(old_cases, lines, strict=True)
            if not _is_template_generated_case(case)
        ]
        cases = _restore_stored_ids(cases, [case for case in old_cases if _is_template_generated_case(case)])
        _require_unused_ids({case.id for case, _ in other_cases}, cases, path)
        new_lines = [*(format_case_line(case) for case in cases), *(line for _, line in other_cases)]
        replace_gold_file(path, "".join(f"{line}\n" for line in new_lines))
    before = {case.id: case for case in old_cases if _is_template_generated_case(case)}
    now = {case.id: case for case in cases}
    changed = sum(before[name] != case for name, case in now.items() if name in before)
    return RenewReport(
        sha256=hash_cases([*cases, *(case for case, _ in other_cases)]),
        added=len(now.keys() - before.keys()),
        changed=changed,
        removed=len(before.keys() - now.keys()),
        same=len(now.keys() & before.keys()) - changed,
        unchanged=len(other_cases),
    )


_FORMER_SEPARATOR: Final = "::"
"""The separator that ids had in earlier versions of Lookout. The current separator is a dot."""


def _restore_stored_ids(cases: Sequence[GoldCase], stored: Sequence[GoldCase]) -> list[GoldCase]:
    """Return the cases with the ids and pairs that they have in the suite's file.

    These ids may contain the separator of earlier versions of Lookout. They must not change, because the results of
    earlier runs contain them.
    """
    names = {name for case in stored for name in (case.id, case.pair) if name and _FORMER_SEPARATOR in name}
    former = {name.replace(_FORMER_SEPARATOR, "."): name for name in names}
    return [
        case.replace_id_and_pair(former.get(case.id, case.id), former.get(case.pair or "", case.pair))
        for case in cases
    ]


def _is_template_generated_case(case: GoldCase) -> bool:
    return case.provenance.pipeline is Pipeline.TEMPLATE


def _require_unused_ids(taken_ids: set[str], cases: Sequence[GoldCase], path: Path) -> None:
    clash = next((case.id for case in cases if case.id in taken_ids), None)
    if clash is not None:
        raise GoldSetError(
            f"{path} already has a case {clash} from another pipeline; change the id of that case or of the "
            "template"
        )


Count = Annotated[int, Field(ge=0)]


class SuiteManifest(Record):
    """The manifest of a frozen version: its hash, its counts, and when and why the version was frozen."""

    suite: Identifier
    version: Annotated[int, Field(ge=1)]
    sha256: Sha256
    frozen_at: UtcTime
    note: str = ""
    cases: Count
    expected_refusals: Count
    severities: dict[str, int]
    types: dict[str, int]
    languages: dict[str, int]
    pipelines: dict[str, int]


def list_frozen_versions(folder: Path, name: str) -> list[SuiteManifest]:
    """List the frozen versions of a suite in a folder, oldest first. Raises `GoldSetError` for a bad manifest."""
    pattern = re.compile(rf"{re.escape(name)}-v[0-9]+\.json")
    paths = [path for path in folder.glob("*.json") if pattern.fullmatch(path.name)] if folder.is_dir() else []
    return sorted((_read_manifest(path) for path in paths), key=lambda manifest: manifest.version)


def load_frozen_suite(folder: Path, manifest: SuiteManifest) -> Suite:
    """Load a frozen version. Raises `GoldSetError` if the version was changed after freezing."""
    path = folder / f"{manifest.suite}-v{manifest.version}.jsonl"
    suite = load_suite(path, manifest.suite)
    if suite.sha256 != manifest.sha256:
        raise GoldSetError(
            f"{path} was changed after it was frozen: its hash is {suite.sha256[:12]}…, but the manifest states "
            f"{manifest.sha256[:12]}…; restore the file from version control"
        )
    return suite


def freeze_suite_if_changed(
    suite: Suite, folder: Path, *, at: UtcTime, note: str = ""
) -> tuple[SuiteManifest, bool]:
    """Freeze ``suite`` as the next version, and return its manifest and True.

    If the newest version has the same cases, write nothing, and return the manifest of the newest version and
    False.
    """
    with lock_parent_folder(folder / "any"):
        versions = list_frozen_versions(folder, suite.name)
        if versions and versions[-1].sha256 == suite.sha256:
            return versions[-1], False
        version = versions[-1].version + 1 if versions else 1
        manifest = _build_manifest(suite, version, at, note)
        stem = f"{suite.name}-v{version}"
        replace_gold_file(folder / f"{stem}.jsonl", "".join(f"{format_case_line(case)}\n" for case in suite.cases))
        replace_gold_file(folder / f"{stem}.json", manifest.model_dump_json(indent=1) + "\n")
    return manifest, True


def _build_manifest(suite: Suite, version: int, at: UtcTime, note: str) -> SuiteManifest:
    cases = suite.cases
    return SuiteManifest(
        suite=suite.name,
        version=version,
        sha256=suite.sha256,
        frozen_at=at,
        note=note,
        cases=len(cases),
        expected_refusals=sum(case.expected_refusal for case in cases),
        severities=_count_values([str(int(case.severity)) for case in cases]),
        types=_count_values([case.type for case in cases]),
        languages=_count_values([case.language.value for case in cases]),
        pipelines=_count_values([case.provenance.pipeline.value for case in cases]),
    )


def _count_values(values: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _read_manifest(path: Path) -> SuiteManifest:
    try:
        return SuiteManifest.model_validate_json(read_text(path))
    except ValidationError as error:
        raise GoldSetError(
            f"{path} is not the manifest of a frozen suite; restore it from version control"
        ) from error


def load_cases_of_suite_or_version(path: Path) -> tuple[GoldCase, ...]:
    """Load the cases of a suite, or of a frozen version if ``path`` is its manifest."""
    if path.suffix == ".json":
        return load_frozen_suite(path.parent, _read_manifest(path)).cases
    return load_suite(path).cases


class KeyChange(Record):
    """The value of one key of a case before and after a change, as text."""

    key: str
    before: str
    after: str


class CaseChange(Record):
    """A case that differs between two versions."""

    case_id: str
    changes: tuple[KeyChange, ...]

    @property
    def severity(self) -> KeyChange | None:
        """Return the change of the case's severity, or ``None`` if the severity did not change."""
        return next((change for change in self.changes if change.key == "severity"), None)


class SuiteDiff(Record):
    """The difference between two versions. In ``changed``, cases with a changed severity come first."""

    added: tuple[GoldCase, ...]
    removed: tuple[GoldCase, ...]
    changed: tuple[CaseChange, ...]
    same: int

    @property
    def is_empty(self) -> bool:
        """Return whether both versions have the same cases."""
        return not (self.added or self.removed or self.changed)


def compare_suites(old: Sequence[GoldCase], new: Sequence[GoldCase]) -> SuiteDiff:
    """Compare two versions of a suite case by case. The order of the cases does not matter."""
    before, after = ({case.id: case for case in cases} for cases in (old, new))
    both = [case for case in new if case.id in before]
    changed = [
        CaseChange(case_id=case.id, changes=list_key_changes(before[case.id], case))
        for case in both
        if before[case.id] != case
    ]
    return SuiteDiff(
        added=tuple(case for case in new if case.id not in before),
        removed=tuple(case for case in old if case.id not in after),
        changed=tuple(sorted(changed, key=lambda change: change.severity is None)),
        same=len(both) - len(changed),
    )


def list_key_changes(old: GoldCase, new: GoldCase) -> tuple[KeyChange, ...]:
    """List the changed keys of a case, with the severity first."""
    before, after = _flatten_case(old), _flatten_case(new)
    keys = sorted(before, key=lambda key: key != "severity")
    return tuple(
        KeyChange(key=key, before=_format_change_value(before[key]), after=_format_change_value(after[key]))
        for key in keys
        if before[key] != after[key]
    )


def _flatten_case(case: GoldCase) -> dict[str, Any]:
    plain = case.model_dump(mode="json")
    source = plain.pop("provenance")
    return plain | {f"provenance.{key}": value for key, value in source.items()}


def _format_change_value(value: object) -> str:
    if value is None or value == []:
        return "nothing"
    return format_value(value)


def format_suite_diff(diff: SuiteDiff, *, max_cases: int) -> list[str]:
    """Format a difference as lines. Each group has at most ``max_cases`` cases.

    Cases with a changed severity come first.
    """
    severe = [change for change in diff.changed if change.severity is not None]
    other_changes = [change for change in diff.changed if change.severity is None]
    lines = [*_format_group("Severity changed", [_format_case_change(change) for change in severe], max_cases)]
    lines += _format_group("Changed", [_format_case_change(change) for change in other_changes], max_cases)
    lines += _format_group(
        "Removed", [_format_case(change) for change in _sort_severest_first(diff.removed)], max_cases
    )
    lines += _format_group(
        "Added", [_format_case(change) for change in _sort_severest_first(diff.added)], max_cases
    )
    same = plural(diff.same, "case")
    lines.append(f"No difference in {same}." if diff.is_empty else f"{same} as before")
    return lines


def _format_group(title: str, entries: list[str], max_cases: int) -> list[str]:
    if not entries:
        return []
    more = [f"  … and {len(entries) - max_cases} more; --json lists all"] if len(entries) > max_cases else []
    return [f"{title} ({len(entries)})", *(f"  {entry}" for entry in entries[:max_cases]), *more, ""]


def _format_case_change(change: CaseChange) -> str:
    return f"{change.case_id}: " + "; ".join(
        f"{key_change.key} from {key_change.before} to {key_change.after}" for key_change in change.changes
    )


def _format_case(case: GoldCase) -> str:
    expects = "a refusal" if case.expected_refusal else format_value(case.gold)
    return f"{case.id} · severity {int(case.severity)} · {case.type} · {format_value(case.question)} → {expects}"


def _sort_severest_first(cases: Sequence[GoldCase]) -> list[GoldCase]:
    return sorted(cases, key=lambda case: (case.severity is not Severity.CRITICAL, -case.severity))
