"""What is recorded of a run beside its grades, and what of that differs from another run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
Values = Mapping[str, Count]
"""What was seen, and in how many answers. Empty where nothing said it: that is unknown, and equal to nothing."""


class AnswerMark(Record):
    """What two runs are compared by of one answer: never its text.

    ``text`` is the beginning of a SHA-256 of its words, ``figures`` are those of the numbers that it states.
    ``document`` is what the case is about, where the suite says it, else the first source that the answer names.
    """

    case_id: Identifier
    document: str | None = None
    cited: tuple[str, ...] = ()
    refused: bool = False
    text: str
    figures: tuple[str, ...] = ()
    characters: Count
    total_ms: Count


class RunSnapshot(Record):
    """What is recorded of the application and of Lookout while a run went on.

    ``commit`` is what was verified, ``deployed_at`` when it was deployed, where somebody said so. ``versions`` are
    other things that the application says of its build, by name. ``bundles`` are the page's scripts and styles,
    counted over ``pages`` loads of it; ``shells`` are hashes of its HTML. ``documents`` are the sources that were
    cited, ``document_versions`` their hashes or versions as the application lists them. ``settings`` are hashes of
    the parts of the configuration, ``concurrency`` is the most questions that were under way at once.
    ``None`` and an empty mapping are unknown.
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

    def add_exchanges(
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
        """Add what the answers and pages of the run say of the application."""
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
    """Whose side a difference is on."""

    APPLICATION = "application"
    MODEL = "model"
    CONTENT = "content"
    PAGE = "page"
    SUITE = "suite"
    MONITOR = "monitor"
    UNKNOWN = "unknown"
    """Something differs, and nothing that is recorded says what made it so."""


OURS: Final = frozenset({ChangeKind.SUITE, ChangeKind.MONITOR})
"""Changes on Lookout's side: none of them is the application's fault."""


class RunChange(Record):
    """One difference between two runs, with its evidence in one line.

    ``follows`` is true of behaviour that differs while something else is recorded that may have caused it: then
    ``kind`` is not claimed.
    """

    kind: ChangeKind
    evidence: str
    follows: bool = False

    def follow(self) -> Self:
        """The same behaviour, where something else that is recorded may have caused it."""
        return self.model_copy(update={"follows": True})


class WhatChanged(Record):
    """What differs from the last accepted run, most telling first. No ``changes``: nothing that is recorded.

    ``missing`` says why nothing could be compared; ``not_known`` names what was not recorded in both runs.
    """

    since_run_id: Identifier | None = None
    since_commit: Identifier | None = None
    since: UtcTime | None = None
    missing: str = ""
    changes: tuple[RunChange, ...] = ()
    not_known: tuple[str, ...] = ()

    def refuse(self, missing: str) -> Self:
        """Say why nothing could be compared."""
        return self.model_copy(update={"missing": missing})

    def add_changes(self, changes: tuple[RunChange, ...], not_known: tuple[str, ...]) -> Self:
        """Add what differs, most telling first, and what was not recorded in both runs."""
        return self.model_copy(update={"changes": changes, "not_known": not_known})

    @property
    def claimed(self) -> frozenset[ChangeKind]:
        """The sides on which something changed."""
        return frozenset(change.kind for change in self.changes if not change.follows)

    @property
    def both_sides(self) -> bool:
        """Whether something of ours changed and something else too: then neither is shown to be the cause."""
        return bool(self.claimed & OURS) and bool(self.claimed - OURS)
