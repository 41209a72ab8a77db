"""The report of a finished job: asked for by GET, or by a POST such as a GraphQL query, and read as an answer."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from monitors.errors import AccessDenied, AppErrorShown, PageNotUnderstood
from monitors.json_path import items_at, values_at
from monitors.probes.api.driver import parsed
from monitors.probes.browser.inpage import clean
from monitors.probes.build_info import build_info
from monitors.probes.driver import Answer
from monitors.probes.job.watch import AgentJob, as_text
from monitors.probes.settings import JobSettings
from monitors.probes.wire import WireRule, read_whole
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.retry import TryAgain

_DENIED: Final = ("UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED")
"""What GraphQL servers commonly write in an error's ``extensions.code`` where a key is missing or not enough."""


def request_for(template: str, job: AgentJob) -> Any:
    """The JSON to post for a job's report.

    `PageNotUnderstood` where it wants an id that the app has not given.
    """
    if "{job}" in template and not job.job:
        raise PageNotUnderstood(f"probe.job.id = {job.settings.id!r} leads nowhere in the reply to the start")
    return _filled(json.loads(template), job)


def _filled(template: Any, job: AgentJob) -> Any:
    """The id in its place. Inside a longer text, as in a GraphQL query, it cannot end the string it stands in."""
    match template:
        case "{job}":
            return job.job
        case str():
            return template.replace("{job}", json.dumps(job.job)[1:-1]).replace("{location}", job.location)
        case list():
            return [_filled(item, job) for item in cast("list[Any]", template)]
        case dict():
            return {key: _filled(value, job) for key, value in cast("dict[str, Any]", template).items()}
        case _:
            return template


def without_graphql_errors(text: str) -> str:
    """A reply's text. Where GraphQL's ``errors`` stand in it, with whatever HTTP status, it is an error.

    `PageNotUnderstood` where the query was refused, which is ours to mend: the reply has no ``data`` then.
    `AccessDenied` where a key is missing. Else the application failed at it, and may not the next time: `TryAgain`.
    """
    errors = graphql_errors(text)
    if not errors:
        return text
    said = "; ".join(dict.fromkeys(_message(one) for one in errors))[:300]
    codes = {str(code).upper() for one in errors for code in values_at(one, "extensions.code")}
    if codes & set(_DENIED):
        raise AccessDenied(f"GraphQL refused the report: {said}")
    if "data" not in json.loads(text):
        raise PageNotUnderstood(f"GraphQL refused probe.job.report_request: {said}")
    raise TryAgain(AppErrorShown(f"GraphQL gave errors instead of the report: {said}"))


def graphql_errors(text: str) -> list[Any]:
    """The ``errors`` of a GraphQL reply; none where it is no such reply."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = cast("dict[str, Any]", document).get("errors") if isinstance(document, dict) else None
    return cast("list[Any]", found) if isinstance(found, list) else []


def _message(error: Any) -> str:
    said = [value for value in values_at(error, "message") if isinstance(value, str)]
    return clean(said[0]) if said else as_text(error)


def report_in(job: AgentJob, url: str, body: str | None, earlier: tuple[str, ...]) -> Answer:
    """The answer that a finished job gave: in ``body``, or where the finished state stood when that is ``None``.

    `PageNotUnderstood` where ``probe.job.text`` leads nowhere: the path is ours to fix.
    """
    settings, total_ms = job.settings, (job.elapsed_s if job.took_s is None else job.took_s) * 1000
    if body is not None and not settings.text:
        wire = WirePayload(url=clean(url), text=body)
    else:
        document = job.last if body is None else parsed(body)
        job.counts(document)
        job.lists(document)
        build = build_info([job.last, document], {})
        wire = _payload(settings, url, document).model_copy(update={"build": build})
    versions = items_at(job.last, settings.app_version) if settings.app_version else []
    return Answer(
        visible_text=wire.text,
        earlier=earlier,
        wire=wire,
        graded_channel=Channel.WIRE,
        timings=Timings(total_ms=_spent_ms(job, wire, total_ms)),
        app_path=wire.app_path,
        app_version=as_text(versions[-1]) if versions else None,
        evidence=job.evidence,
    )


def _payload(settings: JobSettings, url: str, document: object) -> WirePayload:
    found = [value for value in values_at(document, settings.text) if value is not None]
    if not found:
        seen = as_text(document)[:200]
        raise PageNotUnderstood(f"probe.job.text = {settings.text!r} leads nowhere in the report {seen}")
    rule = WireRule(
        url=".",
        text=settings.text,
        joins=True,
        citations=settings.citations,
        app_path=settings.app_path,
        latency_ms=settings.latency_ms,
    )
    rest = read_whole(rule, clean(url), [document]) or WirePayload(url=clean(url), text="")
    cleaned = tuple(clean(citation) for citation in rest.citations)
    text = "\n\n".join(map(as_text, items_at(document, settings.text)))
    return rest.model_copy(update={"text": text, "citations": cleaned})


def _spent_ms(job: AgentJob, wire: WirePayload, total_ms: float) -> float:
    """How long it took. Of a job that was taken up again only the app knows when it was done."""
    return wire.app_latency_ms if job.age_s and wire.app_latency_ms is not None else total_ms
