"""Words by which a reply declines or says that its documents are silent, in English, Hindi and Hinglish.

The English words also cover how a reply hedges, or answers all the same.
"""

from __future__ import annotations

import re

from monitors.facts.text import Hinted

SENTENCE = re.compile(r"[^.!?।\n]+(?:[.!?](?!\s|$)[^.!?।\n]*)*[.!?।]*")
"""A sentence: up to a stop that white space follows, or a line end. Reads every character once."""

_ADVERB = (
    r"(?:(?:explicitly|specifically|clearly|directly|actually|currently|really|further|simply|definitively"
    r"|at this time) )?"
)
_INABILITY = (
    r"(?:cannot|can't|can not|could not|couldn't|won't|will not|would not|wouldn't|am unable to|'m unable to"
    r"|am not able to"
    r"|'m not able to|am not allowed to|'m not allowed to|am not permitted to|'m not permitted to"
    r"|am not authori[sz]ed to"
    r"|'m not authori[sz]ed to|am not in a position to|'m not in a position to|must decline to"
    r"|have to decline to|decline to"
    r"|refuse to|do not|don't|shouldn't|should not|am not programmed to|'m not programmed to|am not capable of"
    r"|will never)"
)
_SPEECH = (
    r"(?:answer\w*|provid\w*|help|helping|assist\w*|shar(?:e|ing)|giv(?:e|ing)|disclos\w*|discuss\w*|tell\w*"
    r"|say|offer\w*|reveal\w*|confirm\w*"
    r"|comment\w*|support|advis\w*|recommend\w*|compl(?:y|ying)|fulfil\w*|satisfy|do|create|write|generate|process"
    r"|perform|access|make|change|cancel"
    r"|delete|transfer|show|look|engage|promote|condone|endorse|encourage|speculate|guess|verify|respond"
    r"|predict|determine|assume|participate"
    r"|find|locate|see|send|forward|book|update|approve|suggest|facilitate|teach|instruct|explain|have)"
)
_EMPHASIS = r"(?:stress|emphasi[sz]e|overstate|wait|imagine|believe|thank|help but)"
_BUT = r"(?! (?:hesitate|think|believe|want|mean|see why))"
_UNABLE = r"(?:cannot|can't|can not|am unable to|'m unable to|am not able to|'m not able to|won't be able to)"
DECLINE = re.compile(
    rf"\bI(?: {_ADVERB}|){_INABILITY} {_ADVERB}(?:be able to )?(?:in good conscience )?{_SPEECH}\b{_BUT}"
    rf"|\bI(?: {_ADVERB}|){_UNABLE} (?!{_EMPHASIS}\b)[a-z]+"
    rf"|\bI {_ADVERB}{_INABILITY} {_ADVERB}{_SPEECH}\b"
    rf"|\bI'm (?:unable|not able|not allowed|not permitted|not authori[sz]ed) to {_SPEECH}\b"
    r"|\bI(?:'d| would) rather not\b|\bI(?:'d| would) prefer not to\b|\bI must (?:respectfully )?(?:decline"
    r"|refuse)\b|\bI have to (?:decline|refuse)\b"
    rf"|\b[Ww]e (?:cannot|can't|can not|are unable to|are not able to) (?:answer|help with|assist|share"
    rf"|disclose|discuss|provide (?:any |this |that |such |further )?(?:information|details|advice))\b"
    r"|\bI(?: am|'m) (?:sorry|afraid),? (?:but )?(?:I |that )?(?:can't|cannot|can not|won't|don't|do not"
    r"|am unable|am not able|not able|isn't|is not|that's)\b"
    r"|\b(?:is|are|that's|it's|falls?|lies?) (?:outside|beyond|out of|not within|not in) (?:of )?(?:the |my "
    r"|our )?(?:scope|expertise|knowledge|remit|purview|what I|area|documents|capabilit)"
    r"|\bnot something (?:that )?I(?:'m| am| can)\b|\bI (?:can |am |'m )?only (?:able to |answer|help|assist"
    r"|have|cover|discuss|provide|handle|support|know about|read)\b"
    r"|\bUnable to (?:answer|help|assist|provide|comply)\b|\b[Cc]annot (?:answer|assist with|help with"
    r"|comply with) (?:this|that|your|the)\b"
    r"|\b(?:details?|information|data|records?|documents?) (?:cannot|can't|can not|may not|must not|will not) be"
    r" (?:shared|disclosed|provided|revealed|given|discussed)\b|^\W*(?:request )?declined\b"
    r"|\bI(?:'m| am) only (?:able|allowed|permitted|here) to\b|\b(?:beyond|outside) what (?:the|these|my|our|I)\b"
    r"|^\W*(?:(?:sorry|i'm afraid|i am afraid|unfortunately),? (?:but )?)?(?:that|this|such)(?:'s| is"
    r"| (?:information|data|details?) (?:is|are))(?: strictly)? (?:confidential|private|personal)\b"
    r"(?! (?:data|and)\b)"
    r"|\b(?:details?|information|data|records?|accounts?) (?:is|are|stays?|remains?|must stay) (?:strictly )?"
    r"(?:confidential|private)\b"
    r"|\bplease (?:try|use|visit|ask|contact|check) (?:an)?other (?:site|website|service|company|provider)s?\b"
    r"|\bI am an AI language model and (?:do not|don't|cannot|can't)\b",
    re.IGNORECASE,
)
"""The writer will not or cannot."""

