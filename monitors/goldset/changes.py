"""What differs between a suite and the dataset of a platform, and who changed it since the last push.

An entry carries the hash of its case as it was pushed last. Where the suite's case has another hash, it was changed
here; where the entry's has, a person changed it there; where both have, neither side may win in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from monitors.goldset.examples import case_in, case_sha256, example_id, our_id, pushed_sha256
from monitors.goldset.lines import Unusable, shown
from monitors.goldset.versions import KeyChange, key_changes
from monitors.platforms.platform import Example
from monitors.plural import plural
from monitors.records.base import Record
from monitors.records.cases import GoldCase


class ChangedBy(StrEnum):
    """Where a case was changed since the last push."""

    SUITE = "suite"
    DATASET = "dataset"
    BOTH = "both"


class ChangedEntry(Record):
    """A case that the suite and the dataset both have, and that differs. ``changes`` are from dataset to suite."""

    case: GoldCase
    """As the suite has it."""
    entry: Example
    there: GoldCase
    """As the dataset has it."""
    changed_by: ChangedBy
    changes: tuple[KeyChange, ...]


class BrokenEntry(Record):
    """An entry of ours that is no case any more, and why: a person has edited it."""

    entry: Example
    case_id: str
    problems: tuple[str, ...]


class RemovedEntry(Record):
    """A case that the dataset has and the suite has not."""

    case: GoldCase
    entry: Example


class DatasetDiff(Record):
    """A suite against a dataset."""

    added: tuple[GoldCase, ...] = ()
    """In the suite alone."""
    removed: tuple[RemovedEntry, ...] = ()
    """Ours, in the dataset alone."""
    changed: tuple[ChangedEntry, ...] = ()
    broken: tuple[BrokenEntry, ...] = ()
    people: tuple[Example, ...] = ()
    """What people added; never changed and never deleted by us."""
    copies: tuple[str, ...] = ()
    """Ids of entries that hold a case of ours under an id that is not its own: somebody copied them."""
    unmarked: tuple[tuple[GoldCase, Example], ...] = ()
    """The same on both sides again, with the mark of an older push."""
    same: int = 0

    def by(self, *sides: ChangedBy) -> tuple[ChangedEntry, ...]:
        """The entries that were changed there."""
        return tuple(one for one in self.changed if one.changed_by in sides)

    @property
    def is_empty(self) -> bool:
        """Whether the dataset holds the suite as it is, and nothing else of ours."""
        return not (self.added or self.removed or self.changed or self.broken)


class DatasetComparison:
    """Compares a suite with entries as they come: of those that are the same, nothing is held."""

    def __init__(self, suite: Sequence[GoldCase], dataset_id: str) -> None:
        self._left = {case.id: case for case in suite}
        self._order = [case.id for case in suite]
        self._dataset_id = dataset_id
        self._removed, self._people = list[RemovedEntry](), list[Example]()
        self._changed, self._broken = dict[str, ChangedEntry](), list[BrokenEntry]()
        self._unmarked, self._copies = list[tuple[GoldCase, Example]](), list[str]()
        self._same = 0

    def take(self, entry: Example) -> None:
        """Compare one entry more."""
        case_id = our_id(entry)
        if case_id is None:
            self._people.append(entry)
        elif entry.id != example_id(self._dataset_id, case_id):
            self._copies.append(entry.id)
        else:
            self._compare(entry, case_id, case_in(entry))

    def _compare(self, entry: Example, case_id: str, there: GoldCase | Unusable) -> None:
        here = self._left.pop(case_id, None)
        if isinstance(there, Unusable):
            self._broken.append(BrokenEntry(entry=entry, case_id=case_id, problems=there.problems))
        elif here is None:
            self._removed.append(RemovedEntry(case=there, entry=entry))
        elif here != there:
            self._changed[case_id] = ChangedEntry(
                case=here,
                entry=entry,
                there=there,
                changed_by=_changed_by(here, there, pushed_sha256(entry)),
                changes=key_changes(there, here),
            )
        elif pushed_sha256(entry) != case_sha256(here):
            self._unmarked.append((here, entry))
        else:
            self._same += 1

    def result(self) -> DatasetDiff:
        """What differs, in the suite's order, once all entries are compared."""
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


def _changed_by(here: GoldCase, there: GoldCase, pushed: str | None) -> ChangedBy:
    if pushed == case_sha256(there):
        return ChangedBy.SUITE
    return ChangedBy.DATASET if pushed == case_sha256(here) else ChangedBy.BOTH


_TITLES: Final = {
    ChangedBy.SUITE: "Changed in the suite",
    ChangedBy.DATASET: "Changed in the dataset",
    ChangedBy.BOTH: "Conflicts: changed in both since the last push",
}


def describe_dataset_diff(diff: DatasetDiff, *, most: int) -> list[str]:
    """The difference for people; of each group at most ``most``, each on one line."""
    lines = list[str]()
    for side in (ChangedBy.BOTH, ChangedBy.DATASET, ChangedBy.SUITE):
        lines += _group(_TITLES[side], [_change(one) for one in diff.by(side)], most)
    broken = [f"{one.case_id}: {'; '.join(one.problems)}" for one in diff.broken]
    lines += _group("No case any more, since somebody edited it in the dataset", broken, most)
    lines += _group("In the suite alone", [_case(case) for case in diff.added], most)
    lines += _group("In the dataset alone", [_case(one.case) for one in diff.removed], most)
    lines += _group("Added by people in the dataset", [_entry(one) for one in diff.people], most)
    lines += _group("Copies of cases, made in the dataset: delete them there", diff.copies, most)
    same = plural(diff.same, "case")
    return [*lines, f"The same {same}." if diff.is_empty else f"{same} the same"]


def _group(title: str, entries: Sequence[str], most: int) -> Iterable[str]:
    if entries:
        yield f"{title} ({len(entries)})"
        yield from (f"  {entry}" for entry in entries[:most])
        if len(entries) > most:
            yield f"  … and {len(entries) - most} more; --json lists all"
        yield ""


def _change(one: ChangedEntry) -> str:
    changes = (f"{key.key} is {key.after} in the suite, {key.before} in the dataset" for key in one.changes)
    return f"{one.case.id}: {'; '.join(changes)}"


def _case(case: GoldCase) -> str:
    expects = "a refusal" if case.expected_refusal else shown(case.gold)
    return f"{case.id} · severity {int(case.severity)} · {case.type} · {shown(case.question)} → {expects}"


def _entry(example: Example) -> str:
    return f"{example.id} · {shown(example.inputs)}"
