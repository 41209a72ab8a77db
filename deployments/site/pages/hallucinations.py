"""The page of the hallucination log: the replies that each application blocked, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRefused, PageRequest, Paging
from monitors.records.base import Record
from warehouse.queries.site.hallucinations import LogEntryShown, list_log_targets, load_log_entries_page


class HallucinationsData(Record):
    """One page of log entries. ``followed`` contains the targets with a configured log."""

    entries: tuple[LogEntryShown, ...]
    paging: Paging
    followed: tuple[str, ...]


def build_hallucinations_page(request: PageRequest) -> Page:
    """Build the page of all log entries, newest first."""
    site, paging = request.site, request.read_paging()
    target = request.read_and_show_choice_filter(
        "target", "Target", sorted({*site.targets, *list_log_targets(site.store)})
    )
    since, until = (
        _read_time_filter(request, "since", "Since (UTC)"),
        _read_time_filter(request, "until", "Before (UTC)"),
    )
    rows, total = load_log_entries_page(site.store, target, since, until, rows=paging.rows, offset=paging.offset)
    data = HallucinationsData(
        entries=tuple(_mask_entry(request, row) for row in rows),
        paging=paging.with_total(total),
        followed=tuple(name for name in site.targets if site.config.targets[name].hallucination_log is not None),
    )
    return Page("hallucinations.html.j2", "Hallucination log", data)


def _read_time_filter(request: PageRequest, name: str, label: str) -> datetime | None:
    text = request.read_and_show_text_filter(name, label)
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            f"{name}={text[:80]} is not valid; accepted: a day or a time, such as 2026-03-02 or 2026-03-02T08:00",
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _mask_entry(request: PageRequest, row: LogEntryShown) -> LogEntryShown:
    names = ("user_text", "blocked_reply", "reasons", "unsupported_claims", "policy_ids")
    return mask_fields(row, request.build_redactor(row.target), *names)
