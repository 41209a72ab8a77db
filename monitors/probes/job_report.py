"""From an agent's report to an answer."""

from __future__ import annotations

from monitors.errors import PageNotUnderstood
from monitors.json_path import values_at
from monitors.probes.api import parsed
from monitors.probes.driver import Answer
from monitors.probes.inpage import clean
from monitors.probes.job_settings import JobSettings
from monitors.probes.job_watch import Job, as_words
from monitors.probes.wire import WireRule, read_documents
from monitors.records.exchanges import Channel, Timings, WirePayload


def report_in(job: Job, url: str, body: str | None, earlier: tuple[str, ...]) -> Answer:
    """The answer that a finished job gave: in ``body``, or where the finished state stood when that is ``None``.

    `PageNotUnderstood` where ``probe.job.text`` leads nowhere: the path is ours to mend.
    """
    settings, total_ms = job.settings, job.elapsed_s * 1000
    if body is not None and not settings.text:
        wire = WirePayload(url=clean(url), text=body)
    else:
        document = job.last if body is None else parsed(body)
        job.counts(document)
        job.lists(document)
        wire = _payload(settings, url, document)
    versions = values_at(job.last, settings.app_version) if settings.app_version else []
    return Answer(
        visible_text=wire.text,
        earlier=earlier,
        wire=wire,
        graded_channel=Channel.WIRE,
        timings=Timings(total_ms=_spent_ms(job, wire, total_ms)),
        app_path=wire.app_path,
        app_version=as_words(versions[-1]) if versions else None,
        evidence=job.evidence,
    )


def _payload(settings: JobSettings, url: str, document: object) -> WirePayload:
    found = [value for value in values_at(document, settings.text) if value is not None]
    if not found:
        seen = as_words(document)[:200]
        raise PageNotUnderstood(f"probe.job.text = {settings.text!r} leads nowhere in the report {seen}")
    rule = WireRule(
        url=".",
        text=settings.text,
        joins=True,
        citations=settings.citations,
        app_path=settings.app_path,
        latency_ms=settings.latency_ms,
    )
    rest = read_documents(rule, clean(url), [document]) or WirePayload(url=clean(url), text="")
    cleaned = tuple(clean(citation) for citation in rest.citations)
    return rest.model_copy(update={"text": "\n\n".join(map(as_words, found)), "citations": cleaned})


def _spent_ms(job: Job, wire: WirePayload, total_ms: float) -> float:
    """How long it took. Of a job that was taken up again only the app knows when it was done."""
    return wire.app_latency_ms if job.age_s and wire.app_latency_ms is not None else total_ms
