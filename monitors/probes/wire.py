"""Read the answer as the app sent it over the network: find the response and the text in the response."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import Field, field_validator

from monitors.json_path import collect_items, collect_sources, collect_values, join_text_parts
from monitors.probes.build_info import read_build_info, read_source_versions
from monitors.records.base import Record
from monitors.records.exchanges import Channel, WirePayload

NO_HEADERS: Final[Mapping[str, str]] = {}


# Has fields of ApiSettings. But its url is a pattern for responses, and its defaults are those for a page.
class WireRule(Record):
    """The rule that finds the answer in the responses of the app.

    ``url`` is a regular expression that matches the address of the response. The other fields are paths such as
    ``choices.0.message.content``: names and list positions with dots between them. ``*`` means all items of a list,
    as in ``sources.*.title``. A path to a list means all items of the list. If ``joins`` is True, the texts of all
    events of an event stream or web socket are joined. Otherwise, the last text is the answer.
    """

    url: Annotated[
        str, Field(min_length=1, description="regular expression for the address of the network response")
    ]
    text: str = Field(
        default="", description="path to the text of the answer. If this path is empty, the whole body is the text"
    )
    citations: str | None = Field(
        default=None, description="path to the sources. If the value is a list, each item is a source"
    )
    app_path: str | None = Field(
        default=None,
        description="path to the name of the model that answered, or of the app's internal route (such as primary "
        "or fallback)",
    )
    latency_ms: str | None = Field(
        default=None, description="path to the latency that the app reports, in milliseconds"
    )
    joins: bool = Field(
        True,
        description="whether Lookout joins the texts of an event stream. If false, each text replaces the "
        "previous text",
    )
    graded: Channel = Field(
        default=Channel.WIRE,
        description="the text that Lookout grades: wire (the network response) or visible (the text on the page)",
    )

    @field_validator("url")
    @classmethod
    def _check_url_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a valid regular expression: {error}") from error
        return value

    def matches(self, url: str) -> bool:
        """Return whether the rule applies to the response from this address."""
        return re.search(self.url, url) is not None

    def with_detail_paths(self, rules: Sequence[WireRule]) -> Self:
        """Return the rule with the paths to the sources, the model and the latency from ``rules``.

        Each of these paths is taken from the first rule that has it.
        """
        return self.model_copy(
            update={
                "citations": next((rule.citations for rule in rules if rule.citations is not None), None),
                "app_path": next((rule.app_path for rule in rules if rule.app_path is not None), None),
                "latency_ms": next((rule.latency_ms for rule in rules if rule.latency_ms is not None), None),
            }
        )


def read_payload(
    rule: WireRule, url: str, body: str, headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """Return the answer in ``body``, the body of a response, or ``None`` if the rule finds no text in it.

    The body is JSON, JSON lines or an event stream.
    """
    if not rule.text:
        return WirePayload(url=url, text=body, build=read_build_info((), headers))
    return read_versioned_payload(rule, url, parse_documents(body), headers)


def read_versioned_payload(
    rule: WireRule, url: str, documents: list[Any], headers: Mapping[str, str] = NO_HEADERS
) -> WirePayload | None:
    """Return the answer in the parsed documents of one response, with the versions that the response contains."""
    payload = extract_payload(rule, url, documents)
    if payload is None:
        return None
    versions = read_source_versions(documents, rule.citations)
    return payload.with_build(read_build_info(documents, headers), versions)


def extract_payload(rule: WireRule, url: str, documents: list[Any]) -> WirePayload | None:
    """Return the answer in the parsed documents of one response, or ``None`` if the rule finds no text in them."""
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
        citations=tuple(
            name
            for document in documents
            for name in (() if rule.citations is None else collect_sources(document, rule.citations))
        ),
        app_path=join_text_parts(values[-1]) if values else None,
        app_latency_ms=next(
            (
                float(value)
                for value in reversed(_collect_values(documents, rule.latency_ms))
                if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
            ),
            None,
        ),
    )


def parse_documents(body: str) -> list[Any]:
    """Return the JSON documents in a body: the whole body, each line, or each server-sent event.

    Lines that are not JSON are skipped.
    """
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
    """Return the data of one server-sent event: the content of all its ``data:`` lines together."""
    lines = [line[5:].removeprefix(" ") for line in block.splitlines() if line.startswith("data:")]
    return "\n".join(lines)


def _parse_json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # deeply nested JSON exceeds the recursion limit
        return None


def _collect_values(documents: list[Any], path: str | None) -> list[Any]:
    if path is None:
        return []
    return [value for document in documents for value in collect_items(document, path)]
