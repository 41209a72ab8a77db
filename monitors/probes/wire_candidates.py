"""Which of the things a page received carried the answer, and by which path: proposals for ``[…probe.wire]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast
from urllib.parse import urlsplit

from monitors.probes.wire import WireRule, documents_in, read_documents
from monitors.records.base import Probability, Record
from monitors.records.exchanges import Channel

LIKE_ENOUGH = 0.6
"""Of an answer's letters; a page may leave sources out of what it shows, and a payload may hold an older turn."""

DOCUMENTS_AT_MOST = 5000
LEAVES_AT_MOST = 20_000
READS_AT_MOST = 200_000
"""Documents times paths that are tried for one address: about a second."""
CITATIONS = re.compile(r"(^|[._])(citations?|sources?|references?|documents?)([._]|$)", re.IGNORECASE)
APP_PATH = re.compile(r"(^|\.)(model|model_name|path|route|provider)$", re.IGNORECASE)
LATENCY = re.compile(r"(^|\.)(latency|latency_ms|ms|duration_ms|elapsed_ms|took_ms)$", re.IGNORECASE)


class Received(Record):
    """Something that came: a response's body, or what a socket or event stream pushed, a text each."""

    url: str
    kind: str
    texts: tuple[str, ...]


class WireCandidate(Record):
    """A rule that finds the answer. ``likeness``: how much of it the page showed; ``more``: what it did not."""

    kind: str
    rule: WireRule
    likeness: Probability
    more: str = ""


def candidates(received: Iterable[Received], answer: str) -> tuple[WireCandidate, ...]:
    """The likeliest rule for each thing that carried ``answer``, the likeliest first."""
    found = [best for one in received if (best := _best(one, answer)) is not None]
    return tuple(sorted(found, key=lambda candidate: -candidate.likeness))


def _best(one: Received, answer: str) -> WireCandidate | None:
    documents = [document for text in one.texts for document in documents_in(text)][:DOCUMENTS_AT_MOST]
    if not documents:
        text = "".join(one.texts)
        return _candidate(one, "", text, answer, joins=True, documents=[])
    ways = [
        _candidate(one, path, text, answer, joins=joins, documents=documents)
        for path in _paths_to_text(documents)
        for joins in (True, False)
        if (text := _read(path, documents, joins=joins)) is not None
    ]
    return max((way for way in ways if way is not None), key=lambda way: way.likeness, default=None)


def _candidate(
    one: Received, path: str, text: str, answer: str, *, joins: bool, documents: list[Any]
) -> WireCandidate | None:
    like = likeness(text, answer)
    if like < LIKE_ENOUGH:
        return None
    rest = list(_paths(documents))
    return WireCandidate(
        kind=one.kind,
        likeness=like,
        more=_beyond(text, answer),
        rule=WireRule(
            url=pattern_of(one.url),
            text=path,
            joins=joins,
            citations=_first(rest, CITATIONS),
            app_path=_first(rest, APP_PATH),
            latency_ms=_first(rest, LATENCY),
            graded=Channel.WIRE,
        ),
    )


def _read(path: str, documents: list[Any], *, joins: bool) -> str | None:
    rule = WireRule(url=".", text=path, joins=joins)
    payload = read_documents(rule, "", documents)
    return None if payload is None else payload.text


def likeness(text: str, answer: str) -> float:
    """How much of the longer of both the shorter one is, when it stands in it; else 0. Letters and digits count."""
    sent, seen = bare(text), bare(answer)
    if not sent or not seen:
        return 0.0
    if seen in sent:
        return len(seen) / len(sent)
    return len(sent) / len(seen) if sent in seen else _in_pieces(sent, seen)


def _in_pieces(sent: str, seen: str) -> float:
    """As `likeness`, where the page left something out in the middle."""
    start = next((n for n in range(min(len(sent), len(seen))) if sent[n] != seen[n]), 0)
    end = 0
    while end < len(seen) - start and sent[-1 - end] == seen[-1 - end]:
        end += 1
    return len(seen) / len(sent) if start + end == len(seen) else 0.0


def bare(text: str) -> str:
    """Letters and digits only, lower case: what stays of a text however a page sets it."""
    return re.sub(r"[\W_]+", "", text).lower()


def pattern_of(url: str) -> str:
    """A pattern for the address: its path, with what changes from question to question left open."""
    parts = urlsplit(url)
    steps = [_step(step) for step in parts.path.split("/")]
    path = "/".join(steps)
    end = r"(\?|$)"
    return f"^wss?://[^/]+{path}{end}" if parts.scheme in ("ws", "wss") else f"{path}{end}"


def _step(step: str) -> str:
    made = re.fullmatch(r"[0-9a-fA-F-]{8,}|\d+|[A-Za-z0-9_-]{20,}", step) and re.search(r"\d", step)
    return "[^/]+" if made else re.escape(step).replace(r"\-", "-")


def _beyond(text: str, answer: str) -> str:
    """What was sent and not shown, if it is one piece at the end or in the middle."""
    lines = [piece for piece in re.findall(r"\[[^\]]{3,120}\]", text) if bare(piece) not in bare(answer)]
    return " ".join(lines[:3])


def _paths_to_text(documents: list[Any]) -> list[str]:
    texts = {path: None for path, value in _leaves(documents) if isinstance(value, str)}
    return list(texts)[: max(20, READS_AT_MOST // len(documents))]


def _paths(documents: list[Any]) -> Iterator[str]:
    yield from dict.fromkeys(path for path, _ in _leaves(documents))


def _leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    return islice((leaf for document in documents for leaf in _walk(document, ())), LEAVES_AT_MOST)


def _walk(value: Any, path: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < 12:  # noqa: PLR2004 - deeper than any reply that was seen
        for key, inner in cast("dict[str, Any]", value).items():
            if "." not in key:
                yield from _walk(inner, (*path, key), depth + 1)
    elif isinstance(value, list) and depth < 12:  # noqa: PLR2004 - as above
        items = cast("list[Any]", value)
        for number, inner in enumerate(items[:20]):
            yield from _walk(inner, (*path, str(number)), depth + 1)
        for inner in items[:20]:
            yield from _walk(inner, (*path, "*"), depth + 1)
        if len(items) > 1:
            yield from _walk(items[-1], (*path, "-1"), depth + 1)
    else:
        yield ".".join(path), value


def _first(paths: list[str], wanted: re.Pattern[str]) -> str | None:
    hits = [path for path in paths if wanted.search(path)]
    return min(hits, key=lambda path: ("*" not in path, path.count("."))) if hits else None
