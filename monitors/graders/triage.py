"""Grade a report on an issue against the known facts of the issue, without a model.

Each grader checks one part of the report, and abstains if the reference does not have this part. Text that a report
copies from the issue does not count.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from functools import lru_cache
from typing import Final

from monitors.facts.issue_questions import QuestionWorth, rate_questions
from monitors.facts.source_files import compute_agreement, to_canonical_path
from monitors.facts.tool_calls import collect_calls_with_known_arguments, find_repeated_call_indexes
from monitors.facts.triage_report import fold_case, has_keyword, read_report
from monitors.graders.base import Grader, TriageSettings, abstain, give_verdict
from monitors.plural import plural
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged
from monitors.records.triage import IssueSeverity, TriageReport, TriageTask

MIN_TOKENS: Final = 8
"""Minimum number of words of a report that do not occur in the issue. A report with fewer new words is useless."""

read_report_once = lru_cache(maxsize=8)(read_report)
"""Return the parts of a report. The result is cached, so that all graders together parse a report only once."""


class TriageGrader(ABC):
    """The base class of the graders for reports. These graders abstain on cases that are not issues."""

    name: str
    version = "1"
    aspect: Aspect

    def __init__(self, settings: TriageSettings) -> None:
        self._settings = settings

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the report in the reply. Abstain if the case is not an issue."""
        if case.triage is None:
            return abstain(self, "the case is a question, not an issue")
        return self._grade(case.triage, exchange)

    @abstractmethod
    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        """Grade the report against the reference of its issue."""

    def _give_verdict_with_score(self, kind: FailureKind | None, reason: str, score: float) -> Judged:
        return give_verdict(self, kind, reason).model_copy(update={"score": score})


class ReportFormGrader(TriageGrader):
    """Fail a reply that is not a report: it is empty, an unfilled template, or a copy of the issue."""

    name = "report_form"
    aspect = Aspect.REPORT_FORM

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged:
        report = read_report_once(exchange.graded_text)
        parts = (report.severity, report.root_cause, report.recommended_fix, report.files or None)
        if all(part is None for part in parts):
            fault = "is empty" if not exchange.graded_text.strip() else "has no required part"
            return give_verdict(
                self, FailureKind.FORMAT, f"the report {fault}; required are severity, root cause, files and fix"
            )
        if report.root_cause is None and report.recommended_fix is None:
            return give_verdict(self, FailureKind.FORMAT, "the report has neither a root cause nor a fix")
        own = [
            word
            for word in _list_longer_words(_join_cause_and_fix(report))
            if word not in _list_issue_terms(task.issue.title_and_body)
        ]
        if len(own) < MIN_TOKENS and len(_list_longer_words(_join_cause_and_fix(report))) > 2 * MIN_TOKENS:
            return give_verdict(self, FailureKind.FORMAT, "the report only repeats the issue")
        return give_verdict(self, None, "the report contains a root cause or a fix")


class RelevantFilesGrader(TriageGrader):
    """Grade whether the report names the relevant files and few others. The score is F1; each file counts once."""

    name = "relevant_files"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted = task.reference.relevant_files
        if not wanted:
            return abstain(self, "the reference names no file")
        named = read_report_once(exchange.graded_text).files or ()
        overlap = compute_agreement(named, wanted)
        kind = None if overlap.f1 >= self._settings.min_files_f1 else FailureKind.POOR_TRIAGE
        hit, miss, extra = len(overlap.found), len(overlap.missed), len(overlap.extra)
        counts = f"{hit} of {hit + miss} relevant files named, and {plural(extra, 'other')}"
        reason = counts if named else "the report names no file"
        return self._give_verdict_with_score(kind, reason, overlap.f1)