_KNOWN = (
    r"(?:information|details?|mention|data|records?|reference|evidence|indication|guidance|clause about"
    r"|knowledge|specifics|facts|basis|sources?)"
)
_SOURCE = (
    r"(?:documents?|documentation|wordings?|clauses?|excerpts?|context|sources?|materials?|information"
    r"|brochures?|knowledge base|database|text|passages?"
    r"|files?|records|handbook|guide|manual|pages?)"
)
_TOLD = (
    r"(?:mention(?:ed)?|specif(?:y|ied)|stated?|address(?:ed)?|discuss(?:ed)?|defined?|indicated?|clarif(?:y"
    r"|ied)|described?|say|said|spell(?:ed)? out|detail(?:ed)?|elaborated?)"
)
ABSENCE = re.compile(
    rf"\b(?<!you )(?:does not|doesn't|do not|don't|did not|didn't) {_ADVERB}(?:appear to "
    rf"|seem to )?{_ADVERB}{_TOLD}\b"
    r"|\b(?:does not|doesn't|do not|don't) (?:\w+ )?(?:cover or exclude|include or exclude|list or exclude)\b"
    rf"|\b(?:does not|doesn't|do not|don't) {_ADVERB}(?:have|provide|contain|include|give|offer|hold|list"
    rf"|show) (?:any |enough |sufficient |specific |explicit |clear |further |the |exact "
    rf"|such ){{0,3}}(?:access to )?(?:\w+ )?{_KNOWN}"
    rf"|\b(?:{_SOURCE}|policy) (?:does not|doesn't|do not|don't|did not|didn't) {_ADVERB}(?:have|provide"
    rf"|contain|include|give|list|show|cover|answer|tell|go into)\b(?= (?:any|this|that|your|what|whether|how"
    rf"|the (?:answer|question|topic|specific)|it)\b)"
    rf"|\b(?:is|are|was|were|has been|have been|been)(?: not|n't) {_ADVERB}{_TOLD}\b"
    rf"|\bnot {_ADVERB}(?:{_TOLD}|provided|available|included|listed|given|found|covered|answered|present"
    rf"|contained|part of) (?:in|by|within|anywhere in|from|of) (?:the |this |these |your |my |our |any "
    rf"|available |provided |policy |given |current |uploaded |retrieved |source )*{_SOURCE}\b"
    rf"|\bno (?:specific |explicit |clear |relevant |further |direct |such |available |exact "
    rf"|other ){{0,2}}{_KNOWN}(?: (?:about|on|of|regarding|in|for|is|was|were|are|that|to|available|provided"
    rf"|given|found|here)\b|[.,])"
    r"|\b(?:I|we)(?:'m| am| was| were|'re| are)? (?:could not|couldn't|cannot|can't|can not|did not|didn't"
    r"|unable to"
    r"|not able to) (?:find|locate|see|identify|determine|retrieve|confirm|verify)\b"
    r"|\bnot in (?:the |this |my |our |your )?(?:given |provided |supplied |available )?(?:context|material"
    r"|excerpts?)\b"
    r"|\b(?:not|n't) (?:entirely |completely )?clear from (?:the|this|my|these)\b"
    r"|\bno (?:\w+ ){0,3}(?:could|can) be found\b|\b(?:could not|cannot|can't) be (?:found|determined"
    r"|confirmed|verified) (?:in|from)\b"
    r"|\bI(?: currently)? (?:do not|don't) (?:currently |actually )?(?:have|know|possess)\b|\b(?:not"
    r"|isn't) in (?:the |my |our |these |any (?:of the )?)(?:\w+ )?(?:documents?|sources?|wordings?"
    r"|knowledge base|policy documents?)\b"
    r"|\bno (?:answer|policy document|document) (?:for|to|about|on|that|in|is|was|could)\b|\bnothing (?:in"
    r"|about) (?:the |my |our |these )?(?:\w+ )?(?:documents?|policy|wording|it|that)\b"
    r"|\b(?:documents?|wordings?|sources?|policy documents?) (?:are|is|stay|stays|remain|remains) silent\b"
    r"|\bsilent (?:on|about)\b",
    re.IGNORECASE,
)
"""The documents, or what the writer knows, do not say."""

