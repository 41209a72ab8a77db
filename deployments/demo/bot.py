"""The Suraksha assistant: retrieval over invented policies. Pure: text and conversation in, a `Reply` out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deployments.demo.faithfulness import Blocked, check
from deployments.demo.faults import NoFaults
from deployments.demo.guards import Guard, Intent, standing_reply
from deployments.demo.policies import Policy, PolicyBook, Vocabulary
from deployments.demo.reading import Question, Reader
from deployments.demo.retrieval import THRESHOLD, Hit, ranked_fields, retrieve
from deployments.demo.wording import answer
from monitors.records.base import Language

_SUMMARY_FIELDS: dict[str, tuple[str, ...]] = {
    "claim": ("claim_notice_planned", "claim_notice_emergency", "claim_documents", "claim_settlement"),
    "waiting": ("initial_waiting", "ped_waiting", "specific_disease_waiting", "maternity_waiting"),
    "": ("sum_insured_range", "ped_waiting", "room_rent", "copay", "no_claim_bonus"),
}
"""What a summary holds, by the concept that it is about; the last is a summary of a policy as a whole."""

_FOLLOW_UP_WORDS = 9
"""A message of at most so many words may lean on the one before it ("And for Silver?")."""
_WORDS_PER_CHUNK = 3


@dataclass(frozen=True)
class Reply:
    """What the bot says and how it came to it. ``blocked`` is the draft that its own check held back."""

    text: str
    language: Language
    intent: Intent
    path: str
    hits: tuple[Hit, ...] = ()
    blocked: Blocked | None = None
    pause_s: float = 0.0

    @property
    def chunks(self) -> tuple[str, ...]:
        """The text in the pieces in which it is streamed; joined they are the text."""
        words = re.findall(r"\S+\s*|\s+", self.text)
        return tuple("".join(words[i : i + _WORDS_PER_CHUNK]) for i in range(0, len(words), _WORDS_PER_CHUNK))


class Bot:
    """Answers questions about the policies of one book; ``faults`` can spoil it."""

    def __init__(self, book: PolicyBook, vocabulary: Vocabulary, faults: NoFaults | None = None) -> None:
        self._book = book
        self._vocabulary = vocabulary
        self._faults = faults or NoFaults()
        self._reader = Reader(book, vocabulary)
        self._guard = Guard(vocabulary)

    def reply(self, text: str, earlier: Sequence[str] = ()) -> Reply:
        """Answer ``text``; ``earlier`` are the user's messages before it, oldest first."""
        asked = self._reader.read(text)
        pause_s = self._faults.pause_s(asked)
        error = self._faults.provider_error(asked)
        if error is not None:
            return Reply(error, asked.language, Intent.PROVIDER_ERROR, "provider_error", pause_s=pause_s)
        declined = self._guard.declines(asked)
        reply = self._standing(asked, declined) if declined else self._informed(asked, earlier)
        return replace(reply, text=reply.text + self._faults.appendix(asked), pause_s=pause_s)

    def _informed(self, asked: Question, earlier: Sequence[str]) -> Reply:
        overreach = self._faults.overreach(asked)
        if overreach is not None:
            return Reply(overreach, asked.language, Intent.FACT, "retrieval")
        if self._is_foreign(asked):
            return self._standing(asked, Intent.NOT_MENTIONED)
        question = self._in_context(asked, earlier)
        if not question.policies:
            return self._standing(question, self._without_policy(question))
        hits = self._hits(question)
        if not hits:
            return self._not_found(question)
        return self._checked(self._compose(question, hits), question)

    def _is_foreign(self, question: Question) -> bool:
        topics = self._vocabulary.topics
        hard = [topic for topic in question.topics if topics[topic].hard]
        if hard == ["other_insurer"] and "port" in question.concepts:
            return False
        return bool(hard) or bool(question.topics and not self._fits_well(question))

    def _fits_well(self, question: Question) -> bool:
        ranked = ranked_fields(question, self._vocabulary)
        return bool(ranked) and ranked[0][1] >= THRESHOLD

    def _in_context(self, question: Question, earlier: Sequence[str]) -> Question:
        """Fill in the policy, and for a short follow-up the subject, from what was said before."""
        for text in reversed(earlier):
            before = self._reader.read(text)
            short = len(question.normal.split()) <= _FOLLOW_UP_WORDS and not question.unknown
            if short and not self._fits_well(question):
                question = replace(question, concepts=question.concepts | before.concepts)
            if not question.policies:
                question = replace(question, policies=before.policies)
        return question

    def _without_policy(self, question: Question) -> Intent:
        if self._fits_well(question) or "summary" in question.concepts:
            return Intent.CLARIFY
        return Intent.NOT_MENTIONED if question.unknown or question.concepts else Intent.GREETING

    def _hits(self, question: Question) -> tuple[Hit, ...]:
        if "summary" in question.concepts:
            return self._summary_hits(question, question.policies[0])
        found = (retrieve(question, policy, self._vocabulary) for policy in question.policies)
        hits = [hit for hit in found if hit is not None]
        return tuple(replace(hit, fact=self._faults.stored(hit.policy, hit.fact)) for hit in hits)

    def _summary_hits(self, question: Question, policy: Policy) -> tuple[Hit, ...]:
        subject = next(name for name in _SUMMARY_FIELDS if name in question.concepts or not name)
        facts = (policy.fact(field) for field in _SUMMARY_FIELDS[subject])
        return tuple(Hit(policy, fact, 1.0) for fact in facts if fact is not None)

    def _compose(self, question: Question, hits: tuple[Hit, ...]) -> Reply:
        sentences = [self._sentence(question, hit, alone=len(hits) == 1) for hit in hits]
        silent = [policy for policy in question.policies if policy not in [hit.policy for hit in hits]]
        sentences += [
            f"{policy.name}: {standing_reply(Intent.NOT_MENTIONED, question.language, subject='it')}"
            for policy in silent
        ]
        intent = Intent.FACT
        if len(sentences) > 1:
            intent = Intent.SUMMARY if "summary" in question.concepts else Intent.COMPARISON
            sentences = [f"- {sentence}" for sentence in sentences]
        return Reply("\n".join(sentences), question.language, intent, "retrieval", hits)

    def _sentence(self, question: Question, hit: Hit, *, alone: bool) -> str:
        field = self._vocabulary.fields[hit.fact.field]
        yes_or_no = alone and question.asks_yes_or_no
        said = answer(hit.policy, hit.fact, field, question.language, yes_or_no=yes_or_no)
        citation = self._faults.citation(hit.policy.cite(hit.fact), hit.fact)
        return f"{said} {citation}".rstrip()

    def _checked(self, reply: Reply, question: Question) -> Reply:
        blocked = check(reply.text, reply.hits, question.text)
        if blocked is None:
            return reply
        return replace(
            self._standing(question, Intent.NOT_MENTIONED), hits=reply.hits, blocked=blocked, path="blocked"
        )

    def _not_found(self, question: Question) -> Reply:
        draft = self._faults.echoed_draft(question)
        if draft is None:
            return self._standing(question, Intent.NOT_MENTIONED)
        return self._checked(Reply(draft, question.language, Intent.FACT, "retrieval"), question)

    def _standing(self, question: Question, intent: Intent) -> Reply:
        names = ", ".join(policy.name for policy in self._book.policies)
        subject = self._subject(question)
        text = standing_reply(intent, question.language, names=names, subject=subject)
        return Reply(text, question.language, intent, "standing_reply")

    def _subject(self, question: Question) -> str:
        if question.topics:
            return self._vocabulary.topics[question.topics[0]].name
        ranked = ranked_fields(replace(question, unknown=()), self._vocabulary)
        if ranked and not question.unknown:
            return self._vocabulary.fields[ranked[0][0]].label.en
        return "that"
