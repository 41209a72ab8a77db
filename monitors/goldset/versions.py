"""Change a suite's file: append a reviewed case, rebuild template cases, freeze and compare versions.

Appending adds one line, atomically and once. A rebuild replaces the template cases; cases of people and of other
pipelines stay.

A frozen suite is a numbered copy with a manifest of its hash and counts, which never change again.
``NAME-v3.jsonl`` is the unchanged suite, ``NAME-v3.json`` its manifest. Every result has the same hash
(`hash_cases`), so a result names the version of its suite. Two versions are compared case by case, key by key.
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
from monitors.storage import lock_folder, read_text_or_empty, replace_text


def read_cases(path: Path) -> tuple[GoldCase, ...]:
    """Read the cases of a suite's file; none when it does not exist. `GoldSetError` as for loading."""
    text = read_text_or_empty(path)
    return parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if text.strip() else ()


def append_case(path: Path, case: GoldCase, *, paired_with: str | None = None) -> bool:
    """Append ``case`` to the suite; return false if the suite already has it (idempotent).

    ``paired_with`` is the id of the original of its translation: it gets the pair's name in the same write.
    Raises `GoldSetError` if the suite does not load, another case has the id, or ``case`` was not reviewed.
    """
    if not (case.provenance.reviewed_by or "").strip():
        raise GoldSetError(f"{case.id} was not reviewed, so it cannot be added to {path}")
    with lock_folder(path):
        text = read_text_or_empty(path)
        existing = next((existing_case for existing_case in read_cases(path) if existing_case.id == case.id), None)
        if existing is not None:
            _require_same(existing, case, path)
            return False
        lines = text.split("\n")
        if paired_with is not None and case.pair is not None:
            lines = [_add_pair_name_to_line(line, paired_with, case.pair) for line in lines]
        joined = "\n".join(lines)
        ended = joined if not joined or joined.endswith("\n") else f"{joined}\n"
        parse_suite_lines([format_case_line(case)], name="suite", source="the new case")
        replace_text(path, f"{ended}{format_case_line(case)}\n")
    return True


def _require_same(existing: GoldCase, case: GoldCase, path: Path) -> None:
    """Refuse another case with the same id. A case appended before a crash may have been edited since."""
    same_origin = existing.provenance.pipeline is case.provenance.pipeline is not Pipeline.IMPORTED
    if not same_origin or (existing.turns != case.turns and existing.provenance.clause != case.provenance.clause):
        raise GoldSetError(
            f"{path} already has another case with the id {format_value(case.id)}; change one of the ids"
        )


def _add_pair_name_to_line(line: str, case_id: str, pair: str) -> str:
    """Return the line with the pair's name, if it is the line of this case and has none."""
    if f'"{case_id}"' not in line:
        return line
    fields = json.loads(line)
    if fields.get("id") != case_id or fields.get("pair") is not None:
        return line
    source = fields.pop("provenance", None)
    paired_fields = {**fields, "pair": pair, **({"provenance": source} if source is not None else {})}
    return json.dumps(paired_fields, ensure_ascii=False, allow_nan=False)


class SuiteEdit(Record):
    """Changes to the cases of a suite's file, by their ids."""

    changed: tuple[GoldCase, ...] = ()
    added: tuple[GoldCase, ...] = ()
    removed: tuple[Identifier, ...] = ()


def edit_suite(path: Path, edit: SuiteEdit, *, known_sha256: Sha256) -> None:
    """Change, remove and append cases. Every other line stays byte for byte in its place.

    ``known_sha256`` is the hash of the cases before the edit (`hash_cases`). If the file has changed since,
    raises `GoldSetError` and writes nothing.
    """
    with lock_folder(path):
        text = read_text_or_empty(path)
        if hash_cases(read_cases(path)) != known_sha256:
            raise GoldSetError(f"another process changed {path}, so nothing was written; run the command again")
        changed, removed = {case.id: case for case in edit.changed}, set(edit.removed)
        lines = [_edit_line(line, changed, removed) for line in text.split("\n")]
        rest = "\n".join(line for line in lines if line is not None)
        ended = rest if not rest or rest.endswith("\n") else f"{rest}\n"
        replace_text(path, ended + "".join(f"{format_case_line(case)}\n" for case in edit.added))