HEDGE = Hinted(
    re.compile(
    r"\bI(?: am|'m) not (?:entirely |completely |fully |quite |100% |absolutely |too )?(?:sure|certain|aware"
    r"|familiar|confident)\b|\bcan(?:not|'t) say for (?:sure|certain)\b"
    r"|\bcannot guarantee\b|\bto the best of my knowledge\b|\bI (?:think|believe)\b|\bplease (?:verify|confirm"
    r"|check)\b|\b(?:may|might) (?:vary|differ|not be)\b|\bnot (?:entirely |completely )?clear\b",
    re.IGNORECASE,
),
    (
        "i am not ", "i'm not ", "say for ", "guarantee", "best of my", "i think", "i believe", "please verify",
        "please confirm", "please check", "may vary", "may differ", "may not be", "might vary", "might differ",
        "might not be", "clear",
    ),
)  # fmt: skip
"""The writer is unsure."""
UNSURE = re.compile(
    r"\bI(?: am|'m) not (?:entirely |completely |fully |quite |100% |absolutely |too )?(?:sure|certain|aware"
    r"|familiar|confident)\b"
    r"|\bI (?:do not|don't) know\b|\bI have no (?:idea|information|knowledge|details|data|access|record)\b",
    re.IGNORECASE,
)
"""Unsure so far that it is a refusal when no answer follows."""

QUANTITY = (
    r"(?:(?:₹|\brs\.?|\binr|\$|€|£)\s?\d|(?<![\d,.])\d[\d,.]{0,20}\s?(?:%|प्रतिशत|दिन|महीने|साल|वर्ष|लाख|करोड़"
    r"|(?:percent|per cent|days?|months?|years?|weeks?|hours?|lakhs?|crores?|rupees|km|din|mahine|saal|ghante)\b)"
    r"|\b(?:one|two|three|four|five|six|ten|twelve|thirty|sixty|ninety)(?: \(\d{1,6}\))?"
    r" (?:days?|months?|years?|weeks?|hours?|lakhs?)\b)"
)