class RelevantFunctionsGrader(TriageGrader):
    """Grade whether the report names the relevant functions and few others. The score is F1.

    The grader abstains if the reference or the report names no function.
    """

    name = "relevant_functions"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted = {_normalise_function_name(function) for function in task.reference.relevant_functions}
        named = {
            _normalise_function_name(function) for function in read_report_once(exchange.graded_text).functions
        }
        if not wanted or not named:
            return abstain(
                self, "the reference names no function" if not wanted else "the report names no function"
            )
        both = len(wanted & named)
        score = 2 * both / (len(wanted) + len(named))
        kind = None if score >= self._settings.min_files_f1 else FailureKind.POOR_TRIAGE
        reason = f"{both} of {len(wanted)} relevant functions named, and {plural(len(named) - both, 'other')}"
        return self._give_verdict_with_score(kind, reason, score)


class KnownFilesGrader(TriageGrader):
    """Grade whether all files in the report exist in the repository.

    The grader abstains if the report names no file, or the files of the repository are unknown.
    """

    name = "known_files"
    aspect = Aspect.RELEVANT_FILES

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        repository_files, named = task.issue.repository_files, read_report_once(exchange.graded_text).files
        if not repository_files or not named:
            return abstain(
                self,
                "the files of the repository are unknown" if not repository_files else "the report names no file",
            )
        made_up = compute_agreement(named, repository_files).extra
        if not made_up:
            return give_verdict(self, None, "all files that the report names exist")
        return give_verdict(
            self,
            FailureKind.UNSUPPORTED_CLAIM,
            f"the report names files that do not exist: {', '.join(made_up[:5])}",
        )


class IssueSeverityGrader(TriageGrader):
    """Grade the severity in the report.

    The score is 1 for the right severity, 0.5 for the severity next to it, and 0 for any other. A score of 0.5
    passes.
    """

    name = "issue_severity"
    aspect = Aspect.ISSUE_SEVERITY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        wanted, severity = task.reference.severity, read_report_once(exchange.graded_text).severity
        if wanted is None:
            return abstain(self, "the reference has no severity")
        if severity is None:
            return self._give_verdict_with_score(
                FailureKind.POOR_TRIAGE, f"the report has no severity; {wanted} is right", 0.0
            )
        order = list(IssueSeverity)
        off = abs(order.index(wanted) - order.index(severity))
        kind = None if off <= 1 else FailureKind.POOR_TRIAGE
        return self._give_verdict_with_score(
            kind,
            f"the report has severity {severity}; {wanted} is right" if off else f"severity {severity}",
            max(0, 1 - off / 2),
        )


class KeywordsGrader(TriageGrader):
    """Grade whether the report states the expected keywords. Keywords that are in the issue do not count.

    The score is the share of the remaining keywords that the report states.
    """

    name = "keywords"
    aspect = Aspect.ROOT_CAUSE

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        issue = task.issue.title_and_body
        telling = [word for word in task.reference.expected_keywords if not has_keyword(word, issue)]
        if not telling:
            had = task.reference.expected_keywords
            return abstain(
                self,
                "the issue already contains all expected keywords"
                if had
                else "the reference has no expected keywords",
            )
        report = fold_case(exchange.graded_text)
        stated = [word for word in telling if _contains_stated_keyword(word, report)]
        score = len(stated) / len(telling)
        kind = None if score >= self._settings.min_keywords else FailureKind.POOR_TRIAGE
        missing = [word for word in telling if word not in stated]
        reason = f"{len(stated)} of {len(telling)} keywords stated" + (
            f", not {', '.join(missing[:5])}" if missing else ""
        )
        return self._give_verdict_with_score(kind, reason, score)


