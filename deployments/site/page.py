"""The types that all pages use: the request with its filters, and the page with its data and template."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, Self
from urllib.parse import urlencode

from deployments.site.access import Visitor
from deployments.site.health import HealthChecker
from deployments.site.masking import MaskText
from deployments.site.memory import CopyMemory, ReviewMemory
from flows.alerting.notifier import OperatorActions
from flows.verify.run_watch import RunWatch
from monitors.alerts.redact import redact
from monitors.alerts.sender import AlertSender
from monitors.config.file import Config
from monitors.records.base import Record
from warehouse.database.snapshot import Snapshot
from warehouse.database.store import Store

DEFAULT_ROWS: Final = 50
"""Default number of rows in a table. The parameter ``rows`` changes it."""
MAX_ROWS: Final = 200
MAX_PAGES: Final = 1_000_000
MAX_FILTER_CHARACTERS: Final = 200


class PageRefused(Exception):
    """Raised if a page is not shown. ``text`` states the reason and what to do. ``status`` is the HTTP status."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def build_not_found_error(text: str) -> PageRefused:
    """Build the error for a page that does not exist (404)."""
    return PageRefused(HTTPStatus.NOT_FOUND, text)


@dataclass(frozen=True)
class Site:
    """The resources of all pages: the configuration, a copy of the warehouse, and the services for decisions.

    ``store`` reads only the copy. ``watch`` contains the runs without a report. ``health`` contains the state of
    the monitor itself. ``figures`` and ``reviews`` are caches. ``actions`` applies decisions in the warehouse, and
    ``bot`` edits the Slack messages about them.
    """

    config: Config
    store: Store
    snapshot: Snapshot
    watch: RunWatch
    health: HealthChecker
    figures: CopyMemory
    reviews: ReviewMemory
    actions: OperatorActions
    bot: AlertSender | None
    now: Callable[[], datetime]
    prefix: str
    needs_login: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the names of the configured targets."""
        return tuple(sorted(self.config.targets))


class StaticAddress(NamedTuple):
    """A page of a static export: its address, and the names and values of its filters."""

    address: str
    parts: tuple[tuple[str, str], ...] = ()


class StaticLinks(Protocol):
    """Builds links between the pages of a static export."""

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """Return the relative link from one page to another."""
        ...


class FilterField(Record):
    """A filter of a page. ``options`` contains the accepted values, and is empty for free text."""

    name: str
    label: str
    value: str
    options: tuple[str, ...] = ()

    def with_value(self, value: str | None) -> Self:
        """Return the field with a value that the page itself chose, such as the newest run."""
        return self.model_copy(update={"value": value or ""})


class Paging(Record):
    """One page of a long table.

    ``number`` is the page number, from 1. ``rows`` is the number of rows on each page. ``total`` is the number of
    rows in the table.
    """

    number: int = 1
    rows: int = DEFAULT_ROWS
    total: int = 0

    @property
    def offset(self) -> int:
        """Return how many rows of the table come before this page."""
        return (self.number - 1) * self.rows

    @property
    def page_count(self) -> int:
        """Return the number of pages of the table. The number is at least 1."""
        return max(1, math.ceil(self.total / self.rows))

    @property
    def first_row(self) -> int:
        """Return the position of this page's first row in the table, from 1. Return 0 if the table is empty."""
        return min(self.offset + 1, self.total)

    @property
    def last_row(self) -> int:
        """Return the position of this page's last row in the table, from 1."""
        return min(self.offset + self.rows, self.total)

    def with_total(self, total: int) -> Paging:
        """Return this page with ``total`` as the number of rows of the table."""
        return Paging(number=self.number, rows=self.rows, total=total)

    def with_one_row_per_page(self, total: int) -> Paging:
        """Return a page with a single row, such as the next draft, from a table with ``total`` rows.

        If the requested page number exceeds ``total``, return the last page.
        """
        return Paging(number=min(self.number, max(1, total)), rows=1, total=total)


