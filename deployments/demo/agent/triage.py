"""The triage agent: it searches an invented repository for what an issue speaks of, and reports it. Pure.

It has no model. Its search is a real one, over the files' words; a defect is recognised by a pattern in the code of
a file that the search brought up, such as a lock that is released in no ``finally`` block.
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
MOST_READ: Final = 3
"""Files of a search's result that are opened."""
SHOWN: Final = 5
PATH_WEIGHT: Final = 3
"""A word in a file's path says more about it than one in its text."""
TITLE_WEIGHT: Final = 2
STEM: Final = 5
SURE, UNSURE = 0.9, 0.3
QUESTION: Final = "Which version of berths do you run?"


class IssueText(BaseModel):
    """An issue as its tracker has it."""

    model_config = ConfigDict(frozen=True)

    url: str
    title: str
    body: str

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}\n\n{self.body}"


class Report(BaseModel):
    """What the agent writes about an issue."""

    model_config = ConfigDict(frozen=True)

    severity: str
    root_cause: str
    relevant_files: tuple[str, ...]
    recommended_fix: str
    confidence: float


@dataclass(frozen=True)
class Defect:
    """A pattern in code, what it does to users, and what to do about it. ``{at}`` is the function and its file."""

    pattern: re.Pattern[str]
    cause: str
    fix: str