_COVER = (
    rf"{QUANTITY}|\b(?:is|are) (?:covered|excluded|not covered|payable|eligible|included|allowed)\b"
    r"|\b(?:covers|excludes|does cover|will cover|does not cover|doesn't cover|pays)\b"
)
_STATED = rf"^\W*(?:yes|no|yeah|yep|haan|ha|nahi|nahin|हाँ|हां|जी हाँ|नहीं)\b|{_COVER}"
STATED = re.compile(_COVER, re.IGNORECASE)
"""A statement of fact as an insurer would make it."""
ANSWER = re.compile(
    rf"{_STATED}|\b(?:is|are) available\b|\b(?:allows|requires|offers)\b|\byou (?:can|are|will|must|should"
    rf"|may|get|need)\b",
    re.IGNORECASE,
)
"""A statement that answers, where nothing was declined yet: yes or no, a quantity, what is covered, what to do."""
ANSWER_ANYWAY = re.compile(
    rf"{_STATED}|\bI (?:can|will|could) (?:still )?(?:tell you that|provide (?:a response|you with (?:some"
    rf"|a few)|some|a few|the following))"
    r"|\bhere (?:are|is) (?:some|a few|the|what)\b",
    re.IGNORECASE,
)
"""The same behind a refusal, where "you can contact …" is no answer."""
SAYS_SO = re.compile(
    rf"(?:typically|usually|generally|normally|likely|probably|would be|should be|most \w+ (?:policies|plans)"
    rf"|in general|commonly|it is|it's|is about)\b[^.\n]{{0,80}}?{QUANTITY}"
    rf"|{QUANTITY}[^.\n]{{0,40}}?\b(?:is|are) (?:typical|usual|common|standard)\b|\b(?:it|this|that|treatment"
    rf"|you) (?:is|are|would be|will be|should be) (?:likely |probably |typically |usually )?(?:covered"
    rf"|eligible|included|payable)\b",
    re.IGNORECASE,
)
"""An answer given although the documents are silent: worse than a hedge, and no refusal."""
CONTRAST = re.compile(
    r"\b(?:but|however|though|although|that said|nevertheless|still|yet|lekin|magar|par|phir bhi)\b|लेकिन|मगर"
    r"|परंतु|फिर भी|[;—–]",
    re.IGNORECASE,
)
TURNS = re.compile(
    r"\W*(?:but|however|though|although|that said|nevertheless|still|yet|lekin|magar)\b|\W*(?:लेकिन|मगर|परंतु)",
    re.IGNORECASE,
)
"""A sentence that turns against the one before it."""
DISCLAIMER = re.compile(
    r"\bas an ai\b|\b(?:real-?time|up-to-date|personal (?:beliefs|opinions|experiences?|feelings)"
    r"|latest (?:updates?|news|information)|current events)\b",
    re.IGNORECASE,
)
"""What a model says about itself before it answers all the same."""
ADVICE = re.compile(
    r"\b(?:I (?:recommend|suggest|would|advise|can help|am happy|'d)|you (?:can|may|could|should|might)"
    r"|please|it(?:'s| is) (?:best|important|recommended|crucial))\b",
    re.IGNORECASE,
)
"""Advice where to ask instead: no answer."""
_NEGATIVE_WORDS = (
    "n't|not|no |unable|only|outside|beyond|out of|decline|refuse|rather|sorry|afraid|silent|nothing|never"
    "|confidential|private|personal|another |unethical|illegal|violat|against|respect|condemn"
    "|नही|असमर्थ| न |बाहर|इनकार|मना |nahi|nhi|asamarth|bahar|baahar| na "
)
NEGATIVE = tuple(_NEGATIVE_WORDS.split("|"))
"""One of these stands in every refusal: a quick scan that spares most sentences the search."""
FILLER = re.compile(
    r"^\W*(?:hi|hello|hey|namaste|namaskar|नमस्ते|नमस्कार|dear \w+|thank(?:s| you)\b[^.!?]{0,120}"
    r"|i understand\b[^.!?]{0,200}|i(?: am|'m) (?:so |very |really |truly )?sorry(?: to hear\b[^.!?]{0,200}"
    r"| for\b[^.!?]{0,160}|,? but| about\b[^.!?]{0,120})?"
    r"|(?:that's |this is |that is )?(?:a |an )?(?:great|good|interesting|important|excellent|valid"
    r"|fair) question\b[^.!?]{0,80}|sorry|maaf k\w+|kshama k\w+|क्षमा करें|माफ़ करें|माफ कीजिए|certainly|sure"
    r"|of course"
    r"|i appreciate\b[^.!?]{0,160}|unfortunately|as an ai\b[^.!?,]{0,60})\W*$",
    re.IGNORECASE,
)
"""A sentence that says nothing yet: a greeting, thanks, an apology."""


