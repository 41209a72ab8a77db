"""The triage agent. It searches a fictional repository for the words of an issue, and writes a report.

The agent has no side effects and uses no model. In the files that it finds, it recognises a defect by a pattern in
the code, such as a lock that no ``finally`` block releases.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict

from deployments.demo.agent.faults import HealthyAgent

HERE: Final = Path(__file__).parent
REPOSITORY: Final = HERE / "repository.toml"
ISSUES: Final = HERE / "issues.jsonl"
MAX_FILES_READ: Final = 3
"""Maximum number of files of a search result that the agent opens."""
MAX_FILES_FOUND: Final = 5
PATH_WEIGHT: Final = 3
"""The weight of a word in a file's path. A word in the file's text has weight 1."""
TITLE_WEIGHT: Final = 2
STEM_CHARACTERS: Final = 5
SURE, UNSURE = 0.9, 0.3
QUESTION: Final = "Which version of berths do you run?"


class IssueText(BaseModel):
    """An issue as stored in the tracker."""

    model_config = ConfigDict(frozen=True)

    url: str
    title: str
    body: str

    @property
    def text(self) -> str:
        """Return the title and the body as one text."""
        return f"{self.title}\n\n{self.body}"


class Report(BaseModel):
    """The agent's report about an issue."""

    model_config = ConfigDict(frozen=True)

    severity: str
    root_cause: str
    relevant_files: tuple[str, ...]
    recommended_fix: str
    confidence: float


@dataclass(frozen=True)
class Defect:
    """A pattern in code, the cause that the pattern indicates, and the fix.

    In ``cause``, ``{at}`` is replaced by the function and its file.
    """

    pattern: re.Pattern[str]
    cause: str
    fix: str


DEFECTS: Final = tuple(
    Defect(re.compile(row["pattern"], re.MULTILINE), row["cause"], row["fix"])
    for row in tomllib.loads((HERE / "defects.toml").read_text(encoding="utf-8"))["defects"]
)

_SEVERITIES: Final = (
    ("critical", re.compile(r"\b(?:stranger|anybody|anyone|other people's|security)\b", re.IGNORECASE)),
    ("high", re.compile(r"\b(?:hangs?|stops?|stopped|never|crash\w*|fails?|wrong hour|missed)\b", re.IGNORECASE)),
    ("low", re.compile(r"\b(?:label|typo|cosmetic|looks)\b", re.IGNORECASE)),
)
_WORD: Final = re.compile(r"[a-z]{3,}")
_COMMON: Final = frozenset(
    re.findall(
        r"\w+", "the and for are was has have with that this from not but all any its they when what who our you"
    )
)


def load_repository(path: Path = REPOSITORY) -> Mapping[str, str]:
    """Load the text of each file. The result maps paths to texts."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load_issues(path: Path = ISSUES) -> Mapping[str, IssueText]:
    """Load the issues, without their references. The result maps addresses to issues."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {
        row["issue_url"]: IssueText(url=row["issue_url"], title=row["issue_title"], body=row["issue_body"])
        for row in rows
    }


def split_into_uncommon_stems(text: str) -> list[str]:
    """Return the words of a text without the most common words.

    Of each word, only the first `STEM_CHARACTERS` letters are returned.
    """
    return [word[:STEM_CHARACTERS] for word in _WORD.findall(text.casefold()) if word not in _COMMON]


