"""Errors of the machinery behind the app, shown as if they were an answer.

An error stands *for* an answer: there is little else in the text, it has the shape of an error, and it does not
take up the question. An answer *about* errors explains, in sentences, to somebody who asked. Each piece of a text
(a sentence, a line) is one of four: an error by its shape, an app that gives up, what goes with them (regret,
advice, data), or prose; the balance decides.

The shapes of errors are what SDKs, servers, runtimes and proxies write, and people do not: status and reason,
envelope, exception class, error code, request id, trace frame; and, weaker, a component with what failed about it
("model … overloaded"). Reason phrases and errno names come from Python's own tables. Every pattern is bounded and
is searched in pieces of bounded length: linear in the text.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from monitors.facts.text import Hinted, caseless
from monitors.records.base import Record

_REASONS = (
    "|".join(re.escape(status.phrase) for status in HTTPStatus if status.value >= HTTPStatus.BAD_REQUEST)
    + "|Request Entity Too Large|Payload Too Large|Gateway Time-out|Service (?:Temporarily |is )?Unavailable"
    "|Request Time-out|URI Too Long|Unprocessable Entity|Overloaded|Rate Limited|Server Error|Connection timed out"
    "|Unknown Error|Web server is [a-z ]{4,40}"
)
_FIVE_HUNDREDS = (
    "|".join(re.escape(status.phrase) for status in HTTPStatus if status.value >= HTTPStatus.INTERNAL_SERVER_ERROR)
    + "|Gateway Time-?out|Service (?:Temporarily )?Unavailable|Server Error|Web server is"
)
_FAILING = (
    "error|errors|exceeded|exhausted|failed|failure|unavailable|not_found|denied|timeout|timed_out|overloaded"
    "|limited|reached|refused|expired|invalid|missing|quota|too_long|too_large|forbidden|unauthorized|crashed|aborted"
    "|unreachable|reset|verify_failed"
)

TRACE = re.compile(
    r"Traceback \(most recent call last\)|^[ \t]{0,8}File \"[^\"\n]{1,300}\", line \d+"
    r"|^[ \t]{1,8}at [\w$.<>/\[\] ]{1,160}\([^()\n]{1,200}:\d{1,7}(?::\d{1,7})?\)"
    r"|^[ \t]{0,8}at (?:async )?[\w$.<>]{1,120} \([^()\n]{1,200}:\d+:\d+\)"
    r"|^[ \t]{1,8}at [\w$.<>`]{3,160}\([^()\n]{0,200}\)(?: in [^\n]{1,200}:line \d+)?[ \t]*$"
    r"|^[ \t]{0,8}from [^\s:]{1,200}:\d{1,7}:in [`']|^#\d{1,3} [^\s(]{1,200}\(\d{1,7}\): "
    r"|\bpanicked at |^goroutine \d+ \[|\bUnhandledPromiseRejection|\bException in thread \"|^Caused by: ",
    re.MULTILINE,
)
"""Frames of a stack."""

TRACE_HINTS = (
    "traceback", 'file "', "\nat ", "\n at ", "  at ", "\t at ", "\tat ", "panicked", "goroutine",
    "unhandled", "exception in", ":in `", ":in '", "#", "caused by",
)  # fmt: skip
"""Lower case; one of them is in every `TRACE`, with the line's end before it."""

