"""The hallucination log: what each application held back, what of it nothing supports, and which incident it is."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRefused, PageRequest, Paging
from monitors.records.base import Record
from warehouse.queries.site.hallucinations import LogEntryShown, log_entries_page, log_targets


class HallucinationsData(Record):
    """A page of the log. ``followed`` are the targets whose log the configuration names."""

    entries: tuple[LogEntryShown, ...]
    paging: Paging
    followed: tuple[str, ...]


def hallucinations_page(request: PageRequest) -> Page:
    """All entries, newest first."""
    site, paging = request.site, request.paging()
    target = request.choice("target", "Target", sorted({*site.targets, *log_targets(site.store)}))
    since, until = _time(request, "since", "Since (UTC)"), _time(request, "until", "Before (UTC)")
    rows, total = log_entries_page(site.store, target, since, until, rows=paging.rows, offset=paging.offset)
    data = HallucinationsData(
        entries=tuple(_masked(request, row) for row in rows),
        paging=paging.of(total),
        followed=tuple(name for name in site.targets if site.config.targets[name].hallucination_log is not None),
    )
    return Page("hallucinations.html.j2", "Hallucination log", data)


def _time(request: PageRequest, name: str, label: str) -> datetime | None:
    given = request.text(name, label)
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            f"{name}={given[:80]}: it is a day or a time, as 2026-03-02 or 2026-03-02T08:00",
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _masked(request: PageRequest, row: LogEntryShown) -> LogEntryShown:
    names = ("user_text", "blocked_reply", "reasons", "unsupported_claims", "policy_ids")
    return mask_fields(row, request.mask(row.target), *names)
