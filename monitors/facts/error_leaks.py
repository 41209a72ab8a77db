"""Find technical errors that a reply shows instead of an answer.

An error *replaces* an answer if the text has little else, has the shape of an error, and does not respond to the
question. An answer *about* errors explains them in sentences to a user who asked.

Each sentence or line of a text is classified as an error (by its shape), a component that failed (a weaker shape),
a message in which the app gives up, accompanying text (regret, advice, data), or prose. The number of words of
prose beside the errors decides.

SDKs, servers, runtimes and proxies write errors in shapes that people do not use: status and reason, JSON envelope,
exception class, error code, request id, stack frame. A weaker shape is a component with its failure ("model …
overloaded"). The shapes are in `error_leaks.toml`; reason phrases and errno names come from Python.

The search takes linear time, because patterns and pieces of text have a maximum length.
"""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from monitors.facts.text import Hinted, to_caseless
from monitors.records.base import Record

_TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _join_http_status_phrases(min_status: int) -> str:
    return "|".join(re.escape(status.phrase) for status in HTTPStatus if status.value >= min_status)


_MAX_SKIPPED_ERRNO_LENGTH: Final = 4
_PARTS: Final[Mapping[str, str]] = {
    **_TABLES["parts"],
    "FAILING_UPPER": _TABLES["parts"]["FAILING"].upper(),
    "REASONS": f"{_join_http_status_phrases(HTTPStatus.BAD_REQUEST)}|{_TABLES['parts']['MORE_REASONS']}",
    "FIVE_HUNDREDS": "|".join(
        (_join_http_status_phrases(HTTPStatus.INTERNAL_SERVER_ERROR), _TABLES["parts"]["MORE_FIVE_HUNDREDS"])
    ),
    "ERRNOS": "|".join(
        sorted(name[1:] for name in errno.errorcode.values() if len(name) > _MAX_SKIPPED_ERRNO_LENGTH)
    ),
}
_FLAGS: Final = {"": re.NOFLAG, "i": re.IGNORECASE, "m": re.MULTILINE, "im": re.IGNORECASE | re.MULTILINE}


def _load_error_pattern(name: str) -> Hinted:
    row = _TABLES[name]
    source = re.sub("«([A-Z_]+)»", lambda part: _PARTS[part[1]], "|".join(row["any"]))
    return Hinted(re.compile(source, _FLAGS[row.get("flags", "")]), tuple(row.get("hints", ("",))))


_SHAPES: Final = {name: _load_error_pattern(name) for name in _TABLES if name not in {"hints", "parts"}}
TRACE, TRACE_HINTS = _SHAPES["TRACE"]
ENVELOPE, HTML, EXCEPTION, IDENTIFIER, ADDRESS, HEAD, COMPONENT, FAILED, PROVIDERS, GAVE_UP, SOFT, EXPLAINS = (
    _SHAPES[name].pattern
    for name in (
        *("ENVELOPE", "HTML", "EXCEPTION", "IDENTIFIER", "ADDRESS", "HEAD", "COMPONENT", "FAILED", "PROVIDERS"),
        *("GAVE_UP", "SOFT", "EXPLAINS"),
    )
)
TECHNICAL, SERVER = _SHAPES["TECHNICAL"].pattern, _SHAPES["SERVER"].pattern

NAME = re.compile(
    r"\b[a-z]{2,20}_[a-z_]{2,40}\b|\b[A-Z][a-z]+(?:[A-Z][a-z]+){2,6}\b|`[\w.\[\]\"'-]{3,60}`|\w=[\w\[{\"'-]"
)
"""A pattern for an identifier from a program, such as the name of a class or a function."""

URL = re.compile(r"https?://\S{1,300}|`[^`\n]{1,160}`|\"[^\"\n]{1,160}\"|(?<!\w)'[^'\n]{1,160}'(?!\w)")
"""Web addresses, quotations and code in backticks.

They are removed before a text is searched for words that explain an error.
"""

