"""Where live traffic is kept and how it is read: `[targets.NAME.traffic]`, told apart by `kind`.

No secret is ever in it: a token comes from the environment variable that it names.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from monitors.records.targets import HttpUrl
from monitors.sources.traffic_fields import Fields, Paths

Seconds = Annotated[float, Field(gt=0, le=3600)]
Megabytes = Annotated[float, Field(gt=0, le=1024)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""
Selector = Annotated[str, Field(min_length=1)]

_USER: Final = re.compile(r"(?<=://)[^/?#\s]+@")
_REMOTE: Final = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def without_password(address: str) -> str:
    """The address; ``ValueError`` where it holds a user or password."""
    if _USER.search(address):
        raise ValueError("an address without user and password: what opens it comes from the environment")
    return address


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileFormat(StrEnum):
    """How conversations are written down in a file."""

    BY_SUFFIX = "by-suffix"
    """.jsonl, .ndjson and .log are JSON lines, .parquet and .pq are Parquet; .gz behind it is unpacked."""
    JSONL = "jsonl"
    PARQUET = "parquet"


def _many(given: object) -> object:
    return (given,) if isinstance(given, str) else given


class FileTraffic(_Closed):
    """`kind = "file"`: JSON lines or Parquet, here, on the web, in a bucket or in a Hub repository."""

    kind: Literal["file"]
    at: Annotated[tuple[str, ...], BeforeValidator(_many), Field(min_length=1)] = Field(
        description="paths (relative to this file), addresses or glob patterns: local, http(s)://, s3://, hf://"
    )
    format: FileFormat = Field(default=FileFormat.BY_SUFFIX, description="by-suffix, jsonl or parquet")
    endpoint_url: HttpUrl | None = Field(
        default=None, description="the address of an S3-compatible store, or of a Hub, other than the public one"
    )
    token_env: Name | None = Field(
        default=None,
        description="environment variable with a bearer token for http(s); buckets and the Hub read their own",
    )
    longest_line_mb: Megabytes = Field(default=16.0, description="a longer line is told and passed over")
    fields: Fields = Field(default=Fields(), description="where in an item its parts lie")

    @field_validator("at")
    @classmethod
    def _holds_no_password(cls, places: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(without_password(place) for place in places)

    def resolved(self, folder: Path) -> Self:
        """The same with local paths made absolute from ``folder``."""
        places = tuple(place if _REMOTE.match(place) else str(folder / place) for place in self.at)
        return self.model_copy(update={"at": places})


class TimeFormat(StrEnum):
    """How a time is written in an address."""

    ISO = "iso"
    EPOCH_S = "epoch-s"
    EPOCH_MS = "epoch-ms"


class HttpTraffic(_Closed):
    """`kind = "http"`: an export in pages of JSON, which follow by number, by cursor or by link."""

    kind: Literal["http"]
    url: HttpUrl = Field(description="the first page; parameters that it has are kept")
    token_env: Name | None = Field(default=None, description="environment variable with the bearer token")
    items: Paths = Field(
        default=("items", "data", "results", "conversations", "records", "runs", "rows", "data.items", ""),
        description="where a page's items lie: the first path that leads to a list; empty: the page itself",
    )
    page_parameter: str | None = Field(
        default=None, min_length=1, description="parameter of the page's number, where pages are numbered"
    )
    first_page: Annotated[int, Field(ge=0)] = Field(default=1, description="the number of the first page")
    size_parameter: str | None = Field(default=None, min_length=1, description="parameter of the page's size")
    size: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=100, description="items on a page, where it is asked"
    )
    next_link: Paths = Field(
        default=(
            "next",
            "next_url",
            "links.next",
            "_links.next.href",
            "paging.next",
            "meta.next",
            "@odata.nextLink",
        ),
        description="where the address of the next page lies; a Link header is read too",
    )
    cursor: Paths = Field(
        default=("next_cursor", "cursor.next", "cursors.next", "meta.next_cursor", "paging.cursors.after",
                 "next_page_token", "nextPageToken", "continuation_token"),
        description="where the next page's cursor lies",
    )  # fmt: skip
    cursor_parameter: str = Field(
        default="cursor", min_length=1, description="parameter that the cursor is sent in"
    )
    since_parameter: str | None = Field(default=None, min_length=1, description="parameter of the earliest time")
    until_parameter: str | None = Field(default=None, min_length=1, description="parameter of the latest time")
    time_format: TimeFormat = Field(default=TimeFormat.ISO, description="iso, epoch-s or epoch-ms")
    most_pages: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1_000, description="pages after which reading stops with an error: more would follow"
    )
    page_most_mb: Megabytes = Field(default=64.0, description="the largest page that is taken")
    request_deadline_s: Seconds = Field(default=60.0, description="for one page, from asking to its last byte")
    attempts: Annotated[int, Field(ge=1, le=20)] = Field(default=5, description="tries for each page")
    retry_most_s: Seconds = Field(default=60.0, description="the longest pause before another try")
    fields: Fields = Field(default=Fields(), description="where in an item its parts lie")

    @field_validator("url")
    @classmethod
    def _holds_no_password(cls, url: str) -> str:
        return without_password(url)


class LangSmithTraffic(_Closed):
    """`kind = "langsmith"`: root runs of a LangSmith project, each a conversation; scores go back as feedback."""

    kind: Literal["langsmith"]
    project: str = Field(min_length=1, description="the tracing project's name")
    api_url: HttpUrl = Field(default="https://api.smith.langchain.com", description="LangSmith's address")
    key_env: Name = Field(default="LANGSMITH_API_KEY", description="environment variable with the API key")
    workspace_id: str | None = Field(
        default=None, min_length=1, description="the workspace, for a key of a whole organisation"
    )
    filter: str | None = Field(
        default=None, min_length=1, description='LangSmith filter expression, such as has(tags, "production")'
    )
    longest_run_s: Annotated[float, Field(ge=0, le=604_800)] = Field(
        default=3_600.0, description="runs are found by their start: how long before the window one may have begun"
    )
    feedback_keys: tuple[str, ...] = Field(
        default=("user_score", "user_feedback", "thumbs", "thumb"),
        description="keys of feedback that users gave: 1 is up, 0 and less is down",
    )
    page_size: Annotated[int, Field(ge=1, le=1000)] = Field(default=100, description="runs asked for at once")
    request_deadline_s: Seconds = Field(default=60.0, description="for one request")
    attempts: Annotated[int, Field(ge=1, le=10)] = Field(default=3, description="tries for each request")
    fields: Fields = Field(default=Fields(), description="where in a run its parts lie")

    @field_validator("api_url")
    @classmethod
    def _holds_no_password(cls, url: str) -> str:
        return without_password(url)


class PageSelectors(_Closed):
    """CSS selectors for a page with past conversations; what is left out is found."""

    link: Selector | None = Field(default=None, description="links to conversations, on the list page")
    next_page: Selector | None = Field(default=None, description="the link to the list's next page")
    message: Selector | None = Field(
        default=None, description="one message, of either side, on a conversation's page"
    )
    user_message: Selector | None = Field(default=None, description="a message of the user")
    reply: Selector | None = Field(default=None, description="a message of the bot")
    text: Selector | None = Field(default=None, description="the text in a message; left out: all of it")
    time: Selector | None = Field(default=None, description="when a message or conversation was, within it")


class PageTraffic(_Closed):
    """`kind = "page"`: a page that lists past conversations, each on a page of its own, read with the browser."""

    kind: Literal["page"]
    url: HttpUrl = Field(description="the page with the list")
    selectors: PageSelectors = Field(default=PageSelectors(), description="selectors where discovery needs help")
    most_pages: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="list pages after which reading stops with an error: more would follow"
    )
    page_deadline_s: Seconds = Field(
        default=30.0, description="from opening a page to its conversations or messages"
    )
    fields: Fields = Field(default=Fields(), description="names of roles, where they are unusual")

    @field_validator("url")
    @classmethod
    def _holds_no_password(cls, url: str) -> str:
        return without_password(url)


TrafficSettings = Annotated[FileTraffic | HttpTraffic | LangSmithTraffic | PageTraffic, Field(discriminator="kind")]
"""`[targets.NAME.traffic]`."""
