"""Records for an agent that works on issues: the issue, its reference, and the agent's report on it."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from monitors.records.base import Probability, Record

Text = Annotated[str, Field(min_length=1)]

ISSUE_PLACE: Final = re.compile(r"https?://[^/]+/([^/]+)/([^/]+)/(?:-/)?(?:issues|pull)/(\d+)")
"""Matches the address of an issue, and captures owner, repository and number."""


class IssueSeverity(StrEnum):
    """The urgency of an issue, from the least urgent to the most urgent."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class TriageReference(Record):
    """The expected content of a good report on an issue. Fields that are not set are not graded."""

    severity: IssueSeverity | None = Field(default=None, description="How urgent the issue is.")
    root_cause: Text | None = Field(
        default=None,
        description="The cause of the issue: where the fault is, and how it leads to the issue. The judge "
        "compares the report with this text.",
    )
    relevant_files: tuple[Text, ...] = Field(
        default=(), description="The files that the fix changes, as paths from the repository's root."
    )
    relevant_functions: tuple[Text, ...] = Field(
        default=(), description="The functions that the fix changes, as `path::Class.method`."
    )
    expected_keywords: tuple[Text, ...] = Field(
        default=(),
        description="Words that the report must contain and that the issue does not contain. Lookout ignores a "
        "word that is already in the issue.",
    )
    shortest_path: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The smallest number of steps that an agent needs for its report."
    )
    max_steps: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Maximum number of steps. If the agent takes more, the case fails. Default: `shortest_path` "
        "times `max_steps_factor`, which is 2 by default.",
    )


class Issue(Record):
    """An issue of an issue tracker."""

    url: Text | None = Field(
        default=None,
        description="The issue's address, which Lookout sends to the agent. Without an address, Lookout sends the "
        "issue's title and text.",
    )
    title: Text = Field(description="The issue's title.")
    body: str = Field(default="", description="The issue's text.")
    repository_files: tuple[Text, ...] = Field(
        default=(),
        description="All files of the repository. A file that a report names and that is not in this list counts "
        "as invented.",
    )

    @property
    def repository(self) -> str | None:
        """Return the repository in the issue's address, in the form ``owner:name``."""
        place = ISSUE_PLACE.search(self.url or "")
        return f"{place[1]}:{place[2]}" if place else None

    @property
    def title_and_body(self) -> str:
        """Return the title and the body as one text."""
        return f"{self.title}\n\n{self.body}".strip()


class TriageTask(Record):
    """An issue with its reference."""

    issue: Issue = Field(description="The issue for the agent.")
    reference: TriageReference = Field(description="The known facts about the issue.")


class TriageReport(Record):
    """The parts of an agent's report. A missing part is ``None``."""

    severity: IssueSeverity | None = None
    root_cause: str | None = None
    files: tuple[str, ...] | None = None
    functions: tuple[str, ...] = ()
    recommended_fix: str | None = None
    confidence: Probability | None = None
