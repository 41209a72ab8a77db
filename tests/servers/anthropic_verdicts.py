"""A small judge without a language model. It compares the fenced texts of a prompt with fixed rules.

An answer passes if it contains the quantities of the gold, in the same order and with their units, and most of the
gold's words. Parts of the answer about another question or the past are ignored. If a refusal is expected, the
answer must refuse and must not end with a figure. If there are documents, the answer must agree with them. The
judge really compares texts, so that end-to-end figures have a meaning. A test can make the judge pass wrong
answers: all answers, answers with certain phrases, or (``flatters``) answers with the gold's figures or, without
figures, half of its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from monitors.facts.citations import find_citations
from monitors.facts.quantities.scan import read_facts
from monitors.facts.refusals.detect import classify_refusal
from monitors.facts.source_files import compute_agreement
from monitors.facts.text import normalise
from monitors.facts.triage_report import read_report
from monitors.records.triage import TriageReport

FENCE = re.compile(
    r"^<<<BEGIN (?P<label>[a-z0-9 _-]+) (?P<nonce>[0-9a-f]{16,64})>>>\n(?P<body>.*?)\n?^<<<END (?P=label) (?P=nonce)>>>$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""The pattern of a fence: two lines around an untrusted text (see ``monitors/judge/untrusted_text.py``)."""

