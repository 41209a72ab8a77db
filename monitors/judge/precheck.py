"""Check an answer before a judge reads it.

Judges may pass answers without content: a colon, "Solution", "Let's solve this step by step", the repeated
question, a grading prompt. Such answers fail here by rule, and no judge is asked.

Other answers address the judge, claim a severity or ask for an alert. The precheck reports such a sentence as a
claim, which has no effect on the grade.

The patterns match normalised text in lower case. They cover the published kinds of attack (prompt injection,
"master keys", null models) in English, Hindi and Hinglish. They match texts that address a judge. A text that only
mentions scores, notices or marks, as many insurance answers do, does not match.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from monitors.facts.citations import find_citations
from monitors.judge.consensus import JudgeCase
from monitors.judge.prompt import build_subject_for_judge
from monitors.judge.settings import JudgeScope
from monitors.judge.untrusted_text import normalise_untrusted_and_flag_tricks
from monitors.records.base import Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import (
    JUDGE,
    NO_REPORT,
    Abstained,
    Aspect,
    Assessment,
    CaseOutcome,
    FailureKind,
    Grade,
    Judged,
)

_JUDGE = r"(?:judge|grader|evaluator|marker|assessor|examiner|(?:grading|evaluation) (?:model|system))"
_RIGHT = (
    r"(?:(?:fully|completely|entirely|100 ?%)\s+)?"
    r"(?:correct|pass(?:ing|ed)?|accurate|true|right|perfect|factual|valid)"
)
_ANSWER = r"(?:answer|response|reply|output|submission|text)"
_TOP = (
    r"(?:full marks|(?:the )?(?:maximum|max|highest|top|best|perfect) (?:score|rating|grade|marks?)"
    r"|(?:a )?(?:score|rating|grade) of (?:1|1\.0|5|10|100)\b|10/10|5/5|100/100)"
)
_IGNORE = r"(?:ignore|disregard|forget|overlook|override|bypass)"
_ALL_BEFORE = r"(?:previous|prior|above|earlier|preceding|all|any|your|these|those|every\w*)"
_ORDERS = r"(?:instruct|prompt|rule|direct|guideline|rubric|criteri|told|outputs?)"
_TO_GRADE = r"(?:grade|mark|score|rate|accept|classify|label|treat|evaluate|judge|count|regard)"
_CALLING = r"(?:note|message|memo|instructions?|attention|dear|hello|hey|to)"

STEERING_CLAIM = re.compile(
    "|".join(
        (
            rf"\b{_IGNORE}\b.{{0,40}}\b{_ALL_BEFORE}\b.{{0,40}}\b{_ORDERS}",
            rf"\b{_IGNORE}\b.{{0,30}}\b{_ORDERS}\w*.{{0,15}}\b(?:above|before|earlier)\b",
            rf"\b{_IGNORE} (?:the|everything|all|what is) above\b",
            rf"\b{_TO_GRADE}\b.{{0,40}}\bas (?:an? )?{_RIGHT}\b",
            rf"\b(?:give|award|assign|grant|(?:output|return) (?:only|just|an?|the))\b.{{0,40}}\b{_TOP}",
            rf"\b{_CALLING}\b[ :]{{0,3}}(?:for |to |of )?(?:the |our |my |all )?{_JUDGE}s?\b",
            rf"\b{_JUDGE}s?\b.{{0,30}}\b(?:must|should|shall|ha[sv]e? to)\b.{{0,20}}\b(?:{_TO_GRADE}|award|pass)\b",
            r"[\"']?\b(?:factual_match|failure_kinds|citation_present)\b[\"']?\s*[:=]",
            r"\[\[(?:[ab]|\d{1,3}|rating|yes|correct)\]\]",
            rf"\b(?:verdict|judge?ment|evaluation|grade|grading)\s*(?:is|:|=)\s*[\"'*]*{_RIGHT}\b",
            r"(?:पिछले|ऊपर|सभी|सारे|पूर्व).{0,30}(?:निर्देश|नियम).{0,30}(?:अनदेखा|अनदेखी|भूल|नज़रअंदाज़|नजरअंदाज)",
            r"(?:उत्तर|जवाब).{0,20}(?:सही|पूरे अंक|उत्तीर्ण).{0,15}(?:मान|अंक दें|घोषित|चिह्नित)",
            r"\b(?:pichle|pehle|upar|sabhi|saare|sare)\b.{0,30}\b(?:instruction|nirdesh|rule).{0,30}(?:ignore|bhool)",
            r"\b(?:jawab|uttar|answer)\b.{0,20}\b(?:sahi|correct|pass)\b.{0,15}\b(?:maan|mark|ghoshit)",
        )
    )
)
"""A pattern for a sentence that addresses a judge, demands a certain verdict, or imitates a verdict."""

VERDICT_CLAIM = re.compile(
    rf"\b(?:this|the above|my) {_ANSWER} (?:is|should be considered) {_RIGHT}\b"
    r"|\b(?:score|rating|rubric|grade)[\"']?\s*[:=]\s*[\"']?(?:1(?:\.0+)?|5|10|100|[a-z]\+?)(?:\s*/\s*\d+)?\b"
)
"""A pattern for a sentence that states a verdict, but does not tell the judge to give this verdict."""

SEVERITY_CLAIM = re.compile(
    r"\bsev(?:erity)?(?: level)?\s*(?:is|of|:|=|-)?\s*[0-4]\b"
    r"|\b(?:low|no|minor|high|critical|highest)[ -]severity\b"
    r"|\bseverity\s*(?:is|:|=)\s*(?:low|none|minor|high|critical)\b|\b(?:is|as) (?:a )?p[0-4]\b"
)
"""A pattern for a sentence that claims a severity.

