"""The types of pages: the request with its filters, the page with its record and template."""

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
from deployments.site.health import HealthWatch
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
"""Default rows of a table per page; the parameter ``rows`` overrides it."""
MAX_ROWS: Final = 200
MAX_PAGES: Final = 1_000_000
MAX_FILTER_CHARACTERS: Final = 200


class PageRefused(Exception):
    """A page that is not shown: ``status`` and ``text`` say why, and what to do."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def build_not_found_error(text: str) -> PageRefused:
    """Build a 404 error."""
    return PageRefused(HTTPStatus.NOT_FOUND, text)


@dataclass(frozen=True)
class Site:
    """The context of all pages: the configuration, the copy that they read, and the services for decisions.

    ``store`` reads the copy and is never written. ``watch`` has the runs without a report, ``health`` the state of
    the monitor itself. ``figures`` and ``reviews`` are caches. ``actions`` applies decisions in the warehouse, and
    ``bot`` edits the Slack messages about them.
    """

    config: Config
    store: Store
    snapshot: Snapshot
    watch: RunWatch
    health: HealthWatch
    figures: CopyMemory
    reviews: ReviewMemory
    actions: OperatorActions
    bot: AlertSender | None
    now: Callable[[], datetime]
    prefix: str
    needs_login: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the configured targets."""
        return tuple(sorted(self.config.targets))


class StaticAddress(NamedTuple):
    """A page of a static export: its address and its filters, as names and values."""

    address: str
    parts: tuple[tuple[str, str], ...] = ()


class StaticLinks(Protocol):
    """Links between the pages of a static export."""

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """Return the relative link from one page to another."""
        ...


class FilterField(Record):
    """A filter of a form: ``options`` are its accepted values, empty for free text."""

    name: str
    label: str
    value: str
    options: tuple[str, ...] = ()

    def select(self, value: str | None) -> Self:
        """Return the field with a value that the page has chosen, such as the newest run; ``None`` is empty."""
        return self.model_copy(update={"value": value or ""})


class Paging(Record):
    """The shown page of a table. ``number`` counts from 1; ``total`` is set by `with_total`."""

    number: int = 1
    rows: int = DEFAULT_ROWS
    total: int = 0

    @property
    def offset(self) -> int:
        """The number of rows before this page, for SQL's ``offset``."""
        return (self.number - 1) * self.rows

    @property
    def page_count(self) -> int:
        """The number of pages, at least 1."""
        return max(1, math.ceil(self.total / self.rows))

    @property
    def first(self) -> int:
        """The number of the first row shown, from 1; 0 if there is none."""
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        """The number of the last row shown."""
        return min(self.offset + self.rows, self.total)

    def with_total(self, total: int) -> Paging:
        """Return this page with the total number of rows."""
        return Paging(number=self.number, rows=self.rows, total=total)

    def with_one_row(self, total: int) -> Paging:
        """Return a page of one row, such as the next draft, out of ``total``: the last one beyond the end."""
        return Paging(number=min(self.number, max(1, total)), rows=1, total=total)


@dataclass
class PageRequest:
    """A request for a page. Filters are recorded when read, so that the page can show their form.

    ``static`` is set for a static export, where links are relative and there are no filters and decisions.
    """

    site: Site
    visitor: Visitor
    address: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    fields: list[FilterField] = field(default_factory=list[FilterField])
    static: StaticLinks | None = None

    def read_choice(self, name: str, label: str, options: Sequence[str]) -> str | None:
        """Return a filter, one of ``options``; ``None`` if it is not set. Raises `PageRefused` for other values."""
        value = self.query.get(name, "")
        self.fields.append(FilterField(name=name, label=label, value=value, options=tuple(options)))
        if value and value not in options:
            raise PageRefused(
                HTTPStatus.BAD_REQUEST,
                (f"{name}={value[:80]} is not valid; accepted: {', '.join(options) or 'nothing yet'}"),
            )
        return value or None

    def read_text(self, name: str, label: str) -> str | None:
        """Return a free-text filter; ``None`` if it is not set."""
        value = self.query.get(name, "").strip()
        if len(value) > MAX_FILTER_CHARACTERS:
            raise PageRefused(
                HTTPStatus.BAD_REQUEST, (f"{name} is too long; the maximum is {MAX_FILTER_CHARACTERS} characters")
            )
        self.fields.append(FilterField(name=name, label=label, value=value))
        return value or None

    def read_paging(self) -> Paging:
        """Return the requested page of the table (``page``, from 1, and ``rows``)."""
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
    def is_personal_data_shown(self) -> bool:
        """Whether texts are shown unmasked. Raises `PageRefused` for a visitor who may not see them."""
        if self.query.get("personal") != "shown":
            return False
        if not self.visitor.sees_personal_data:
            raise PageRefused(
                HTTPStatus.FORBIDDEN,
                "Your token may not show personal data. The operator of the site can create one that may: "
                "`lookout site token add NAME --personal-data`.",
            )
        return True

    def redact_text(self, text: str, target: str | None = None) -> str:
        """Mask a text of a user or the application for this visitor; every such text goes through here."""
        if self.is_personal_data_shown:
            return text
        target_config = self.site.config.targets.get(target or "")
        return redact(text, account_patterns=target_config.graders.account_patterns if target_config else ())

    def build_redactor(self, target: str | None) -> MaskText:
        """Return a function that masks texts of one target as `redact_text`; see `deployments.site.masking`."""
        return partial(self.redact_text, target=target)

    def link(self, address: str, **filters: object) -> str:
        """Return an address of the site, with its prefix and with filters."""
        if self.static is not None:
            return self.static.link(StaticAddress(self.address, tuple(self.query.items())), address, filters)
        query = urlencode({name: str(value) for name, value in filters.items() if value not in (None, "")})
        return f"{self.site.prefix}{address}" + (f"?{query}" if query else "")

    @property
    def json_address(self) -> str:
        """The address of this page's JSON, with its filters."""
        return self.link(f"{'/now' if self.address == '/' else self.address}.json", **self.query)

    def here(self, **changes: object) -> str:
        """Return this page's address with changed filters; ``None`` removes one."""
        return self.link(self.address, **{**self.query, **changes})


@dataclass(frozen=True, slots=True)
class Page:
    """The result of a page function. ``data`` is all that the template shows, and the page's JSON.

    ``view`` is the same data as the report's view, if there is one. With ``live_s`` an open page renews itself at
    this interval.
    """

    template: str
    title: str
    data: Record
    view: object = None
    live_s: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action: the next address, and a sentence that says what was done."""

    next_url: str
    text: str


PageMaker = Callable[[PageRequest], Page]
ActionMaker = Callable[[PageRequest, Mapping[str, str]], Done]
