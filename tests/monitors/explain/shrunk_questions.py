"""Simulated applications that fail because of a known trigger in the question, each in another way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from monitors.explain.shrink import ShrunkQuestion, Turns, shrink_question, split_words

Trigger = Callable[[Turns], bool]

PORTING = (
    "Hello, I have been a customer of yours for six years and I am very happy with the service so far. My neighbour "
    "told me that the rules changed in April. What is the waiting period for pre-existing diseases under Suraksha "
    "Gold, and does it also apply when I port from another insurer?"
)
FATHER = (
    "Hi there, I am new here and want to understand my health cover before the renewal in March.",
    "My father is 67 years old, he had a bypass surgery last year, and we live in Pune.",
    "Which of your plans would you recommend to us, and how long do we wait until it pays for his heart?",
)
CLAIM = (
    "I was in hospital for three days last week - dengue fever, nothing worse. The bill is ₹40,000, of which the "
    "room was ₹12,500! Can Asha from your Pune office tell me what share I get back under Family Shield; and when?"
)
HINDI = (
    "नमस्ते, मैं पिछले दो साल से आपका ग्राहक हूँ। मेरी माँ को मोतियाबिंद है और डॉक्टर ने अगले महीने ऑपरेशन की सलाह दी है। "
    "सुरक्षा गोल्ड में इसके लिए कितनी राशि मिलती है?"
)
HINGLISH = (
    "Mera beta abhi 4 mahine ka hai aur hum usko policy mein add karna chahte hain.",
    "Suraksha Family Shield mein newborn ka cover kab se start hota hai, aur kya vaccination bhi shamil hai?",
)


def _words(turns: Turns) -> list[str]:
    return re.findall(r"[^\s.,;:?!।]+", " ".join(turns).casefold())


def words(*needed: str) -> Trigger:
    """Build a trigger that requires all of these words in the conversation, in any order."""
    return lambda turns: set(needed) <= set(_words(turns))


def phrase(*needed: str) -> Trigger:
    """Build a trigger that requires these words in sequence."""
    count = len(needed)

    def fails(turns: Turns) -> bool:
        said = _words(turns)
        return any(tuple(said[at : at + count]) == needed for at in range(len(said)))

    return fails


def earlier(needed: Trigger) -> Trigger:
    """Build a trigger that requires ``needed`` before the last turn."""
    return lambda turns: needed(turns[:-1])


def says(text: str) -> Trigger:
    """Build a trigger that requires this exact text in the conversation."""
    return lambda turns: text in " ".join(turns)


def at_least(count: int) -> Trigger:
    """Build a trigger that requires a conversation of at least ``count`` words."""
    return lambda turns: len(list(split_words(turns))) >= count


def any_of(*triggers: Trigger) -> Trigger:
    """Build a trigger that requires at least one of several triggers."""
    return lambda turns: any(one(turns) for one in triggers)


@dataclass(frozen=True)
class PlantedTrigger:
    """An application that fails because of ``trigger``, whose shortest form has ``length`` words.

    If the question contains the trigger, the share ``rate`` of the answers fail. If it does not, the share
    ``by_chance`` fail.
    """

    name: str
    turns: Turns
    trigger: Trigger
    length: int
    rate: float = 1.0
    by_chance: float = 0.0

    def shrunk(self, budget: int = 40, seed: int = 0) -> ShrunkQuestion:
        """Return the shortest failing question that the search finds for this application."""
        chance = Random(f"{self.name} {seed}")

        async def ask(turns: Turns) -> bool:
            return chance.random() < (self.rate if self.trigger(turns) else self.by_chance)

        return asyncio.run(shrink_question(self.turns, ask, budget=budget))

    def is_met(self, found: ShrunkQuestion) -> bool:
        """Return whether the search succeeded.

        The shortened question must contain the trigger, and have at most 1.2 times as many words as the trigger.
        The search may use at most 40 probes.
        """
        return self.trigger(found.turns) and found.length <= 1.2 * self.length and found.probes <= 40


ROWS = (
    PlantedTrigger("a word in the middle", (PORTING,), words("neighbour"), 1),
    PlantedTrigger("the first word", (PORTING,), words("hello"), 1),
    PlantedTrigger("the last word", (PORTING,), words("insurer"), 1),
    PlantedTrigger("two words apart in a sentence", (PORTING,), words("gold", "port"), 2),
    PlantedTrigger("two words in two sentences", (PORTING,), words("customer", "april"), 2),
    PlantedTrigger("three words apart", (PORTING,), words("six", "april", "gold"), 3),
    PlantedTrigger("a phrase of four words", (PORTING,), phrase("port", "from", "another", "insurer"), 4),
    PlantedTrigger("either of two words", (PORTING,), any_of(words("april"), words("insurer")), 1),
    PlantedTrigger("a phrase in the second of three turns", FATHER, phrase("bypass", "surgery", "last", "year"), 4),
    PlantedTrigger("a phrase before the last turn", FATHER, earlier(phrase("bypass", "surgery")), 3),
    PlantedTrigger("a number in the second of three turns", FATHER, words("67"), 1),
    PlantedTrigger("a name", FATHER, words("pune"), 1),
    PlantedTrigger("a word in each of two turns", FATHER, words("renewal", "heart"), 2),
    PlantedTrigger("an amount", (CLAIM,), says("₹12,500"), 1),
    PlantedTrigger("a long question", (CLAIM,), at_least(20), 20),
    PlantedTrigger("a name and a product", (CLAIM,), words("asha", "shield"), 2),
    PlantedTrigger("a Hindi word", (HINDI,), words("मोतियाबिंद"), 1),
    PlantedTrigger("Hinglish, a phrase", HINGLISH, phrase("newborn", "ka", "cover"), 3),
    PlantedTrigger("a word, failing 9 times in 10", (CLAIM,), words("dengue"), 1, rate=0.9),
    PlantedTrigger("a phrase, failing 8 times in 10", FATHER, phrase("live", "in", "pune"), 3, rate=0.8),
    PlantedTrigger("a word, and 1 in 20 fail by chance", (PORTING,), words("service"), 1, by_chance=0.05),
)