class CodeSearch:
    """A search that ranks the files of a repository by the words that they share with a query.

    Rare words count more.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._terms = {
            path: Counter(split_into_uncommon_stems(path) * PATH_WEIGHT + split_into_uncommon_stems(text))
            for path, text in files.items()
        }
        holders = Counter(word for terms in self._terms.values() for word in terms)
        self._rarity = {word: math.log(len(files) / count) for word, count in holders.items()}

    def rank_files(self, query: str) -> tuple[str, ...]:
        """Return the files that share a word with the query, best match first."""
        asked = Counter(split_into_uncommon_stems(query))
        scores = {
            path: sum(
                count * self._rarity[word] * math.log1p(terms[word])
                for word, count in asked.items()
                if word in terms
            )
            for path, terms in self._terms.items()
        }
        return tuple(
            sorted((path for path, score in scores.items() if score > 0), key=lambda path: (-scores[path], path))
        )


@dataclass(frozen=True)
class Action:
    """The agent's next action: a call of a tool, or a question to the user."""

    tool: str
    arguments: Mapping[str, Any]

    @classmethod
    def ask_user(cls, text: str) -> Self:
        """Build an action that asks the user."""
        return cls("ask_user", {"question": text})

    @property
    def question(self) -> str | None:
        """Return the question to the user, or ``None`` for any other action."""
        return self.arguments["question"] if self.tool == "ask_user" else None


class TriageAgent:
    """An agent that works on one issue at a time. ``faults`` can change its behaviour."""

    def __init__(self, files: Mapping[str, str], faults: HealthyAgent | None = None) -> None:
        self._files = files
        self._search = CodeSearch(files)
        self._faults = faults or HealthyAgent()

    def work(self, issue: IssueText) -> Generator[Action, None, Report]:
        """Yield the agent's actions one at a time. The generator returns the report."""
        yield Action("read_issue", {"url": issue.url})
        if self._faults.should_ask_version(issue.text):
            yield Action.ask_user(QUESTION)
        query = " ".join([issue.title] * TITLE_WEIGHT + [issue.body])
        report = yield from self._investigate(issue, query)
        if self._faults.should_search_again(issue.text):
            report = yield from self._investigate(issue, query)
        return self._faults.write_report(report, issue.text, tuple(self._files))

    def _investigate(self, issue: IssueText, query: str) -> Generator[Action, None, Report]:
        yield Action("search_code", {"query": query})
        paths = self._faults.select_files_to_open(issue.text, self._search.rank_files(query)[:MAX_FILES_FOUND])
        for path in paths[:MAX_FILES_READ]:
            yield Action("read_file", {"path": path})
            defect = self._find_defect_and_function(path)
            if defect is not None:
                return self._build_report(issue, path, defect)
        return self._build_unsure_report(issue, paths)

    def _find_defect_and_function(self, path: str) -> tuple[Defect, str] | None:
        text = self._files.get(path, "")
        for defect in DEFECTS:
            match = defect.pattern.search(text)
            if match is not None:
                return defect, _find_enclosing_function_name(text, match.start())
        return None

    def _build_report(self, issue: IssueText, path: str, located: tuple[Defect, str]) -> Report:
        defect, function = located
        return Report(
            severity=estimate_severity(issue.text),
            root_cause=defect.cause.format(at=f"{function}() in {path}") + ".",
            relevant_files=(path,),
            recommended_fix=defect.fix,
            confidence=SURE,
        )

    def _build_unsure_report(self, issue: IssueText, opened: Sequence[str]) -> Report:
        named = " and ".join(opened[:1]) or "The code"
        return Report(
            severity=estimate_severity(issue.text),
            root_cause=f"{named} does not handle what the reporter describes and needs to be made robust.",
            relevant_files=tuple(opened[:1]),
            recommended_fix="Handle the situation explicitly and add a regression test for it.",
            confidence=UNSURE,
        )


def _find_enclosing_function_name(text: str, place: int) -> str:
    """Return the name of the last function that begins before a position.

    If no function begins before the position, for example at a decorator, return the name of the next function.
    """
    before = re.findall(r"def (\w+)\(", text[:place])
    after = re.search(r"def (\w+)\(", text[place:])
    return before[-1] if before else after[1] if after else "module"


def estimate_severity(text: str) -> str:
    """Estimate the severity of an issue from its words."""
    return next((name for name, pattern in _SEVERITIES if pattern.search(text)), "medium")
