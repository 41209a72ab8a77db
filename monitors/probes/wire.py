"""Read the answer as the app sent it (V3): find the response with the answer, and the text in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from monitors.json_path import collect_items, collect_sources, collect_values, join_text_parts
from monitors.probes.build_info import read_build_info, read_document_versions
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

    url: Annotated[str, Field(min_length=1, description="regular expression for the response's address")]
    text: str = Field(default="", description="path to the text; empty: the whole body is the text")
    citations: str | None = Field(
        default=None, description="path to the sources; a list gives its items, an empty list no source"
    )
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    joins: bool = Field(
        True, description="true: join the texts of an event stream; false: each text replaces the last"
    )
    graded: Channel = Field(default=Channel.WIRE, description="the text to grade: wire or visible")

    @field_validator("url")
    @classmethod
    def _check_url_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    def matches(self, url: str) -> bool:
        """Whether the response from this address carries the answer."""
        return re.search(self.url, url) is not None


def read_payload(
    rule: WireRule, url: str, body: str, headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """Read the answer from a body: JSON, JSON lines or an event stream. ``None`` if the paths match nothing."""
    if not rule.text:
        return WirePayload(url=url, text=body, build=read_build_info((), headers))
    return read_reply(rule, url, parse_documents(body), headers)


def read_reply(
    rule: WireRule, url: str, documents: list[Any], headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """Read the answer from all events of one reply, with the build and document versions that it names."""
    payload = read_documents(rule, url, documents)
    if payload is None:
        return None
    versions = read_document_versions(documents, rule.citations)
    return payload.model_copy(update={"build": read_build_info(documents, headers), "document_versions": versions})


def read_documents(rule: WireRule, url: str, documents: list[Any]) -> WirePayload | None:
    """Read the answer from a sequence of parsed events."""
    pieces = [
        join_text_parts(value)
        for document in documents
        for value in collect_values(document, rule.text)
        if value is not None
    ]
    if not pieces:
        return None
    values = _collect_values(documents, rule.app_path)
    return WirePayload(
        url=url,
        text="".join(pieces) if rule.joins else pieces[-1],
        citations=tuple(name for document in documents for name in _sources(document, rule.citations)),
        app_path=join_text_parts(values[-1]) if values else None,
        app_latency_ms=_find_last_number(_collect_values(documents, rule.latency_ms)),
    )


def parse_documents(body: str) -> list[Any]:
    """Parse the JSON documents in a body: one, one per line, or one per event's ``data:``. Skip other lines."""
    whole = _parse_json_or_none(body)
    if whole is not None:
        return [whole]
    events = (
        [parse_event_data(block) for block in re.split(r"\r?\n\r?\n", body)]
        if "data:" in body
        else body.splitlines()
    )
    return [document for document in map(_parse_json_or_none, events) if document is not None]


def parse_event_data(block: str) -> str:
    """Return the data of one server-sent event: its ``data:`` lines joined by newlines."""
    lines = [line[5:].removeprefix(" ") for line in block.splitlines() if line.startswith("data:")]
    return "\n".join(lines)


def _parse_json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # deep input recurses
        return None


def _collect_values(documents: list[Any], path: str | None) -> list[Any]:
    if path is None:
        return []
    return [value for document in documents for value in collect_items(document, path)]


def _sources(document: Any, path: str | None) -> tuple[str, ...]:
    return () if path is None else collect_sources(document, path)


def _find_last_number(values: list[Any]) -> float | None:
    for value in reversed(values):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
    return None
