"""Decide whether a reply asks the user for missing facts, in English, Hindi and Hinglish.

This module is pure. A clarifying question is short, and ends with a request to the user: which plan, what
policy number. The following are not clarifying questions, because the answer needs no fact from the user:

- a courtesy ("anything else?"), an offer ("shall I explain?") or a greeting ("how can I help?");
- an instruction that is the answer ("please show your card at the counter").
"""

from __future__ import annotations

import re
from typing import Final

MAX_WORDS: Final = 70
"""Maximum number of words of a clarifying question. A longer reply is an answer, even if it ends in a question."""
MAX_CHARACTERS: Final = 1_000
_MAX_ENDING_SENTENCES: Final = 2
"""The question is searched for in this number of sentences at the end of a reply.

Earlier questions do not count.
"""
_MAX_HINT_WORDS: Final = 10
"""Maximum number of words of a sentence that follows the question. A longer sentence is an answer."""
_MAX_REQUEST_WORDS: Final = 30
"""Maximum number of words of a request without a question mark. A longer reply is an answer."""

_NOTE: Final = re.compile(
    r"\[[^\[\]]{0,200}\]|\((?:source|sources|स्रोत)\b[^()]{0,200}\)|[*_`#>\"“”]", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"[^.!?।？\n]+[.!?।？]*|\n")
_QUESTION: Final = re.compile(r"[?？]\s*[^\w]*$")

_COURTESY: Final = re.compile(
    r"any(?:thing|\s+other\s+\w+|\s+more|\s+further)\b.{0,40}(?:else|help|assist|question|know|doubt"
    r"|quer)|anything else"
    r"|(?:can|may|could) i (?:\w+ )?(?:help|assist|do)|what (?:can|may|else can) i do|how (?:can|may"
    r"|could) (?:i|we)"
    r"|(?:would|do) you (?:like|want|wish|need)\b.{0,20}\b(?:know|hear|learn|more|details|me to|help"
    r"|assist|see|read)"
    r"|(?:shall|should|may|can|could) (?:i|we)\b|(?:does|did|do|was|is|has) (?:that|this|it|these)\b.{0,30}"
    r"(?:help|answer|clear|useful|work|make sense|solve|resolve|satisf)|let me know if|feel free|how are you"
    r"|(?:happy|glad) (?:to|with)|would that be (?:ok|fine|all)|\b(?:ok|okay|right|alright|isn.t it"
    r"|got it)\s*[?？]"
    r"|(?:कुछ|कोई) (?:और|अन्य)|और (?:कुछ|कोई)|(?:कैसे|क्या) (?:मदद|सहायता)|मदद (?:कर|चाह)|सहायता (?:कर|चाह)"
    r"|(?:और|अधिक|विस्तार).{0,20}(?:जानना|जानकारी).{0,12}(?:चाह)|समझ (?:आ|गए|में)|ठीक है|सही है ना|कैसे हैं"
    r"|मददगार|उपयोगी"
    r"|(?:aur|koi aur|kuch aur) (?:kuch|koi|sawaal|sawal|madad|jaankari|jankari|help)|kuch aur|koi aur"
    r"|(?:kaise|kya) (?:madad|help|sahayata)|madad (?:kar|chah)|help (?:kar|chah)|samajh (?:aa|gaye|gaya|mein)"
    r"|(?:theek|thik|sahi) hai (?:na)?|(?:aur|zyada|detail).{0,20}(?:jaan|bata(?:un|oon|u)|samjha).{0,12}"
    r"(?:chah|un|oon|\?)|kaise hain|kya main|bataun|bataoon|बताऊँ|बताऊं|क्या मैं",
    re.IGNORECASE,
)
_FORBIDS: Final = re.compile(
    r"\b(?:not|never|nobody|no one|don.?t|mat|na kare\w*|kabhi|kisi se|kisi ko)\b|(?<!\w)(?:मत|कभी|किसी"
    r"|न करें|ना करें)(?!\w)",
    re.IGNORECASE,
)

