"""Grades a report on an issue against what is known about the issue, without a model.

Each grader answers for one part, and abstains where the reference does not have it. What a report copies from the
issue is no finding of its own.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from functools import lru_cache
from typing import Final

from monitors.facts.issue_questions import QuestionWorth, read_questions
from monitors.facts.source_files import agreement, canonical
from monitors.facts.tool_calls import calls_of, repeated
from monitors.facts.triage_report import fold_case, read_report, stands_in
from monitors.graders.base import Grader, TriageSettings, abstain, give_verdict
from monitors.plural import plural
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged
from monitors.records.triage import IssueSeverity, TriageReport, TriageTask

FEWEST_TOKENS: Final = 8
"""A report with fewer words of its own tells nobody what to do."""

read = lru_cache(maxsize=8)(read_report)
"""A report is read once, however many graders ask for it."""


class TriageGrader(ABC):
    """What graders of reports share: their settings, and that they abstain on a case that is no issue."""

    name: str
    version = "1"
    aspect: Aspect

    def __init__(self, settings: TriageSettings) -> None:
        self._settings = settings

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the report."""
        if case.triage is None:
            return abstain(self, "the case is a question, and no issue")
        return self._grade(case.triage, exchange)

    @abstractmethod
    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        """Grade the report against what is known of its issue."""

    def _give_scored(self, kind: FailureKind | None, reason: str, score: float) -> Judged:
        return give_verdict(self, kind, reason).model_copy(update={"score": score})


class ReportFormGrader(TriageGrader):
    """Whether there is a report at all: not an empty one, a template, or the issue said back."""

    name = "report_form"
    aspect = Aspect.REPORT_FORM

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged:
        report = read(exchange.graded_text)
        parts = (report.severity, report.root_cause, report.recommended_fix, report.files or None)
        if all(part is None for part in parts):
            what = "says nothing" if not exchange.graded_text.strip() else "has no part that a report needs"
            return give_verdict(self, FailureKind.FORMAT, f"the report {what}: severity, root cause, files, fix")
        if report.root_cause is None and report.recommended_fix is None:
            return give_verdict(self, FailureKind.FORMAT, "the report gives neither a root cause nor a fix")
        own = [word for word in _terms(_explained(report)) if word not in _issue_terms(task.issue.text)]
        if len(own) < FEWEST_TOKENS and len(_terms(_explained(report))) > 2 * FEWEST_TOKENS:
            return give_verdict(self, FailureKind.FORMAT, "the report says the issue back and adds nothing")
        return give_verdict(self, None, "a report with a cause or a fix of its own")


class RelevantFilesGrader(TriageGrader):
    """Whether it names the files to look at, and few others. The score is F1 over unique files."""

    name = "relevant_files"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted = task.reference.relevant_files
        if not wanted:
            return abstain(self, "the reference names no file")
        named = read(exchange.graded_text).files or ()
        found = agreement(named, wanted)
        kind = None if found.f1 >= self._settings.min_files_f1 else FailureKind.POOR_TRIAGE
        hit, miss, extra = len(found.found), len(found.missed), len(found.extra)
        counts = f"{hit} of {hit + miss} relevant files named, and {plural(extra, 'other')}"
        reason = counts if named else "no file is named"
        return self._give_scored(kind, reason, found.f1)


class RelevantFunctionsGrader(TriageGrader):
    """Whether it names the functions to look at, where the reference has them. The score is F1."""

    name = "relevant_functions"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted = {_function(one) for one in task.reference.relevant_functions}
        named = {_function(one) for one in read(exchange.graded_text).functions}
        if not wanted or not named:
            return abstain(self, "the reference names no function" if not wanted else "no function is named")
        both = len(wanted & named)
        score = 2 * both / (len(wanted) + len(named))
        kind = None if score >= self._settings.min_files_f1 else FailureKind.POOR_TRIAGE
        reason = f"{both} of {len(wanted)} functions named, and {plural(len(named) - both, 'other')}"
        return self._give_scored(kind, reason, score)


class KnownFilesGrader(TriageGrader):
    """Whether every file it names exists, where the repository's files are known."""

    name = "known_files"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        known, named = task.issue.repository_files, read(exchange.graded_text).files
        if not known or not named:
            return abstain(self, "the repository's files are not known" if not known else "no file is named")
        made_up = agreement(named, known).extra
        if not made_up:
            return give_verdict(self, None, "every file that is named exists")
        return give_verdict(
            self, FailureKind.UNSUPPORTED_CLAIM, f"names files that do not exist: {', '.join(made_up[:5])}"
        )


class IssueSeverityGrader(TriageGrader):
    """Whether the issue's severity is right: 1 when it is, 0.5 one step beside it, which passes, else 0."""

    name = "issue_severity"
    aspect = Aspect.ISSUE_SEVERITY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted, said = task.reference.severity, read(exchange.graded_text).severity
        if wanted is None:
            return abstain(self, "the reference has no severity")
        if said is None:
            return self._give_scored(FailureKind.POOR_TRIAGE, f"no severity is given, {wanted} is right", 0.0)
        order = list(IssueSeverity)
        off = abs(order.index(wanted) - order.index(said))
        kind = None if off <= 1 else FailureKind.POOR_TRIAGE
        return self._give_scored(
            kind, f"severity {said}, {wanted} is right" if off else f"severity {said}", max(0, 1 - off / 2)
        )


