"""Errors of the machinery behind the app, shown as if they were an answer."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.records.base import Record


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


_STACK_TRACE = re.compile(
    r"Traceback \(most recent call last\)|^[ \t]{0,8}File \"[^\"\n]{1,300}\", line \d+"
    r"|^[ \t]{1,8}at [\w$.<>]{1,120}\([\w$./:\\-]{1,200}:\d+(?::\d+)?\)"
    r"|^[ \t]{0,8}at (?:async )?[\w$.<>]{1,120} \([^()\n]{1,200}:\d+:\d+\)"
    r"|\bpanicked at '|^goroutine \d+ \[|\bUnhandledPromiseRejection|\bException in thread \"",
    re.MULTILINE,
)
_EXCEPTION = re.compile(
    r"^[ \t*`]{0,6}(?:Error: )?(?:[a-z_][\w]{0,40}\.){0,5}(?:[A-Z][A-Za-z]{2,40}(?:Error|Exception)"
    r"|TimeoutError|KeyError)(?:\([\"']|: \S|$)",
    re.MULTILINE,
)
_PROVIDER = re.compile(
    r"\brate[ _-]?limit(?:s|ed)?[ _-]?(?:reached|exceeded|error|hit)\b|\brate_limit_(?:exceeded|error)\b"
    r"|\bRateLimitError\b"
    r"|\bTOO_?MANY_?REQUESTS\b|\b429[ :,-]{1,3}Too Many Requests\b|\binsufficient_quota\b"
    r"|\bexceeded your current quota\b"
    r"|\bRESOURCE_EXHAUSTED\b|\boverloaded_error\b|\b(?:model|server|engine|api) is (?:currently )?overloaded\b"
    r"|\binvalid_api_key\b"
    r"|\bIncorrect API key\b|\bcontext_length_exceeded\b|\bmaximum context length is \d|\bmodel_not_found\b"
    r"|\bauthentication_error\b"
    r"|\bError code: ?[45]\d\d\b|\bstatus[ _]?code[:= ]{1,3}[45]\d\d\b|\bHTTP(?:/\d\.\d)? ?[45]\d\d\b"
    r"|\b(?:tokens|requests) per (?:minute|day) \((?:TPM|RPM|TPD|RPD)\)"
    r"|\bupstream (?:connect error|request timeout|timed out)\b|\bread(?:ing)? timed out\b|\bMax retries exceeded\b"
    r"|\b(?:connection|ECONN)(?: ?refused|REFUSED|RESET)\b|\bsocket hang up\b|\bgetaddrinfo\b",
    re.IGNORECASE,
)
# An apology of the app's own instead of an answer, and nothing else: at most 240 characters.
_APOLOGY = re.compile(
    r"\A(?=[\s\S]{0,240}\Z)[\s\S]*?\b(?:something went wrong|an? (?:unexpected |internal "
    r"|unknown )?error (?:has )?occurred"
    r"|(?:technical|connection) (?:difficult\w+|issues?|errors?|problems?)|failed to (?:generate|get"
    r"|fetch) (?:a |the )?(?:response|answer))\b",
    re.IGNORECASE,
)
_SERVER = re.compile(
    r"\bInternal Server Error\b|\b50[0-4] (?:Bad Gateway|Service (?:Temporarily )?Unavailable"
    r"|Gateway Time-?out)\b|\bBad Gateway\b|\bGateway Time-?out\b"
    r"|\bApplication error: a (?:client|server)-side exception\b|\bSomething went wrong while generating\b"
    r"|<title>\s?5\d\d\b|<h1>\s?5\d\d\b",
    re.IGNORECASE,
)
# {"error": …}, {"detail": "…"}, {'error': {'message': …}}: a body where an answer should be.
_BODY = re.compile(
    r"[{,]\s{0,4}[\"']error[\"']\s{0,3}:\s{0,3}(?:[{\"']|true\b)|^\s{0,8}\{\s{0,4}[\"'](?:detail|message|errors"
    r"|status_code|statusCode|code)[\"']\s{0,3}:",
    re.IGNORECASE,
)
# Words of the machinery inside a long answer may be what was asked about; alone they are the leak.
_SHORT = 600


class _Rule(NamedTuple):
    """``hints``: one of these lower-case strings is in every match; a quick look spares most texts the search."""

    kind: ErrorLeakKind
    pattern: re.Pattern[str]
    needs_short: bool
    hints: tuple[str, ...]


_PROVIDER_HINTS = (
    "rate limit|rate_limit|ratelimit|rate-limit|too many|too_many|toomany|quota|exhausted|overloaded|api key"
    "|api_key|context_length"
    "|context length|model_not_found|error code|authentication_error|status code|status_code|statuscode"
    "|status:|http 4|http 5|http/"
    "|http4|http5|(tpm)|(rpm)|(tpd)|(rpd)|upstream|timed out|retries|refused|econn|socket|getaddr"
)
_RULES = (
    _Rule(
        ErrorLeakKind.STACK_TRACE,
        _STACK_TRACE,
        needs_short=False,
        hints=(
            "traceback",
            'file "',
            "\n at ",
            "  at ",
            "\tat ",
            "panicked",
            "goroutine",
            "unhandled",
            "exception in",
        ),
    ),
    _Rule(
        ErrorLeakKind.ERROR_BODY,
        _BODY,
        needs_short=False,
        hints=tuple(
            word + quote for word in ("error", "errors", "detail", "message", "code") for quote in ('"', "'")
        ),
    ),
    _Rule(ErrorLeakKind.PROVIDER_ERROR, _PROVIDER, needs_short=True, hints=tuple(_PROVIDER_HINTS.split("|"))),
    _Rule(
        ErrorLeakKind.SERVER_ERROR,
        _SERVER,
        needs_short=True,
        hints=("server", "gateway", "unavailable", "wrong", "<title>", "<h1>"),
    ),
    _Rule(
        ErrorLeakKind.SERVER_ERROR,
        _APOLOGY,
        needs_short=True,
        hints=("wrong", "error", "technical", "connection", "failed"),
    ),
    _Rule(ErrorLeakKind.STACK_TRACE, _EXCEPTION, needs_short=True, hints=("error", "exception")),
)
_READ = 200_000
"""Characters read, half from each end of a longer text."""


def find_error_leak(text: str) -> ErrorLeak | None:
    """The first error of the machinery that a text shows, or ``None``.

    Stack traces and error bodies count anywhere; a provider's or server's wording counts in a short text or in
    the last part of a long one, because a long answer may well explain what "Bad Gateway" means.
    """
    wholes, ends = (_parts(text, whole=whole) for whole in (True, False))
    for rule in _RULES:
        for offset, part, lowered in ends if rule.needs_short else wholes:
            if any(map(lowered.__contains__, rule.hints)) and (match := rule.pattern.search(part)):
                return ErrorLeak(kind=rule.kind, start=offset + match.start(), end=offset + match.end())
    return None


def _parts(text: str, *, whole: bool) -> list[tuple[int, str, str]]:
    """What is read: where it begins, the text, the text in lower case."""
    length = _READ // 2 if whole else _SHORT // 2
    if len(text) <= 2 * length:
        return [(0, text, text.lower())]
    parts = ((0, text[:length]), (len(text) - length, text[-length:]))
    return [(offset, part, part.lower()) for offset, part in parts]