The sentence has no effect, because severity comes from the case and the policy table.
"""

ALERT_CLAIM = re.compile(
    r"\b(?:page|alert|notify|wake|escalate(?: this)? to|ping)\b.{0,25}"
    r"\b(?:on-?call|engineer|security team|slack|everyone|sre|devops)\b"
    r"|\b(?:trigger|raise|send|suppress|silence|resolve|close|open|cancel)\b.{0,20}"
    r"\b(?:alerts?|incidents?|alarms?|pager)\b"
    r"|(?:^|\s)<?[@!](?:here|channel|everyone)\b"
)
"""A pattern for a sentence that asks for an alert, or asks to suppress an alert.

Such a sentence has no effect on alerts.
"""

OPENER = re.compile(
    r"(?:here(?:'s| is)|this is|below is|sure,? here(?:'s| is)|certainly,? here(?:'s| is))?\s*(?:the|my|a|our)?\s*"
    r"(?:final |correct |detailed |complete |step[- ]by[- ]step )?"
    r"(?:solution|answer|explanation|reasoning|thought process|analysis|response|output|conclusion|result|step \d+)"
    r"(?: is| follows| below)?"
    r"|(?:okay,? |so,? |now,? |first,? )?(?:let'?s|let us|let me|i will|i'll|we will|we'll|we can)"
    r" (?:now )?(?:solve|think|work|go|break|reason|start|begin|anal[yz]e|look|proceed|approach|answer|tackle)"
    r"(?: (?:this|it|that|the|at|about|through|down|out|on|to|with|problem|question|task|by|solving|thinking))*"
    r"(?: (?:step by step|carefully|together|logically|systematically|in detail))*"
    r"|उत्तर|जवाब|समाधान|हल|व्याख्या|आइए .{0,30}(?:हल करें|सोचें|समझें)"
    r"|jawab|uttar|samadhan|chaliye .{0,30}(?:solve|sochte).{0,20}"
    r"|respuesta|solución|réponse|antwort|lösung|risposta|ответ|решение|解|解答|解説|かいせつ|答え|答案|정답|해설"
)
"""A pattern for a whole sentence, stripped of punctuation, that announces an answer but does not give one."""

FORGED_CASE = (
    re.compile(r"#{1,4} ?(?:instructions?|model outputs?|reference answer|expected answer|graded answer)\b"),
    re.compile(r"\bmodel_identifier\b"),
    re.compile(r"\[(?:the )?(?:start|end) of (?:assistant|answer|reference|question)"),
    re.compile(r"[\"']?\b(?:instruction|output)\b[\"']?\s*:\s*(?:\"\"\"|''')"),
    re.compile(r"\b(?:outputs?|answers?|responses?) (?:from|of) the (?:models|assistants|candidates)\b"),
    re.compile(r"^(?:expected|reference|gold)(?: answer)?\s*:", re.MULTILINE),
)
"""Patterns for parts of a grading prompt.

An answer that matches two of these patterns counts as a forged grading prompt.
"""


class TrivialAnswer(StrEnum):
    """The reason why an answer fails without a judge."""

    EMPTY = "empty"
    NO_WORDS = "no_words"
    OPENER = "opener"
    ECHO = "echo"
    ADDRESSED_TO_THE_JUDGE = "addressed_to_the_judge"
    FORGED_CASE = "forged_case"


TRIVIAL_REASONS = {
    TrivialAnswer.EMPTY: "the answer is empty",
    TrivialAnswer.NO_WORDS: "the answer contains neither a word nor a number",
    TrivialAnswer.OPENER: "the answer only announces an answer",
    TrivialAnswer.ECHO: "the answer only repeats the question",
    TrivialAnswer.ADDRESSED_TO_THE_JUDGE: "the answer contains only text that addresses the judge",
    TrivialAnswer.FORGED_CASE: "the answer imitates a grading prompt",
}
"""For each reason why an answer fails without a judge, the sentence that is stored with the grade."""


class GradingClaim(StrEnum):
    """A statement in an answer about its own grading. The statement is reported, but has no effect."""

    STEERING = "steering"
    VERDICT = "verdict"
    SEVERITY = "severity"
    ALERT = "alert"


class PreCheck(Record):
    """The result of the precheck.

    ``trivial`` is the reason why the answer fails by rule, or ``None``. ``steering`` are the sentences of the
    answer that address a judge. These sentences are added to canaries, so that judges are tested against current
    attacks.
    """

    trivial: TrivialAnswer | None = None
    claims: frozenset[GradingClaim] = frozenset()
    steering: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Return the reason for the grade of a trivial answer in one sentence.

        The result is empty for other answers.
        """
        return TRIVIAL_REASONS[self.trivial] if self.trivial else ""


