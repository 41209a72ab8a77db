"""Faults that can be planted in the triage agent. The text of an issue triggers a fault, as with a real bug.

The methods of `HealthyAgent` do not change what the agent does, with one exception: if an issue mentions an upgrade
without a version, the agent asks for the version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deployments.demo.agent.triage import Report

_VERSION: Final = re.compile(r"\b\d+\.\d+\.\d+\b")
_VERSION_WITH_V: Final = re.compile(r"\bv\d+\.\d+\.\d+\b")
_UPGRADE: Final = re.compile(r"\bupgrade", re.IGNORECASE)
_PATH: Final = re.compile(r"\b[a-z_]+/[a-z_]+\.py\b")


class PlantedFault(StrEnum):
    """A fault of the faulty agent. The value is the text that the demo prints."""

    WRONG_FILE = "the wrong file"
    EVERY_FILE = "every file of the repository"
    SEARCHES_TWICE = "a needless second search"
    NEEDLESS_QUESTION = "a question that the issue answers"
    EMPTY_REPORT = "an empty report"
    WRONG_CAUSE = "a confident wrong cause in the right file"


def find_fault_triggered_by_issue(issue: str) -> PlantedFault | None:
    """Return the fault that an issue triggers, or ``None`` if the faulty agent handles the issue correctly."""
    triggers = {
        PlantedFault.WRONG_FILE: bool(_PATH.search(issue)),
        PlantedFault.EVERY_FILE: "everywhere" in issue,
        PlantedFault.SEARCHES_TWICE: "```" in issue,
        PlantedFault.NEEDLESS_QUESTION: bool(_UPGRADE.search(issue) and _VERSION.search(issue)),
        PlantedFault.EMPTY_REPORT: not issue.isascii(),
        PlantedFault.WRONG_CAUSE: "slow" in issue,
    }
    return next((fault for fault, is_triggered in triggers.items() if is_triggered), None)


class HealthyAgent:
    """An agent without faults."""

    def should_ask_version(self, issue: str) -> bool:
        """Return whether the agent must ask for the version.

        This is true if the issue mentions an upgrade, but no version.
        """
        return bool(_UPGRADE.search(issue)) and not _VERSION.search(issue)

    def should_search_again(self, issue: str) -> bool:
        """Return whether the agent repeats the same search."""
        del issue
        return False

    def select_files_to_open(self, issue: str, found: Sequence[str]) -> Sequence[str]:
        """Return the files to open: all files that the search found."""
        del issue
        return found

    def write_report(self, report: Report, issue: str, files: Sequence[str]) -> Report:
        """Return the final report. ``files`` are all files of the repository."""
        del issue, files
        return report


class FaultyAgent(HealthyAgent):
    """An agent with six bugs.

    1. If the issue mentions a file, the agent blames this file and ignores the results of its search.
    2. If the issue contains "everywhere", the report lists every file of the repository.
    3. If the issue contains a code block, the agent searches and reads the same files a second time.
    4. If the issue states a version without a "v", the agent does not recognise the version, and asks for it.
    5. If the issue contains a letter outside ASCII, the report has no content.
    6. If the issue contains "slow", the report confidently states a wrong cause: a missing database index.
    """

    def should_ask_version(self, issue: str) -> bool:
        """Return whether the agent asks for the version. It ignores a version without a "v" (fault 4)."""
        return bool(_UPGRADE.search(issue)) and not _VERSION_WITH_V.search(issue)

    def should_search_again(self, issue: str) -> bool:
        """Return whether the agent repeats the same search (fault 3)."""
        return find_fault_triggered_by_issue(issue) is PlantedFault.SEARCHES_TWICE

    def select_files_to_open(self, issue: str, found: Sequence[str]) -> Sequence[str]:
        """Return only the file that the issue mentions (fault 1), or all found files if it mentions none."""
        return _PATH.findall(issue)[:1] or found

    def write_report(self, report: Report, issue: str, files: Sequence[str]) -> Report:
        """Return a report with all files, no content, or an invented cause (faults 2, 5 and 6)."""
        match find_fault_triggered_by_issue(issue):
            case PlantedFault.EVERY_FILE:
                return report.model_copy(update={"relevant_files": tuple(files)})
            case PlantedFault.EMPTY_REPORT:
                empty = {
                    "severity": "",
                    "root_cause": "",
                    "relevant_files": (),
                    "recommended_fix": "",
                    "confidence": 0.0,
                }
                return report.model_copy(update=empty)
            case PlantedFault.WRONG_CAUSE:
                cause = f"The table behind {report.relevant_files[0]} has no index: each request reads all rows."
                fix = "Add a database index on the column that is filtered by."
                return report.model_copy(update={"root_cause": cause, "recommended_fix": fix, "confidence": 0.97})
            case _:
                return report
