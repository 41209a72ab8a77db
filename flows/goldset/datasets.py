"""Compares a suite with a dataset on a platform such as LangSmith.

Changes are copied to the dataset (push) or to the suite (pull). Entries that people added to the dataset become
drafts. A push that was stopped can be repeated. The second push then writes only the missing entries.
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
from monitors.facts.disclosures.find import find_private_data_except_names
from monitors.facts.language import identify_language
from monitors.goldset.changes import ChangedBy, DatasetComparison, DatasetDiff
from monitors.goldset.drafts import derive_case_id
from monitors.goldset.examples import METADATA_KEY, build_example_from_case
from monitors.platforms.platform import Dataset, Datasets, Example, Trace, Traces
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.operator_actions import CaseDraft
from monitors.sources.traffic.settings import Fields
from monitors.sources.traffic.turns import read_turns_or_empty

OnProgress = Callable[[int], None]
"""A function that is called with the number of entries that were read or written since the last call."""

BATCH_SIZE: Final = 100
TRACES_AT_ONCE: Final = 8
"""Maximum number of traces that are read in parallel. This saves time, because reading a missing trace is slow."""


class ComparedDataset(NamedTuple):
    """The comparison of a suite with a dataset. ``dataset`` is ``None`` if there is no dataset with that name."""

    name: str
    dataset: Dataset | None
    diff: DatasetDiff


async def compare_dataset(
    datasets: Datasets, name: str, suite: Sequence[GoldCase], on_progress: OnProgress
) -> ComparedDataset:
    """Compare the suite with the dataset of this name, one page at a time."""
    dataset = await datasets.find(name)
    if dataset is None:
        return ComparedDataset(name, None, DatasetDiff(added=tuple(suite)))
    comparison = DatasetComparison(suite, dataset.id)
    async with aclosing(datasets.pull(dataset)) as entries:
        async for entry in entries:
            comparison.add(entry)
            on_progress(1)
    return ComparedDataset(name, dataset, comparison.build_diff())


class PushPlan(NamedTuple):
    """The entries that a push writes and deletes.

    ``blocked`` is the number of cases that the push skips, because people edited them in the dataset; `--overwrite`
    writes them.
    """

    cases: Sequence[tuple[GoldCase, Example | None]]
    """Each case to write, with its entry in the dataset. A new case has no entry."""
    deleted: Sequence[str]
    blocked: int

    @property
    def size(self) -> int:
        """The number of entries that the push writes or deletes."""
        return len(self.cases) + len(self.deleted)


def build_push_plan(diff: DatasetDiff, suite: Sequence[GoldCase], *, overwrite: bool, prune: bool) -> PushPlan:
    """Build the plan that makes the dataset equal to the suite. Entries that people added are not deleted.

    With ``overwrite``, entries that people edited are also written. With ``prune``, entries whose case is no longer
    in the suite are deleted.
    """
    by_id = {case.id: case for case in suite}
    edited = diff.select_changed_by(ChangedBy.DATASET, ChangedBy.BOTH)
    cases: list[tuple[GoldCase, Example | None]] = [(case, None) for case in diff.added]
    cases += [(change.case, change.entry) for change in diff.select_changed_by(ChangedBy.SUITE)] + list(
        diff.unmarked
    )
    deleted = [change.entry.id for change in diff.removed] if prune else []
    broken = [(by_id.get(change.case_id), change.entry) for change in diff.broken]
    if not overwrite:
        return PushPlan(cases, deleted, len(edited) + len(broken))
    cases += [(change.case, change.entry) for change in edited]
    cases += [(case, entry) for case, entry in broken if case is not None]
    deleted += [entry.id for case, entry in broken if case is None and prune]
    return PushPlan(cases, deleted, 0)


async def push_suite(
    datasets: Datasets, compared: ComparedDataset, suite: Suite, plan: PushPlan, on_progress: OnProgress
) -> Dataset:
    """Carry out the plan, tag the dataset's version with the suite's hash, and return the dataset.

    Creates the dataset if it does not exist.
    """
    description = f"Gold cases of the suite {suite.name}, written by Lookout"
    dataset = compared.dataset or await datasets.create(
        compared.name, description, {METADATA_KEY: {"suite": suite.name}}
    )
    traces = {derive_case_id(build_draft_id(entry)): entry.source_trace for entry in compared.diff.people}
    for start in range(0, len(plan.cases), BATCH_SIZE):
        batch = plan.cases[start : start + BATCH_SIZE]
        examples = [
            build_example_from_case(case, dataset.id, existing, traces.get(case.id)) for case, existing in batch
        ]
        await datasets.push(dataset, examples)
        on_progress(len(batch))
    if plan.deleted:
        await datasets.delete(dataset, plan.deleted)
        on_progress(len(plan.deleted))
    await datasets.tag(dataset, build_dataset_tag(suite))
    return dataset


def build_dataset_tag(suite: Suite) -> str:
    """Build the tag for a version of a dataset that is equal to this suite."""
    return f"{METADATA_KEY}-{suite.sha256[:12]}"


class PullPlan(Record):
    """The changes that a pull makes in a suite's file.

    ``conflicts`` is the number of cases that do not change, because they were changed in the suite and in the
    dataset.
    """

    changed: tuple[GoldCase, ...]
    added: tuple[GoldCase, ...]
    removed: tuple[str, ...]
    """The ids of the cases to remove."""
    conflicts: int

    @property
    def size(self) -> int:
        """The number of cases that the pull writes or removes."""
        return len(self.changed) + len(self.added) + len(self.removed)


def build_pull_plan(diff: DatasetDiff, *, overwrite: bool, prune: bool) -> PullPlan:
    """Build the plan that copies the dataset's changes into the suite.

    Cases that were changed in the suite are not overwritten, unless ``overwrite`` is set. With ``prune``, cases
    that are missing in the dataset are removed.
    """
    changed_by = (ChangedBy.DATASET, *((ChangedBy.BOTH, ChangedBy.SUITE) if overwrite else ()))
    return PullPlan(
        changed=tuple(change.there for change in diff.select_changed_by(*changed_by)),
        added=tuple(change.case for change in diff.removed),
        removed=tuple(case.id for case in diff.added) if prune else (),
        conflicts=0 if overwrite else len(diff.select_changed_by(ChangedBy.BOTH)),
    )


class DraftSource(NamedTuple):
    """The source of drafts: dataset, target, author and time.

    Texts that match ``account_patterns`` are redacted in the drafts.
    """

    dataset: Dataset
    target: str
    account_patterns: Sequence[str]
    by: str
    at: datetime


async def build_drafts_from_entries(
    entries: Sequence[Example], source: DraftSource, traces: Traces
) -> Sequence[CaseDraft]:
    """Build a draft from each entry that has a question. The application's reply comes from the entry's trace."""
    drafts = list[CaseDraft | None]()
    for start in range(0, len(entries), TRACES_AT_ONCE):
        batch = entries[start : start + TRACES_AT_ONCE]
        replies = await asyncio.gather(*(_read_trace_reply(entry, traces) for entry in batch))
        drafts += [
            build_draft_from_entry(entry, source, reply) for entry, reply in zip(batch, replies, strict=True)
        ]
    return [draft for draft in drafts if draft is not None]


async def _read_trace_reply(entry: Example, traces: Traces) -> str | None:
    """Read the application's reply from an entry's trace. Return ``None`` if the reply cannot be read."""
    if entry.source_trace is None:
        return None
    with suppress(SourceUnavailable, ConfigError):  # the key has no access to the project of the trace
        trace = await traces.read(entry.source_trace)
        return _find_reply_in_trace(trace) if trace is not None else None
    return None


def build_draft_from_entry(entry: Example, source: DraftSource, replied: str | None) -> CaseDraft | None:
    """Build a draft from an entry that a person added. Return ``None`` if the entry has no question.

    ``replied`` is the application's own reply. If the person expects a different answer, the person's answer
    becomes the gold, and the application's reply becomes the bad reply.
    """
    # An entry may have no answer, but `read_turns_or_empty` needs the field.
    turns = read_turns_or_empty({"inputs": entry.inputs, "outputs": entry.outputs or {}}, Fields())
    questions = tuple(turn.user_text for turn in turns if turn.user_text.strip())
    if not questions:
        return None
    expected = turns[-1].reply_text.strip() or replied
    bad = replied if replied != expected else None
    kind, severity, reason = _propose_kind_and_severity(bad or expected or "", source.account_patterns)

    def redact_text(text: str) -> Any:
        return redact(text, account_patterns=source.account_patterns)

    return CaseDraft(
        id=build_draft_id(entry),
        made_at=source.at,
        by=source.by,
        target=source.target,
        run_id=entry.source_trace or entry.id,
        source_id=entry.id,
        origin=Origin.TRAFFIC,
        turns=tuple(redact_text(turn) for turn in questions),
        gold=redact_text(expected) if expected else None,
        bad_reply=redact_text(bad) if bad else None,
        failure_kind=kind,
        language=identify_language(questions[-1]),
        suggested_severity=severity,
        severity_reason=reason,
        finding=redact_text(
            _format_draft_finding(entry, source.dataset, compared=replied is not None, differs=bad is not None)
        ),
    )


def build_draft_id(entry: Example) -> str:
    """Build the id of an entry's draft. A second pull builds the same id, and therefore adds no second draft."""
    return f"entry-{hashlib.sha256(entry.id.encode()).hexdigest()[:24]}"