LIKE_ENOUGH = 0.55
"""The minimum share of the gold's content words that an answer must contain."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPTY = (
    "the and for are was were has have had with from that this these those your you our their its may can will would "
    "shall should must any all per under upon after before into than then there here when which who what how not also "
    "been being does did done only such each both policy plan"
)
_EMPTY_KEYS = frozenset(word[:5] for word in _EMPTY.split())
_NOT = re.compile(r"\b(?:not|no|never|cannot|without|excluded?|nahi|nahin)\b|n't\b|नहीं", re.IGNORECASE)

_LEADS = dict.fromkeys(("yes", "haan", "हाँ"), True) | dict.fromkeys(("no", "nahi", "नहीं"), False)
"""Words at the start of an answer that mean yes (true) or no (false)."""


class Case(NamedTuple):
    """The fenced texts of a prompt, and whether the prompt says that a refusal is expected."""

    question: str
    golds: tuple[str, ...]
    answer: str
    documents: tuple[str, ...]
    refusal_expected: bool


def read_prompt(text: str) -> Case | None:
    """Return the case in the prompt with the user message ``text``, or ``None`` if no answer in it is fenced."""
    fields: dict[str, list[str]] = {}
    for fence in FENCE.finditer(text):
        fields.setdefault(fence["label"].lower(), []).append(fence["body"])
    if "graded answer" not in fields:
        return None
    outside = FENCE.sub("", text)
    return Case(
        question="\n".join(fields.get("question", [])),
        golds=tuple(fields.get("expected answer", [])),
        answer="\n".join(fields["graded answer"]),
        documents=tuple(fields.get("source passage", [])),
        refusal_expected="expected: a refusal" in outside.lower(),
    )


class RuleJudge:
    """A judge that decides by fixed rules.

    An answer with a phrase in ``rejects`` fails, and an answer with a phrase in ``fooled_by`` passes. ``ratings``
    maps a phrase to the rating (1 to 5) of answers that contain it. Canaries must not contain any of these phrases.
    """

    def __init__(
        self,
        fooled_by: Iterable[str] = (),
        *,
        rejects: Iterable[str] = (),
        flatters: bool = False,
        passes_all: bool = False,
        fails_all: bool = False,
    ) -> None:
        self.fooled_by = tuple(fooled_by)
        self.rejects = tuple(rejects)
        self.flatters = flatters
        self.passes_all = passes_all
        self.fails_all = fails_all
        self.ratings: dict[str, int] = {}

    def verdict(self, prompt: str, wanted: Iterable[str]) -> dict[str, Any]:
        """Return the verdict on the answer in ``prompt``, with the fields ``wanted`` of the schema."""
        case = read_prompt(prompt)
        score, kinds = (0.0, ["format"]) if case is None else self._score(case)
        answer = case.answer if case else ""
        right = score >= LIKE_ENOUGH or not kinds
        verdict = {
            "factual_match": right,
            "citation_present": bool(find_citations(answer)),
            "score": round(score, 2),
            "rubric": 1 + round(4 * score),
            "failure_kinds": [] if right else kinds,
            "quotes": [_closest(case)] if case and answer.strip() else [],
            "reason": "says what the gold says" if right else "differs from the gold",
            "criteria": _criteria(case, right) if case else {},
        }
        return {name: verdict[name] for name in wanted if name in verdict}

    def is_right(self, case: Case) -> bool:
        """Return whether the judge passes the answer of ``case``."""
        score, kinds = self._score(case)
        return score >= LIKE_ENOUGH or not kinds

    def _score(self, case: Case) -> tuple[float, list[str]]:
        if self.fails_all or any(phrase in case.answer for phrase in self.rejects):
            return 0.0, ["wrong_fact"]
        if self.passes_all or any(phrase in case.answer for phrase in self.fooled_by):
            return 1.0, []
        given = next((rating for phrase, rating in self.ratings.items() if phrase in case.answer), None)
        if given is not None:
            return (given - 1) / 4, [] if given >= 3 else ["poor_triage"]
        if case.golds and _REFERENCE.match(case.golds[0]):
            return _rated(read_report(case.golds[0]), read_report(case.answer))
        refusal = classify_refusal(case.answer, expected=case.refusal_expected)
        refused = refusal.refused
        if case.refusal_expected:
            refused = refused or any(
                classify_refusal(sentence).refused for sentence in _SENTENCE_END.split(case.answer)
            )
            names_figure = (
                bool(_DIGITS.search(_SENTENCE_END.split(case.answer.strip(), maxsplit=1)[-1])) and not self.flatters
            )
            declines = refused or refusal.hedged
            return (1.0, []) if declines and not names_figure else (0.0, ["should_have_refused"])
        if self.flatters and case.golds:
            return (1.0, []) if any(_is_found(gold, case.answer) for gold in case.golds) else (0.0, ["wrong_fact"])
        if case.documents:
            return _grounded(case)
        if not case.golds:
            return _rated_alone(case.question, read_report(case.answer))
        if refused:
            return 0.0, ["over_refusal"]
        about = _about(case.question, case.answer)
        return max((_alike(gold, about) for gold in case.golds), default=(0.0, ["missing_fact"]))


_REFERENCE = re.compile(r"(?:Severity|Root cause|Relevant files): ?")
"""The start of a gold that is the reference of an issue (see ``monitors/goldset/issues.py``)."""


def _rated_alone(issue: str, report: TriageReport) -> tuple[float, list[str]]:
    """Score a report without a reference: its cause must share a word with the issue, and files raise the score."""
    shared = {word.lower() for word in _WORD.findall(report.root_cause or "")} & {
        word.lower() for word in _WORD.findall(issue)
    }
    if not shared - set(_EMPTY.split()):
        return 0.25, ["poor_triage"]
    return (0.75 if report.files else 0.5), []


def _rated(reference: TriageReport, report: TriageReport) -> tuple[float, list[str]]:
    """Score a report by its reference. A wrong cause fails. With the right cause, the files decide the score.

    The scores 1, 0.75, 0.5, 0.25 and 0 are the ratings 5 to 1.
    """
    cause = _alike(reference.root_cause or "", report.root_cause or "")[0] if reference.root_cause else 1.0
    files = compute_agreement(report.files or (), reference.files or ()).f1 if reference.files else 1.0
    if cause < LIKE_ENOUGH:
        return (0.25 if files > 0 else 0.0), ["poor_triage"]
    return (1.0 if files > 0.99 else 0.75 if files >= 0.5 else 0.5), []


def _alike(gold: str, answer: str) -> tuple[float, list[str]]:
    wanted, stated = _quantities(gold), _quantities(answer)
    if _is_reordered(gold, answer) or _is_turned(gold, answer):
        return 0.2, ["wrong_fact"]
    if {_LEADS.get(_first_word(text)) for text in (gold, answer)} == {True, False}:
        return 0.1, ["wrong_fact"]
    if wanted - stated:
        return 0.1, ["wrong_fact" if stated else "missing_fact"]
    words = _words(gold)
    share = len(words & _words(answer)) / len(words) if words else float(bool(wanted))
    if len(_NOT.findall(gold)) % 2 != len(_NOT.findall(answer)) % 2:
        return min(share, 0.3), ["wrong_fact"]
    return share, ["missing_fact"]


def _criteria(case: Case, right: bool) -> dict[str, dict[str, object]]:
    """Return the scores of a report for helpfulness, completeness and accuracy.

    A score of 0 has no quote if a part of the report is missing, and has a quote if the part is wrong.
    """
    report = read_report(case.answer)
    cause = report.root_cause or ""
    quote = cause if cause and cause in case.answer else _closest(case)
    parts = {
        "severity": report.severity,
        "root cause": report.root_cause,
        "file": report.files,
        "fix": report.recommended_fix,
    }
    missing = [name for name, value in parts.items() if not value]
    omitted = {"score": 0, "quote": "", "reason": f"no {' and no '.join(missing)}"}
    met = {"score": 1, "quote": quote, "reason": ""}
    wrong = {"score": 0, "quote": quote, "reason": "another cause than the reference"}
    useless = omitted if "fix" in missing else wrong
    return {
        "helpfulness": met if right and "fix" not in missing else useless,
        "completeness": omitted if missing else met,
        "accuracy": met if right else wrong,
    }


_DIGITS = re.compile(r"\d")
_SENTENCE_END = re.compile(r"(?<=[.!?।])\s+")
_FIGURE = re.compile(r"\d[\d.,]*(?<![.,])")
_PER = re.compile(r"\b(?:per|each|every) (\w+)")
_QUOTED = re.compile(r'"[^"]*"')
_UNIT = re.compile(r"(\d[\d.,]*) ?(mg|g|kg|lb|lbs|ml|l|mm|cm|m|ft|km|miles|GB|MB|TB|°C|°F|kWh|Wh|kW|W|mph|km/h)\b")
_NOT_NOW = re.compile(r"(?i)\b(?:until \d{4}|answer to another question)\b|2019 (?:तक|tak)|दूसरे सवाल|doosre sawal")
_OPPOSITES = (
    ("before", "after"), ("with", "without"), ("inside", "outside"), ("adults", "children"), ("first", "last"),
    ("weekdays", "weekends"), ("if", "unless"), ("online", "post"), ("new", "used"), ("opened", "unopened"),
)  # fmt: skip


def _about(question: str, answer: str) -> str:
    """Return the part of an answer that is about this question and the present.

    This is the table row for the question, or else all sentences that do not name another question or a past year.
    """
    rows = [line.strip("| ").split(" | ") for line in answer.split("\n") if line.startswith("|")]
    named = [row[-1] for row in rows if len(row) > 1 and question.endswith(row[0])]
    if named:
        return named[0]
    return " ".join(
        sentence for sentence in _SENTENCE_END.split(_QUOTED.sub("", answer)) if not _NOT_NOW.search(sentence)
    )


def _is_found(gold: str, answer: str) -> bool:
    figures, words = set(_FIGURE.findall(gold)), _words(gold)
    if figures:
        return figures <= set(_FIGURE.findall(answer))
    return len(words & _words(answer)) >= len(words) / 2


def _is_reordered(gold: str, answer: str) -> bool:
    """Return whether the answer has the gold's figures in another order, with other units, or per another unit."""
    for source in reversed(find_citations(answer)):
        answer = answer[: source.start] + answer[source.end :]
    per = set(_PER.findall(gold))
    if per and set(_PER.findall(answer)) - per:
        return True
    wanted = _FIGURE.findall(gold)
    stated = [figure for figure in _FIGURE.findall(answer) if figure in wanted]
    if len(wanted) > 1 and sorted(wanted) == sorted(stated) and wanted != stated:
        return True
    units = dict(_UNIT.findall(gold))
    return any(units.get(figure, unit) != unit for figure, unit in _UNIT.findall(answer))


