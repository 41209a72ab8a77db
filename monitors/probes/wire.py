"""The answer as the app sent it (V3): which response carries it, and where in it the text stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from monitors.json_path import items_at, sources_at, text_of_parts, values_at
from monitors.probes.build_info import build_info, document_versions
from monitors.records.base import Record
from monitors.records.exchanges import Channel, WirePayload

NO_HEADERS: Final[Mapping[str, str]] = {}


class WireRule(Record):
    """Names the response that carries the answer. Paths are like ``choices.0.message.content``.

    A path's steps are names and list positions, ``*`` is every item: ``sources.*.title``. A path that leads to a
    list means its items; an empty list and null mean that there is nothing. ``url`` is a regular expression
    searched in the address. In an event stream or a web socket the events are read in order: ``text`` pieces are
    joined when ``joins`` is true (tokens), else the last one counts (growing text).
    """

    url: Annotated[str, Field(min_length=1, description="regular expression, searched in the response's address")]
    text: str = Field(default="", description="path to the text; empty: the whole body is the text")
    citations: str | None = Field(
        default=None, description="path to the sources: a list gives its items, an empty one none"
    )
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    joins: bool = Field(
        True, description="an event stream's texts are tokens to join; false: each replaces the last"
    )
    graded: Channel = Field(default=Channel.WIRE, description="which text is graded: wire or visible")

    @field_validator("url")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    def matches(self, url: str) -> bool:
        """Whether the response of this address carries the answer."""
        return re.search(self.url, url) is not None


def read_payload(
    rule: WireRule, url: str, body: str, headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """The answer in a body: JSON, JSON lines, or an event stream. ``None`` when the paths lead nowhere."""
    if not rule.text:
        return WirePayload(url=url, text=body, build=build_info((), headers))
    return read_whole(rule, url, documents_in(body), headers)


def read_whole(
    rule: WireRule, url: str, documents: list[Any], headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """The answer in all events of one reply, with what they and its headers say of build and documents."""
    found = read_documents(rule, url, documents)
    if found is None:
        return None
    versions = document_versions(documents, rule.citations)
    return found.model_copy(update={"build": build_info(documents, headers), "document_versions": versions})


def read_documents(rule: WireRule, url: str, documents: list[Any]) -> WirePayload | None:
    """The answer in a sequence of parsed events."""
    pieces = [text_of_parts(value) for one in documents for value in values_at(one, rule.text) if value is not None]
    if not pieces:
        return None
    return WirePayload(
        url=url,
        text="".join(pieces) if rule.joins else pieces[-1],
        citations=tuple(name for one in documents for name in _sources(one, rule.citations)),
        app_path=_last_text(_all(documents, rule.app_path)),
        app_latency_ms=_last_number(_all(documents, rule.latency_ms)),
    )


def documents_in(body: str) -> list[Any]:
    """The JSON documents in a body: one, one a line, or one in each event's ``data:``. Others are passed over."""
    whole = _parsed(body)
    if whole is not None:
        return [whole]
    events = (
        [event_data(block) for block in re.split(r"\r?\n\r?\n", body)] if "data:" in body else body.splitlines()
    )
    return [document for document in map(_parsed, events) if document is not None]


def event_data(block: str) -> str:
    """The data of one server-sent event: its ``data:`` lines joined by newlines."""
    lines = [line[5:].removeprefix(" ") for line in block.splitlines() if line.startswith("data:")]
    return "\n".join(lines)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # deep input recurses
        return None


def _all(documents: list[Any], path: str | None) -> list[Any]:
    if path is None:
        return []
    return [value for one in documents for value in items_at(one, path)]


def _sources(document: Any, path: str | None) -> tuple[str, ...]:
    return () if path is None else sources_at(document, path)


def _last_text(values: list[Any]) -> str | None:
    return text_of_parts(values[-1]) if values else None


def _last_number(values: list[Any]) -> float | None:
    for value in reversed(values):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
    return None
