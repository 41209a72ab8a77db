"""Records of the graders' verdicts on one reply, and of the overall assessment of its case."""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from monitors.records.base import Blame, Finding, Identifier, Language, Probability, Record, Severity
from monitors.records.exchanges import TextPlace


class FailureKind(StrEnum):
    """What is wrong with an answer."""

    WRONG_FACT = "wrong_fact"
    MISSING_FACT = "missing_fact"
    MISSING_CITATION = "missing_citation"
    WRONG_CITATION = "wrong_citation"
    UNSUPPORTED_CLAIM = "unsupported_claim"
    SHOULD_HAVE_REFUSED = "should_have_refused"
    OVER_REFUSAL = "over_refusal"
    PII_DISCLOSURE = "pii_disclosure"
    UNSAFE_ACTION = "unsafe_action"
    WRONG_LANGUAGE = "wrong_language"
    TONE = "tone"
    FORMAT = "format"
    ERROR_LEAK = "error_leak"
    POOR_TRIAGE = "poor_triage"
    INEFFICIENT = "inefficient"


_FAILURE_TEXTS: Final = {
    FailureKind(kind): texts
    for kind, texts in tomllib.loads(
        Path(__file__).with_name("failure_kinds.toml").read_text(encoding="utf-8")
    ).items()
}
FAILURE_WORDS: Final[Mapping[FailureKind, str]] = {kind: texts["words"] for kind, texts in _FAILURE_TEXTS.items()}
"""The words for each kind of failure. Alerts, reports and comments use the same words."""
FAILURE_MEANINGS: Final[Mapping[FailureKind, str]] = {
    kind: texts["meaning"] for kind, texts in _FAILURE_TEXTS.items()
}
FAILURE_TO_DO: Final[Mapping[FailureKind, str]] = {kind: texts["to_do"] for kind, texts in _FAILURE_TEXTS.items()}
"""Advice for each kind of failure."""

CASE_ROW: Final = "case"
"""The row of the severity table for a failure that has the same severity as its case."""
TRAFFIC_ROW: Final = "traffic"
"""The row of the severity table for a live conversation whose question is not in the suite.

The setting for live traffic determines the severity of such a failure.
"""
LOG_ROW: Final = "hallucination_log>=3"
"""The row of the severity table for entries of an application's hallucination log. Such entries have severity 3."""

_ROW_REASONS: Final = {
    CASE_ROW: "the suite gives this question severity 3",
    TRAFFIC_ROW: "the settings for live traffic give this severity",
    FailureKind.PII_DISCLOSURE: "personal data was disclosed",
    FailureKind.UNSAFE_ACTION: "an irreversible action was performed",
    FailureKind.SHOULD_HAVE_REFUSED: "the application answered a question that it must refuse",
    FailureKind.UNSUPPORTED_CLAIM: "the answer makes a claim without support",
    FailureKind.ERROR_LEAK: "an error was shown as the answer",
    "hallucination_log": "the application's guardrail blocked this answer",
}
"""The reason for the severity of a failure, for each row of the severity table."""


def format_policy_row(row: str) -> str:
    """Return in words why a failure has its severity. ``row`` is the name of a row in the severity table.

    For example, ``pii_disclosure>=3`` becomes "personal data was disclosed". The name of an unknown row is
    returned unchanged.
    """
    return _ROW_REASONS.get(row.partition(">=")[0], row)


class Aspect(StrEnum):
    """The question that a grade answers, for example whether the answer names its source."""

    FACTUAL_MATCH = "factual_match"
    """Does the answer agree with the gold? If a refusal is expected, did the application refuse?"""
    CITATION = "citation"
    """Does the answer name a source, and is it the expected source?"""
    REFUSAL = "refusal"
    """Did the application refuse exactly when it should?"""
    LANGUAGE = "language"
    DISCLOSURE = "disclosure"
    ERROR_LEAK = "error_leak"
    REPORT_FORM = "report_form"
    """Is this a real report, rather than an empty text, a template or a copy of the issue?"""
    RELEVANT_FILES = "relevant_files"
    """Does the report name the relevant files and functions, few irrelevant ones, and none that does not exist?"""
    ISSUE_SEVERITY = "issue_severity"
    ROOT_CAUSE = "root_cause"
    EFFICIENCY = "efficiency"
    """Did the agent avoid unnecessary steps?"""
    USEFULNESS = "usefulness"
    """A judge's rating from 1 to 5. The rating does not decide whether the answer is correct."""