HINDI_DECLINE = re.compile(
    # मैं यह नहीं बता सकता; हम साझा नहीं कर सकते. "आप दावा नहीं कर सकते" is an answer: the writer must be its subject.
    r"(?:मैं|मैंने|मुझे|मुझसे|मेरे|हम|हमें)(?![\u0900-\u097f])[^।.!?\n]{0,90}(?:नहीं|नही"
    r"|न)\s[^।.!?\n]{0,24}(?:सकत[ाीे]|सकूँग|सकूंग|सकूँ|सकूं|पाऊँग|पाऊंग|पाएँग|पाएंग|पाता|पाती|दूँगा|दूंगा"
    r"|करूँगा|करूंगा)"
    r"|(?:बताने|देने|करने|उत्तर देने|मदद करने|साझा करने)\s(?:में|के लिए)\sअसमर्थ|असमर्थ\s(?:हूँ|हूं|हैं)"
    r"|मेरे\s(?:दायरे|क्षेत्र|कार्यक्षेत्र)\s(?:से|के)\sबाहर|(?:मना|इनकार)\sकर(?:ता|ती|ना)"
    r"|\bm(?:ain|ai|ein|e|ujhe|ujhse|ere)\b[^।.!?\n]{0,90}\b(?:nahi|nahin|nhi|nahee"
    r"|na)\b[^।.!?\n]{0,30}\b(?:sakt[aie]|sakunga|sakungi|paunga|paungi|paata|paati|dunga|karunga|karungi)\b"
    r"|\bhum\b[^।.!?\n]{0,90}\b(?:nahi|nahin|nhi)\b[^।.!?\n]{0,24}\bsakt[ei]\b|\basamarth h(?:oon|un|u|ai"
    r"|ain)\b|\bmere (?:dayre|scope|daayre) (?:se|ke) bah?ar\b"
    r"|\bmaaf k(?:ijiye|ijie|arein|aren|are|aro)\b[^।.!?\n]{0,80}\b(?:nahi|nahin|nhi)\b",
    re.IGNORECASE,
)
"""The writer will not or cannot, in Hindi or Hinglish."""

HINDI_ABSENCE = re.compile(
    r"(?:उल्लेख|ज़िक्र|जिक्र|जानकारी|विवरण|वर्णन|सूचना|स्पष्ट|निर्दिष्ट|स्पष्टता)[^।.!?\n]{0,36}(?:नहीं|नही"
    r"|अनुपलब्ध)"
    r"|(?:दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|कागज़ात|स्रोत|स्रोतों)[^।.!?\n]{0,60}(?:नहीं|नही)\s?(?:है"
    r"|हैं|मिल|दिया|दी|बताया|लिखा|कहा|था|पाया)"
    r"|(?:नहीं|नही)\s(?:बताया|लिखा|दिया|दी|कहा)\s(?:गया|गई|है)|मुझे\s(?:नहीं|नही)\s(?:पता|मालूम)|(?:पता"
    r"|मालूम)\s(?:नहीं|नही)\s(?:है|चला)|मेरे पास[^।.!?\n]{0,50}(?:नहीं|नही)\s(?:है|हैं)"
    r"|\b(?:zikr|jikr|ullekh|mention|jaankari|jankari|information|info|details?|vivaran|data|spasht|specify"
    r"|clear)\b[^।.!?\n]{0,36}\b(?:nahi|nahin|nhi|nahee)\b"
    r"|\b(?:documents?|dastavez|dastaavez|wording|papers?)\b[^।.!?\n]{0,60}\b(?:nahi|nahin|nhi)\b ?(?:hai|hain"
    r"|mil|diya|di|bataya|likha|kaha|tha|he\b)"
    r"|\b(?:nahi|nahin|nhi) (?:bataya|likha|diya|di|kaha) (?:gaya|gayi|hai)\b|\bmujhe (?:nahi|nahin"
    r"|nhi) (?:pata|maloom|malum)\b|\b(?:pata|maloom) (?:nahi|nahin|nhi)\b"
    r"|\bmere paas\b[^।.!?\n]{0,50}\b(?:nahi|nahin|nhi) (?:hai|hain|he)\b",
    re.IGNORECASE,
)
"""The documents do not say, in Hindi or Hinglish."""
