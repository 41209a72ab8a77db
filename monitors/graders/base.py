"""Define a grader, its two results (verdict or abstention), and the grader settings of a target."""

from __future__ import annotations

import re
from typing import Annotated, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from monitors.facts.citations import DEFAULT_PATTERNS, is_citation_form_or_raise
from monitors.facts.quantities.locales import validate_currency, validate_locale
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


def _validate_citation_pattern(written: str) -> str:
    return written if is_citation_form_or_raise(written) else _validate_nonempty_pattern(written)


def _validate_nonempty_pattern(written: str) -> str:
    try:
        pattern = re.compile(written)
    except re.error as error:
        raise ValueError(f"a valid regular expression, not {written!r} ({error})") from None
    if pattern.match(""):
        raise ValueError(f"a pattern that requires at least one character; {written!r} also matches an empty text")
    return written


Pattern = Annotated[str, AfterValidator(_validate_nonempty_pattern)]
"""A valid regular expression that does not match an empty string."""

CitationPattern = Annotated[str, AfterValidator(_validate_citation_pattern)]
"""The name of a citation form, or a regular expression."""


class TriageSettings(BaseModel):
    """Settings in ``[targets.NAME.graders.triage]``: the thresholds at which a report on an issue passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_files_f1: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5,
        description="minimum F1 (a score from 0 to 1 that combines precision and recall) of the files or "
        "functions that a report names. For example, with 0.5 and one relevant file, a report passes if it names "
        "this file and at most two others. A list of all files of a repository has an F1 far below 0.5",
    )
    min_keywords: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5,
        description="minimum share of the `expected_keywords` that a report must contain. For the other keywords, "
        "the report may use synonyms",
    )
    max_steps_factor: Annotated[float, Field(ge=1)] = Field(
        default=2,
        description="maximum number of steps for a case without `max_steps`, as a multiple of its "
        "`shortest_path`. With 2, an agent may take twice as many steps as the shortest path has",
    )


class GraderSettings(BaseModel):
    """Settings in ``[targets.NAME.graders]``: the settings of the deterministic graders for a target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation_required: bool = Field(
        default=False,
        description="whether every answer must name its source, except an expected refusal. `lookout doctor` "
        "proposes this setting if it finds sources in answers",
    )
    citation_patterns: tuple[CitationPattern, ...] = Field(
        default=DEFAULT_PATTERNS,
        min_length=1,
        description="the formats in which answers name a source. A format is the name of a "
        "[form](words.md#citations), or a regular expression with a group `source` around the name of the source. "
        "`lookout doctor` proposes the form that it finds in answers",
    )
    locale: Annotated[str, AfterValidator(validate_locale)] | None = Field(
        default=None,
        description="language and region of the app (en-IN, de-DE). They decide whether 1.500 means 1500 or 1.5. "
        "Without this setting, the format of the number and the language of the case decide",
    )
    currency: Annotated[str, AfterValidator(validate_currency)] | None = Field(
        default=None,
        description="currency (ISO 4217 code) of amounts without a currency or with an ambiguous sign ($, Rs). "
        "Default: the currency of the locale's region. Lookout never changes a currency that the text names",
    )
    account_patterns: tuple[Pattern, ...] = Field(
        default=(),
        description="regular expressions for the application's own account, policy or customer numbers, which are "
        "personal data",
    )
    public_contacts: tuple[Annotated[str, Field(min_length=3)], ...] = Field(
        default=(),
        description="phone numbers, postal addresses and e-mail addresses that the application may publish",
    )
    triage: TriageSettings = Field(
        default=TriageSettings(), description="the thresholds at which a report on an issue passes"
    )


class Grader(Protocol):
    """Grade one aspect of one exchange. A grader abstains if the evidence is not clear.

    ``version`` must change if a new or changed rule can change the verdict on an exchange.
    """

    @property
    def name(self) -> str:
        """Return the short name of the grader, which is shown with each grade."""
        ...

    @property
    def version(self) -> str:
        """Return the version of the grader's rules."""
        ...

    @property
    def aspect(self) -> Aspect:
        """Return the aspect that the grader grades."""
        ...

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Return a verdict on ``exchange.graded_text`` for ``case``, or an abstention with its reason."""
        ...


def give_verdict(by: Grader, kind: FailureKind | None, reason: str, evidence: tuple[Span, ...] = ()) -> Judged:
    """Return a grader's verdict. ``kind`` is the kind of the failure; if it is ``None``, the exchange passes."""
    return Judged(
        grader=by.name,
        version=by.version,
        aspect=by.aspect,
        passed=kind is None,
        failure_kind=kind,
        reason=reason,
        evidence=evidence,
    )


STATEMENT = "the gold answer is a statement, which a reply may express in other words"
"""The reason for an abstention if the gold is a statement, and the reply has none of the gold's words.

Only a judge can grade such a reply, because it may express the statement in other words.
"""


SAYS_MORE = "the reply has the figures or the yes or no of the gold answer, but may lack some of its other content"
"""The reason for an abstention if the reply has the quantities of the gold, but not the rest of the gold."""

UNCLEAR = "the reply does not clearly say yes or no"
"""The reason for an abstention if a reply to a yes-or-no question says neither yes nor no, or says both.

Only a judge can grade such a reply.
"""

CONDITION = "the reply does not begin with yes or no, and rules cannot decide which one it means"
"""The reason for an abstention if a reply to a yes-or-no question does not begin with yes or no.

The answer in the reply depends on a condition or on words of the gold, so only a judge can grade it.
"""

SENTENCE = "rules cannot compare a gold answer of this length"
"""The reason for an abstention if the gold has many words. Only a judge can grade the reply.

A reply that repeats the gold word for word passes nevertheless.
"""

UNREAD_GOLD = "a yes or no, names and denials are"
"""The ``skill`` for `format_unsupported_language_reason` if the gold has no amount."""


def abstain(by: Grader, reason: str, blame: Blame = Blame.MONITOR) -> Abstained:
    """Return an abstention with its reason. ``blame`` is the party that caused the abstention."""
    return Abstained(grader=by.name, version=by.version, aspect=by.aspect, reason=reason, blame=blame)


def abstain_as_not_needed(by: Grader, reason: str) -> Abstained:
    """Return an abstention of a grader that does not apply to a case. The reply can pass without this grade."""
    return abstain(by, reason).model_copy(update={"needed": False})


def abstain_for_unsupported_language(by: Grader, skill: str) -> Abstained:
    """Return an abstention for a case in an unsupported language.

    ``skill`` names what the rules cannot read in this language, followed by a verb: ``refusals are``.
    """
    return abstain(by, format_unsupported_language_reason(skill))


def format_unsupported_language_reason(skill: str) -> str:
    """Return the reason for an abstention on a case in an unsupported language.

    ``skill`` names what the rules cannot read in this language, followed by a verb: ``refusals are``.
    """
    return f"{skill} not readable by rules in the language of this case, which is not English, Hindi or Hinglish"
