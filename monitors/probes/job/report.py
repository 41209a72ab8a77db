"""Build the answer from the report of a finished job. A report may be the result of a GraphQL query."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from monitors.errors import AccessDenied, AppErrorShown, PageNotUnderstood
from monitors.json_path import collect_items, collect_values
from monitors.probes.api.driver import parse_json
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.build_info import read_build_info
from monitors.probes.driver import Answer
from monitors.probes.job.watch import AgentJob, format_value
from monitors.probes.settings import JobSettings
from monitors.probes.wire import WireRule, read_versioned_payload
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.retry import TryAgain

_ACCESS_DENIED_CODES: Final = ("UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED")
"""The codes of GraphQL errors for a missing API key, or a key without the necessary rights."""


def build_report_request(template: str, job: AgentJob) -> Any:
    """Return the JSON to post for the report of a job.

    Raises `PageNotUnderstood` if the template contains ``{job}``, but the app returned no id.
    """
    if "{job}" in template and not job.job_id:
        raise PageNotUnderstood(
            f"probe.job.id = {job.settings.id!r} matches nothing in the reply to the start request"
        )
    return _fill_report_template(json.loads(template), job)


def _fill_report_template(template: Any, job: AgentJob) -> Any:
    """Return the JSON with ``{job}`` and ``{location}`` replaced.

    Quotes in these values cannot change the structure of the JSON.
    """
    match template:
        case "{job}":
            return job.job_id
        case str():
            return template.replace("{job}", json.dumps(job.job_id)[1:-1]).replace("{location}", job.location)
        case list():
            return [_fill_report_template(item, job) for item in cast("list[Any]", template)]
        case dict():
            return {
                key: _fill_report_template(value, job) for key, value in cast("dict[str, Any]", template).items()
            }
        case _:
            return template


def require_no_graphql_errors(text: str) -> str:
    """Return the text of a reply unchanged if it has no GraphQL errors.

    Raises:
        PageNotUnderstood: the query is not valid (the reply has no ``data``)
        AccessDenied: the API key is missing or does not have the necessary rights
        TryAgain: another error, which is possibly temporary
    """
    errors = parse_graphql_errors(text)
    if not errors:
        return text
    texts: list[str] = []
    for error in errors:
        details = [value for value in collect_values(error, "message") if isinstance(value, str)]
        texts.append(replace_surrogates(details[0]) if details else format_value(error))
    messages = "; ".join(dict.fromkeys(texts))[:300]
    codes = {str(code).upper() for error in errors for code in collect_values(error, "extensions.code")}
    if codes & set(_ACCESS_DENIED_CODES):
        raise AccessDenied(f"the GraphQL API refused access to the report: {messages}")
    if "data" not in json.loads(text):
        raise PageNotUnderstood(f"the GraphQL API rejected probe.job.report_request: {messages}")
    raise TryAgain(AppErrorShown(f"the GraphQL API returned errors instead of the report: {messages}"))


def parse_graphql_errors(text: str) -> list[Any]:
    """Return the ``errors`` of a GraphQL reply.

    The result is empty if the reply has no errors, or if the text is not a GraphQL reply.
    """
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    errors = cast("dict[str, Any]", document).get("errors") if isinstance(document, dict) else None
    return cast("list[Any]", errors) if isinstance(errors, list) else []


def build_report_answer(job: AgentJob, url: str, body: str | None, earlier: tuple[str, ...]) -> Answer:
    """Build the answer of a finished job from the report ``body``, or from the last state if ``body`` is ``None``.

    Raises `PageNotUnderstood` if ``probe.job.text`` matches nothing.
    """
    settings, total_ms = job.settings, (job.elapsed_s if job.duration_s is None else job.duration_s) * 1000
    if body is not None and not settings.text:
        wire = WirePayload(url=replace_surrogates(url), text=body)
    else:
        document = job.last_document if body is None else parse_json(body)
        job.update_handoff_count(document)
        job.update_steps_if_more(document)
        build = read_build_info([job.last_document, document], {})
        wire = _extract_payload(settings, url, document).with_build(build)
    versions = collect_items(job.last_document, settings.app_version) if settings.app_version else []
    if job.age_s and wire.app_latency_ms is not None:  # a resumed job: only the app knows when it ended
        total_ms = wire.app_latency_ms
    return Answer(
        visible_text=wire.text,
        earlier=earlier,
        wire=wire,
        graded_channel=Channel.WIRE,
        timings=Timings(total_ms=total_ms),
        app_path=wire.app_path,
        app_version=format_value(versions[-1]) if versions else None,
        evidence=job.evidence,
    )


def _extract_payload(settings: JobSettings, url: str, document: object) -> WirePayload:
    values = [value for value in collect_values(document, settings.text) if value is not None]
    if not values:
        excerpt = format_value(document)[:200]
        raise PageNotUnderstood(f"probe.job.text = {settings.text!r} matches nothing in the report: {excerpt}")
    rule = WireRule(
        url=".",
        text=settings.text,
        joins=True,
        citations=settings.citations,
        app_path=settings.app_path,
        latency_ms=settings.latency_ms,
    )
    payload = read_versioned_payload(rule, replace_surrogates(url), [document]) or WirePayload(
        url=replace_surrogates(url), text=""
    )
    citations = tuple(replace_surrogates(citation) for citation in payload.citations)
    text = "\n\n".join(map(format_value, collect_items(document, settings.text)))
    return payload.with_text_and_citations(text, citations)
