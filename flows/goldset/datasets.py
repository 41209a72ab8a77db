"""A suite and the dataset of a platform: compared, pushed, pulled. What people added there becomes drafts.

Nothing is written before the difference is known, and a push that was stopped anywhere is made whole by the same
push again: entries have the ids of their cases, and each carries the hash of what was pushed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from monitors.alerts.redact import redact
from monitors.errors import ConfigError, SourceUnavailable
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify
from monitors.goldset.changes import ChangedBy, DatasetComparison, DatasetDiff
from monitors.goldset.drafts import grown_case_id
from monitors.goldset.examples import METADATA_KEY, example_of
from monitors.platforms.platform import Dataset, Datasets, Example, Trace, Traces
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.operator_actions import CaseDraft
from monitors.sources.traffic.items import turns_of
from monitors.sources.traffic.settings import Fields

OnProgress = Callable[[int], None]
"""Told how many entries were read or written since the last time."""

BATCH: Final = 100
TRACES_AT_ONCE: Final = 8
"""A trace that is not there any more is waited for."""


class ComparedDataset(NamedTuple):
    """A suite against a dataset; ``dataset`` is ``None`` where there is none of that name."""

    name: str
    dataset: Dataset | None
    diff: DatasetDiff


async def compare_dataset(
    datasets: Datasets, name: str, suite: Sequence[GoldCase], on_progress: OnProgress
) -> ComparedDataset:
    """Read the dataset page by page against the suite; of what is the same on both sides, nothing is held."""
    dataset = await datasets.find(name)
    if dataset is None:
        return ComparedDataset(name, None, DatasetDiff(added=tuple(suite)))
    comparison = DatasetComparison(suite, dataset.id)
    async with aclosing(datasets.pull(dataset)) as entries:
        async for entry in entries:
            comparison.take(entry)
            on_progress(1)
    return ComparedDataset(name, dataset, comparison.result())


class PushPlan(NamedTuple):
    """What a push writes. ``blocked`` are cases that people edited in the dataset: only --overwrite writes them."""

    cases: Sequence[tuple[GoldCase, Example | None]]
    """With the entry that is there."""
    deleted: Sequence[str]
    blocked: int

    @property
    def size(self) -> int:
        """How many entries it writes or deletes."""
        return len(self.cases) + len(self.deleted)


def push_plan(diff: DatasetDiff, suite: Sequence[GoldCase], *, overwrite: bool, prune: bool) -> PushPlan:
    """What makes the dataset hold the suite. What people added is left alone whatever is asked."""
    by_id = {case.id: case for case in suite}
    edited = diff.by(ChangedBy.DATASET, ChangedBy.BOTH)
    cases: list[tuple[GoldCase, Example | None]] = [(case, None) for case in diff.added]
    cases += [(one.case, one.entry) for one in diff.by(ChangedBy.SUITE)] + list(diff.unmarked)
    deleted = [one.entry.id for one in diff.removed] if prune else []
    broken = [(by_id.get(one.case_id), one.entry) for one in diff.broken]
    if not overwrite:
        return PushPlan(cases, deleted, len(edited) + len(broken))
    cases += [(one.case, one.entry) for one in edited]
    cases += [(case, entry) for case, entry in broken if case is not None]
    deleted += [entry.id for case, entry in broken if case is None and prune]
    return PushPlan(cases, deleted, 0)


async def push_suite(
    datasets: Datasets, compared: ComparedDataset, suite: Suite, plan: PushPlan, on_progress: OnProgress
) -> Dataset:
    """Write what is planned, then tag the version with the suite's hash. A dataset that is missing is made."""
    about = f"Gold cases of the suite {suite.name}, written by Lookout"
    dataset = compared.dataset or await datasets.create(compared.name, about, {METADATA_KEY: {"suite": suite.name}})
    traces = {grown_case_id(draft_id(entry)): entry.source_trace for entry in compared.diff.people}
    for start in range(0, len(plan.cases), BATCH):
        batch = plan.cases[start : start + BATCH]
        examples = [example_of(case, dataset.id, there, traces.get(case.id)) for case, there in batch]
        await datasets.push(dataset, examples)
        on_progress(len(batch))
    if plan.deleted:
        await datasets.delete(dataset, plan.deleted)
        on_progress(len(plan.deleted))
    await datasets.tag(dataset, tag_of(suite))
    return dataset


def tag_of(suite: Suite) -> str:
    """What a version of the dataset is called that holds this suite."""
    return f"{METADATA_KEY}-{suite.sha256[:12]}"


class PullPlan(Record):
    """What a pull changes in a suite's file. ``conflicts`` are those in which the file's own case stays."""

    changed: tuple[GoldCase, ...]
    added: tuple[GoldCase, ...]
    removed: tuple[str, ...]
    """Ids of cases."""
    conflicts: int

    @property
    def size(self) -> int:
        """How many cases it writes or removes."""
        return len(self.changed) + len(self.added) + len(self.removed)


