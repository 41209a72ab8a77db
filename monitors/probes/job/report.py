"""The report of a finished job: asked for by GET, or by a POST such as a GraphQL query, and read as an answer."""

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
from monitors.probes.wire import WireRule, read_reply
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.retry import TryAgain

_ACCESS_DENIED_CODES: Final = ("UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED")
"""What GraphQL servers commonly write in an error's ``extensions.code`` where a key is missing or not enough."""


def build_report_request(template: str, job: AgentJob) -> Any:
    """The JSON to post for a job's report.

    `PageNotUnderstood` where it wants an id that the app has not given.
    """
    if "{job}" in template and not job.job:
        raise PageNotUnderstood(f"probe.job.id = {job.settings.id!r} leads nowhere in the reply to the start")
    return _fill_template(json.loads(template), job)


def _fill_template(template: Any, job: AgentJob) -> Any:
    """The id in its place. Inside a longer text, as in a GraphQL query, it cannot end the string it stands in."""
    match template:
        case "{job}":
            return job.job
        case str():
            return template.replace("{job}", json.dumps(job.job)[1:-1]).replace("{location}", job.location)
        case list():
            return [_fill_template(item, job) for item in cast("list[Any]", template)]
        case dict():
            return {key: _fill_template(value, job) for key, value in cast("dict[str, Any]", template).items()}
        case _:
            return template


def raise_on_graphql_errors(text: str) -> str:
    """A reply's text. Where GraphQL's ``errors`` stand in it, with whatever HTTP status, it is an error.

    `PageNotUnderstood` where the query was refused, which is ours to mend: the reply has no ``data`` then.
    `AccessDenied` where a key is missing. Else the application failed at it, and may not the next time: `TryAgain`.
    """
    errors = parse_graphql_errors(text)
    if not errors:
        return text
    messages = "; ".join(dict.fromkeys(_format_graphql_error(error) for error in errors))[:300]
    codes = {str(code).upper() for error in errors for code in collect_values(error, "extensions.code")}
    if codes & set(_ACCESS_DENIED_CODES):
        raise AccessDenied(f"GraphQL refused the report: {messages}")
    if "data" not in json.loads(text):
        raise PageNotUnderstood(f"GraphQL refused probe.job.report_request: {messages}")
    raise TryAgain(AppErrorShown(f"GraphQL gave errors instead of the report: {messages}"))


def parse_graphql_errors(text: str) -> list[Any]:
    """The ``errors`` of a GraphQL reply; none where it is no such reply."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    errors = cast("dict[str, Any]", document).get("errors") if isinstance(document, dict) else None
    return cast("list[Any]", errors) if isinstance(errors, list) else []


def _format_graphql_error(error: Any) -> str:
    messages = [value for value in collect_values(error, "message") if isinstance(value, str)]
    return replace_surrogates(messages[0]) if messages else format_value(error)


def build_report_answer(job: AgentJob, url: str, body: str | None, earlier: tuple[str, ...]) -> Answer:
    """The answer that a finished job gave: in ``body``, or where the finished state stood when that is ``None``.

    `PageNotUnderstood` where ``probe.job.text`` leads nowhere: the path is ours to fix.
    """
    settings, total_ms = job.settings, (job.elapsed_s if job.duration_s is None else job.duration_s) * 1000
    if body is not None and not settings.text:
        wire = WirePayload(url=replace_surrogates(url), text=body)
    else:
        document = job.last if body is None else parse_json(body)
        job.update_hops(document)
        job.update_steps(document)
        build = read_build_info([job.last, document], {})
        wire = _extract_payload(settings, url, document).model_copy(update={"build": build})
    versions = collect_items(job.last, settings.app_version) if settings.app_version else []
    return Answer(
        visible_text=wire.text,
        earlier=earlier,
        wire=wire,
        graded_channel=Channel.WIRE,
        timings=Timings(total_ms=_compute_duration_ms(job, wire, total_ms)),
        app_path=wire.app_path,
        app_version=format_value(versions[-1]) if versions else None,
        evidence=job.evidence,
    )


def _extract_payload(settings: JobSettings, url: str, document: object) -> WirePayload:
    values = [value for value in collect_values(document, settings.text) if value is not None]
    if not values:
        excerpt = format_value(document)[:200]
        raise PageNotUnderstood(f"probe.job.text = {settings.text!r} leads nowhere in the report {excerpt}")
    rule = WireRule(
        url=".",
        text=settings.text,
        joins=True,
        citations=settings.citations,
        app_path=settings.app_path,
        latency_ms=settings.latency_ms,
    )
    payload = read_reply(rule, replace_surrogates(url), [document]) or WirePayload(
        url=replace_surrogates(url), text=""
    )
    citations = tuple(replace_surrogates(citation) for citation in payload.citations)
    text = "\n\n".join(map(format_value, collect_items(document, settings.text)))
    return payload.model_copy(update={"text": text, "citations": citations})


def _compute_duration_ms(job: AgentJob, wire: WirePayload, total_ms: float) -> float:
    """How long it took. Of a job that was taken up again only the app knows when it was done."""
    return wire.app_latency_ms if job.age_s and wire.app_latency_ms is not None else total_ms
