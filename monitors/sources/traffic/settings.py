"""`[targets.NAME.traffic]` by `kind`: where live traffic is stored, how it is read, and where an item's parts lie.

The defaults read the common formats without any mapping. The settings hold no secret: they name the environment
variable of a token.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from monitors.problems import check_no_password
from monitors.records.targets import HttpUrl
from monitors.request_headers import HeaderTable
from monitors.sources.traffic.names import get_names


def _wrap_text(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Paths = Annotated[tuple[str, ...], BeforeValidator(_wrap_text)]
"""Paths like ``outputs.answer`` or ``messages.-1.created_at``, tried in order; a single one may be a string."""


def _describe_paths(name: str, description: str) -> Any:
    """Return a field with the default paths of ``names.toml``."""
    return Field(default=get_names("fields", name), description=description)


class Fields(BaseModel):
    """`[targets.NAME.traffic.sources.NAME.fields]`: paths to the parts of an item.

    The first path that has a value counts. Keys are compared in lower snake case, and a dotted key is a path.

    Parts of a turn (texts, citations, feedback, …) are read from the turn; those of the last turn may also stand in
    the item.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Paths = _describe_paths(
        "id",
        "the item's own id, which no other has; without one it is made from its time and texts. Ids of "
        "requests, traces and runs may stand on several rows: name one here where it does not",
    )
    conversation_id: Paths = _describe_paths(
        "conversation_id",
        "the id of the item's conversation; if one item holds all turns and has no conversation id, the item's "
        "own id",
    )
    completed_at: Paths = _describe_paths(
        "completed_at",
        "when it was completed: ISO 8601 or RFC 2822 (UTC where no zone is given), the seconds, "
        "milliseconds, microseconds or nanoseconds since 1970, or an object of seconds",
    )
    turns: Paths = _describe_paths(
        "turns",
        "a list of messages that have a role, of question-and-answer pairs, or of lists of two texts, or a "
        "tree of messages; left out in an item, the item itself is the one turn",
    )
    role: Paths = _describe_paths("role", "who wrote a message")
    text: Paths = _describe_paths("text", "what a message says; a list of parts is joined")
    user_text: Paths = _describe_paths(
        "user_text", "what the user wrote, in a turn; a list of texts here and one at reply_text are turns in pairs"
    )
    reply_text: Paths = _describe_paths(
        "reply_text",
        "what came back, in a turn: a text, a message or an object around it; empty, the application gave "
        "no answer",
    )
    issue_title: Paths = _describe_paths(
        "issue_title",
        "the title of an issue that an agent was given: with a report beside it, the item is a finished "
        "job, whose report is rated",
    )
    issue_body: Paths = _describe_paths("issue_body", "the issue's text")
    issue_url: Paths = _describe_paths(
        "issue_url", "the issue's address: one that stands in the suite is graded as its case"
    )
    report: Paths = _describe_paths(
        "report", "the report on the issue: a text, or an object, in a job's item; empty, the job gave none"
    )
    steps: Paths = _describe_paths(
        "steps", "what the agent did, in a job's item: a list of steps, messages, node updates or runs"
    )
    error: Paths = _describe_paths(
        "error", "what went wrong instead of a reply: such a question is unanswered, and no fault of the log"
    )
    citations: Paths = _describe_paths(
        "citations", "what the reply cites: a list gives its items, an empty one none"
    )
    context: Paths = _describe_paths("context", "passages that the application had before it when it replied")
    app_path: Paths = _describe_paths("app_path", "the model or path that replied")
    latency_ms: Paths = _describe_paths("latency_ms", "milliseconds from question to reply")
    latency_s: Paths = _describe_paths(
        "latency_s", "seconds from question to reply, where no milliseconds are given"
    )
    app_version: Paths = _describe_paths("app_version", "the application's version")
    user: Paths = _describe_paths("user", "who the user was; only stored as a pseudonym")
    thumb: Paths = _describe_paths(
        "thumb",
        "what the user pressed below the reply: up or down, true or false, 1, 0 or -1, an emoji; a scale of "
        "stars is not a thumb",
    )
    comment: Paths = _describe_paths("comment", "what the user wrote about the reply")
    is_question: Paths = _describe_paths(
        "is_question",
        (
            "true if the reply is a clarifying question; if the item has no such field, Lookout decides from the "
            "wording"
        ),
    )
    user_roles: Paths = _describe_paths("user_roles", "roles of messages that the user wrote")
    reply_roles: Paths = _describe_paths("reply_roles", "roles of messages that came back")
    context_roles: Paths = _describe_paths(
        "context_roles", "roles of messages that are context of the next reply; others are skipped"
    )