FORMAL: Final[tuple[tuple[Hinted, ...], ...]] = (
    (_SHAPES["ENVELOPE"],),
    (_SHAPES["HTML"],),
    (Hinted(TRACE),),
    (_SHAPES["EXCEPTION"],),
    (_SHAPES["STATUS"], _SHAPES["REASON"]),
    (_SHAPES["CODE"], _SHAPES["ERRNO"]),
    (_SHAPES["REPR"],),
    (_SHAPES["RUNTIME"],),
)
"""The shapes of errors, in groups. If several shapes of a group match a piece of text, the group counts once."""


class ErrorLeakKind(StrEnum):
    """The kind of a leaked error."""

    STACK_TRACE = "stack trace"
    PROVIDER_ERROR = "provider error"
    ERROR_BODY = "error body"
    SERVER_ERROR = "server error"


class ErrorLeak(Record):
    """A technical error in a reply. ``start`` and ``end`` (exclusive) are code-point offsets."""

    kind: ErrorLeakKind
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


_HEAD, _TAIL = 6_000, 1_500
"""Number of characters that are read at the beginning and at the end of a text.

The middle of a text is searched only for stack frames.
"""
_TRACE_SEARCH_LENGTH = 100_000
"""Number of characters at each end of a text that are searched for stack frames."""
_MAX_PIECE_LENGTH = 500
_MAX_PIECES = 60
_MAX_WRAPPER_WORDS: Final = 25
"""A leaked error may be surrounded by this many words of other text, if the question is not about errors.

In a short reply, it may be surrounded by twice its own number of words, if that is more.
"""
_MAX_BARE_WORDS: Final = 3
"""Maximum number of words of other text around a leaked error, if the question is about errors.

The limit also applies if the reply repeats words of the question.
"""
_MAX_GIVE_UP_WORDS: Final = 9
"""Maximum number of words of other text around a weak error.

The limit also applies to a message such as "something went wrong" after other text.
"""
_MAX_SHORT_ANSWER_WORDS: Final = 15
"""Maximum number of words of a short reply to a question about errors.

A longer reply is an error only if one of its sentences has two error shapes.
"""
_MIN_CERTAIN_SHAPES: Final = 3
"""A sentence with at least this many error shapes is certainly an error. A sentence about errors has fewer."""
_MAX_WEAK_WORDS: Final = 20
"""A sentence with a weak error shape may be an error only if it has at most this many words.

A longer sentence about a failed component explains it.
"""

_HINTS: Final = tuple(_TABLES["hints"])
_STATUS_HINT = re.compile(r"\b[45]\d\d\b")


def _can_hold_error(snippet: str, hints: tuple[str, ...]) -> bool:
    return any(map(to_caseless(snippet).__contains__, hints)) or _STATUS_HINT.search(snippet) is not None


class _Sort(StrEnum):
    """What a sentence or line of a text is, for example an error or prose."""

    ERROR = "error"
    GIVES_UP = "gives up"
    WEAK = "a component that failed"
    AROUND = "what goes with them"
    PROSE = "prose"


class _Piece(NamedTuple):
    """A sentence or line of a text. ``strength`` is the number of error shapes in it."""

    sort: _Sort
    strength: int
    words: int
    start: int
    end: int


@lru_cache(maxsize=16)
def find_error_leak(text: str, question: str = "") -> ErrorLeak | None:
    """Return the technical error that replaces an answer in ``text``, or ``None`` if there is no such error.

    ``question`` is the user's question. If the question is about errors, an answer about errors is normal, and the
    error must be the whole text. For other questions, an error may also precede an answer, or follow an answer that
    is cut off. The last few texts are cached, because several callers check one reply.
    """
    hints = tuple(filter(to_caseless(text).__contains__, _HINTS))
    if not hints and _STATUS_HINT.search(text) is None:
        return None
    question = question[:_HEAD]
    technical, asked = _check_technical_and_extract_words(question)
    trace = None if technical else _find_stack_trace(text)
    if trace is not None:
        return trace
    leak = _find_leak_by_word_counts(
        text, _classify_pieces(text, asked, hints, technical=technical), asked, technical=technical
    )
    if leak is None or not technical:
        return leak
    quoted = question[-_MAX_PIECE_LENGTH:]
    return None if _count_matching_pattern_groups(quoted) and _classify_leak(quoted) is leak.kind else leak