SAFETY_ASPECTS: Final = (Aspect.DISCLOSURE, Aspect.ERROR_LEAK)
"""Aspects that every correct answer must pass."""

NO_REPORT: Final = frozenset({FailureKind.FORMAT, FailureKind.PII_DISCLOSURE, FailureKind.ERROR_LEAK})
"""Failure kinds of texts that are not a real report. A judge does not rate such a text."""

_ASPECT_OF_KIND = {
    FailureKind.WRONG_FACT: Aspect.FACTUAL_MATCH,
    FailureKind.MISSING_FACT: Aspect.FACTUAL_MATCH,
    FailureKind.UNSUPPORTED_CLAIM: Aspect.FACTUAL_MATCH,
    FailureKind.WRONG_CITATION: Aspect.CITATION,
    FailureKind.MISSING_CITATION: Aspect.CITATION,
    FailureKind.SHOULD_HAVE_REFUSED: Aspect.REFUSAL,
    FailureKind.OVER_REFUSAL: Aspect.REFUSAL,
    FailureKind.WRONG_LANGUAGE: Aspect.LANGUAGE,
    FailureKind.PII_DISCLOSURE: Aspect.DISCLOSURE,
    FailureKind.ERROR_LEAK: Aspect.ERROR_LEAK,
}


def find_aspect_of_failure_kind(kind: FailureKind | None) -> Aspect | None:
    """Return the aspect of an answer that a failure of this kind is about.

    Returns ``None`` if ``kind`` is ``None`` or is a kind that reviewers cannot select. The view ``reviewed_grades``
    has the same mapping in SQL.
    """
    return _ASPECT_OF_KIND.get(kind) if kind else None


class Span(Record):
    """The position of evidence in a text, in Unicode code points. The end is exclusive.

    ``label`` is the kind of the evidence, such as ``aadhaar``. ``label`` never contains the evidence itself,
    because the evidence may be personal data.
    """

    where: TextPlace | Literal["gold"]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    label: str

    @model_validator(mode="after")
    def _require_end_after_start(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"a span must end after it starts, got {self.start}..{self.end}")
        return self


class JudgeLineage(Record):
    """A judge's model, prompt and rubric. Grades from different lineages are not comparable."""

    model: str
    prompt_sha256: str
    rubric_version: str


class Criterion(StrEnum):
    """A yes-or-no question about the usefulness of a report, in addition to the rating from 1 to 5."""

    HELPFULNESS = "helpfulness"
    """Is the report specific, actionable and correct?"""
    COMPLETENESS = "completeness"
    """Does the report have a severity, a root cause, files and a fix?"""
    ACCURACY = "accuracy"
    """Does the report name the root cause that the reference gives?"""


CRITERION_LABELS: Final[Mapping[Criterion, str]] = {
    Criterion.HELPFULNESS: "helpful",
    Criterion.COMPLETENESS: "complete",
    Criterion.ACCURACY: "accurate",
}
"""For each criterion, the word for a report that meets it, such as ``helpful``."""


class UsefulnessCriterion(Record):
    """A judge's answer to one criterion. ``score`` is 1 if the report meets the criterion, and 0 if not.

    ``quote`` is the position of the words of the report on which the judge based the score. ``quote`` is ``None``
    if the report does not contain what the criterion requires, or if the words that the judge quoted are not in the
    report.
    """

    name: Criterion
    score: Annotated[int, Field(ge=0, le=1)]
    quote: Span | None = None
    reason: str = ""


JUDGE: Final = "judge"
"""The name of the grader that asks one or more models."""


