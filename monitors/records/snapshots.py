"""What is recorded about the application and Lookout in a run, and its differences from another run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Sha256, UtcTime
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
Values = Mapping[str, Count]
"""Values with the number of answers that had them. Empty means unknown, which is not equal to anything."""


class AnswerMark(Record):
    """The properties of one answer that are compared between runs, without its text.

    ``text`` is the beginning of a SHA-256 of its words, ``figures`` are those of its numbers. ``document`` is the
    case's document in the suite, else the first source that the answer names. ``language`` is ``None`` where the
    answer does not show it.
    """

    case_id: Identifier
    document: str | None = None
    cited: tuple[str, ...] = ()
    refused: bool = False
    language: Language | None = None
    text: str
    figures: tuple[str, ...] = ()
    characters: Count
    total_ms: Count


class RunSnapshot(Record):
    """What is recorded about the application and about Lookout during a run.

    ``commit`` was verified, ``deployed_at`` is when it was deployed, if reported. ``versions`` are other values
    that the application says about its build, by name. ``bundles`` are the page's scripts and styles, counted over
    ``pages`` loads; ``shells`` are hashes of its HTML. ``documents`` are the cited sources, ``document_versions``
    their hashes or versions from the application. ``settings`` are hashes of the parts of the configuration,
    ``concurrency`` is the largest number of questions at once. ``None`` and an empty mapping mean unknown.
    """

    commit: Identifier | None = None
    deployed_at: UtcTime | None = None
    versions: Mapping[str, Values] = {}
    models: Mapping[str, Count] = {}
    fingerprints: Mapping[str, Count] = {}
    pages: Count = 0
    titles: Mapping[str, Count] = {}
    frameworks: Mapping[str, Count] = {}
    bundles: Mapping[str, Count] = {}
    shells: Mapping[str, Count] = {}
    documents: Mapping[str, Count] = {}
    document_versions: Mapping[str, Values] = {}
    answers: tuple[AnswerMark, ...] = ()
    suite_sha256: Sha256
    cases: Count = 0
    graders: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    judges: tuple[JudgeLineage, ...] = ()
    concurrency: Count | None = None
    browser: str | None = None
    lookout: str | None = None

    def with_application_facts(
        self,
        *,
        versions: Mapping[str, Values],
        models: Mapping[str, int],
        fingerprints: Mapping[str, int],
        pages: int,
        titles: Mapping[str, int],
        frameworks: Mapping[str, int],
        bundles: Mapping[str, int],
        shells: Mapping[str, int],
        documents: Mapping[str, int],
        document_versions: Mapping[str, Values],
        answers: tuple[AnswerMark, ...],
        concurrency: int | None,
    ) -> Self:
        """Add what the answers and pages of the run say about the application."""
        return self.model_copy(
            update={
                "versions": versions,
                "models": models,
                "fingerprints": fingerprints,
                "pages": pages,
                "titles": titles,
                "frameworks": frameworks,
                "bundles": bundles,
                "shells": shells,
                "documents": documents,
                "document_versions": document_versions,
                "answers": answers,
                "concurrency": concurrency,
            }
        )


class ChangeKind(StrEnum):
    """What a difference between two runs is about."""

    APPLICATION = "application"
    MODEL = "model"
    CONTENT = "content"
    PAGE = "page"
    SUITE = "suite"
    MONITOR = "monitor"
    LIMIT = "limit"
    """Another limit of the gate, in lookout.toml or on the command line: it changes no answer and no grade."""
    UNKNOWN = "unknown"
    """Something differs, and nothing that is recorded explains it."""


OURS: Final = frozenset({ChangeKind.SUITE, ChangeKind.MONITOR})
"""Changes on Lookout's side, which are not the application's fault."""


class RunChange(Record):
    """One difference between two runs, with its evidence in one line.

    ``follows`` is true for different behaviour that another recorded change may have caused: then ``kind`` is not
    changed_sides.
    """

    kind: ChangeKind
    evidence: str
    follows: bool = False

    def mark_possible_effect(self) -> Self:
        """Return the change marked as possibly caused by another recorded change."""
        return self.model_copy(update={"follows": True})


class WhatChanged(Record):
    """What differs from the last accepted run, most informative first. No ``changes``: nothing that is recorded.

    ``missing`` says why nothing could be compared; ``not_known`` names what was not recorded in both runs.
    """

    since_run_id: Identifier | None = None
    since_commit: Identifier | None = None
    since: UtcTime | None = None
    missing: str = ""
    changes: tuple[RunChange, ...] = ()
    not_known: tuple[str, ...] = ()

    def with_missing_reason(self, missing: str) -> Self:
        """Set why nothing could be compared."""
        return self.model_copy(update={"missing": missing})

    def add_changes(self, changes: tuple[RunChange, ...], not_known: tuple[str, ...]) -> Self:
        """Add what differs, most informative first, and what was not recorded in both runs."""
        return self.model_copy(update={"changes": changes, "not_known": not_known})

    @property
    def changed_sides(self) -> frozenset[ChangeKind]:
        """The sides on which something changed."""
        return frozenset(
            change.kind for change in self.changes if not change.follows and change.kind is not ChangeKind.LIMIT
        )

    @property
    def has_changes_on_both_sides(self) -> bool:
        """Whether Lookout's side and another side changed, so that neither is proved to be the cause."""
        return bool(self.changed_sides & OURS) and bool(self.changed_sides - OURS)