ENVELOPE = re.compile(
    r"[{,]\s{0,8}\\?[\"']errors?\\?[\"']\s{0,3}:\s{0,3}(?:[{\[\"']|true\b)"
    r"|[\"'](?:object|type|status)[\"']\s{0,3}:\s{0,3}[\"'](?:error|failed|failure)[\"']"
    r"|[{,]\s{0,8}[\"'](?:status|status_?code|code|http_?status)[\"']\s{0,3}:\s{0,3}[\"']?[45]\d\d\b"
    r"|^[^{]{0,200}\{\s{0,8}[\"'](?:detail|errors|error_?message|error_?description|exception|fault"
    r"|traceback)[\"']\s{0,3}:"
    r"|^[^{]{0,200}\{\s{0,8}[\"'](?:message|msg|reason"
    r"|title)[\"']\s{0,3}:\s{0,3}[\"'][^\"'\n]{1,160}[\"']\s{0,8}\}"
    r"|[{,]\s{0,8}[\"'](?:error_?code|request_?id|trace_?id|status_?code)[\"']\s{0,3}:"
    r"|<(?:\w{1,20}:)?(?:Error|Fault|faultcode|faultstring|ErrorResponse|exception)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
"""A body that stands for an answer: ``{"error": …}``, ``{"detail": …}``, ``<Error>``."""

HTML = re.compile(
    rf"<(?:title|h1|center|b)[^<>]{{0,80}}>[^<>]{{0,120}}?(?:\b[45]\d\d\b|(?:{_REASONS})\b|\berror\b)",
    re.IGNORECASE,
)
"""A page of a server or proxy."""

_TYPES = (
    r"(?:Error|Exception|Fault|Failure|Timeout|TimedOut|Rejection|Exhausted|Unavailable|Exceeded|Denied|NotFound)"
)
EXCEPTION = re.compile(
    # A class with its package: acme.errors.TooSlow, Acme::TimeoutError, \Acme\ClientException.
    rf"(?<![\w$])(?:[\w$]{{1,40}}(?:\.|::|\\)){{1,8}}[A-Z]\w{{0,60}}{_TYPES}(?!\w)"
    r"|(?<![\w$])(?:[a-z_]\w{0,40}\.){1,6}(?:exceptions?|errors?)\.[A-Z]\w{1,60}(?=[:(\s]|$)"
    # A bare class where a message begins, or right before its message.
    r"|(?<![\w$.`])(?:AI_)?[A-Z]\w{0,60}(?:Error|Exception|TimedOut|Timeout|Exceeded|Refused|Unavailable)"
    r"(?:[A-Z]\w{0,40})?(?=: ?\S|[({\]]|$| - | when | error | Request)"
    rf"|^\W{{0,6}}[A-Z]\w{{1,60}}(?:Error|Exception|Timeout)\W{{0,3}}$"
    rf"|\((?:[A-Z][a-z]\w{{0,60}}(?:Error|Exception)|[A-Z][a-z]{{2,}}[A-Z]\w{{2,60}})\)(?= \w)"
    r"|^(?:Fatal error|Uncaught \w{3,40}|Unhandled exception|Unhandled \w{2,20}Error|Warning"
    r"|Notice): (?=\w{1,40} \w)",
    re.MULTILINE,
)
"""The class of an exception, in the ways languages print it."""

_STATUS_CODE = r"(?:4(?:0\d|1[0-8]|2[1-689]|31|51|99)|5(?:0\d|1[01]|2\d|30|9[89]))"
"""The numbers that servers and proxies answer with: 450 and 503 pages are none, but 503 alone could be one."""
_FAULT = (
    r"(?:error|fail|limit|quota|request|respon|unavail|time|timed|denied|forbid|unauthori|server|gateway|exceed"
    r"|overload|invalid|not found|bad |busy|exhaust|internal|upstream|connect|reset|refus|expired|crash|service)"
)
"""What the words beside a bare number must say before it is a status."""
STATUS = re.compile(
    rf"(?<![\w₹$.,-])[45]\d\d\b[\s:,()\[\]\"'*_|–-]{{0,4}}(?:{_REASONS})\b"
    rf"|\b(?:{_REASONS})\b[\s:,]{{0,3}}[(\[]?(?:status |code |error )?[45]\d\d\b"
    r"|(?<![\w₹$.,-])[45]\d\d\b (?:client |server )?error\b|\b[45]\d\d status code\b"
    r"|\bstatus(?:[ _]?code)?[\"']?\s{0,3}(?:[:=]|of|is|was)?\s{0,3}[\"'(]?[45]\d\d\b"
    r"|\bHTTP(?:/\d(?:\.\d)?)?(?: error| status| response)?[ :(]{1,3}[45]\d\d\b"
    r"|\b(?:error|response|code|error code|err|api error|failure|exception|returned|responded(?: with)?)"
    rf"[ :=#(\[]{{1,3}}{_STATUS_CODE}\b"
    rf"|\berror(?: code)?:? ?(?:10\d\d|12\d\d|52\d)\b|^\W{{0,4}}{_STATUS_CODE}:? (?=[^\n]{{0,100}}?{_FAULT})"
    rf"|{_FAULT}[^\n]{{0,120}}?\({_STATUS_CODE}\)\W{{0,3}}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A status of HTTP with its reason, or named as one."""

REASON = re.compile(
    rf"^\W{{0,4}}(?:{_REASONS}|Access Denied|Permission denied)\W{{0,4}}$", re.IGNORECASE | re.MULTILINE
)
"""The reason of a status alone in its line."""

_ERRNOS = "|".join(sorted(name[1:] for name in errno.errorcode.values() if len(name) >= 5))  # noqa: PLR2004
ERRNO = re.compile(rf"\bE(?:{_ERRNOS}|NOTFOUND|AI_AGAIN)\b")
"""The name of an error of the system: each begins with an E."""

CODE = re.compile(
    rf"\[Errno -?\d+\]|\(os error \d+\)|\bORA-\d{{4,5}}\b|\bSQLSTATE\b"
    rf"|\b[a-z]{{2,20}}(?:_[a-z]{{2,20}}){{0,5}}_(?:{_FAILING})\b|\b(?:invalid|insufficient|missing"
    rf"|unsupported)_[a-z_]{{2,40}}\b"
    rf"|\b[A-Z]{{2,20}}(?:_[A-Z]{{2,20}}){{0,5}}_(?:{_FAILING.upper()}|REQUESTS)\b"
    r"|\b(?:INVALID|INSUFFICIENT|FUNCTION_INVOCATION|RESOURCE|PERMISSION|DEADLINE)_[A-Z_]{3,40}\b"
    r"|\brpc error: code = |\bStatusCode\.[A-Z_]{3,30}\b|\bgrpc_status\b|\bERR_[A-Z_]{3,40}\b"
)
"""A code that programs compare: snake case, numbered, gRPC."""

IDENTIFIER = re.compile(
    r"\b(?:request|trace|correlation|error|incident|event|ray|activity|operation|reference|digest|ref|job)"
    r"(?:[ _-]?id)?(?:\s?is)?[\"']?\s{0,2}[:=#]?\s{0,2}[\"'`]?(?=[\w=:.-]{0,40}\d)[\w=:.-]{6,80}"
    r"|\breq_[A-Za-z0-9]{6,}"
    r"|\bRoot=1-[0-9a-f]",
    re.IGNORECASE,
)
"""A request's or trace's id."""

REPR = re.compile(
    r"<[\w.]{3,80} object at 0x[0-9a-f]+|\bobject at 0x|\b0x[0-9a-f]{6,}\b|\bb'[{<]|\w+Dict\(\{"
    r"|\w+\('[^'\n]{1,200}'\)\)|\bkind: \w{3,20}[(,]|\[type=\w+, input_value="
    r"|\b(?:HTTPS?ConnectionPool|NewConnectionError|IncompleteRead|ProtocolError|NoneType)\b"
)
"""How a program prints its objects."""

RUNTIME = re.compile(
    r"\bobject (?:has no attribute|is not (?:subscriptable|iterable|callable))\b|\bindex out of (?:range"
    r"|bounds)\b"
    r"|\b(?:nil|null) pointer\b|\bnull reference\b|\bundefined (?:method|variable|array key|index"
    r"|local variable)\b"
    r"|\bproperties of (?:undefined|null)\b|\b(?:is|are) not (?:a function|defined|iterable|a constructor)\b"
    r"|\breferenced before assignment\b|\bNo such file or directory\b|\bUnexpected (?:token|end of (?:JSON"
    r"|input)|EOF)\b"
    r"|\bis not valid JSON\b|\bExpecting (?:value|property name)\b|\bline \d+ column \d+\b"
    r"|\binvalid literal for\b"
    r"|\b(?:positional|keyword) arguments?\b|\bdivision by zero\b|\bSegmentation fault\b|\bcore dumped\b"
    r"|\bout of memory\b|\bCUDA\b|\bcannot import name\b|\bNo module named\b|\bstack overflow\b"
    r"|\bexit (?:status|code) \d"
    r"|\bvalidation errors? for\b|\bInput validation error\b|\bField required\b|\bdial tcp\b|\bTLS handshake\b"
    r"|\bsocket hang up\b|\bgetaddrinfo\b|\bfetch failed\b|\bFailed to fetch\b|\bname resolution\b"
    r"|\bno such host\b"
    r"|\bcontext deadline exceeded\b|\bcertificate verify failed\b|\bname or service not known\b|\bdeadlock\b"
    r"|\b(?:relation|table|column|index) \"?\w+\"? does not exist\b|\btoo many (?:clients|connections)\b"
    r"|\bdatabase is locked\b|\bmax(?:imum)? retries\b|\bConnection aborted\b|\bbroken pipe\b"
    r"|\bconnection (?:reset|refused|closed) |\b(?:nil|null) value\b|\bis undefined\b|\bunbound variable\b"
    r"|\bcodec can't\b|\brecursion depth\b|\bthrowing an instance\b|\bnot a subtype\b|\[object Object\]"
    r"|\bloop is closed\b|\bunexpected mimetype\b",
    re.IGNORECASE,
)
"""How runtimes, drivers and sockets word what went wrong."""

ADDRESS = re.compile(
    r"\b(?:for|endpoint|from|to|fetching|request to|of|Get|Post) (?:url:? ?)?[\"'(]?https?://\S{4,300}"
    r"|\bhttps?://[\w.-]{1,100}(?::\d{2,5}|/v\d)|\b\d{1,3}(?:\.\d{1,3}){3}:\d{2,5}\b|\bhost='"
    r"|\b[a-z][\w-]{1,40}:\d{4,5}\b"
    r"|\bhost [\w.-]{3,80}:\d{2,5}\b",
    re.IGNORECASE,
)
"""An address that the machinery called."""

HEAD = re.compile(
    r"^\W{0,8}(?:[A-Z]\w{0,20} ){0,2}(?:error|failure|failed|exception|fatal|invalid operation|एरर|त्रुटि"
    r"|error aa gaya)"
    r"(?: running |(?<=(?-i:Error)) in |\W{0,3}[:\]]|\W{0,3}[-–→] )",
    re.IGNORECASE,
)
"""A label before a message: ``Error:``, ``[ERROR]``, ``Prediction failed:``."""

NAME = re.compile(
    r"\b[a-z]{2,20}_[a-z_]{2,40}\b|\b[A-Z][a-z]+(?:[A-Z][a-z]+){2,6}\b|`[\w.\[\]\"'-]{3,60}`|\w=[\w\[{\"'-]"
)
"""A name out of a program."""

URL = re.compile(r"https?://\S{1,300}|`[^`\n]{1,160}`|\"[^\"\n]{1,160}\"|(?<!\w)'[^'\n]{1,160}'(?!\w)")
"""Addresses and what is quoted: their words explain nothing."""

FORMAL: Final[tuple[tuple[Hinted, ...], ...]] = (
    (Hinted(ENVELOPE, ('"', "'", "<")),),
    (Hinted(HTML, ("<",)),),
    (Hinted(TRACE),),
    (
        Hinted(
            EXCEPTION,
            (
                "error", "exception", "fault", "failure", "timeout", "timedout", "rejection", "exhausted",
                "unavailable", "exceeded", "denied", "notfound", "refused", "(", "uncaught", "unhandled",
                "warning:", "notice:",
            ),
        ),
    ),
    (Hinted(STATUS, ("4", "5", "10", "12")), Hinted(REASON)),
    (Hinted(CODE, ("_", "[errno", "os error", "ora-", "sqlstate", "rpc error", "statuscode")), Hinted(ERRNO)),
    (
        Hinted(
            REPR,
            (
                "0x", "b'", "dict(", "('", "kind: ", "[type=", "connectionpool", "newconnectionerror",
                "incompleteread", "protocolerror", "nonetype",
            ),
        ),
    ),
    (
        Hinted(
            RUNTIME,
            (
                "has no attribute", "object is not", "out of ", "pointer", "null", "nil", "undefined", "not a ",
                "not defined", "not iterable", "before assignment", "no such", "unexpected", "json", "expecting ",
                "column", "literal", "argument", "by zero", "segmentation", "core dumped", "cuda", "cannot import",
                "no module", "overflow", "exit ", "validation error", "field required", "dial tcp", "handshake",
                "hang up", "getaddrinfo", "fetch", "resolution", "deadline exceeded", "verify failed", "not known",
                "deadlock", "does not exist", "too many", "is locked", "retries", "connection", "broken pipe",
                "unbound", "codec", "recursion", "throwing", "object object", "loop is closed",
            ),
        ),
    ),
)  # fmt: skip
"""What counts as a shape by itself, each by one of its patterns; an identifier or an address only adds to one."""

COMPONENT = re.compile(
    r"\b(?:(?:api|http|rpc|grpc|sdk|llm|gpu|ssl|tls|dns|sql|json|url)s?|requests?|responses?|repl(?:y|ies)"
    r"|models?"
    r"|(?:web ?)?servers?|services?|upstream|backend|back end|gateway|proxy|connections?|connecting|socket"
    r"|host|endpoints?"
    r"|(?:api|secret|access|subscription|authentication)[ _-]?keys?|api[ _-]?tokens?|tokens?|credentials?"
    r"|authenticat\w{2,4}|authoriz\w{3,5}|quota|rate[ _-]?limit\w{0,4}|call rate|capacity|credits?"
    r"|credit balance|insufficient (?:account )?balance|balance (?:is )?(?:insufficient|too low|exhausted)"
    r"|prompt|inputs?|outputs?|context|completion|deployments?|resource|engine|workers?|queue|runner|memory"
    r"|database|db"
    r"|collection|vector ?store|cluster|session|stream(?:ing)?|pars(?:e|er|ing)|validation|payload|function"
    r"|module|plugin"
    r"|agent|chain|tools?|operation|invocation|prediction|inference|query|task"
    r"|(?<!in the )(?<!in our )(?<!in your )(?<!use the )(?<!via the )(?<!mobile )app|application|website|system"
    r"|network|client"
    r"|provider|gated repo|repo|retriev(?:al|e|er|ing)|embeddings?|knowledge base|assistant|bot|deadline"
    r"|generation|content"
    r"|generat(?:e|ing)|load(?:ing)?|process(?:ing)?|free tier|free quota|service tier|demand|traffic|load"
    r"|iteration limit"
    r"|messages?|max_tokens|organi[sz]ation|project|candidates?|loop|instance|container|callback|jwt"
    r"|x509|throughput|consistency|lambda|variable|jawab)\b"
    r"|सर्वर|अनुरोध|कनेक्शन|सेवा|सिस्टम|नेटवर्क|त्रुटि",
    re.IGNORECASE,
)
"""A part of the machinery."""

FAILED = re.compile(
    r"\b(?:timed[ -]out|time-?out|fail(?:ed|ure|s)?|crashed|terminated|aborted|cancell?ed|interrupted|lost"
    r"|dropped"
    r"|disconnect(?:ed)?|stopped|refused|rejected|denied|blocked|filtered|redacted|forbidden|unauthori[sz]ed"
    r"|invalid"
    r"|incorrect|expired|missing|wrong|not found|no such|does(?:n't| not) (?:exist|have|support|match)"
    r"|unavailable"
    r"|unreachable|overloaded|busy|over capacity|at capacity|exceed(?:ed|s)?|exhausted|insufficient"
    r"|not enough|too many"
    r"|too large|too long|too low|too big|too busy|is full|is down|errors?|errored|(?:unable to|could ?n[o']t"
    r"|couldn't|can ?not|can't) (?!help|answer|assist|provide|share|discuss|find|give|advise|offer|say|tell"
    r"|see|book|do\b|be\b|speak|recommend|make|comment)"
    r"|failed to|unexpected|unknown|malformed|unrecogni[sz]ed|unsupported|no (?:healthy|available|endpoints"
    r"|deployments"
    r"|candidates|route|api|object|response|output)|rate[- ]limited|locked|required|not (?:available"
    r"|supported|ready|loaded"
    r"|valid|allowed|enabled|set|authorized|permitted|defined|non-negative|respond(?:ing)?|completed?)"
    r"|maximum|at least one"
    r"|trouble|issues?|difficult(?:y|ies)|problems?|high (?:demand|traffic|load)|currently (?:loading|busy)"
    r"|back off"
    r"|must (?:be|have)|can only afford|reached|isn't|wasn't|no longer|without|more credits|aren't available"
    r"|closed|nahi|gadbad|galat)\b"
    r"|समाप्त|विफल|गड़बड़|असमर्थ|अनुपलब्ध|नहीं",
    re.IGNORECASE,
)
"""What went wrong about it."""

PROVIDERS = re.compile(
    r"\b(?:rate[ _-]?limit(?:s|ed|ing)?[ _-]?(?:reached|exceeded|error|hit|upstream)|too many requests|(?:per"
    r"|/) ?(?:min(?:ute)?|day)\b.{0,20}\b(?:TPM|RPM|TPD|RPD)"
    r"|requests per (?:minute|day)|tokens per (?:min(?:ute)?|day)|exceeded your (?:current )?quota|quota exceeded"
    r"|(?:model|server|engine|api|service) is (?:currently |temporarily )?(?:overloaded|unavailable|busy|loading)"
    r"|(?:incorrect|invalid|wrong|no|missing) (?:openai |provider )?api[ _-]?(?:key|token)"
    r"|api[ _-]?key (?:is |not |client |provided)\w{0,12}|maximum (?:context|number of tokens)"
    r"|context (?:length|window|size)"
    r"|upstream (?:connect error|request timeout|timed out|provider)|resource (?:has been )?exhausted"
    r"|no healthy upstream"
    r"|reach(?:ed)? max retries|credit balance|Plans & Billing|content management policy|server had an error"
    r"|security token|llm (?:output|provider)|calling the \w{3,40} operation)",
    re.IGNORECASE,
)
"""Words that only providers of models use about themselves."""

GAVE_UP = re.compile(
    r"\b(?:something (?:went|is|has gone) (?:badly |terribly )?(?:wrong|broken?)"
    r"|something (?:failed|broke|unexpected)|went wrong"
    r"|an? (?:[\w-]{2,20} ){0,2}(?:error|exception) (?:has |was |just )?(?:occurred|happened|encountered)"
    r"|(?:has |have )?(?:encountered|ran into|run into|hit) (?:an? )?(?:\w+ )?(?:error|problem|issue|snag)"
    r"|(?:due to|because of|experiencing|facing|having|there (?:is|was|are)(?: an?| some)?|some|an?) "
    r"(?:technical|connection|server|internal|system) (?:difficult\w+|issues?|errors?|problems?|glitch)"
    r"|(?:failed|unable|not able) to (?:generate|get|fetch|produce|load|complete|process|create|reach|connect)"
    r"|(?:trouble|problems?|difficulty) (?:connecting|reaching|processing|generating|responding|accessing)"
    r"|(?:could|can)(?:n't| ?not) (?:be reached|process|generate|complete|connect|reach|load|fetch"
    r"|get a response)"
    r"|(?:experiencing|under|because of|due to) (?:\w+ )?(?:high|heavy) (?:demand|traffic|load)"
    r"|encountered an error|temporarily unavailable|server error|unexpected error)\b"
    r"|कुछ (?:गलत|गड़बड़)|गड़बड़ (?:हो|है)|तकनीकी (?:समस्या|खराबी|त्रुटि|दिक्कत)|त्रुटि (?:हुई|हो)"
    r"|\bkuch (?:galat|gadbad)|\bgadbad ho|\btechnical (?:dikkat|samasya)",
    re.IGNORECASE,
)
"""An app that gives up in its own words."""

SOFT = re.compile(
    r"\b(?:sorry|consider|apologi[sz]e|apolog(?:y|ies)|oops|uh oh|oh no|hmm|please|try again|retry|later"
    r"|our team|been notified|contact"
    r"|help center|for more (?:information|details)|troubleshoot\w*|visit|see (?:the )?(?:http|docs|logs?"
    r"|below)|docs"
    r"|learn more|if (?:the|this) (?:error|problem|issue) persists|your connection is working|check (?:the|your)"
    r"|maaf|dobara|kripya|ray id|you can (?:find|retry)|to (?:increase|fix|enable)|upgrade|reported|logged"
    r"|logs)\b"
    r"|https?://|क्षमा|माफ|कृपया|पुनः|बाद में|कुछ देर|खेद",
    re.IGNORECASE,
)
"""What stands around an error: regret, advice, where to read more."""

EXPLAINS = re.compile(
    r"\b(?:means?|meaning|stands? for|refers? to|indicates?|says? that|tells you|describes?|explains?"
    r"|whenever|when|usually"
    r"|typically|often|for example|an example|examples|such as|returns?|raises?|throws?|answers with"
    r"|responds? with|catch(?:es)?|inherits?"
    r"|comes? from|happens?|appears?|shows? (?:that|up)|occurs|are (?:refused|rejected|counted|retried"
    r"|limited)|yesterday"
    r"|last (?:night|week)|instead of|matlab|tab|jab|agar|stays?|counts?|by default|is the|is an?"
    r"|are the|according|I (?:get|got|am using|am getting|keep|see)|you (?:get|see|are|have a)|we (?:get"
    r"|see))\b|मतलब|अगर|यदि|\bif\b|\bक्यों|यानी|दर्शाता|\bunless\b|\bcases?\b|\bexplanation\b",
    re.IGNORECASE,
)
"""Speaks about an error rather than being one."""

TECHNICAL = re.compile(
    r"\b(?:errors?|exceptions?|traceback|stack ?trace|status codes?|[45]\d\d|4xx|5xx|api|apis|https?|python"
    r"|java(?:script)?"
    r"|node|docker|kubernetes|k8s|nginx|server|servers|timeouts?|time-outs?|timed|rate[ -]limit\w*|quota"
    r"|tokens?|sdk|retr(?:y|ies)"
    r"|retried|webhooks?|logs?|debug\w*|crash\w*|gpu|cuda|llm|models|json|xml|functions?|scripts?|handler"
    r"|gateway|endpoint|client"
    r"|code|curl|grep|git|sql|database|postgres\w*|redis|react|django|flask|fastapi|golang|rust|typescript"
    r"|cron|regex|bash"
    r"|deploy\w*|ssl|tls|dns|ssh|overloaded|outage|incidents?|runbook|alerts?|panic|exit|max_\w+|null|undefined"
    r"|nil|bug|throw\w*|catch|fails?|failed|failing|failure|down|broken|not work\w*|anthropic|openai|bedrock"
    r"|gemini|ollama"
    r"|langchain|\w+_\w+|\w+Error|\w+Exception|E[A-Z]{5,}|webpage|404|unavailable|invalid|message|request ids?"
    r"|status|त्रुटि|एरर|सर्वर)\b|`",
    re.IGNORECASE,
)
"""A question that may well be answered by words about errors or by code."""

SERVER = re.compile(rf"\b(?:{_FIVE_HUNDREDS})\b|\bApplication error\b|\b5\d\d\b", re.IGNORECASE)
"""What makes an error one of a server rather than of a provider."""


class ErrorLeakKind(StrEnum):
    """What leaked."""

    STACK_TRACE = "stack trace"
    PROVIDER_ERROR = "provider error"
    ERROR_BODY = "error body"
    SERVER_ERROR = "server error"


class ErrorLeak(Record):
    """Where machinery shows. ``start`` and ``end`` count code points, end exclusive."""

    kind: ErrorLeakKind
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


_HEAD, _TAIL = 6_000, 1_500
"""Characters read closely; of a longer text only frames of a stack are searched for in between."""
_READ = 100_000
"""Characters of either end in which frames of a stack are searched for."""
_LONGEST_PIECE = 500
_MOST_PIECES = 60
_WORDY: Final = 25
"""Words of prose that may stand around an error where the question does not speak of errors: an app's wrapper."""
_BARE: Final = 3
"""Words of prose that may stand there where it does."""
_GIVING_UP: Final = 9
"""Words of prose around an app's own words for giving up."""
_SHORT: Final = 15
"""Words; a longer answer to a question about errors needs two shapes."""
_CERTAIN: Final = 3
"""Shapes; no turn of phrase about an error has so many."""
_LONGEST_WEAK: Final = 20
"""Words; a longer sentence with a component and a failure explains something."""

_HINTS = (
    "error", "exception", "fail", "timed", "time-", "time d", "timeout", "unavail", "overload", "limit",
    "quota", "exhaust", "invalid", "incorrect", "denied", "forbid", "unauthori", "not found", "no such",
    "refus", "reset", "wrong", "trouble", "issue", "problem", "difficult", "busy", "is full", "null",
    "undefined", "nil ", "attribute", "traceback", "panic", "goroutine", "status", "could not", "couldn't",
    "cannot", "can't", "unable", "not able", "missing", "required", "expect", "not exist", "crash", "abort",
    "lost", "closed", "terminat", "demand", "capacity", "credit", "api", "token", "fault", "disconnect",
    "expired", "गड़बड़", "गलत", "त्रुटि", "तकनीकी", "एरर", "समस्या", "असमर्थ", "galat", "gadbad", "{", "<",
    "no healthy", "at least one", "without", "retry", "too ", "must ", "filtered", "blocked", "broke",
    "loading", "negative", "not defined", "locked", "argument", "unexpected", "stopped", "referenced", "found",
    "available", "_", "ora-", "variable", "instance", "codec", "recursion", "[object", "aren't", "afford",
    "insufficient", "aborted", "maximum", "rejected", "interrupt", "http", "not supported", "not ready",
    "no longer", "dropped", "reached",
)  # fmt: skip
"""Lower case; a piece without any of these, and without a status, is no error and costs no more than this scan."""
_STATUS_HINT = re.compile(r"\b[45]\d\d\b")


def _is_suspect(said: str, hints: tuple[str, ...]) -> bool:
    return any(map(caseless(said).__contains__, hints)) or _STATUS_HINT.search(said) is not None


class _Sort(StrEnum):
    """What a piece of a text is."""

    ERROR = "error"
    GIVES_UP = "gives up"
    WEAK = "a component that failed"
    AROUND = "what goes with them"
    PROSE = "prose"


class _Piece(NamedTuple):
    """A sentence or a line; ``strength`` counts the shapes of errors in it."""

    sort: _Sort
    strength: int
    words: int
    start: int
    end: int


@lru_cache(maxsize=16)
def find_error_leak(text: str, question: str = "") -> ErrorLeak | None:
    """The error of the machinery that stands for an answer in ``text``, or ``None``.

    ``question`` is what the user asked: a question about errors gets an answer about them, so there only a text
    that is nothing but an error counts. An error may also cut an answer off as its last piece, or stand before one.
    It remembers the last few texts: several callers ask about the same reply.
    """
    hints = tuple(filter(caseless(text).__contains__, _HINTS))
    if not hints and _STATUS_HINT.search(text) is None:
        return None
    question = question[:_HEAD]
    technical, asked = _question(question)
    trace = None if technical else _trace(text)
    if trace is not None:
        return trace
    leak = _leak(text, _pieces(text, asked, hints, technical=technical), asked, technical=technical)
    if leak is None or not technical:
        return leak
    quoted = question[-_LONGEST_PIECE:]
    return None if _strength(quoted) and _kind(quoted) is leak.kind else leak


@lru_cache(maxsize=256)
def _question(question: str) -> tuple[bool, frozenset[str]]:
    """Whether it may well be answered by words about errors or by code, and its longer words."""
    technical = TECHNICAL.search(question) is not None or GAVE_UP.search(question) is not None
    return technical, _content(question)


def _trace(text: str) -> ErrorLeak | None:
    """Frames of a stack, wherever they stand."""
    ends = ((0, text),) if len(text) <= 2 * _READ else ((0, text[:_READ]), (len(text) - _READ, text[-_READ:]))
    for offset, part in ends:
        lowered = "\n" + part.lower()
        if any(map(lowered.__contains__, TRACE_HINTS)) and (found := TRACE.search(part)):
            return ErrorLeak(kind=ErrorLeakKind.STACK_TRACE, start=offset + found.start(), end=offset + found.end())
    return None


# --- the balance ----------------------------------------------------------------------------------------------


def _leak(text: str, pieces: list[_Piece], asked: frozenset[str], *, technical: bool) -> ErrorLeak | None:
    if not pieces:
        return None
    taken_up = _is_taken_up(asked, text)
    prose = sum(piece.words for piece in pieces if piece.sort is _Sort.PROSE)
    by_sort = {sort: [piece for piece in pieces if piece.sort is sort] for sort in _Sort}
    errors = by_sort[_Sort.ERROR]
    if errors:
        strongest = max(errors, key=lambda piece: piece.strength)
        around = max(_WORDY, 2 * sum(piece.words for piece in errors)) if len(text) <= _HEAD else _WORDY
        if technical and strongest.strength == 1 and sum(piece.words for piece in pieces) > _SHORT:
            return None
        if prose <= (_BARE if technical or taken_up else around):
            return _leak_of(text, strongest)
        if not technical:
            at_end = next((piece for piece in (pieces[0], pieces[-1]) if piece.strength > 1), None)
            return _leak_of(text, at_end) if at_end in errors else None
        return None
    if by_sort[_Sort.GIVES_UP]:
        first = pieces[0].sort is _Sort.GIVES_UP and not taken_up
        if prose <= (_BARE if technical else _WORDY if first else _GIVING_UP):
            return _leak_of(text, by_sort[_Sort.GIVES_UP][0])
    if by_sort[_Sort.WEAK] and prose <= _GIVING_UP and not technical:
        return _leak_of(text, by_sort[_Sort.WEAK][0])
    return None


def _leak_of(text: str, piece: _Piece | None) -> ErrorLeak | None:
    if piece is None:
        return None
    said = text[piece.start : piece.end]
    return ErrorLeak(kind=_kind(said), start=piece.start, end=piece.end)


def _kind(said: str) -> ErrorLeakKind:
    if ENVELOPE.search(said):
        return ErrorLeakKind.ERROR_BODY
    if PROVIDERS.search(said) or re.search(r"\b4\d\d\b|limit|quota|overload|Max retries", said, re.IGNORECASE):
        return ErrorLeakKind.PROVIDER_ERROR
    if SERVER.search(said) or HTML.search(said):
        return ErrorLeakKind.SERVER_ERROR
    if TRACE.search(said) or EXCEPTION.search(said):
        return ErrorLeakKind.STACK_TRACE
    return ErrorLeakKind.SERVER_ERROR if GAVE_UP.search(said) else ErrorLeakKind.PROVIDER_ERROR


# --- the pieces -----------------------------------------------------------------------------------------------

_BREAK = re.compile(r"\n+|(?<=[.!?।]) +(?=[^\s\da-z])")
_WORD = re.compile(r"[^\W\d_][\w'\u0900-\u097f]*")
_TAG = re.compile(r"<[^<>]{1,200}>")
_DATA = re.compile(r"^\s*(?:[\"'][\w -]{1,40}[\"']\s?:|[{}\[\]()]|</?\w|[\w-]{2,30}: ?\S{0,80}$|\S{0,80}$)")
_LISTED = re.compile(r"^\s*(?:\||#{1,5} |\d{1,2}\. |[-*•] )")


_MAY_LEAK = frozenset({_Sort.ERROR, _Sort.GIVES_UP, _Sort.WEAK})


def _pieces(text: str, asked: frozenset[str], hints: tuple[str, ...], *, technical: bool) -> list[_Piece]:
    """The pieces in order, and none where not one of them may be a leak: in most replies nothing else is read."""
    quotes = [(said, start, end, technical and fenced) for said, start, end, fenced in _outside_fences(text)]
    suspects = {
        place: _suspect(said, start, end, asked, technical=technical)
        for place, (said, start, end, quoted) in enumerate(quotes)
        if not quoted and _is_suspect(said, hints)
    }
    if _MAY_LEAK.isdisjoint(piece.sort for piece in suspects.values()):
        return []
    return [
        suspects[place] if place in suspects else _unsuspected(said, start, end, quoted=quoted)
        for place, (said, start, end, quoted) in enumerate(quotes)
    ]


def _outside_fences(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Each piece as it is read, its place, and whether it stands between two fences; the fences are left out."""
    fenced = False
    for start, end in _places(text):
        said = text[start : min(end, start + _LONGEST_PIECE)]
        if said.lstrip().startswith("```"):
            fenced = not fenced
        else:
            yield said, start, end, fenced


def _places(text: str) -> list[tuple[int, int]]:
    """Where the sentences and lines of both ends stand, blanks aside."""
    ends = [(0, len(text))] if len(text) <= _HEAD + _TAIL else [(0, _HEAD), (len(text) - _TAIL, len(text))]
    places: list[tuple[int, int]] = []
    for first, last in ends:
        at, here = first, len(places)
        for gap in _BREAK.finditer(text, first, last):
            places.append((at, gap.start()))
            at = gap.end()
        places.append((at, last))
        left = [place for place in places[here:] if text[place[0] : place[1]].strip()]
        places[here:] = left if len(left) <= _MOST_PIECES else left[: _MOST_PIECES - 10] + left[-10:]
    return places


def _length_of(said: str) -> int:
    return len(_WORD.findall(_TAG.sub(" ", said)))


def _unsuspected(said: str, start: int, end: int, *, quoted: bool) -> _Piece:
    length = _length_of(said)
    around = not quoted and (SOFT.search(said) is not None or length <= 1 or _DATA.match(said) is not None)
    return _Piece(_Sort.AROUND if around else _Sort.PROSE, 0, length, start, end)


def _suspect(said: str, start: int, end: int, asked: frozenset[str], *, technical: bool) -> _Piece:
    strength, length = _strength(said), _length_of(said)
    return _Piece(_sort(said, strength, length, asked, technical=technical), strength, length, start, end)


def _strength(said: str) -> int:
    lowered = caseless(said)
    formal = sum(any(shape.search(said, lowered) for shape in shapes) for shapes in FORMAL)
    failed = FAILED.search(said) is not None
    provider = failed and PROVIDERS.search(said) is not None
    part = failed and (provider or COMPONENT.search(said) is not None)
    if not formal and not part and HEAD.search(said) is None:
        return 0
    beside = (HEAD, NAME, IDENTIFIER, ADDRESS)
    return formal + 2 * provider + sum(pattern.search(said) is not None for pattern in beside)


def _sort(said: str, strength: int, words: int, asked: frozenset[str], *, technical: bool) -> _Sort:
    listed = _LISTED.match(said) is not None
    if strength and ((strength >= _CERTAIN and not technical) or not _explains(said, listed=listed)):
        return _Sort.ERROR
    if GAVE_UP.search(said) and not _explains(said, listed=listed) and not _is_taken_up(asked, said):
        return _Sort.GIVES_UP
    soft = SOFT.search(said)
    core = said[: soft.start()] if soft else said
    weak = words <= _LONGEST_WEAK and FAILED.search(core) is not None and COMPONENT.search(core) is not None
    if weak and not _explains(said, listed=listed) and _WEEKDAY.search(said) is None:
        return _Sort.PROSE if _is_taken_up(asked, said) else _Sort.WEAK
    if (soft and not listed) or words <= 1 or _DATA.match(said):
        return _Sort.AROUND
    return _Sort.PROSE


def _explains(said: str, *, listed: bool) -> bool:
    return listed or EXPLAINS.search(URL.sub(" ", said)) is not None


_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweekends?\b", re.IGNORECASE)
"""A business names its days: "Our service is not available on Sundays". An error does not."""

_LONG_WORD = 4
_COMMON = frozenset(
    [
        "what",
        "when",
        "where",
        "which",
        "your",
        "have",
        "this",
        "that",
        "with",
        "does",
        "from",
        "please",
        "will",
        "would",
        "could",
    ]
)


def _content(text: str) -> frozenset[str]:
    """The longer words of a text, without a plural's s."""
    words = _WORD.findall(text.lower()[:_HEAD])
    return frozenset(word.rstrip("s") for word in words if len(word) >= _LONG_WORD and word not in _COMMON)


def _is_taken_up(asked: frozenset[str], said: str) -> bool:
    """Whether a text takes up the question: an error never does, except by words that errors use too."""
    shared = asked & _content(said)
    return any(not (COMPONENT.fullmatch(word) or FAILED.fullmatch(word)) for word in shared - _ERRORS_TOO)


_ERRORS_TOO = frozenset(["limit", "rate", "account", "plan", "page", "time", "period", "request", "error"])
