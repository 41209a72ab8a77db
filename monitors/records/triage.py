"""An issue for an agent, its reference, and the report that the agent writes."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from monitors.records.base import Probability, Record

Text = Annotated[str, Field(min_length=1)]

ISSUE_PLACE: Final = re.compile(r"https?://[^/]+/([^/]+)/([^/]+)/(?:-/)?(?:issues|pull)/(\d+)")
"""An issue's address: owner, repository, number."""


class IssueSeverity(StrEnum):
    """How urgent an issue is, least urgent first; not how bad a wrong report is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class TriageReference(Record):
    """What a good report on an issue says. Fields that are not set are not graded."""

    severity: IssueSeverity | None = Field(default=None, description="How urgent the issue is.")
    root_cause: Text | None = Field(
        default=None, description="Why it happens: the place and the mechanism. The judge compares with it."
    )
    relevant_files: tuple[Text, ...] = Field(
        default=(), description="The files that the fix touches, by their paths from the repository's root."
    )
    relevant_functions: tuple[Text, ...] = Field(
        default=(), description="Functions that the fix touches, as `path::Class.method`."
    )
    expected_keywords: tuple[Text, ...] = Field(
        default=(),
        description="Words that the report must contain and the issue does not. A word that is already in the "
        "issue does not count.",
    )
    shortest_path: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How many steps would have done."
    )
    max_steps: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="More steps than this are a failure. Left out: twice `shortest_path`."
    )


class Issue(Record):
    """An issue as its tracker has it."""

    url: Text | None = Field(
        default=None, description="The issue's address; what the agent is given. Without one it is given the text."
    )
    title: Text = Field(description="The issue's title.")
    body: str = Field(default="", description="The issue's text.")
    repository_files: tuple[Text, ...] = Field(
        default=(), description="All files of the repository: a report that names another one made it up."
    )

    @property
    def repository(self) -> str | None:
        """``owner:name`` of the repository that the issue's address names."""
        place = ISSUE_PLACE.search(self.url or "")
        return f"{place[1]}:{place[2]}" if place else None

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}\n\n{self.body}".strip()


class TriageTask(Record):
    """An issue with its reference."""

    issue: Issue = Field(description="The issue that the agent is given.")
    reference: TriageReference = Field(description="What is known about the issue.")


class TriageReport(Record):
    """The parts of an agent's report. ``None`` is a missing part; nothing is guessed.

    ``files`` are written as in the report. ``functions`` are those written as ``path::name``.
    """

    severity: IssueSeverity | None = None
    root_cause: str | None = None
    files: tuple[str, ...] | None = None
    functions: tuple[str, ...] = ()
    recommended_fix: str | None = None
    confidence: Probability | None = None