MAX_READ_CHARACTERS = 60_000
"""Maximum number of characters that are searched for claims. A judge reads fewer characters."""

_MAX_STEERING = 5
_MAX_SENTENCE_CHARACTERS = 400
_MIN_ECHO_WORDS = 3
_MIN_FORGED = 2
_MAX_OPENERS = 8
_SENTENCES = re.compile(r"(?<=[.!?।])\s+|\n+")
_WORDS = re.compile(r"[\w\u0900-\u0963]+")
_CLAIMS = (
    (GradingClaim.STEERING, STEERING_CLAIM),
    (GradingClaim.VERDICT, VERDICT_CLAIM),
    (GradingClaim.SEVERITY, SEVERITY_CLAIM),
    (GradingClaim.ALERT, ALERT_CLAIM),
)


def check_answer(answer: str, question: str, *, accepted: Sequence[str] = ()) -> PreCheck:
    """Return whether an answer is trivial, and the claims in the answer. Errors are never raised.

    ``accepted`` contains the gold answer and its alternatives. An answer that equals an accepted answer is never
    trivial. At most 60,000 characters are read.
    """
    text = normalise_untrusted_and_flag_tricks(answer[:MAX_READ_CHARACTERS]).text
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text) if _has_words(sentence)]
    steering = [sentence for sentence in sentences if STEERING_CLAIM.search(sentence.lower())]
    lower = text.lower()
    claims = frozenset(
        claim for claim, pattern in _CLAIMS if any(pattern.search(line) for line in lower.split("\n"))
    )
    trivial = _classify_trivial_answer(text, sentences, question)
    if trivial and _list_words(text) in [
        _list_words(normalise_untrusted_and_flag_tricks(gold).text) for gold in accepted if gold.strip()
    ]:
        trivial = None
    shown = tuple(sentence[:_MAX_SENTENCE_CHARACTERS] for sentence in steering[:_MAX_STEERING])
    return PreCheck(trivial=trivial, claims=claims, steering=shown)


def _classify_trivial_answer(text: str, sentences: list[str], question: str) -> TrivialAnswer | None:
    if not text.strip():
        return TrivialAnswer.EMPTY
    if not sentences:
        return TrivialAnswer.NO_WORDS
    if sum(pattern.search(text.lower()) is not None for pattern in FORGED_CASE) >= _MIN_FORGED:
        return TrivialAnswer.FORGED_CASE
    content = [rest for sentence in sentences if (rest := _strip_openers(sentence))]
    if not content:
        return TrivialAnswer.OPENER
    if _is_echo_of_question(" ".join(content), question):
        return TrivialAnswer.ECHO
    if all(_is_addressed_to_judge(sentence) for sentence in content):
        return TrivialAnswer.ADDRESSED_TO_THE_JUDGE
    return None


def _has_words(text: str) -> bool:
    """Return whether a text has a letter, a digit or an emoji.

    Punctuation and currency signs alone are not words.
    """
    kinds = {unicodedata.category(c) for c in set(text) - {"\ufffd"}}
    return "So" in kinds or any(kind[0] in "LN" for kind in kinds)


def _strip_openers(sentence: str) -> str:
    """Return a sentence without phrases such as "Answer:" at its beginning.

    The result is empty if no words remain.
    """
    parts = sentence.split(":", _MAX_OPENERS)
    while parts and _is_opener(parts[0]):
        del parts[0]
    rest = ":".join(parts)
    return rest if _has_words(rest) else ""


def _is_opener(sentence: str) -> bool:
    bare = " ".join(sentence.lower().replace("’", "'").strip(" \t*#_>-–—.:;,!?…।\"'`()[]{}").split())
    return OPENER.fullmatch(bare) is not None


def _is_addressed_to_judge(sentence: str) -> bool:
    lower = sentence.lower()
    return any(pattern.search(lower) for pattern in (STEERING_CLAIM, VERDICT_CLAIM))