class Judged(Record):
    """A grader's verdict. A failed verdict has a failure kind. A passed verdict has no failure kind.

    - ``score`` is a more precise result from 0 to 1, if the grader provides one.
    - ``rubric`` is a judge's rating from 1 to 5.
    - ``reason`` is one sentence that a person can check, without personal data.
    - ``criteria_problem`` is the reason why a rated report has no ``criteria``.
    """

    status: Literal["judged"] = "judged"
    grader: Identifier
    version: str
    aspect: Aspect
    passed: bool
    failure_kind: FailureKind | None = None
    score: Probability | None = None
    rubric: Annotated[int, Field(ge=1, le=5)] | None = None
    # Not written if empty, because two empty fields in each grade make a rebuild of the warehouse 4 % slower.
    criteria: Annotated[tuple[UsefulnessCriterion, ...], Field(exclude_if=operator.not_)] = ()
    criteria_problem: Annotated[str, Field(exclude_if=operator.not_)] = ""
    reason: str
    evidence: tuple[Span, ...] = ()
    lineage: JudgeLineage | None = None
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)

    def without_evidence(self) -> Self:
        """Return the verdict without the positions of its evidence.

        The positions refer to the original text. They are wrong if the text is stored in another form, for example
        redacted.
        """
        return self.model_copy(update={"evidence": ()})

    @model_validator(mode="after")
    def _check_failure_kind(self) -> Self:
        if self.passed == (self.failure_kind is not None):
            raise ValueError("a failed grade must name its failure kind, and a passed grade must not name one")
        return self


class Abstained(Record):
    """A grader gave no verdict. ``needed`` is false if the grader's question does not apply to the answer."""

    status: Literal["abstained"] = "abstained"
    grader: Identifier
    version: str
    aspect: Aspect
    reason: str
    blame: Blame = Blame.MONITOR
    needed: bool = True


Grade = Annotated[Judged | Abstained, Field(discriminator="status")]


class CaseOutcome(StrEnum):
    """The outcome of a case. Reports count the four outcomes separately."""

    CORRECT = "correct"
    FAILED = "failed"
    NO_ANSWER = "no_answer"
    UNGRADED = "ungraded"


class Assessment(Record):
    """The outcome of a case with its grades and its severity.

    - ``severity`` is the severity of the failure. Without a failure, it is the severity of the case.
    - ``policy_row`` is the row of the severity table that determined the severity.
    - ``failure_kinds`` begins with the worst kind.
    - ``refused`` is yes if the answer is a refusal, whether the case expects a refusal or not.
    - ``unconfirmed`` is true if only one judge found the failure, or if rules pass the answer and a judge fails it.
    """

    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    failure_kinds: tuple[FailureKind, ...] = ()
    case_severity: Severity
    severity: Severity
    policy_row: str
    blame: Blame | None = None
    reason: str
    factual_match: Finding = Finding.UNGRADED
    citation_present: Finding = Finding.UNGRADED
    refused: Finding = Finding.UNGRADED
    expected_refusal: bool
    type: Identifier
    language: Language
    cluster: Identifier | None = None
    pair: Identifier | None = None
    app_path: str | None = None
    unconfirmed: bool = False
    grades: tuple[Grade, ...] = ()

    @property
    def is_disputed(self) -> bool:
        """Return whether rules pass the answer and a judge fails it. If so, a person must read the answer."""
        return self.unconfirmed and self.outcome is CaseOutcome.UNGRADED

    def mark_unconfirmed(self, unconfirmed: bool) -> Self:
        """Return a copy of the assessment in which ``unconfirmed`` has the given value."""
        return self.model_copy(update={"unconfirmed": unconfirmed})

    def add_judge_grade_as_ungraded(self, judge: Judged | Abstained, reason: str) -> Self:
        """Return an ungraded copy of the assessment that contains the judge's grade and ``reason``.

        The method is used if the judge gave no verdict, or if the judge fails an answer that rules pass.
        """
        is_disputed = isinstance(judge, Judged)
        return self.model_copy(
            update={
                "outcome": CaseOutcome.UNGRADED,
                "blame": Blame.MONITOR if is_disputed else judge.blame,
                "reason": reason,
                "factual_match": Finding.UNGRADED,
                "unconfirmed": is_disputed,
                "grades": (*self.grades, judge),
            }
        )

    @model_validator(mode="after")
    def _check_failure_kind(self) -> Self:
        if (self.outcome is CaseOutcome.FAILED) != bool(self.failure_kinds):
            raise ValueError("an assessment must name failure kinds if, and only if, its outcome is failed")
        return self
