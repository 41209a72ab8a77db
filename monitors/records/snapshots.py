"""What Lookout records about the application and about itself during a run, and differences between runs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Sha256, UtcTime
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
Values = Mapping[str, Count]
"""Values, and the number of answers that had each. Empty if the value is unknown."""


class AnswerMark(Record):
    """The properties of an answer that are compared between runs. They do not include its text.

    ``text`` is the beginning of a hash of its words. ``document`` is the document of the case, or the first
    source that the answer names.
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
    """What Lookout recorded about the application and about itself during a run.

    ``versions`` are other values that the application reported about its build. ``bundles`` are the page's
    scripts and styles, ``shells`` hashes of its HTML. ``documents`` are the cited sources. ``settings`` are
    hashes of parts of the configuration. ``None`` and empty values are unknown.
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
    """A limit of the gate changed. This changes no answer and no grade."""
    UNKNOWN = "unknown"
    """Something differs, but no recorded value explains it."""


OURS: Final = frozenset({ChangeKind.SUITE, ChangeKind.MONITOR})
"""Kinds of changes of Lookout or of the suite, not of the application."""


class RunChange(Record):
    """A difference between two runs, with its evidence as one line.

    ``follows`` is true if another recorded change may have caused this change.
    """

    kind: ChangeKind
    evidence: str
    follows: bool = False

    def mark_possible_effect(self) -> Self:
        """Return the change marked as possibly caused by another recorded change."""
        return self.model_copy(update={"follows": True})


class WhatChanged(Record):
    """What is different from the last accepted run. If ``changes`` is empty, no difference was recorded.

    ``missing`` says why nothing could be compared. ``not_known`` names what was not recorded in both runs.
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
        """Add the differences, the most informative first, and what was not recorded in both runs."""
        return self.model_copy(update={"changes": changes, "not_known": not_known})

    @property
    def changed_sides(self) -> frozenset[ChangeKind]:
        """The kinds of the recorded changes."""
        return frozenset(
            change.kind for change in self.changes if not change.follows and change.kind is not ChangeKind.LIMIT
        )

    @property
    def has_changes_on_both_sides(self) -> bool:
        """Return whether both Lookout and the application changed. Then the cause is unknown."""
        return bool(self.changed_sides & OURS) and bool(self.changed_sides - OURS)