def _code(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


DEFECTS: Final = (
    Defect(
        _code(r"\.acquire\(\)(?![\s\S]*finally)"),
        "{at} acquires the lock and still holds it when the charge in between raises: the release is not in a "
        "finally block, so every later booking waits for it",
        "Release the lock in a finally block, or hold it as a context manager.",
    ),
    Defect(
        _code(r"datetime\.now\(\)"),
        "{at} takes the server's local time without a time zone and compares it with predictions in the "
        "harbour's time, so every tide is off by the hours between the two",
        "Ask for the time in the harbour's zone: datetime.now(HARBOUR_ZONE).",
    ),
    Defect(
        _code(r"def \w+\([^)]*=\[\]\)"),
        "{at} has a mutable default argument: the list of positions is made once and shared by all invoices, "
        "so positions of one guest turn up on the next guest's invoice",
        "Default to None and make a new list in each call.",
    ),
    Defect(
        _code(r"float\(price\)"),
        "{at} adds prices as binary floating point numbers, and their rounding errors make the sum a cent too "
        "high or low",
        "Add decimal.Decimal values and round once, at the end.",
    ),
    Defect(
        _code(r"except Exception:\s*\n\s*pass"),
        "{at} swallows every exception of the mail server, so a reminder that could not be sent disappears "
        "without a trace",
        "Log the failure and try again later; let what is unexpected raise.",
    ),
    Defect(
        _code(r"range\(len\(\w+\) - 1\)"),
        "{at} has an off-by-one error: its range ends before the last page, which is never written",
        "Go through the pages themselves: for page in pages.",
    ),
    Defect(
        _code(r"timeout=None"),
        "{at} asks the weather service without a timeout, so the start page waits for ever when the service "
        "does not answer",
        "Give the request a timeout of a few seconds, and draw the page without the wind.",
    ),
    Defect(
        _code(r"execute\(f\""),
        "{at} builds its SQL statement by pasting the name into it, so an apostrophe in a name ends the "
        "string and breaks the query; it is open to SQL injection too",
        "Pass the name as a bound parameter.",
    ),
    Defect(
        _code(r"^@cache$"),
        "{at} is cached for the life of the process: the cache never expires, so a changed price list shows "
        "only after a restart",
        "Clear the cache when the office saves a price list.",
    ),
    Defect(
        _code(r"encode\(\"ascii\", \"ignore\"\)"),
        "{at} encodes the name as ASCII and ignores what does not fit, so letters with an umlaut or an accent "
        "are dropped",
        "Send the label as UTF-8, which the printer reads.",
    ),
    Defect(
        _code(r"self\.attempts \+= 1(?![\s\S]*self\.attempts = 0)"),
        "{at} counts failed attempts and never resets the counter after a success, so the third failure ever "
        "stops the worker",
        "Set attempts to 0 after each booking that was sent.",
    ),
    Defect(
        _code(r"== \"\w+\" or \"\w+\""),
        "{at} compares the role with one string only: the second operand of the or is a text that is always "
        "true, so every user may cancel every booking",
        'Compare with both roles: user.role in ("office", "master").',
    ),
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
    """Each file's text by its path."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load_issues(path: Path = ISSUES) -> Mapping[str, IssueText]:
    """The issues by their addresses, without what is known about them."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {
        row["issue_url"]: IssueText(url=row["issue_url"], title=row["issue_title"], body=row["issue_body"])
        for row in rows
    }


def stems(text: str) -> list[str]:
    """The words of a text, without the commonest, cut to their first letters."""
    return [word[:STEM] for word in _WORD.findall(text.casefold()) if word not in _COMMON]


class CodeSearch:
    """Ranks the files of a repository by the words that they share with a query; rare words count more."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._terms = {path: Counter(stems(path) * PATH_WEIGHT + stems(text)) for path, text in files.items()}
        holders = Counter(word for terms in self._terms.values() for word in terms)
        self._rarity = {word: math.log(len(files) / count) for word, count in holders.items()}

    def ranked(self, query: str) -> tuple[str, ...]:
        """The files that share a word with the query, best first."""
        asked = Counter(stems(query))
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
    """What the agent does next: calls a tool, or stops to ask the user."""

    tool: str
    arguments: Mapping[str, Any]

    @classmethod
    def question(cls, text: str) -> Self:
        """A question to the user."""
        return cls("ask_user", {"question": text})

    @property
    def asks(self) -> str | None:
        """The question, if it is one."""
        return self.arguments["question"] if self.tool == "ask_user" else None


class TriageAgent:
    """Works on one issue at a time; ``faults`` can spoil it."""

    def __init__(self, files: Mapping[str, str], faults: HealthyAgent | None = None) -> None:
        self._files = files
        self._search = CodeSearch(files)
        self._faults = faults or HealthyAgent()

    def work(self, issue: IssueText) -> Generator[Action, None, Report]:
        """The agent's actions, one after the other; the report is what the generator returns."""
        yield Action("read_issue", {"url": issue.url})
        if self._faults.lacks_version(issue.text):
            yield Action.question(QUESTION)
        query = " ".join([issue.title] * TITLE_WEIGHT + [issue.body])
        report = yield from self._investigated(issue, query)
        if self._faults.forgets_its_search(issue.text):
            report = yield from self._investigated(issue, query)
        return self._faults.written(report, issue.text, tuple(self._files))

    def _investigated(self, issue: IssueText, query: str) -> Generator[Action, None, Report]:
        yield Action("search_code", {"query": query})
        found = self._faults.files_to_open(issue.text, self._search.ranked(query)[:SHOWN])
        for path in found[:MOST_READ]:
            yield Action("read_file", {"path": path})
            defect = self._defect_in(path)
            if defect is not None:
                return self._report(issue, path, defect)
        return self._nothing_found(issue, found)

    def _defect_in(self, path: str) -> tuple[Defect, str] | None:
        text = self._files.get(path, "")
        for defect in DEFECTS:
            match = defect.pattern.search(text)
            if match is not None:
                return defect, _function_at(text, match.start())
        return None

    def _report(self, issue: IssueText, path: str, found: tuple[Defect, str]) -> Report:
        defect, function = found
        return Report(
            severity=severity_of(issue.text),
            root_cause=defect.cause.format(at=f"{function}() in {path}") + ".",
            relevant_files=(path,),
            recommended_fix=defect.fix,
            confidence=SURE,
        )

    def _nothing_found(self, issue: IssueText, opened: Sequence[str]) -> Report:
        named = " and ".join(opened[:1]) or "The code"
        return Report(
            severity=severity_of(issue.text),
            root_cause=f"{named} does not handle what the reporter describes and needs to be made robust.",
            relevant_files=tuple(opened[:1]),
            recommended_fix="Handle the situation explicitly and add a regression test for it.",
            confidence=UNSURE,
        )


def _function_at(text: str, place: int) -> str:
    """The name of the function around a place, or of the one right behind it (for a decorator)."""
    before = re.findall(r"def (\w+)\(", text[:place])
    after = re.search(r"def (\w+)\(", text[place:])
    return before[-1] if before else after[1] if after else "module"


def severity_of(text: str) -> str:
    """How urgent an issue sounds."""
    return next((name for name, pattern in _SEVERITIES if pattern.search(text)), "medium")
