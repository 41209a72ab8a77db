"""The types that pages are built of: the request with its filters, the page with its record and template."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
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
"""Rows of a table on one page, unless the address says ``rows``."""
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
    """There is no such thing: 404."""
    return PageRefused(HTTPStatus.NOT_FOUND, text)


@dataclass(frozen=True)
class Site:
    """What every page has: the configuration, the copy that it reads, and the way that decisions take.

    ``store`` answers from the copy and is never written; ``watch`` knows runs that have no report yet, ``health``
    how the monitor itself is; ``figures`` and ``reviews`` remember for speed. ``people`` carries out decisions in
    the warehouse itself, and ``bot`` edits the messages about them.
    """

    config: Config
    store: Store
    snapshot: Snapshot
    watch: RunWatch
    health: HealthWatch
    figures: CopyMemory
    reviews: ReviewMemory
    people: OperatorActions
    bot: AlertSender | None
    now: Callable[[], datetime]
    prefix: str
    needs_login: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """The watched applications of the configuration, by name."""
        return tuple(sorted(self.config.targets))


class StaticAddress(NamedTuple):
    """A page of a copy in files: its address, and the filters that it was made with, name and value."""

    address: str
    parts: tuple[tuple[str, str], ...] = ()


class StaticLinks(Protocol):
    """How pages of a copy in files lead to each other."""

    def link(self, here: StaticAddress, address: str, filters: Mapping[str, object]) -> str:
        """The way from one page to another, relative."""
        ...


class FilterField(Record):
    """A filter as its form shows it: ``options`` are what it may be, none for free text."""

    name: str
    label: str
    value: str
    options: tuple[str, ...] = ()


class Paging(Record):
    """Which rows of a table are shown. ``number`` counts from 1; ``total`` is set by `with_total`."""

    number: int = 1
    rows: int = DEFAULT_ROWS
    total: int = 0

    @property
    def offset(self) -> int:
        """Rows before this page: for ``offset``."""
        return (self.number - 1) * self.rows

    @property
    def pages(self) -> int:
        """How many pages there are, at least 1."""
        return max(1, math.ceil(self.total / self.rows))

    @property
    def first(self) -> int:
        """The number of the first row shown, from 1; 0 where there is none."""
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        """The number of the last row shown."""
        return min(self.offset + self.rows, self.total)

    def with_total(self, total: int) -> Paging:
        """This page of a table of so many rows."""
        return self.model_copy(update={"total": total})


@dataclass
class PageRequest:
    """One look at a page. Filters that are read are remembered, so that the page can show their form.

    ``static`` is set for a copy in files, where addresses are relative and nothing can be filtered or decided.
    """

    site: Site
    visitor: Visitor
    address: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    fields: list[FilterField] = field(default_factory=list[FilterField])
    static: StaticLinks | None = None

    def read_choice(self, name: str, label: str, options: Sequence[str]) -> str | None:
        """A filter that is one of ``options``; ``None`` where it is not set. Raises `PageRefused` for another."""
        value = self.query.get(name, "")
        self.fields.append(FilterField(name=name, label=label, value=value, options=tuple(options)))
        if value and value not in options:
            raise PageRefused(
                HTTPStatus.BAD_REQUEST, f"{name}={value[:80]}: it is one of {', '.join(options) or 'nothing yet'}"
            )
        return value or None

    def read_text(self, name: str, label: str) -> str | None:
        """A filter of free text; ``None`` where it is not set."""
        value = self.query.get(name, "").strip()
        if len(value) > MAX_FILTER_CHARACTERS:
            raise PageRefused(HTTPStatus.BAD_REQUEST, f"{name}: at most {MAX_FILTER_CHARACTERS} characters")
        self.fields.append(FilterField(name=name, label=label, value=value))
        return value or None

    def read_paging(self) -> Paging:
        """Which page of its table is asked for (``page``, from 1, and ``rows``)."""
        return Paging(
            number=self._read_number("page", 1, MAX_PAGES), rows=self._read_number("rows", DEFAULT_ROWS, MAX_ROWS)
        )

    def _read_number(self, name: str, default: int, maximum: int) -> int:
        value = self.query.get(name) or str(default)
        if not (value.isascii() and value.isdecimal() and 1 <= int(value[:12]) <= maximum):
            raise PageRefused(HTTPStatus.BAD_REQUEST, f"{name}={value[:80]}: it is a number from 1 to {maximum:,}")
        return int(value)

    @property
    def is_personal_data_shown(self) -> bool:
        """Whether texts are shown as they are. Raises `PageRefused` for somebody who may not see them so."""
        if self.query.get("personal") != "shown":
            return False
        if not self.visitor.sees_personal_data:
            raise PageRefused(
                HTTPStatus.FORBIDDEN,
                "Your token may not see personal data. Whoever runs this site can give you one that may: "
                "`lookout site token add NAME --personal-data`.",
            )
        return True

    def redact_text(self, text: str, target: str | None = None) -> str:
        """A text of a user or of the application as this visitor may see it: every such text goes through here."""
        if self.is_personal_data_shown:
            return text
        target_config = self.site.config.targets.get(target or "")
        return redact(text, account_patterns=target_config.graders.account_patterns if target_config else ())

    def build_redactor(self, target: str | None) -> MaskText:
        """The same, for the texts of one target: for records, see `deployments.site.masking`."""
        return partial(self.redact_text, target=target)

    def link(self, address: str, **filters: object) -> str:
        """An address of the site, with the prefix that it is served under, and filters."""
        if self.static is not None:
            return self.static.link(StaticAddress(self.address, tuple(self.query.items())), address, filters)
        query = urlencode({name: str(value) for name, value in filters.items() if value not in (None, "")})
        return f"{self.site.prefix}{address}" + (f"?{query}" if query else "")

    @property
    def json_address(self) -> str:
        """Where this page is JSON, with its filters."""
        return self.link(f"{'/now' if self.address == '/' else self.address}.json", **self.query)

    def here(self, **changes: object) -> str:
        """This page's address with other filters; ``None`` takes one away."""
        return self.link(self.address, **{**self.query, **changes})


@dataclass(frozen=True, slots=True)
class Page:
    """What a page function gives. ``data`` is all that the template shows, and the whole of the page's JSON.

    ``view`` is the same in other words, where the report has them. With ``live_s`` the page renews itself so often
    while somebody looks.
    """

    template: str
    title: str
    data: Record
    view: object = None
    live_s: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """What an action gives: where to go on, and what was done, in a sentence."""

    go_on: str
    text: str


PageMaker = Callable[[PageRequest], Page]
ActionMaker = Callable[[PageRequest, Mapping[str, str]], Done]