def _edit_line(line: str, changed: Mapping[str, GoldCase], removed: Collection[str]) -> str | None:
    if not line.strip():
        return line
    case_id: str = json.loads(line)["id"]
    if case_id in removed:
        return None
    return format_case_line(changed[case_id]) if case_id in changed else line


@dataclass(frozen=True)
class RenewReport:
    """The result of rebuilding the template cases of a suite."""

    sha256: str
    added: int
    changed: int
    removed: int
    same: int
    unchanged: int
    """Cases that were not made by a template."""


def replace_template_cases(path: Path, cases: Sequence[GoldCase]) -> RenewReport:
    """Write ``cases`` first, then every other case of the file that was not made by a template, unchanged.

    The same cases give the same bytes; a case of an earlier version keeps its id. Raises `GoldSetError` if
    the file does not load, or has a case of another pipeline under the id of a new case.
    """
    with lock_folder(path):
        text = read_text_or_empty(path)
        lines = [line for line in text.split("\n") if line.strip()]
        old_cases = parse_suite_lines(text.split("\n"), name="suite", source=str(path)).cases if lines else ()
        other_cases = [
            (case, line) for case, line in zip(old_cases, lines, strict=True) if not _is_of_template(case)
        ]
        cases = _keep_stored_ids(cases, [case for case in old_cases if _is_of_template(case)])
        _require_new({case.id for case, _ in other_cases}, cases, path)
        new_lines = [*(format_case_line(case) for case in cases), *(line for _, line in other_cases)]
        replace_text(path, "".join(f"{line}\n" for line in new_lines))
    before = {case.id: case for case in old_cases if _is_of_template(case)}
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
"""The separator that earlier versions wrote between the parts of an id; it is now a dot."""


def _keep_stored_ids(cases: Sequence[GoldCase], stored: Sequence[GoldCase]) -> list[GoldCase]:
    """Return the cases under their ids and pairs in the file, which earlier runs used."""
    names = {name for case in stored for name in (case.id, case.pair) if name and _FORMER_SEPARATOR in name}
    former = {name.replace(_FORMER_SEPARATOR, "."): name for name in names}
    return [
        case.replace_id_and_pair(former.get(case.id, case.id), former.get(case.pair or "", case.pair))
        for case in cases
    ]


def _is_of_template(case: GoldCase) -> bool:
    return case.provenance.pipeline is Pipeline.TEMPLATE


def _require_new(taken_ids: set[str], cases: Sequence[GoldCase], path: Path) -> None:
    clash = next((case.id for case in cases if case.id in taken_ids), None)
    if clash is not None:
        raise GoldSetError(
            f"{path} already has {clash} from another pipeline; give that case, or the template, another id"
        )


Count = Annotated[int, Field(ge=0)]


class SuiteManifest(Record):
    """The contents of a frozen version, with the time and the reason of freezing."""

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
    """List the frozen versions of a suite in a folder, oldest first. `GoldSetError` for a bad manifest."""
    pattern = re.compile(rf"{re.escape(name)}-v[0-9]+\.json")
    paths = [path for path in folder.glob("*.json") if pattern.fullmatch(path.name)] if folder.is_dir() else []
    return sorted((_read_manifest(path) for path in paths), key=lambda manifest: manifest.version)


def load_frozen_suite(folder: Path, manifest: SuiteManifest) -> Suite:
    """Load a frozen version. Raises `GoldSetError` if it was changed after freezing."""
    path = folder / f"{manifest.suite}-v{manifest.version}.jsonl"
    suite = load_suite(path, manifest.suite)
    if suite.sha256 != manifest.sha256:
        raise GoldSetError(
            f"{path} was changed after it was frozen: its hash is {suite.sha256[:12]}…, the manifest says "
            f"{manifest.sha256[:12]}…; restore it from version control"
        )
    return suite