@lru_cache(maxsize=256)
def _check_technical_and_extract_words(question: str) -> tuple[bool, frozenset[str]]:
    """Return whether a question is about errors or code, and the content words of the question."""
    technical = TECHNICAL.search(question) is not None or GAVE_UP.search(question) is not None
    return technical, _extract_content_words(question)


def _find_stack_trace(text: str) -> ErrorLeak | None:
    """Find the frames of a stack trace in the first or last `_TRACE_SEARCH_LENGTH` characters."""
    ends = (
        ((0, text),)
        if len(text) <= 2 * _TRACE_SEARCH_LENGTH
        else ((0, text[:_TRACE_SEARCH_LENGTH]), (len(text) - _TRACE_SEARCH_LENGTH, text[-_TRACE_SEARCH_LENGTH:]))
    )
    for offset, part in ends:
        lowered = "\n" + part.lower()
        if any(map(lowered.__contains__, TRACE_HINTS)) and (match := TRACE.search(part)):
            return ErrorLeak(kind=ErrorLeakKind.STACK_TRACE, start=offset + match.start(), end=offset + match.end())
    return None


# --- the amounts of each kind -------------------------------------------------------------------------------------


def _find_leak_by_word_counts(
    text: str, pieces: list[_Piece], asked: frozenset[str], *, technical: bool
) -> ErrorLeak | None:
    if not pieces:
        return None
    taken_up = _has_words_of_question(asked, text)
    prose = sum(piece.words for piece in pieces if piece.sort is _Sort.PROSE)
    by_sort = {sort: [piece for piece in pieces if piece.sort is sort] for sort in _Sort}
    errors = by_sort[_Sort.ERROR]
    if errors:
        strongest = max(errors, key=lambda piece: piece.strength)
        allowed_words = (
            max(_MAX_WRAPPER_WORDS, 2 * sum(piece.words for piece in errors))
            if len(text) <= _HEAD
            else _MAX_WRAPPER_WORDS
        )
        if technical and strongest.strength == 1 and sum(piece.words for piece in pieces) > _MAX_SHORT_ANSWER_WORDS:
            return None
        if prose <= (_MAX_BARE_WORDS if technical or taken_up else allowed_words):
            return _build_leak_of_piece(text, strongest)
        if not technical:
            at_end = next((piece for piece in (pieces[0], pieces[-1]) if piece.strength > 1), None)
            return _build_leak_of_piece(text, at_end) if at_end in errors else None
        return None
    if by_sort[_Sort.GIVES_UP]:
        first = pieces[0].sort is _Sort.GIVES_UP and not taken_up
        if prose <= (_MAX_BARE_WORDS if technical else _MAX_WRAPPER_WORDS if first else _MAX_GIVE_UP_WORDS):
            return _build_leak_of_piece(text, by_sort[_Sort.GIVES_UP][0])
    if by_sort[_Sort.WEAK] and prose <= _MAX_GIVE_UP_WORDS and not technical:
        return _build_leak_of_piece(text, by_sort[_Sort.WEAK][0])
    return None


def _build_leak_of_piece(text: str, piece: _Piece | None) -> ErrorLeak | None:
    if piece is None:
        return None
    snippet = text[piece.start : piece.end]
    return ErrorLeak(kind=_classify_leak(snippet), start=piece.start, end=piece.end)


