"""What the bot will not do: hand out personal data, act on anyone's behalf, speak of foreign subjects."""

from __future__ import annotations

import re
from enum import StrEnum

from deployments.demo.policies import Vocabulary
from deployments.demo.reading import Question, normalise
from monitors.records.base import Language


class Intent(StrEnum):
    """What a reply set out to do."""

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


class Guard:
    """Recognises requests that must be declined, by their words alone."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        actions = vocabulary.actions
        verbs, objects = _either(actions.verbs), _either(actions.objects)
        self._command = re.compile(rf"^{_POLITE}(?:{verbs})\b.*\b(?:{objects})\b")
        self._wish = re.compile(rf"^{_POLITE}{_WISH}(?:{verbs})\b.*\b(?:{objects})\b")
        self._hindi = re.compile(_bounded(actions.hindi))
        self._private = re.compile(_bounded(vocabulary.private))

    def declines(self, question: Question) -> Intent | None:
        """`Intent.PRIVATE` or `Intent.ACTION` when the request must be declined."""
        if self._private.search(question.normal):
            return Intent.PRIVATE
        parts = [normalise(part) for part in _SPLIT.split(question.text)]
        if self._hindi.search(question.normal) or any(self._command.search(part) for part in parts):
            return Intent.ACTION
        if "?" not in question.text and any(self._wish.search(part) for part in parts):
            return Intent.ACTION
        return None


def _either(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in sorted(map(normalise, words), key=len, reverse=True))


def _bounded(words: tuple[str, ...]) -> str:
    return rf"(?<![a-z0-9\u0900-\u097f])(?:{_either(words)})(?![a-z0-9\u0900-\u097f])"


_WORDS: dict[Intent, dict[Language, str]] = {
    Intent.NOT_MENTIONED: {
        Language.ENGLISH: "The policy documents I have do not mention {subject}. I would rather not guess; "
        "the Suraksha Health service desk can help.",
        Language.HINDI: "मेरे पास जो पॉलिसी दस्तावेज़ हैं, उनमें इसका उल्लेख नहीं है। मैं अनुमान नहीं लगाऊँगा; "
        "कृपया सुरक्षा हेल्थ की सेवा डेस्क से पूछें।",
        Language.HINGLISH: "Mere paas jo policy documents hain, unmein iska zikr nahi hai. Main andaza "
        "nahi lagaunga; please Suraksha Health ki service desk se poochiye.",
    },
    Intent.PRIVATE: {
        Language.ENGLISH: "I cannot share personal data about any customer, and I have no access to it. "
        "I can only answer questions about what our policies say.",
        Language.HINDI: "मैं किसी भी ग्राहक की निजी जानकारी नहीं दे सकता; वह मेरे पास है भी नहीं। "
        "मैं केवल पॉलिसी की शर्तों के बारे में बता सकता हूँ।",
        Language.HINGLISH: "Main kisi bhi customer ki personal jaankari nahi de sakta; woh mere paas hai bhi nahi. "
        "Main sirf policy ki sharton ke baare mein bata sakta hoon.",
    },
    Intent.ACTION: {
        Language.ENGLISH: "I cannot do that. I am not able to change, cancel or delete anything, and I cannot move "
        "money; please contact the Suraksha Health service desk.",
        Language.HINDI: "मैं यह नहीं कर सकता। मैं कुछ भी बदल, रद्द या मिटा नहीं सकता और न पैसे भेज सकता हूँ; "
        "कृपया सुरक्षा हेल्थ की सेवा डेस्क से संपर्क करें।",
        Language.HINGLISH: "Main yeh nahi kar sakta. Main kuch bhi badal, cancel ya delete nahi kar sakta, na "
        "paise bhej sakta hoon; please Suraksha Health ki service desk se baat kijiye.",
    },
    Intent.CLARIFY: {
        Language.ENGLISH: "Which policy do you mean? I know {names}.",
        Language.HINDI: "आप किस पॉलिसी के बारे में पूछ रहे हैं? मेरे पास ये हैं: {names}।",
        Language.HINGLISH: "Aap kis policy ke baare mein pooch rahe hain? Mere paas yeh hain: {names}.",
    },
    Intent.GREETING: {
        Language.ENGLISH: "Hello! I answer questions about Suraksha Health's policies: {names}.",
        Language.HINDI: "नमस्ते! मैं सुरक्षा हेल्थ की पॉलिसियों के बारे में बताता हूँ: {names}।",
        Language.HINGLISH: "Namaste! Main Suraksha Health ki policies ke baare mein batata hoon: {names}.",
    },
}


def standing_reply(intent: Intent, language: Language, **slots: str) -> str:
    """The words for a reply that states no fact."""
    by_language = _WORDS[intent]
    return by_language.get(language, by_language[Language.ENGLISH]).format(**slots)
