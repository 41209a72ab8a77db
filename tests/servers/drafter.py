"""A writer of case drafts without a language model. It writes a question about each numbered clause in a prompt.

The servers with Anthropic's and OpenAI's APIs can use it in place of the rule judge. It can write invalid drafts,
for example with false quotes, wrong figures or personal data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from tests.servers.anthropic_verdicts import FENCE

_CLAUSE = re.compile(r"^\d+\.\d+ ((?:[^\n]|\n(?!\d))+\.)$", re.MULTILINE)
_FIGURE = re.compile(r"₹?\d[\d,]*%?(?: \w+)?")
Draft = dict[str, Any]


def honest(draft: Draft) -> Draft:
    """Return the draft unchanged."""
    return draft


def false_quote(draft: Draft) -> Draft:
    """Return the draft with a quote that is in no document."""
    return draft | {"quote": "The company pays whatever the customer asks for, at once."}


def other_figure(draft: Draft) -> Draft:
    """Return the draft with a gold answer that the clause does not support."""
    return draft | {"gold": "777 days"}


def leaking(draft: Draft) -> Draft:
    """Return the draft with personal data in its question."""
    return draft | {"question": f"{draft['question']} Write to asha.rao@example.com."}


def in_hindi(draft: Draft) -> Draft:
    """Return the draft with a question in Hindi, which is not the requested language."""
    return draft | {"question": "इस पॉलिसी में प्रतीक्षा अवधि कितने दिन की है?"}


def without_severity(draft: Draft) -> Draft:
    """Return the draft without its severity, which makes it invalid."""
    return {key: value for key, value in draft.items() if key != "severity"}


class RuleDrafter:
    """Writes drafts by fixed rules.

    The first function in ``spoil`` changes the first draft, and so on. The last function changes all further
    drafts.
    """

    def __init__(self, spoil: Iterable[Callable[[Draft], Draft]] = (honest,)) -> None:
        self.spoil = tuple(spoil)
        self.translate: Callable[[str], str] = lambda text: text
        self.prompts: list[str] = []

    def verdict(self, prompt: str, wanted: Iterable[str]) -> dict[str, Any]:
        """Return the drafts or translations for ``prompt``, depending on the schema in ``wanted``."""
        self.prompts.append(prompt)
        fenced = [(fence["label"].lower(), fence["body"]) for fence in FENCE.finditer(prompt)]
        if "drafts" in wanted:
            document = next(body for label, body in fenced if label == "source passage")
            return {"drafts": self._drafts(document, int(re.search(r"Write (\d+) questions", prompt)[1]))}
        pairs = [(asked, gold) for (label, asked), (_, gold) in pairwise(fenced) if label == "question"]
        return {
            "translations": [
                {
                    "number": number,
                    "question": self.translate(asked),
                    "gold": self.translate(gold),
                    "why": "nothing",
                }
                for number, (asked, gold) in enumerate(pairs, start=1)
            ]
        }

    def _drafts(self, document: str, count: int) -> list[Draft]:
        sentences = [" ".join(match[1].split()) for match in _CLAUSE.finditer(document)][:count]
        made = [self._draft(sentence) for sentence in sentences]
        return [self.spoil[min(at, len(self.spoil) - 1)](draft) for at, draft in enumerate(made)]

    def _draft(self, sentence: str) -> Draft:
        words = re.findall(r"[a-z-]{4,}", sentence)[:4]
        figure = _FIGURE.search(sentence)
        return {
            "question": f"What does the policy say about {' and '.join(words)}?",
            "quote": sentence,
            "gold": figure[0] if figure else sentence,
            "type": "coverage_scope",
            "severity": 2,
            "why": "a buyer would count on it",
        }