Seconds = Annotated[float, Field(gt=0, le=3600)]
Megabytes = Annotated[float, Field(gt=0, le=1024)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""
Selector = Annotated[str, Field(min_length=1)]

_REMOTE: Final = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _SourceSettings(_StrictModel):
    """The settings of one kind of source."""

    def resolve_paths(self, folder: Path) -> Self:
        """Return the settings with local paths made absolute from ``folder``."""
        del folder
        return self


class FileFormat(StrEnum):
    """The format of a file of conversations."""

    BY_SUFFIX = "by-suffix"
    """.jsonl, .ndjson and .log are JSON lines, .json a document, .csv and .tsv tables; .gz is decompressed."""
    JSONL = "jsonl"
    JSON = "json"
    """A list of items, or an object with one, as chat products export them."""
    CSV = "csv"
    """A table with a header; commas, semicolons, tabs or bars part its columns."""
    PARQUET = "parquet"


class FileTraffic(_SourceSettings):
    """`kind = "file"`: JSON, tables or Parquet, here, on the web, in a bucket or in a Hub repository."""

    kind: Literal["file"]
    at: Annotated[tuple[str, ...], BeforeValidator(_wrap_text), Field(min_length=1)] = Field(
        description="paths (relative to this file), addresses or glob patterns: local, http(s)://, s3://, hf://"
    )
    format: FileFormat = Field(default=FileFormat.BY_SUFFIX, description="by-suffix, jsonl, json, csv or parquet")
    endpoint_url: HttpUrl | None = Field(
        default=None, description="the address of an S3-compatible store, or of a Hub, other than the public one"
    )
    token_env: Name | None = Field(
        default=None,
        description="environment variable with a bearer token for http(s); buckets and the Hub read their own",
    )
    longest_line_mb: Megabytes = Field(default=16.0, description="Lookout reports a longer line and skips it")
    largest_copy_mb: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=4096.0,
        description="Parquet that lies elsewhere, or is packed, is copied to the temporary folder to be read: a "
        "larger file is an error",
    )
    fields: Fields = Field(default=Fields(), description="where in an item its parts lie")

    @field_validator("at")
    @classmethod
    def _refuse_password(cls, places: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_no_password(place) for place in places)

    def resolve_paths(self, folder: Path) -> Self:
        """Return the settings with local paths made absolute from ``folder``."""
        places = tuple(place if _REMOTE.match(place) else str(folder / place) for place in self.at)
        return self.model_copy(update={"at": places})


class TimeFormat(StrEnum):
    """The format of a time in an address."""

    ISO = "iso"
    EPOCH_S = "epoch-s"
    EPOCH_MS = "epoch-ms"


class HttpTraffic(_SourceSettings):
    """`kind = "http"`: an export in pages of JSON, which follow by number, by cursor or by link."""

    kind: Literal["http"]
    url: HttpUrl = Field(description="the address of the first page; its parameters stay")
    token_env: Name | None = Field(default=None, description="environment variable with the bearer token")
    headers: HeaderTable = Field(default={}, description="sent with every request; to the address's own host alone")
    items: Paths = Field(
        default=get_names("inside", "lists"),
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
        default=1_000, description="maximum number of pages; reading stops with an error if more follow"
    )
    page_most_mb: Megabytes = Field(default=64.0, description="the largest page that is taken")
    request_deadline_s: Seconds = Field(default=60.0, description="for one page, from asking to its last byte")
    attempts: Annotated[int, Field(ge=1, le=20)] = Field(default=5, description="tries for each page")
    retry_most_s: Seconds = Field(default=60.0, description="the longest pause before another try")
    fields: Fields = Field(default=Fields(), description="where in an item its parts lie")

    @field_validator("url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return check_no_password(url)


class LangSmithTraffic(_SourceSettings):
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
        default=3_600.0,
        description="runs are found by their start: how long before the window one may have started",
    )
    feedback_keys: tuple[str, ...] = Field(
        default=("user_score", "user_feedback", "thumbs", "thumb"),
        description="keys of feedback that users gave: 1 is up, 0 and less is down",
    )
    page_size: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="runs asked for at once; LangSmith refuses more than 100"
    )
    request_deadline_s: Seconds = Field(default=60.0, description="for one request")
    attempts: Annotated[int, Field(ge=1, le=10)] = Field(default=3, description="tries for each request")
    fields: Fields = Field(default=Fields(), description="where in a run its parts lie")

    @field_validator("api_url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return check_no_password(url)


class PageSelectors(_StrictModel):
    """CSS selectors for a page with past conversations; an omitted one is discovered."""

    link: Selector | None = Field(default=None, description="links to conversations, on the list page")
    next_page: Selector | None = Field(default=None, description="the link to the list's next page")
    message: Selector | None = Field(
        default=None, description="one message, of either side, on a conversation's page"
    )
    user_message: Selector | None = Field(default=None, description="a message of the user")
    reply: Selector | None = Field(default=None, description="a message of the bot")
    text: Selector | None = Field(default=None, description="the text in a message; left out: all of it")
    time: Selector | None = Field(default=None, description="when a message or conversation was, within it")


class PageTraffic(_SourceSettings):
    """`kind = "page"`: a page that lists past conversations, each on a page of its own, read with the browser."""

    kind: Literal["page"]
    url: HttpUrl = Field(description="the page with the list")
    selectors: PageSelectors = Field(default=PageSelectors(), description="selectors where discovery needs help")
    most_pages: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="maximum number of list pages; reading stops with an error if more follow"
    )
    page_deadline_s: Seconds = Field(
        default=30.0, description="from opening a page to its conversations or messages"
    )
    private_network: bool = Field(
        default=False,
        description="the page may be in a private network or on this machine, though neither digits nor its name "
        "say so; other hosts and ports there stay closed",
    )
    fields: Fields = Field(default=Fields(), description="names of roles, where they are unusual")

    @field_validator("url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return check_no_password(url)


TrafficSettings = Annotated[
    FileTraffic | HttpTraffic | LangSmithTraffic | PageTraffic,
    Field(discriminator="kind"),
]
"""`[targets.NAME.traffic]`."""
