"""Records of what Lookout knows about the application and about itself during a run, and of what changed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Sha256, UtcTime
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
Values = Mapping[str, Count]
"""Maps each value to the number of answers that had this value. No entries if no value is known."""


class AnswerMark(Record):
    """The properties of an answer that are compared between two runs. The text of the answer is not stored.

    ``text`` is the beginning of a hash of the answer's words. ``document`` is the document of the case, or the
    first source in the answer.
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

    - ``versions`` contains further values that the application reported about its build.
    - ``bundles`` contains the page's scripts and styles, and ``shells`` contains hashes of its HTML.
    - ``documents`` contains the cited sources.
    - ``settings`` contains hashes of parts of the configuration.

    A value that is ``None`` or empty was not recorded.
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
        """Return a copy of the snapshot with facts about the application from the run's answers and pages."""
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
    """What differs between two runs, for example a version of the application or a setting of Lookout."""

    APPLICATION = "application"
    MODEL = "model"
    CONTENT = "content"
    PAGE = "page"
    SUITE = "suite"
    MONITOR = "monitor"
    LIMIT = "limit"
    """A limit of the gate changed. The change does not affect any answer or grade."""
    UNKNOWN = "unknown"
    """Something differs, but no recorded value explains it."""


OURS: Final = frozenset({ChangeKind.SUITE, ChangeKind.MONITOR})
"""Kinds of changes that happen in Lookout or in the suite, and not in the application."""


class RunChange(Record):
    """A difference between two runs, with its evidence as one line.

    ``follows`` is true if another recorded change may have caused this change.
    """

    kind: ChangeKind
    evidence: str
    follows: bool = False

    def mark_possible_effect(self) -> Self:
        """Return a copy of the change that is marked as possibly caused by another recorded change."""
        return self.model_copy(update={"follows": True})


class WhatChanged(Record):
    """The differences from the last accepted run. If ``changes`` is empty, no difference was recorded.

    ``missing`` is the reason why nothing could be compared. ``not_known`` lists what at least one of the runs did
    not record.
    """

    since_run_id: Identifier | None = None
    since_commit: Identifier | None = None
    since: UtcTime | None = None
    missing: str = ""
    changes: tuple[RunChange, ...] = ()
    not_known: tuple[str, ...] = ()

    def with_missing_reason(self, missing: str) -> Self:
        """Return a copy of the result with ``missing``, the reason why nothing could be compared."""
        return self.model_copy(update={"missing": missing})

    def with_changes(self, changes: tuple[RunChange, ...], not_known: tuple[str, ...]) -> Self:
        """Return a copy of the result with ``changes``, which begins with the most informative change.

        ``not_known`` lists what at least one of the runs did not record.
        """
        return self.model_copy(update={"changes": changes, "not_known": not_known})

    @property
    def primary_change_kinds(self) -> frozenset[ChangeKind]:
        """Return the kinds of the changes. Changed limits, and possible effects of other changes, are ignored."""
        return frozenset(
            change.kind for change in self.changes if not change.follows and change.kind is not ChangeKind.LIMIT
        )

    @property
    def has_changes_on_both_sides(self) -> bool:
        """Return whether both Lookout and the application changed. In this case, the cause is unknown."""
        return bool(self.primary_change_kinds & OURS) and bool(self.primary_change_kinds - OURS)