def _format_draft_finding(entry: Example, dataset: Dataset, *, compared: bool, differs: bool) -> str:
    source = f" from trace {entry.source_trace}" if entry.source_trace else ""
    if differs:
        finding = "the expected answer differs from the application's reply"
    elif compared:
        finding = "the proposed answer is the application's reply"
    else:
        finding = "the application's reply is unknown"
    return (
        f"a person added this case to the dataset {dataset.name}{source}; {finding}. "
        f"{dataset.entries_url}{entry.id}"
    )


def _propose_kind_and_severity(
    reply: str, account_patterns: Sequence[str]
) -> tuple[FailureKind | None, Severity, str]:
    """Propose the failure kind and the severity of a case whose bad reply is ``reply``. Also return the reason."""
    disclosures = find_private_data_except_names(reply, account_patterns)
    if disclosures:
        return (
            FailureKind.PII_DISCLOSURE,
            Severity.CRITICAL,
            f"the reply discloses personal data ({disclosures[0].kind.value})",
        )
    return (
        None,
        Severity.MAJOR,
        (
            "this answer was not graded, so Lookout proposes severity 2, as for any wrong fact; change the "
            "severity if it is not right"
        ),
    )


def _find_reply_in_trace(trace: Trace) -> str | None:
    for run in trace.runs:
        if run.get("is_root") or run.get("id") == trace.id:
            turns = read_turns_or_empty(run, Fields())
            return turns[-1].reply_text.strip() or None if turns else None
    return None