class KeywordsGrader(TriageGrader):
    """Whether it states the words that only an investigation finds. The score is their share."""

    name = "keywords"
    aspect = Aspect.ROOT_CAUSE

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        issue = task.issue.text
        telling = [word for word in task.reference.expected_keywords if not stands_in(word, issue)]
        if not telling:
            had = task.reference.expected_keywords
            return abstain(self, "every keyword stands in the issue" if had else "the reference has no keywords")
        report = fold_case(exchange.graded_text)
        stated = [word for word in telling if _states(word, report)]
        score = len(stated) / len(telling)
        kind = None if score >= self._settings.min_keywords else FailureKind.POOR_TRIAGE
        missing = [word for word in telling if word not in stated]
        reason = f"{len(stated)} of {len(telling)} keywords stated" + (
            f", not {', '.join(missing[:5])}" if missing else ""
        )
        return self._give_scored(kind, reason, score)


class StepsGrader(TriageGrader):
    """Whether the agent got there without going astray. The score is the shortest path over the steps taken."""

    name = "steps"
    aspect = Aspect.EFFICIENCY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        shortest = task.reference.shortest_path
        most = task.reference.max_steps or (int(self._settings.max_steps_factor * shortest) if shortest else None)
        evidence = exchange.evidence
        taken = evidence.hops or len(evidence.steps)
        if most is None or not taken:
            return abstain(self, "no limit of steps is known" if most is None else "the steps were not seen")
        if evidence.steps_cut and taken <= most:
            return abstain(self, "not all steps were seen: the agent's events broke off")
        kind = None if taken <= most else FailureKind.INEFFICIENT
        best = f", {shortest} would have done" if shortest and evidence.hops else ""
        again = len(repeated(calls_of(evidence.steps)))
        reason = (
            f"{plural(taken, 'hop' if evidence.hops else 'step')}, at most {most}{best}"
            + (f", {again} of them repeat an earlier one" if again and not evidence.hops else "")
            + (
                f"; {again} of {len(evidence.steps)} steps repeat an earlier call"
                if again and evidence.hops
                else ""
            )
        )
        return self._give_scored(kind, reason, min(1.0, (shortest or most) / taken))


class QuestionsGrader(TriageGrader):
    """Whether the agent stopped to ask for what the issue says. The score is the share of its useful questions.

    It abstains where it is unsure of a question, and no other is needless.
    """

    name = "questions"
    aspect = Aspect.EFFICIENCY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        asked = read_questions(task.issue, exchange.evidence.questions)
        if not asked:
            return abstain(self, "the agent asked nothing")
        worth = Counter(reading.worth for _, reading in asked)
        useful, needless = worth[QuestionWorth.USEFUL], worth[QuestionWorth.NEEDLESS]
        if needless:
            quote = next(one.quote for _, one in asked if one.worth is QuestionWorth.NEEDLESS)
            reason = f"the agent stopped to ask for what the issue says: {quote!r}"
            return self._give_scored(FailureKind.INEFFICIENT, reason, useful / (useful + needless))
        if useful < len(asked):
            return abstain(self, "nothing says whether the issue answers what the agent asked")
        return self._give_scored(None, f"asked {useful}, each for something that the issue does not have", 1.0)


def triage_graders(settings: TriageSettings) -> tuple[Grader, ...]:
    """The graders of a report, its form first."""
    return tuple(
        grader(settings)
        for grader in (
            ReportFormGrader,
            RelevantFilesGrader,
            RelevantFunctionsGrader,
            KnownFilesGrader,
            IssueSeverityGrader,
            KeywordsGrader,
            StepsGrader,
            QuestionsGrader,
        )
    )


def _function(written: str) -> str:
    """``path::Class.method`` with its path in one form."""
    path, _, name = written.partition("::")
    return f"{canonical(path)}::{name.strip('`()')}"


_PATH: Final = re.compile(r"\S*[/\\]\S*")
_DENIED: Final = (
    r"(?:\b(?:not|isn't|wasn't|never)\s+(?:(?:a|an|the|any|due|to|caused|by|because|of|about|related|in)\s+){1,3}"
    r"|\b(?:no|rather than|instead of|unrelated to|nothing to do with|rul(?:es?|ed|ing) out)\s+"
    r"(?:(?:a|an|the|any)\s+)?)"
)
"""What denies the word right behind it. "Not released" says that something is so, so *not* needs a word between."""


def _states(word: str, folded: str) -> bool:
    """Whether a report says a keyword of its own: not only in the name of a file, and not only to deny it."""
    said = folded if "/" in word else _PATH.sub(" ", folded)
    return stands_in(word, re.sub(rf"{_DENIED}{re.escape(fold_case(word))}", " ", said))


def _explained(report: TriageReport) -> str:
    return f"{report.root_cause or ''} {report.recommended_fix or ''}"


def _terms(text: str) -> list[str]:
    return re.findall(r"\w{3,}", fold_case(text))


@lru_cache(maxsize=8)
def _issue_terms(text: str) -> frozenset[str]:
    return frozenset(_terms(text))