@dataclass
class PageRequest:
    """A request for a page.

    It records each filter that the page reads, so that the page can show the filter's form.

    ``static`` is set for a static export, which has relative links, no filter forms and no decisions.
    """

    site: Site
    visitor: Visitor
    address: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    fields: list[FilterField] = field(default_factory=list[FilterField])
    static: StaticLinks | None = None

    def read_and_show_choice_filter(self, name: str, label: str, options: Sequence[str]) -> str | None:
        """Return the value of a filter, or ``None`` if it is not set. Also add the filter to the page's form.

        Raises `PageRefused` for a value that is not in ``options``.
        """
        value = self.query.get(name, "")
        self.fields.append(FilterField(name=name, label=label, value=value, options=tuple(options)))
        if value and value not in options:
            raise PageRefused(
                HTTPStatus.BAD_REQUEST,
                (f"{name}={value[:80]} is not valid; accepted: {', '.join(options) or 'nothing yet'}"),
            )
        return value or None

    def read_and_show_text_filter(self, name: str, label: str) -> str | None:
        """Return the value of a free-text filter, or ``None`` if it is not set.

        Also add the filter to the page's form. Raises `PageRefused` if the value is too long.
        """
        value = self.query.get(name, "").strip()
        if len(value) > MAX_FILTER_CHARACTERS:
            raise PageRefused(
                HTTPStatus.BAD_REQUEST, (f"{name} is too long; the maximum is {MAX_FILTER_CHARACTERS} characters")
            )
        self.fields.append(FilterField(name=name, label=label, value=value))
        return value or None

    def read_paging(self) -> Paging:
        """Return the page of a table that the parameters ``page`` and ``rows`` request."""
        return Paging(
            number=self._read_number("page", 1, MAX_PAGES), rows=self._read_number("rows", DEFAULT_ROWS, MAX_ROWS)
        )

    def _read_number(self, name: str, default: int, maximum: int) -> int:
        value = self.query.get(name) or str(default)
        if not (value.isascii() and value.isdecimal() and 1 <= int(value[:12]) <= maximum):
            raise PageRefused(
                HTTPStatus.BAD_REQUEST,
                (f"{name}={value[:80]} is not valid; accepted: a number from 1 to {maximum:,}"),
            )
        return int(value)

    @property
    def is_personal_data_requested(self) -> bool:
        """Return whether the address requests personal data, with ``personal=shown``."""
        return self.query.get("personal") == "shown"

    def require_personal_data_permission(self) -> None:
        """Raise `PageRefused` (403) for a visitor who may not see personal data."""
        if not self.visitor.sees_personal_data:
            raise PageRefused(
                HTTPStatus.FORBIDDEN,
                "Your token does not allow you to see personal data. Ask the operator of the site for a new token: "
                "`lookout site token add NAME --personal-data`.",
            )

    def redact_text(self, text: str, target: str | None = None) -> str:
        """Mask personal data in a text from a user or from the application.

        If the address requests personal data, the text is returned unchanged.

        Raises `PageRefused` if the address requests personal data, but the visitor may not see it.
        """
        if self.is_personal_data_requested:
            self.require_personal_data_permission()
            return text
        target_config = self.site.config.targets.get(target or "")
        return redact(text, account_patterns=target_config.graders.account_patterns if target_config else ())

    def build_redactor(self, target: str | None) -> MaskText:
        """Return a function that masks personal data in texts of one target."""
        return partial(self.redact_text, target=target)

    def link(self, address: str, **filters: object) -> str:
        """Return the link to an address of the site, with filters."""
        if self.static is not None:
            return self.static.link(StaticAddress(self.address, tuple(self.query.items())), address, filters)
        query = urlencode({name: str(value) for name, value in filters.items() if value not in (None, "")})
        return f"{self.site.prefix}{address}" + (f"?{query}" if query else "")

    @property
    def json_address(self) -> str:
        """Return the address of this page's JSON, with the page's filters."""
        return self.link(f"{'/now' if self.address == '/' else self.address}.json", **self.query)

    def link_to_this_page(self, **changes: object) -> str:
        """Return the link to this page with changed filters. A filter with the value ``None`` is removed."""
        return self.link(self.address, **{**self.query, **changes})


@dataclass(frozen=True, slots=True)
class Page:
    """A page to show. ``data`` contains everything that the template shows, and is also the JSON of the page.

    ``view`` contains helpers for the template. If ``live_s`` is set, an open page reloads itself after this many
    seconds.
    """

    template: str
    title: str
    data: Record
    view: object = None
    live_s: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a submitted form: the address to show next, and a sentence about what was done."""

    next_url: str
    text: str


PageMaker = Callable[[PageRequest], Page]
ActionMaker = Callable[[PageRequest, Mapping[str, str]], Done]