def freeze_suite(suite: Suite, folder: Path, *, at: UtcTime, note: str = "") -> tuple[SuiteManifest, bool]:
    """Freeze ``suite`` as the next version; return the newest version and false if it has the same cases."""
    with lock_folder(folder / "any"):
        versions = list_frozen_versions(folder, suite.name)
        if versions and versions[-1].sha256 == suite.sha256:
            return versions[-1], False
        version = versions[-1].version + 1 if versions else 1
        manifest = _build_manifest(suite, version, at, note)
        stem = f"{suite.name}-v{version}"
        replace_text(folder / f"{stem}.jsonl", "".join(f"{format_case_line(case)}\n" for case in suite.cases))
        replace_text(folder / f"{stem}.json", manifest.model_dump_json(indent=1) + "\n")
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


def load_cases(path: Path) -> tuple[GoldCase, ...]:
    """Load the cases of a suite, or of a frozen version given by its manifest."""
    if path.suffix == ".json":
        return load_frozen_suite(path.parent, _read_manifest(path)).cases
    return load_suite(path).cases


class KeyChange(Record):
    """The change of one key of a case, its values formatted for people."""

    key: str
    before: str
    after: str


class CaseChange(Record):
    """A case that differs between two versions."""

    case_id: str
    changes: tuple[KeyChange, ...]

    @property
    def severity(self) -> KeyChange | None:
        """The change of its severity, if any."""
        return next((change for change in self.changes if change.key == "severity"), None)


class SuiteDiff(Record):
    """Cases by id: in ``changed``, cases with a changed severity come first."""

    added: tuple[GoldCase, ...]
    removed: tuple[GoldCase, ...]
    changed: tuple[CaseChange, ...]
    same: int

    @property
    def is_empty(self) -> bool:
        """Whether both versions hold the same cases."""
        return not (self.added or self.removed or self.changed)


def compare_suites(old: Sequence[GoldCase], new: Sequence[GoldCase]) -> SuiteDiff:
    """Compare by id, in the order of the new version; the order of lines makes no difference. Pure."""
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
    """List the changed keys: severity first, then in the order of a case."""
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


def describe_diff(diff: SuiteDiff, *, max_cases: int) -> list[str]:
    """Format a difference, severity changes first; at most ``max_cases`` lines of each group."""
    severe = [change for change in diff.changed if change.severity is not None]
    other_changes = [change for change in diff.changed if change.severity is None]
    lines = [*_format_group("Severity changed", [_format_change(change) for change in severe], max_cases)]
    lines += _format_group("Changed", [_format_change(change) for change in other_changes], max_cases)
    lines += _format_group(
        "Removed", [_format_case(change) for change in _sort_worst_first(diff.removed)], max_cases
    )
    lines += _format_group("Added", [_format_case(change) for change in _sort_worst_first(diff.added)], max_cases)
    same = plural(diff.same, "case")
    lines.append(f"The same {same}." if diff.is_empty else f"{same} as before")
    return lines


def _format_group(title: str, entries: list[str], max_cases: int) -> list[str]:
    if not entries:
        return []
    more = [f"  … and {len(entries) - max_cases} more; --json lists all"] if len(entries) > max_cases else []
    return [f"{title} ({len(entries)})", *(f"  {entry}" for entry in entries[:max_cases]), *more, ""]


def _format_change(change: CaseChange) -> str:
    return f"{change.case_id}: " + "; ".join(
        f"{key_change.key} from {key_change.before} to {key_change.after}" for key_change in change.changes
    )


def _format_case(case: GoldCase) -> str:
    expects = "a refusal" if case.expected_refusal else format_value(case.gold)
    return f"{case.id} · severity {int(case.severity)} · {case.type} · {format_value(case.question)} → {expects}"


def _sort_worst_first(cases: Sequence[GoldCase]) -> list[GoldCase]:
    return sorted(cases, key=lambda case: (case.severity is not Severity.CRITICAL, -case.severity))