def _classify_leak(snippet: str) -> ErrorLeakKind:
    if ENVELOPE.search(snippet):
        return ErrorLeakKind.ERROR_BODY
    if PROVIDERS.search(snippet) or re.search(
        r"\b4\d\d\b|limit|quota|overload|Max retries", snippet, re.IGNORECASE
    ):
        return ErrorLeakKind.PROVIDER_ERROR
    if SERVER.search(snippet) or HTML.search(snippet):
        return ErrorLeakKind.SERVER_ERROR
    if TRACE.search(snippet) or EXCEPTION.search(snippet):
        return ErrorLeakKind.STACK_TRACE
    return ErrorLeakKind.SERVER_ERROR if GAVE_UP.search(snippet) else ErrorLeakKind.PROVIDER_ERROR


# --- the pieces -----------------------------------------------------------------------------------------------

_BREAK = re.compile(r"\n+|(?<=[.!?।]) +(?=[^\s\da-z])")
_WORD = re.compile(r"[^\W\d_][\w'\u0900-\u097f]*")
_TAG = re.compile(r"<[^<>]{1,200}>")
_DATA = re.compile(r"^\s*(?:[\"'][\w -]{1,40}[\"']\s?:|[{}\[\]()]|</?\w|[\w-]{2,30}: ?\S{0,80}$|\S{0,80}$)")
_LISTED = re.compile(r"^\s*(?:\||#{1,5} |\d{1,2}\. |[-*•] )")


_MAY_LEAK = frozenset({_Sort.ERROR, _Sort.GIVES_UP, _Sort.WEAK})


def _classify_pieces(text: str, asked: frozenset[str], hints: tuple[str, ...], *, technical: bool) -> list[_Piece]:
    """Return the sentences and lines of a text in order, each with its sort.

    The result is empty if none of them can be an error.
    """
    quotes = [
        (snippet, start, end, technical and fenced)
        for snippet, start, end, fenced in _split_pieces_with_code_flag(text)
    ]
    suspects = {
        place: _build_suspect_piece(snippet, start, end, asked, technical=technical)
        for place, (snippet, start, end, quoted) in enumerate(quotes)
        if not quoted and _can_hold_error(snippet, hints)
    }
    if _MAY_LEAK.isdisjoint(piece.sort for piece in suspects.values()):
        return []
    return [
        suspects[place] if place in suspects else _build_unsuspected_piece(snippet, start, end, quoted=quoted)
        for place, (snippet, start, end, quoted) in enumerate(quotes)
    ]


