"""What changed between two versions of a suite, case by case, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitors.goldset.line_problems import shown
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase


class KeyChange(Record):
    """One key of a case, in words a person reads: ``from 2 to 3``."""

    key: str
    before: str
    after: str


class CaseChange(Record):
    """A case that is in both versions and differs."""

    case_id: str
    changes: tuple[KeyChange, ...]

    @property
    def severity(self) -> KeyChange | None:
        """The change of its severity, if that changed."""
        return next((one for one in self.changes if one.key == "severity"), None)


class SuiteDiff(Record):
    """Cases by id: ``changed`` has those whose severity changed first."""

    added: tuple[GoldCase, ...]
    removed: tuple[GoldCase, ...]
    changed: tuple[CaseChange, ...]
    same: int

    @property
    def is_empty(self) -> bool:
        """Whether both versions hold the same cases."""
        return not (self.added or self.removed or self.changed)


def diff_of(old: Sequence[GoldCase], new: Sequence[GoldCase]) -> SuiteDiff:
    """Compare by id, in the order of the new version; the order of lines makes no difference. Pure."""
    before, after = ({case.id: case for case in cases} for cases in (old, new))
    both = [case for case in new if case.id in before]
    changed = [
        CaseChange(case_id=case.id, changes=_changes(before[case.id], case))
        for case in both
        if before[case.id] != case
    ]
    return SuiteDiff(
        added=tuple(case for case in new if case.id not in before),
        removed=tuple(case for case in old if case.id not in after),
        changed=tuple(sorted(changed, key=lambda one: one.severity is None)),
        same=len(both) - len(changed),
    )


def _changes(old: GoldCase, new: GoldCase) -> tuple[KeyChange, ...]:
    """Severity first, then the keys in the order of a case; those of the provenance by their own names."""
    before, after = _flat(old), _flat(new)
    keys = sorted(before, key=lambda key: key != "severity")
    return tuple(
        KeyChange(key=key, before=_said(before[key]), after=_said(after[key]))
        for key in keys
        if before[key] != after[key]
    )


def _flat(case: GoldCase) -> dict[str, Any]:
    plain = case.model_dump(mode="json")
    source = plain.pop("provenance")
    return plain | {f"provenance.{key}": value for key, value in source.items()}


def _said(value: object) -> str:
    if value is None or value == []:
        return "nothing"
    return shown(value)


def in_words(diff: SuiteDiff, *, most: int) -> list[str]:
    """The difference for people, severity changes first; of each group at most ``most`` cases, each on one line."""
    severe = [one for one in diff.changed if one.severity is not None]
    others = [one for one in diff.changed if one.severity is None]
    lines = [*_group("Severity changed", [_change(one) for one in severe], most)]
    lines += _group("Changed", [_change(one) for one in others], most)
    lines += _group("Removed", [_case(one) for one in _worst_first(diff.removed)], most)
    lines += _group("Added", [_case(one) for one in _worst_first(diff.added)], most)
    lines.append(f"{diff.same} cases as before" if not diff.is_empty else f"The same {diff.same} cases.")
    return lines


def _group(title: str, entries: list[str], most: int) -> list[str]:
    if not entries:
        return []
    more = [f"  … and {len(entries) - most} more; --json lists all"] if len(entries) > most else []
    return [f"{title} ({len(entries)})", *(f"  {entry}" for entry in entries[:most]), *more, ""]


def _change(one: CaseChange) -> str:
    return f"{one.case_id}: " + "; ".join(f"{key.key} from {key.before} to {key.after}" for key in one.changes)


def _case(case: GoldCase) -> str:
    expects = "a refusal" if case.expected_refusal else shown(case.gold)
    return f"{case.id} · severity {int(case.severity)} · {case.type} · {shown(case.question)} → {expects}"


def _worst_first(cases: Sequence[GoldCase]) -> list[GoldCase]:
    return sorted(cases, key=lambda case: (case.severity is not Severity.PAGE, -case.severity))