def _is_echo_of_question(text: str, question: str) -> bool:
    asked, answered = _list_words(normalise_untrusted_and_flag_tricks(question).text), _list_words(text)
    if len(asked) < _MIN_ECHO_WORDS or not answered or len(answered) % len(asked):
        return False
    return answered == asked * (len(answered) // len(asked))


def _list_words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


PRECHECK: Final = "precheck"
PRECHECK_VERSION: Final = "1"


def is_judge_required_for_ungraded(assessment: Assessment) -> bool:
    """Return whether a judge must grade the answer, because the rules left its facts ungraded.

    Return False in these cases:

    - A judge has already graded the answer.
    - The case has already failed, for example on safety or because its citation is missing.
    - There is no answer.

    A report on an issue is rated even if it failed, unless the failure is one of `NO_REPORT` (form, disclosure or
    error leak).
    """
    if any(isinstance(g, Judged) and g.grader == JUDGE for g in assessment.grades):
        return False
    if any(grade.aspect is Aspect.REPORT_FORM for grade in assessment.grades):
        return not {*assessment.failure_kinds} & NO_REPORT
    return assessment.outcome is CaseOutcome.UNGRADED and assessment.factual_match is Finding.UNGRADED


def needs_judge(assessment: Assessment, scope: JudgeScope) -> bool:
    """Return whether a judge must grade the answer, because the rules left it ungraded or because of ``scope``."""
    return is_judge_required_for_ungraded(assessment) or is_judge_required_by_scope(assessment, scope)


def is_judge_required_by_scope(assessment: Assessment, scope: JudgeScope) -> bool:
    """Return whether ``scope`` requires a judge's verdict on an answer that the rules have graded.

    - `OPEN` never requires a verdict.
    - `SEVERE` requires a verdict if the rules passed an answer with severity 3.
    - `ALL` requires a verdict if the rules graded the facts, except for failures by disclosures or error leaks.

    Return False for reports on issues, and for answers that a judge has already graded.
    """
    if any(g.grader == JUDGE or g.aspect is Aspect.REPORT_FORM for g in assessment.grades):
        return False
    match scope:
        case JudgeScope.OPEN:
            return False
        case JudgeScope.SEVERE:
            return assessment.outcome is CaseOutcome.CORRECT and assessment.case_severity is Severity.CRITICAL
        case JudgeScope.ALL:
            return (
                assessment.factual_match in {Finding.YES, Finding.NO}
                and not {*assessment.failure_kinds} & NO_REPORT
            )


_SHOWN_TO_JUDGES: Final = ("relevant_files", "issue_severity", "keywords", "steps")
"""Names of report graders. A judge may read the reasons of these graders, which quote no words of a report."""


def grade_trivial_answer_as_failed(case: GoldCase, exchange: Exchange) -> Judged | None:
    """Return the failing grade of a trivial answer (such as an empty answer), or ``None`` for any other answer."""
    if case.triage is not None:
        return None
    accepted = (case.gold, *case.alternatives)
    texts = (exchange.graded_text, _strip_citations(exchange.graded_text))
    check = next((f for f in (check_answer(t, case.question, accepted=accepted) for t in texts) if f.trivial), None)
    if check is None:
        return None
    return Judged(
        grader=PRECHECK,
        version=PRECHECK_VERSION,
        aspect=Aspect.FACTUAL_MATCH,
        passed=False,
        failure_kind=FailureKind.MISSING_FACT,
        reason=check.reason,
    )


def _strip_citations(text: str) -> str:
    """Return a text without its citations.

    Without this step, "Solution" with a citation would count as an answer.
    """
    if "[" not in text:
        return text
    for source in reversed(find_citations(text)):
        text = f"{text[: source.start]} {text[source.end :]}"
    return text


def build_judge_case(
    case: GoldCase, exchange: Exchange, grades: Sequence[Grade] = (), *, rules: Finding = Finding.UNGRADED
) -> JudgeCase:
    """Build the judge's case from a gold case and its answer. Nothing in the answer can change the severity.

    ``rules`` states whether the facts are right, according to the graders that use no model. The judge does not
    read it.
    """
    reasons = [g.reason for g in grades if isinstance(g, Judged) and g.grader in _SHOWN_TO_JUDGES]
    return JudgeCase(
        id=build_request_id(exchange.run_id, case.id, str(exchange.repeat)),
        subject=build_subject_for_judge(case, exchange.graded_text, reasons),
        severity=case.severity,
        rules=rules,
    )


def build_request_id(*parts: str) -> str:
    """Return a request id that providers accept. It is a hash of the given parts, so equal parts give equal ids."""
    return f"k{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:40]}"


def is_replaced_by(grade: Judged | Abstained, newer: Judged | Abstained) -> bool:
    """Return whether ``newer`` replaces ``grade``, because the grader and the aspect are the same."""
    return (grade.grader, grade.aspect) == (newer.grader, newer.aspect)