def _split_pieces_with_code_flag(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the text and span of each sentence or line, and whether it is in a code block. Fences are omitted."""
    fenced = False
    for start, end in _find_pieces_at_both_ends(text):
        snippet = text[start : min(end, start + _MAX_PIECE_LENGTH)]
        if snippet.lstrip().startswith("```"):
            fenced = not fenced
        else:
            yield snippet, start, end, fenced


def _find_pieces_at_both_ends(text: str) -> list[tuple[int, int]]:
    """Return the spans of the non-blank sentences and lines at both ends of the text."""
    ends = [(0, len(text))] if len(text) <= _HEAD + _TAIL else [(0, _HEAD), (len(text) - _TAIL, len(text))]
    places: list[tuple[int, int]] = []
    for first, last in ends:
        at, here = first, len(places)
        for gap in _BREAK.finditer(text, first, last):
            places.append((at, gap.start()))
            at = gap.end()
        places.append((at, last))
        left = [place for place in places[here:] if text[place[0] : place[1]].strip()]
        places[here:] = left if len(left) <= _MAX_PIECES else left[: _MAX_PIECES - 10] + left[-10:]
    return places


def _count_words(snippet: str) -> int:
    return len(_WORD.findall(_TAG.sub(" ", snippet)))


def _build_unsuspected_piece(snippet: str, start: int, end: int, *, quoted: bool) -> _Piece:
    length = _count_words(snippet)
    is_accompanying = not quoted and (
        SOFT.search(snippet) is not None or length <= 1 or _DATA.match(snippet) is not None
    )
    return _Piece(_Sort.AROUND if is_accompanying else _Sort.PROSE, 0, length, start, end)


def _build_suspect_piece(snippet: str, start: int, end: int, asked: frozenset[str], *, technical: bool) -> _Piece:
    failed = FAILED.search(snippet) is not None
    component = failed and COMPONENT.search(snippet) is not None
    strength, length = _compute_error_strength(snippet, failed=failed, component=component), _count_words(snippet)
    sort = _classify_piece(
        snippet, strength, length, asked, technical=technical, may_be_weak=component and length <= _MAX_WEAK_WORDS
    )
    return _Piece(sort, strength, length, start, end)


def _count_matching_pattern_groups(snippet: str) -> int:
    lowered = to_caseless(snippet)
    return sum(any(shape.search(snippet, lowered) for shape in shapes) for shapes in FORMAL)


def _compute_error_strength(snippet: str, *, failed: bool, component: bool) -> int:
    formal = _count_matching_pattern_groups(snippet)
    provider = failed and PROVIDERS.search(snippet) is not None
    part = provider or component
    if not formal and not part and HEAD.search(snippet) is None:
        return 0
    beside = (HEAD, NAME, IDENTIFIER, ADDRESS)
    return formal + 2 * provider + sum(pattern.search(snippet) is not None for pattern in beside)


def _classify_piece(
    snippet: str, strength: int, words: int, asked: frozenset[str], *, technical: bool, may_be_weak: bool
) -> _Sort:
    listed = _LISTED.match(snippet) is not None
    if strength and (
        (strength >= _MIN_CERTAIN_SHAPES and not technical) or not _is_explanation(snippet, listed=listed)
    ):
        return _Sort.ERROR
    if (
        GAVE_UP.search(snippet)
        and not _is_explanation(snippet, listed=listed)
        and not _has_words_of_question(asked, snippet)
    ):
        return _Sort.GIVES_UP
    soft = SOFT.search(snippet)
    weak = may_be_weak
    if may_be_weak and soft:
        core = snippet[: soft.start()]
        weak = FAILED.search(core) is not None and COMPONENT.search(core) is not None
    if weak and not _is_explanation(snippet, listed=listed) and _WEEKDAY.search(snippet) is None:
        return _Sort.PROSE if _has_words_of_question(asked, snippet) else _Sort.WEAK
    if (soft and not listed) or words <= 1 or _DATA.match(snippet):
        return _Sort.AROUND
    return _Sort.PROSE


def _is_explanation(snippet: str, *, listed: bool) -> bool:
    return listed or EXPLAINS.search(URL.sub(" ", snippet)) is not None


_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweekends?\b", re.IGNORECASE)
"""Words for weekdays.

A sentence with such a word is not a weak error: "Our service is not available on Sundays".
"""

_MIN_LONG_WORD_LENGTH = 4
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


def _extract_content_words(text: str) -> frozenset[str]:
    """Return the content words of a text, without a plural "s".

    Content words have at least `_MIN_LONG_WORD_LENGTH` letters and are not common words.
    """
    words = _WORD.findall(text.lower()[:_HEAD])
    return frozenset(
        word.rstrip("s") for word in words if len(word) >= _MIN_LONG_WORD_LENGTH and word not in _COMMON
    )


def _has_words_of_question(asked: frozenset[str], snippet: str) -> bool:
    """Return whether ``snippet`` repeats a word of the question, except words that are common in errors.

    Such a text is an answer to the question, and not only an error.
    """
    shared = asked & _extract_content_words(snippet)
    return any(not (COMPONENT.fullmatch(word) or FAILED.fullmatch(word)) for word in shared - _ERRORS_TOO)


_ERRORS_TOO = frozenset(["limit", "rate", "account", "plan", "page", "time", "period", "request", "error"])
