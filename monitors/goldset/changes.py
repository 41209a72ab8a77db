"""Compare a suite with its copy, a dataset on Langfuse or LangSmith, and find out which of the two was edited.

Each entry of the dataset stores the hash of its case at the last push. If the case in the suite now has another
hash, the suite changed. If the case in the dataset now has another hash, a person edited the dataset. If suite and
dataset changed, there is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from monitors.goldset.examples import (
    find_case_id,
    hash_case,
    make_example_id,
    read_case_from_example,
    read_pushed_sha256,
)
from monitors.goldset.lines import Unusable, format_value
from monitors.goldset.versions import KeyChange, list_key_changes
from monitors.platforms.platform import Example
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.cases import GoldCase


class ChangedBy(StrEnum):
    """Where a case was changed since the last push: in the suite, in the dataset or in both."""

    SUITE = "suite"
    DATASET = "dataset"
    BOTH = "both"


class ChangedEntry(Record):
    """A case that differs between suite and dataset.

    Each of the ``changes`` has the value in the dataset (``before``) and in the suite (``after``).
    """

    case: GoldCase
    """The case as it is in the suite."""
    entry: Example
    there: GoldCase
    """The case as it is in the dataset."""
    changed_by: ChangedBy
    changes: tuple[KeyChange, ...]


class BrokenEntry(Record):
    """An entry of the dataset that a person has edited so that it is no longer a valid case, with the problems."""

    entry: Example
    case_id: str
    problems: tuple[str, ...]


class RemovedEntry(Record):
    """A case that is only in the dataset, and not in the suite."""

    case: GoldCase
    entry: Example


class DatasetDiff(Record):
    """The difference between a suite and a dataset."""

    added: tuple[GoldCase, ...] = ()
    """Cases that are only in the suite."""
    removed: tuple[RemovedEntry, ...] = ()
    """Cases that Lookout pushed and that are now only in the dataset."""
    changed: tuple[ChangedEntry, ...] = ()
    broken: tuple[BrokenEntry, ...] = ()
    people: tuple[Example, ...] = ()
    """Entries that people added to the dataset. Lookout never changes or deletes them."""
    copies: tuple[str, ...] = ()
    """Ids of entries that a person made as copies of other entries.

    The case of a copy belongs to the original entry.
    """
    unmarked: tuple[tuple[GoldCase, Example], ...] = ()
    """Cases that are equal in suite and dataset, although the stored hash is the hash of an older version."""
    same: int = 0

    def select_changed_by(self, *sides: ChangedBy) -> tuple[ChangedEntry, ...]:
        """Return the entries that were changed on one of ``sides``: suite, dataset or both."""
        return tuple(entry for entry in self.changed if entry.changed_by in sides)

    @property
    def is_empty(self) -> bool:
        """Return whether the dataset contains exactly the suite, apart from entries that people added."""
        return not (self.added or self.removed or self.changed or self.broken)


class DatasetComparison:
    """A comparison of a suite with a dataset.

    The entries of the dataset are added one at a time, to save memory.
    """

    def __init__(self, suite: Sequence[GoldCase], dataset_id: str) -> None:
        self._left = {case.id: case for case in suite}
        self._order = [case.id for case in suite]
        self._dataset_id = dataset_id
        self._removed, self._people = list[RemovedEntry](), list[Example]()
        self._changed, self._broken = dict[str, ChangedEntry](), list[BrokenEntry]()
        self._unmarked, self._copies = list[tuple[GoldCase, Example]](), list[str]()
        self._same = 0

    def add(self, entry: Example) -> None:
        """Compare one more entry."""
        case_id = find_case_id(entry)
        if case_id is None:
            self._people.append(entry)
        elif entry.id != make_example_id(self._dataset_id, case_id):
            self._copies.append(entry.id)
        else:
            self._compare_cases(entry, case_id, read_case_from_example(entry))

    def _compare_cases(self, entry: Example, case_id: str, dataset_case: GoldCase | Unusable) -> None:
        suite_case = self._left.pop(case_id, None)
        if isinstance(dataset_case, Unusable):
            self._broken.append(BrokenEntry(entry=entry, case_id=case_id, problems=dataset_case.problems))
        elif suite_case is None:
            self._removed.append(RemovedEntry(case=dataset_case, entry=entry))
        elif suite_case != dataset_case:
            self._changed[case_id] = ChangedEntry(
                case=suite_case,
                entry=entry,
                there=dataset_case,
                changed_by=_find_side_that_changed(suite_case, dataset_case, read_pushed_sha256(entry)),
                changes=list_key_changes(dataset_case, suite_case),
            )
        elif read_pushed_sha256(entry) != hash_case(suite_case):
            self._unmarked.append((suite_case, entry))
        else:
            self._same += 1

    def build_diff(self) -> DatasetDiff:
        """Return the difference. Call this method after all entries were added."""
        return DatasetDiff(
            added=tuple(self._left[name] for name in self._order if name in self._left),
            removed=tuple(self._removed),
            changed=tuple(self._changed[name] for name in self._order if name in self._changed),
            broken=tuple(self._broken),
            people=tuple(self._people),
            copies=tuple(self._copies),
            unmarked=tuple(self._unmarked),
            same=self._same + len(self._unmarked),
        )


def _find_side_that_changed(suite_case: GoldCase, dataset_case: GoldCase, pushed: str | None) -> ChangedBy:
    if pushed == hash_case(dataset_case):
        return ChangedBy.SUITE
    return ChangedBy.DATASET if pushed == hash_case(suite_case) else ChangedBy.BOTH


_TITLES: Final = {
    ChangedBy.SUITE: "Changed in the suite",
    ChangedBy.DATASET: "Changed in the dataset",
    ChangedBy.BOTH: "Conflicts: changed in both since the last push",
}


def format_dataset_diff(diff: DatasetDiff, *, max_entries: int) -> list[str]:
    """Format a difference as lines. Each group has at most ``max_entries`` entries."""
    lines = list[str]()
    for side in (ChangedBy.BOTH, ChangedBy.DATASET, ChangedBy.SUITE):
        lines += _format_group(
            _TITLES[side], [_format_case_change(entry) for entry in diff.select_changed_by(side)], max_entries
        )
    broken = [f"{entry.case_id}: {'; '.join(entry.problems)}" for entry in diff.broken]
    lines += _format_group("Not valid after an edit in the dataset", broken, max_entries)
    lines += _format_group("Only in the suite", [_format_case(case) for case in diff.added], max_entries)
    lines += _format_group("Only in the dataset", [_format_case(entry.case) for entry in diff.removed], max_entries)
    lines += _format_group(
        "Added by people in the dataset",
        [f"{entry.id} · {format_value(entry.inputs)}" for entry in diff.people],
        max_entries,
    )
    lines += _format_group("Copies of cases in the dataset: delete them there", diff.copies, max_entries)
    same = plural(diff.same, "case")
    return [*lines, f"No difference in {same}." if diff.is_empty else f"{same} without a difference"]


def _format_group(title: str, entries: Sequence[str], max_entries: int) -> Iterable[str]:
    if entries:
        yield f"{title} ({len(entries)})"
        yield from (f"  {entry}" for entry in entries[:max_entries])
        if len(entries) > max_entries:
            yield f"  … and {len(entries) - max_entries} more; --json lists all"
        yield ""


def _format_case_change(changed: ChangedEntry) -> str:
    changes = (
        f"{key_change.key} is {key_change.after} in the suite, {key_change.before} in the dataset"
        for key_change in changed.changes
    )
    return f"{changed.case.id}: {'; '.join(changes)}"


def _format_case(case: GoldCase) -> str:
    expects = "a refusal" if case.expected_refusal else format_value(case.gold)
    return f"{case.id} · severity {int(case.severity)} · {case.type} · {format_value(case.question)} → {expects}"
