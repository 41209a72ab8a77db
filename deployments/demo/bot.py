"""The Suraksha assistant: it searches fictional policies and answers questions about them.

The bot has no side effects. It creates a `BotReply` from a message and the earlier conversation. It finds the facts
of a policy that match the question, and answers in three languages. It refuses to give personal data, to act for a
user, and to talk about other subjects. Its own check blocks a reply with a number that is not in any retrieved
fact.

The Space writes two logs with the class `TurnLog`. Each line is one JSON object.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final

from deployments.demo.faults import NoFaults
from deployments.demo.policies import (
    Field,
    ParsedQuestion,
    Policy,
    PolicyBook,
    PolicyFact,
    QuestionReader,
    Vocabulary,
    normalise,
)
from monitors.records.base import Language

NEED_WEIGHT = 3.0
"""The score for each required concept. Two required concepts count more than all optional concepts together."""
BOOST_WEIGHT = 1.0
UNKNOWN_PENALTY = 1.0
"""The score that is subtracted for each unknown word. Three unknown words cancel one required concept."""
MIN_SCORE = 1.5
"""Minimum score for a field to match a question. The value was tuned by hand on the suite and on paraphrases."""


@dataclass(frozen=True)
class Hit:
    """A fact that may answer the question, and a score of how well it fits."""

    policy: Policy
    fact: PolicyFact
    score: float


def score_field(question: ParsedQuestion, field: Field) -> float:
    """Score how well the question matches this field. The score is 0 if a required concept is missing."""
    met = [any(concept in question.concepts for concept in group) for group in field.needs]
    if not all(met):
        return 0.0
    boosts = sum(concept in question.concepts for concept in field.boost)
    return NEED_WEIGHT * len(met) + BOOST_WEIGHT * boosts


def rank_fields(question: ParsedQuestion, vocabulary: Vocabulary) -> list[tuple[str, float]]:
    """Return the fields that match the question, best first. Unknown words reduce the scores."""
    penalty = UNKNOWN_PENALTY * len(question.unknown)
    scored = [(name, score_field(question, field)) for name, field in vocabulary.fields.items()]
    fitting = [(name, score - penalty) for name, score in scored if score > 0]
    return sorted(fitting, key=lambda pair: -pair[1])


def find_best_fact(question: ParsedQuestion, policy: Policy, vocabulary: Vocabulary) -> Hit | None:
    """Return the best fact of one policy, or ``None`` if no fact of the policy matches the question."""
    fields = rank_fields(question, vocabulary)
    if not fields or fields[0][1] < MIN_SCORE:
        return None
    best = fields[0][1]
    for name, score in fields:
        fact = policy.find_fact(name)
        if fact is not None and score >= best - BOOST_WEIGHT:
            return Hit(policy, fact, score)
    return None


_CITATION = re.compile(r"\[Source:[^\]]*\]")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class BlockedDraft:
    """A reply that was blocked, and the numbers in it that no fact supports."""

    reply: str
    reasons: tuple[str, ...]
    unsupported_claims: tuple[str, ...]


def detect_unsupported_numbers(reply: str, hits: Sequence[Hit], question: str) -> BlockedDraft | None:
    """Return a `BlockedDraft` if the reply contains a number that no fact supports.

    Returns ``None`` if the reply may be sent. Numbers in the question do not count as support.
    """
    supported = {number for hit in hits for number in _extract_numbers(f"{hit.fact.text} {hit.fact.amount or ''}")}
    stated = _extract_numbers(_CITATION.sub(" ", reply))
    unsupported = tuple(number for number in stated if number not in supported)
    if not unsupported:
        return None
    asked = _extract_numbers(question)
    reasons = tuple(
        f"unsupported_number: {number} is not in any retrieved fact"
        + (", only in the question" if number in asked else "")
        for number in unsupported
    )
    claims = tuple(
        part.strip()
        for part in re.split(r"(?<=[.।])\s", reply)
        if any(n in _extract_numbers(part) for n in unsupported)
    )
    return BlockedDraft(reply, reasons, claims)


def _extract_numbers(text: str) -> tuple[str, ...]:
    numbers = (match.group().replace(",", "").rstrip(".") for match in _NUMBER.finditer(text))
    return tuple(dict.fromkeys(numbers))


class Intent(StrEnum):
    """The purpose of a reply."""

    GREETING = "greeting"
    FACT = "fact"
    COMPARISON = "comparison"
    SUMMARY = "summary"
    CLARIFY = "clarify"
    NOT_MENTIONED = "not_mentioned"
    PRIVATE = "private_data"
    ACTION = "action"
    PROVIDER_ERROR = "provider_error"


_SPLIT = re.compile(r"[.?!।;,\n]+|\band\b")
_POLITE = (
    r"(?:(?:please|pls|kindly|now|just|then|ok|so|hi|hello|go ahead|immediately|can you|could you|will you"
    r"|would you|i want you to|i need you to|i authorise you to|you must|you should|instead)\s+)*"
)
_WISH = r"(?:i want to|i d like to|i would like to|i wish to|i need to)\s+"


class RequestGuard:
    """A check that recognises requests that must be declined. It looks only at the words of a request."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        actions = vocabulary.actions
        verbs, objects = _build_alternatives_pattern(actions.verbs), _build_alternatives_pattern(actions.objects)
        self._command = re.compile(rf"^{_POLITE}(?:{verbs})\b.*\b(?:{objects})\b")
        self._wish = re.compile(rf"^{_POLITE}{_WISH}(?:{verbs})\b.*\b(?:{objects})\b")
        self._hindi = re.compile(_build_whole_word_pattern(actions.hindi))
        self._private = re.compile(_build_whole_word_pattern(vocabulary.private))

    def find_declined_intent(self, question: ParsedQuestion) -> Intent | None:
        """Return `Intent.PRIVATE` or `Intent.ACTION` if the request must be declined, and ``None`` otherwise."""
        if self._private.search(question.normal):
            return Intent.PRIVATE
        parts = [normalise(part) for part in _SPLIT.split(question.text)]
        if self._hindi.search(question.normal) or any(self._command.search(part) for part in parts):
            return Intent.ACTION
        if "?" not in question.text and any(self._wish.search(part) for part in parts):
            return Intent.ACTION
        return None


