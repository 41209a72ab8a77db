"""How texts try to talk a judge round, as patterns over plain text in lower case. Data.

Written from the kinds of attack that are published (prompt injection, "master keys", null models), in words of our
own, for English, Hindi and Hinglish. They name what a text does to its judge, not what it says about the world:
insurance answers speak of scores, notices and marks all the time.
"""

from __future__ import annotations

import re

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

STEERING = re.compile(
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
"""A sentence that speaks to a judge, tells it what to decide, or writes its decision for it."""

VERDICT_CLAIM = re.compile(
    rf"\b(?:this|the above|my) {_ANSWER} (?:is|should be considered) {_RIGHT}\b"
    r"|\b(?:score|rating|rubric|grade)[\"']?\s*[:=]\s*[\"']?(?:1(?:\.0+)?|5|10|100|[a-z]\+?)(?:\s*/\s*\d+)?\b"
)
"""A sentence that claims a verdict without telling anybody to give it."""

SEVERITY_CLAIM = re.compile(
    r"\bsev(?:erity)?(?: level)?\s*(?:is|of|:|=|-)?\s*[0-4]\b"
    r"|\b(?:low|no|minor|high|critical|highest)[ -]severity\b"
    r"|\bseverity\s*(?:is|:|=)\s*(?:low|none|minor|high|critical)\b|\b(?:is|as) (?:a )?p[0-4]\b"
)
"""A sentence that says how severe it wants to be. Severity comes from the case and the policy table alone."""

ALERT_CLAIM = re.compile(
    r"\b(?:page|alert|notify|wake|escalate(?: this)? to|ping)\b.{0,25}"
    r"\b(?:on-?call|engineer|security team|slack|everyone|sre|devops)\b"
    r"|\b(?:trigger|raise|send|suppress|silence|resolve|close|open|cancel)\b.{0,20}"
    r"\b(?:alerts?|incidents?|alarms?|pager)\b"
    r"|(?:^|\s)<?[@!](?:here|channel|everyone)\b"
)
"""A sentence that asks for an alert or for silence. Nobody asks an answer."""

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
"""A whole sentence that promises an answer and gives none, without its punctuation."""

FORGED_CASE = (
    re.compile(r"#{1,4} ?(?:instructions?|model outputs?|reference answer|expected answer|graded answer)\b"),
    re.compile(r"\bmodel_identifier\b"),
    re.compile(r"\[(?:the )?(?:start|end) of (?:assistant|answer|reference|question)"),
    re.compile(r"[\"']?\b(?:instruction|output)\b[\"']?\s*:\s*(?:\"\"\"|''')"),
    re.compile(r"\b(?:outputs?|answers?|responses?) (?:from|of) the (?:models|assistants|candidates)\b"),
    re.compile(r"^(?:expected|reference|gold)(?: answer)?\s*:", re.MULTILINE),
)
"""Pieces of a grading prompt. Two different ones in one answer are a case that was forged inside it."""