_ASKS: Final = re.compile(
    # English: a question about the user or about the user's meaning
    r"\b(?:which|what|when|where|who|whom|whose|how (?:much|many|old|long|far))\b.{0,80}\b(?:you|your"
    r"|yours|it|this|that"
    r"|the|of|is|are|was|were|for)\b|^\W*(?:which|whose|what|where|when|who)\b(?:\W+\w+){0,3}\W*$"
    r"|\b(?:do|did|are|were|have|has|is|was|will) (?:you|your|this|that|it|these|the|they|he|she)\b"
    r"|\b(?:could|can|would|may|might) (?:you|i have|i know|i get|we have)\b|\bmind (?:telling|sharing"
    r"|giving)\b"
    r"|\b(?:for|about|under|with) (?:which|what|whom)\b"
    # Hindi
    r"|कौन|किस|कब|कहाँ|कहां|कितन|क्या (?:आप|यह|ये|वह|आपक|इलाज|मरीज|पॉलिसी)|आपका|आपकी|आपके|बता|भेज"
    # Hinglish
    r"|\b(?:kaun\w*|kon|kis|kiska|kiski|kiske|kab|kahan|kaha|kitn\w+|konsa|konsi)\b"
    r"|\bkya (?:aap|ap|ye|yeh|yah|woh|aapk\w*|treatment|policy|patient)\b|\b(?:aapka|aapki|aapke|apka"
    r"|apki|apke)\b"
    r"|\b(?:bata|batao|bataiye|batayein|bataye|bataen|bhej)\w*\b",
    re.IGNORECASE,
)
_REQUESTS: Final = re.compile(
    r"\b(?:please|kindly|pls)\b.{0,30}\b(?:share|provide|specify|confirm|mention|clarify|give (?:me|us)"
    r"|send (?:me|us)|tell "
    r"(?:me|us)|enter|choose|select|let (?:me|us) know (?:which|what|whether|your|the|when|who))\b"
    r"|\b(?:tell (?:me|us)|let (?:me|us) know) (?:which|what|whether|your|when|who|the)\b"
    r"|\bi(?:.ll)? (?:will )?need (?:your|to know|the|a few)\b"
    r"|(?:बताएं|बताएँ|बताइए|बताइये|बता दें|बता दीजिए|साझा करें|साझा कीजिए"
    r"|भेजें|चुनें|स्पष्ट करें|दर्ज करें)"
    r"|(?:bata (?:dijiye|dein|do|den|de)|bataiye|bataen|batayein|bataye|share (?:kare\w*|kijiye"
    r"|kar dein|kar dijiye)|confirm "
    r"(?:kare\w*|kijiye|kar dein)|bhej (?:dein|dijiye|do)|bheje\w*|mention (?:kare\w*|kijiye))",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    r"\b(?:at|to|with|from|in) (?:the|your|any|our|a) (?:hospital|desk|insurer|tpa|counter|branch|nurse"
    r"|doctor|agent|team"
    r"|app|portal|website|office|claim form|form|bank|helpdesk|employer|hr)|\bwithin (?:\d|\w+ (?:hours"
    r"|days))|\bbefore"
    r"|\bwhen you|\bwhile|\bduring|\bat the time|अस्पताल (?:में|को)|बीमा कंपनी को|के समय|के भीतर"
    r"|से पहले|डेस्क|शाखा"
    r"|hospital (?:mein|me|ko)|insurer ko|tpa ko|company ko|ke andar|se pehle|ke time|desk|branch|counter",
    re.IGNORECASE,
)


def is_counter_question(reply: str) -> bool:
    """Return whether the reply asks the user for missing facts instead of giving an answer."""
    text = _NOTE.sub(" ", reply).strip() if len(reply) <= MAX_CHARACTERS else ""
    words = len(text.split())
    if not words or words > MAX_WORDS:
        return False
    ending = [each for sentence in _SENTENCE.findall(text) if re.search(r"\w", each := sentence.strip())][
        -_MAX_ENDING_SENTENCES:
    ]
    if len(ending) == _MAX_ENDING_SENTENCES and len(ending[-1].split()) > _MAX_HINT_WORDS:
        ending = ending[-1:]
    return any(_is_information_request(sentence, words) for sentence in ending)


def _is_information_request(sentence: str, words: int) -> bool:
    if _QUESTION.search(sentence):
        asks = _ASKS.search(sentence) or _REQUESTS.search(sentence)
    else:
        asks = words <= _MAX_REQUEST_WORDS and _REQUESTS.search(sentence) and not _ELSEWHERE.search(sentence)
    return bool(asks) and not (_COURTESY.search(sentence) or _FORBIDS.search(sentence))