def _build_alternatives_pattern(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in sorted(map(normalise, words), key=len, reverse=True))


def _build_whole_word_pattern(words: tuple[str, ...]) -> str:
    return rf"(?<![a-z0-9\u0900-\u097f])(?:{_build_alternatives_pattern(words)})(?![a-z0-9\u0900-\u097f])"


_TABLES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = tomllib.loads(
    (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
)
_UNITS, _PER = _TABLES["units"], _TABLES["per"]


def format_reply_without_facts(intent: Intent, language: Language, **slots: str) -> str:
    """Format a reply that states no fact."""
    by_language = _TABLES["replies"][intent]
    return by_language.get(language, by_language[Language.ENGLISH]).format(**slots)


_YES_NO = {
    Language.ENGLISH: ("Yes. ", "No. "),
    Language.HINDI: ("हाँ, ", "नहीं, "),
    Language.HINGLISH: ("Haan, ", "Nahi, "),
}


def format_rupees(amount: Decimal) -> str:
    """Format an amount with Indian grouping: ``₹1,50,000``."""
    digits = f"{amount:.0f}"
    head, tail = digits[:-3], digits[-3:]
    groups: list[str] = []
    while head:
        groups.insert(0, head[-2:])
        head = head[:-2]
    return "₹" + ",".join([*groups, tail])


def format_value(fact: PolicyFact, language: Language) -> str:
    """Format the fact's quantity in Hindi or Hinglish: ``₹60,000 per eye``, ``24 mahine``."""
    if fact.amount is None or fact.unit is None:
        return ""
    if fact.unit == "inr":
        value = format_rupees(fact.amount)
    elif fact.unit == "percent":
        value = f"{fact.amount:f}%"
    else:
        value = f"{fact.amount:,.0f} {_UNITS[fact.unit][language]}"
    return f"{value} {_PER[fact.per][language]}" if fact.per else value


def format_answer(policy: Policy, fact: PolicyFact, field: Field, language: Language, *, yes_or_no: bool) -> str:
    """Format one fact as a sentence in the user's language, without its citation."""
    lead = ""
    if yes_or_no and fact.covered is not None:
        lead = _YES_NO.get(language, _YES_NO[Language.ENGLISH])[0 if fact.covered else 1]
    match language:
        case Language.HINDI:
            return f"{lead}{policy.name} में {_format_hindi(fact, field)}"
        case Language.HINGLISH:
            return f"{lead}{policy.name} mein {_format_hinglish(fact, field)}"
        case _:
            text = fact.text if fact.text[1].isupper() else fact.text[0].lower() + fact.text[1:]
            return f"{lead}Under {policy.name}, {text}"


def _format_hindi(fact: PolicyFact, field: Field) -> str:
    if fact.hi is not None:
        return fact.hi
    label, value = field.label.hi, format_value(fact, Language.HINDI)
    if not value:
        return f"{label} कवर है।" if fact.covered else f"{label} कवर नहीं है।"
    up_to = " तक" if fact.bound == "at_most" else ""
    return f"{label} {value}{up_to} कवर है।" if fact.covered and up_to else f"{label} {value}{up_to} है।"


def _format_hinglish(fact: PolicyFact, field: Field) -> str:
    if fact.hinglish is not None:
        return fact.hinglish
    label, value = field.label.hinglish, format_value(fact, Language.HINGLISH)
    if not value:
        return f"{label} cover hota hai." if fact.covered else f"{label} cover nahi hota."
    up_to = " tak" if fact.bound == "at_most" else ""
    return f"{label} {value}{up_to} cover hai." if fact.covered and up_to else f"{label} {value}{up_to} hai."


_SUMMARY_FIELDS: dict[str, tuple[str, ...]] = {
    "claim": ("claim_notice_planned", "claim_notice_emergency", "claim_documents", "claim_settlement"),
    "waiting": ("initial_waiting", "ped_waiting", "specific_disease_waiting", "maternity_waiting"),
    "": ("sum_insured_range", "ped_waiting", "room_rent", "copay", "no_claim_bonus"),
}
"""The fields that a summary lists. The key is the concept that the question mentions.

The key ``""`` is for a summary of the whole policy.
"""

_MAX_FOLLOW_UP_WORDS = 9
"""Maximum number of words in a message that may be a follow-up, such as "And for Silver?"."""
_WORDS_PER_CHUNK = 3


@dataclass(frozen=True)
class BotReply:
    """The bot's reply and its intent. ``blocked`` is the draft that the bot's own check blocked."""

    text: str
    language: Language
    intent: Intent
    path: str
    hits: tuple[Hit, ...] = ()
    blocked: BlockedDraft | None = None
    pause_s: float = 0.0

    @property
    def chunks(self) -> tuple[str, ...]:
        """Split the reply's text into pieces for streaming. The joined pieces are the whole text."""
        words = re.findall(r"\S+\s*|\s+", self.text)
        return tuple("".join(words[i : i + _WORDS_PER_CHUNK]) for i in range(0, len(words), _WORDS_PER_CHUNK))


class Bot:
    """A bot that answers questions about the policies of one `PolicyBook`. ``faults`` can change its behaviour."""

    def __init__(self, book: PolicyBook, vocabulary: Vocabulary, faults: NoFaults | None = None) -> None:
        self._book = book
        self._vocabulary = vocabulary
        self._faults = faults or NoFaults()
        self._reader = QuestionReader(book, vocabulary)
        self._guard = RequestGuard(vocabulary)

    def reply(self, text: str, earlier: Sequence[str] = ()) -> BotReply:
        """Answer ``text``. ``earlier`` contains the user's previous messages, oldest first."""
        asked = self._reader.read(text)
        pause_s = self._faults.compute_pause_s(asked)
        error = self._faults.get_provider_error(asked)
        if error is not None:
            return BotReply(error, asked.language, Intent.PROVIDER_ERROR, "provider_error", pause_s=pause_s)
        declined = self._guard.find_declined_intent(asked)
        reply = (
            self._build_reply_without_facts(asked, declined)
            if declined
            else self._answer_from_policies(asked, earlier)
        )
        return replace(reply, text=reply.text + self._faults.get_leaked_text(asked), pause_s=pause_s)

    def _answer_from_policies(self, asked: ParsedQuestion, earlier: Sequence[str]) -> BotReply:
        forbidden_answer = self._faults.build_forbidden_answer(asked)
        if forbidden_answer is not None:
            return BotReply(forbidden_answer, asked.language, Intent.FACT, "retrieval")
        if self._is_about_another_subject(asked):
            return self._build_reply_without_facts(asked, Intent.NOT_MENTIONED)
        question = self._add_earlier_policy_and_concepts(asked, earlier)
        if not question.policies:
            return self._build_reply_without_facts(question, self._choose_intent_without_policy(question))
        hits = self._find_facts_and_apply_faults(question)
        if not hits:
            return self._agree_or_reply_not_mentioned(question)
        return self._block_reply_with_unsupported_numbers(self._compose_reply_from_facts(question, hits), question)

    def _is_about_another_subject(self, question: ParsedQuestion) -> bool:
        topics = self._vocabulary.topics
        hard = [topic for topic in question.topics if topics[topic].hard]
        if hard == ["other_insurer"] and "port" in question.concepts:
            return False
        return bool(hard) or bool(question.topics and not self._has_well_fitting_field(question))

    def _has_well_fitting_field(self, question: ParsedQuestion) -> bool:
        ranked = rank_fields(question, self._vocabulary)
        return bool(ranked) and ranked[0][1] >= MIN_SCORE

    def _add_earlier_policy_and_concepts(self, question: ParsedQuestion, earlier: Sequence[str]) -> ParsedQuestion:
        """If ``question`` names no policy, add the policy that an earlier message names.

        If the question is a short follow-up, also add the concepts of earlier messages.
        """
        for text in reversed(earlier):
            before = self._reader.read(text)
            short = len(question.normal.split()) <= _MAX_FOLLOW_UP_WORDS and not question.unknown
            if short and not self._has_well_fitting_field(question):
                question = replace(question, concepts=question.concepts | before.concepts)
            if not question.policies:
                question = replace(question, policies=before.policies)
        return question

    def _choose_intent_without_policy(self, question: ParsedQuestion) -> Intent:
        if self._has_well_fitting_field(question) or "summary" in question.concepts:
            return Intent.CLARIFY
        return Intent.NOT_MENTIONED if question.unknown or question.concepts else Intent.GREETING

    def _find_facts_and_apply_faults(self, question: ParsedQuestion) -> tuple[Hit, ...]:
        if "summary" in question.concepts:
            return self._find_summary_hits(question, question.policies[0])
        best_hits = (find_best_fact(question, policy, self._vocabulary) for policy in question.policies)
        hits = [hit for hit in best_hits if hit is not None]
        return tuple(replace(hit, fact=self._faults.distort_fact(hit.policy, hit.fact)) for hit in hits)

    def _find_summary_hits(self, question: ParsedQuestion, policy: Policy) -> tuple[Hit, ...]:
        subject = next(name for name in _SUMMARY_FIELDS if name in question.concepts or not name)
        facts = (policy.find_fact(field) for field in _SUMMARY_FIELDS[subject])
        return tuple(Hit(policy, fact, 1.0) for fact in facts if fact is not None)

    def _compose_reply_from_facts(self, question: ParsedQuestion, hits: tuple[Hit, ...]) -> BotReply:
        sentences = [self._format_sentence(question, hit, alone=len(hits) == 1) for hit in hits]
        silent = [policy for policy in question.policies if policy not in [hit.policy for hit in hits]]
        sentences += [
            f"{policy.name}: {format_reply_without_facts(Intent.NOT_MENTIONED, question.language, subject='it')}"
            for policy in silent
        ]
        intent = Intent.FACT
        if len(sentences) > 1:
            intent = Intent.SUMMARY if "summary" in question.concepts else Intent.COMPARISON
            sentences = [f"- {sentence}" for sentence in sentences]
        return BotReply("\n".join(sentences), question.language, intent, "retrieval", hits)

    def _format_sentence(self, question: ParsedQuestion, hit: Hit, *, alone: bool) -> str:
        field = self._vocabulary.fields[hit.fact.field]
        yes_or_no = alone and question.asks_yes_or_no
        sentence = format_answer(hit.policy, hit.fact, field, question.language, yes_or_no=yes_or_no)
        citation = self._faults.apply_citation_fault(hit.policy.format_citation(hit.fact), hit.fact)
        return f"{sentence} {citation}".rstrip()

    def _block_reply_with_unsupported_numbers(self, reply: BotReply, question: ParsedQuestion) -> BotReply:
        blocked = detect_unsupported_numbers(reply.text, reply.hits, question.text)
        if blocked is None:
            return reply
        return replace(
            self._build_reply_without_facts(question, Intent.NOT_MENTIONED),
            hits=reply.hits,
            blocked=blocked,
            path="blocked",
        )

    def _agree_or_reply_not_mentioned(self, question: ParsedQuestion) -> BotReply:
        draft = self._faults.build_agreeing_draft(question)
        if draft is None:
            return self._build_reply_without_facts(question, Intent.NOT_MENTIONED)
        return self._block_reply_with_unsupported_numbers(
            BotReply(draft, question.language, Intent.FACT, "retrieval"), question
        )

    def _build_reply_without_facts(self, question: ParsedQuestion, intent: Intent) -> BotReply:
        names = ", ".join(policy.name for policy in self._book.policies)
        subject = self._find_subject_or_that(question)
        text = format_reply_without_facts(intent, question.language, names=names, subject=subject)
        return BotReply(text, question.language, intent, "standing_reply")

    def _find_subject_or_that(self, question: ParsedQuestion) -> str:
        if question.topics:
            return self._vocabulary.topics[question.topics[0]].name
        ranked = rank_fields(replace(question, unknown=()), self._vocabulary)
        if ranked and not question.unknown:
            return self._vocabulary.fields[ranked[0][0]].label.en
        return "that"


TURNS = "turns.jsonl"
HALLUCINATIONS = "hallucinations.jsonl"


@dataclass(frozen=True)
class TurnLog:
    """A writer that appends to ``turns.jsonl`` and ``hallucinations.jsonl`` in ``folder``, which must exist."""

    folder: Path

    def write(self, *, at: datetime, session_id: str, question: str, reply: BotReply, latency_ms: float) -> None:
        """Log one answered turn. If a draft was blocked, also log the draft."""
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._append(TURNS, _build_turn_record(stamp, session_id, question, reply, latency_ms))
        if reply.blocked is not None:
            self._append(HALLUCINATIONS, _build_hallucination_record(stamp, session_id, question, reply))

    def _append(self, name: str, record: Mapping[str, object]) -> None:
        line = json.dumps(record, ensure_ascii=False) + "\n"
        with (self.folder / name).open("a", encoding="utf-8") as log:
            log.write(line)


def _build_turn_record(
    stamp: str, session_id: str, question: str, reply: BotReply, latency_ms: float
) -> dict[str, object]:
    head: dict[str, object] = {"ts": stamp, "session_id": session_id, "user_text": question}
    if reply.intent is Intent.PROVIDER_ERROR:
        return {**head, "error": reply.text, "graceful": True, "latency_ms": round(latency_ms)}
    return {
        **head,
        "reply_text": reply.text,
        "brain_used": reply.path,
        "intent": reply.intent.value,
        "language": reply.language.value,
        "latency_ms": round(latency_ms),
        "retrieved_chunk_ids": [f"{hit.policy.id}:{hit.fact.clause}" for hit in reply.hits],
        "citation_count": reply.text.count("[Source:"),
        "faithfulness_passed": reply.blocked is None,
        "faithfulness_reasons": list(reply.blocked.reasons) if reply.blocked else [],
        "blocked": reply.blocked is not None,
    }


def _build_hallucination_record(stamp: str, session_id: str, question: str, reply: BotReply) -> dict[str, object]:
    blocked = reply.blocked
    assert blocked is not None  # the caller has checked this
    return {
        "ts": stamp,
        "user_text": question,
        "blocked_reply": blocked.reply,
        "reasons": list(blocked.reasons),
        "unsupported_claims": list(blocked.unsupported_claims),
        "chunk_count": len(reply.hits),
        "top_score": max((hit.score for hit in reply.hits), default=None),
        "policy_ids": sorted({hit.policy.id for hit in reply.hits}),
        "session_id": session_id,
    }