class StepsGrader(TriageGrader):
    """Grade whether the agent took few steps.

    The score is the length of the shortest path divided by the number of steps that the agent took, but at most 1.
    If the shortest path is unknown, the maximum number of steps replaces its length.
    """

    name = "steps"
    aspect = Aspect.EFFICIENCY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        shortest = task.reference.shortest_path
        most = task.reference.max_steps or (int(self._settings.max_steps_factor * shortest) if shortest else None)
        evidence = exchange.evidence
        taken = evidence.hops or len(evidence.steps)
        if most is None or not taken:
            return abstain(
                self,
                "the maximum number of steps is unknown"
                if most is None
                else ("Lookout did not receive the agent's steps"),
            )
        if evidence.steps_cut and taken <= most:
            return abstain(self, "Lookout did not receive all steps, because the agent's event stream ended early")
        kind = None if taken <= most else FailureKind.INEFFICIENT
        best = f"; {shortest} are enough" if shortest and evidence.hops else ""
        again = len(find_repeated_call_indexes(collect_calls_with_known_arguments(evidence.steps)))
        reason = (
            f"{plural(taken, 'hop' if evidence.hops else 'step')}, at most {most}{best}"
            + (f", {again} of them repeat an earlier one" if again and not evidence.hops else "")
            + (
                f"; {again} of {len(evidence.steps)} steps repeat an earlier call"
                if again and evidence.hops
                else ""
            )
        )
        return self._give_verdict_with_score(kind, reason, min(1.0, (shortest or most) / taken))


class QuestionsGrader(TriageGrader):
    """Grade whether the agent asked only for facts that are not in the issue.

    The score is the share of useful questions. The grader abstains if it cannot classify a question and no other
    question is needless.
    """

    name = "questions"
    aspect = Aspect.EFFICIENCY

    def _grade(self, task: TriageTask, exchange: Exchange) -> Judged | Abstained:
        asked = rate_questions(task.issue, exchange.evidence.questions)
        if not asked:
            return abstain(self, "the agent asked no question")
        worth = Counter(reading.worth for _, reading in asked)
        useful, needless = worth[QuestionWorth.USEFUL], worth[QuestionWorth.NEEDLESS]
        if needless:
            quote = next(reading.quote for _, reading in asked if reading.worth is QuestionWorth.NEEDLESS)
            reason = f"the agent asked a question that the issue answers: {quote!r}"
            return self._give_verdict_with_score(FailureKind.INEFFICIENT, reason, useful / (useful + needless))
        if useful < len(asked):
            return abstain(self, "rules cannot decide whether the issue answers the agent's questions")
        return self._give_verdict_with_score(
            None, f"the issue does not answer the agent's {plural(useful, 'question')}", 1.0
        )


def build_triage_graders(settings: TriageSettings) -> tuple[Grader, ...]:
    """Return the graders of a report. The grader of the report's form comes first."""
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


def _normalise_function_name(written: str) -> str:
    """Return ``path::Class.method`` with a canonical path."""
    path, _, name = written.partition("::")
    return f"{to_canonical_path(path)}::{name.strip('`()')}"


_PATH: Final = re.compile(r"\S*[/\\]\S*")
_DENIAL: Final = (
    r"(?:\b(?:not|isn't|wasn't|never)\s+(?:(?:a|an|the|any|due|to|caused|by|because|of|about|related|in)\s+){1,3}"
    r"|\b(?:no|rather than|instead of|unrelated to|nothing to do with|rul(?:es?|ed|ing) out)\s+"
    r"(?:(?:a|an|the|any)\s+)?)"
)
"""Words that deny the next word.

After "not", a word such as "the" must follow, because "not released" is a finding and not a denial.
"""


def _contains_stated_keyword(word: str, folded: str) -> bool:
    """Return whether a report contains a keyword that is neither denied nor part of a file name."""
    stated_text = folded if "/" in word else _PATH.sub(" ", folded)
    return has_keyword(word, re.sub(rf"{_DENIAL}{re.escape(fold_case(word))}", " ", stated_text))


def _join_cause_and_fix(report: TriageReport) -> str:
    return f"{report.root_cause or ''} {report.recommended_fix or ''}"


def _list_longer_words(text: str) -> list[str]:
    return re.findall(r"\w{3,}", fold_case(text))


@lru_cache(maxsize=8)
def _list_issue_terms(text: str) -> frozenset[str]:
    return frozenset(_list_longer_words(text))
