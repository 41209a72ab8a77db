"""Finds the facts of a policy that a question asks for."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.demo.policies import Field, Policy, PolicyFact, Vocabulary
from deployments.demo.reading import Question

NEED_WEIGHT = 3.0
"""What a needed concept adds to the score; chosen so that two needs beat any number of boosts in our vocabulary."""
BOOST_WEIGHT = 1.0
UNKNOWN_PENALTY = 1.0
"""What each word that nobody knows takes away: three of them undo one needed concept."""
THRESHOLD = 1.5
"""Below it the question is about something else. Tuned by hand on the suite and on paraphrases."""


@dataclass(frozen=True)
class Hit:
    """A fact that answers, and how well it fits."""

    policy: Policy
    fact: PolicyFact
    score: float


def field_score(question: Question, field: Field) -> float:
    """How well the question asks for this field, in points; 0 when a need is missing."""
    met = [any(concept in question.concepts for concept in group) for group in field.needs]
    if not all(met):
        return 0.0
    boosts = sum(concept in question.concepts for concept in field.boost)
    return NEED_WEIGHT * len(met) + BOOST_WEIGHT * boosts


def ranked_fields(question: Question, vocabulary: Vocabulary) -> list[tuple[str, float]]:
    """Fields that fit, best first, after the penalty for unknown words."""
    penalty = UNKNOWN_PENALTY * len(question.unknown)
    scored = [(name, field_score(question, field)) for name, field in vocabulary.fields.items()]
    fitting = [(name, score - penalty) for name, score in scored if score > 0]
    return sorted(fitting, key=lambda pair: -pair[1])


def retrieve(question: Question, policy: Policy, vocabulary: Vocabulary) -> Hit | None:
    """The best fact of one policy, or ``None`` when it says nothing about the question."""
    fields = ranked_fields(question, vocabulary)
    if not fields or fields[0][1] < THRESHOLD:
        return None
    best = fields[0][1]
    for name, score in fields:
        fact = policy.fact(name)
        if fact is not None and score >= best - BOOST_WEIGHT:
            return Hit(policy, fact, score)
    return None