def _is_turned(gold: str, answer: str) -> bool:
    """Return whether the answer has the opposite of a word in the gold, such as "after" for "before"."""
    wanted, stated = (set(re.findall(r"[a-z]+", text.lower())) for text in (gold, answer))
    turned = ((word, opposite) for pair in _OPPOSITES for word, opposite in (pair, pair[::-1]))
    return any(
        word in wanted and opposite not in wanted and opposite in stated and word not in stated
        for word, opposite in turned
    )


def _grounded(case: Case) -> tuple[float, list[str]]:
    shelf = "\n".join(case.documents)
    if _quantities(case.answer) - _quantities(shelf):
        return 0.1, ["unsupported_claim"]
    words = _words(case.answer)
    share = len(words & _words(shelf)) / len(words) if words else 1.0
    return share, ["unsupported_claim"]


def _quantities(text: str) -> set[tuple[str, str]]:
    """Return the quantities in ``text``: the kind or currency of each, and its value."""
    return {(fact.unit or str(fact.kind), fact.value) for fact in read_facts(text)}


def _first_word(text: str) -> str:
    return (text.split() or [""])[0].strip(",.।").lower()


def _words(text: str) -> set[str]:
    return {word.lower()[:5] for word in _WORD.findall(normalise(text).text)} - _EMPTY_KEYS


def _closest(case: Case) -> str:
    """Return the sentence of the answer that has the most words in common with the golds and documents."""
    wanted = _words(" ".join((*case.golds, *case.documents)))
    sentences = [piece for piece in re.split(r"(?<=[.!?।])\s+|\n+", case.answer) if re.search(r"\w", piece)]
    return max(sentences, key=lambda piece: len(_words(piece) & wanted), default=case.answer)[:300]


def as_text(verdict: dict[str, Any]) -> str:
    """Return the verdict as JSON text, as a model writes it."""
    return json.dumps(verdict, ensure_ascii=False)