def pull_plan(diff: DatasetDiff, *, overwrite: bool, prune: bool) -> PullPlan:
    """What brings the dataset's changes into the suite; what was changed in the suite alone stays."""
    taken = (ChangedBy.DATASET, *((ChangedBy.BOTH, ChangedBy.SUITE) if overwrite else ()))
    return PullPlan(
        changed=tuple(one.there for one in diff.by(*taken)),
        added=tuple(one.case for one in diff.removed),
        removed=tuple(case.id for case in diff.added) if prune else (),
        conflicts=0 if overwrite else len(diff.by(ChangedBy.BOTH)),
    )


class DraftSource(NamedTuple):
    """Where drafts come from, and for whom."""

    dataset: Dataset
    target: str
    account_patterns: Sequence[str]
    by: str
    at: datetime


async def drafts_of_people(entries: Sequence[Example], source: DraftSource, traces: Traces) -> Sequence[CaseDraft]:
    """A draft of each entry that holds a question, with the reply of its trace where that is still there."""
    drafts = list[CaseDraft | None]()
    for start in range(0, len(entries), TRACES_AT_ONCE):
        some = entries[start : start + TRACES_AT_ONCE]
        replies = await asyncio.gather(*(_reply_to(entry, traces) for entry in some))
        drafts += [draft_of_entry(entry, source, reply) for entry, reply in zip(some, replies, strict=True)]
    return [draft for draft in drafts if draft is not None]


async def _reply_to(entry: Example, traces: Traces) -> str | None:
    """What the application replied in the trace of an entry; ``None`` where that cannot be read."""
    if entry.source_trace is None:
        return None
    with suppress(SourceUnavailable, ConfigError):  # of a project that this key or this configuration does not see
        trace = await traces.read(entry.source_trace)
        return _reply_in(trace) if trace is not None else None
    return None


def draft_of_entry(entry: Example, source: DraftSource, replied: str | None) -> CaseDraft | None:
    """The draft of what a person added; ``None`` where no question can be read in it.

    The reference that a platform proposes is the application's own reply. Where the person has written another,
    that is the gold, and the reply is the bad one.
    """
    turns = turns_of(entry.model_dump(mode="json", include={"inputs", "outputs"}), Fields())
    asked = tuple(turn.user_text for turn in turns if turn.user_text.strip())
    if not asked:
        return None
    expected = turns[-1].reply_text.strip() or replied
    bad = replied if replied != expected else None
    kind, severity, reason = _proposed(bad or expected or "", source.account_patterns)

    def clean(text: str) -> Any:
        return redact(text, account_patterns=source.account_patterns)

    return CaseDraft(
        id=draft_id(entry),
        made_at=source.at,
        by=source.by,
        target=source.target,
        run_id=entry.source_trace or entry.id,
        source_id=entry.id,
        origin=Origin.TRAFFIC,
        turns=tuple(clean(turn) for turn in asked),
        gold=clean(expected) if expected else None,
        bad_reply=clean(bad) if bad else None,
        failure_kind=kind,
        language=identify(asked[-1]),
        suggested_severity=severity,
        severity_reason=reason,
        finding=clean(_finding(entry, source.dataset, compared=replied is not None, differs=bad is not None)),
    )


def draft_id(entry: Example) -> str:
    """The id of the draft that an entry becomes: pulling again makes no second one."""
    return f"entry-{hashlib.sha256(entry.id.encode()).hexdigest()[:24]}"


def _finding(entry: Example, dataset: Dataset, *, compared: bool, differs: bool) -> str:
    of = f" from trace {entry.source_trace}" if entry.source_trace else ""
    if differs:
        found = "the person expects another answer than the application gave"
    elif compared:
        found = "what is proposed is the application's own reply"
    else:
        found = "what the application replied is not known"
    return f"a person added it to the dataset {dataset.name}{of}; {found}. {dataset.entries_url}{entry.id}"


def _proposed(reply: str, account_patterns: Sequence[str]) -> tuple[FailureKind | None, Severity, str]:
    """The severity that a case of this reply should have, and why."""
    found = find_disclosures(reply, account_patterns=account_patterns)
    if found:
        return (
            FailureKind.PII_DISCLOSURE,
            Severity.PAGE,
            f"the reply discloses personal data ({found[0].kind.value})",
        )
    return None, Severity.WRONG, "nobody graded it: 2, wrong, as for any plain fact; say what it would be"


def _reply_in(trace: Trace) -> str | None:
    for run in trace.runs:
        if run.get("is_root") or run.get("id") == trace.id:
            turns = turns_of(run, Fields())
            return turns[-1].reply_text.strip() or None if turns else None
    return None
