"""Settings of a conversation source: its location, how it is read, and which fields an item has.

The default fields match the common formats. Secrets are in environment variables, and the settings contain only
the names of these variables.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from monitors.problems import refuse_password
from monitors.records.targets import HttpUrl
from monitors.request_headers import HeaderTable
from monitors.sources.traffic.names import get_names


def _wrap_text_in_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Paths = Annotated[tuple[str, ...], BeforeValidator(_wrap_text_in_tuple)]
"""Paths such as ``outputs.answer`` or ``messages.-1.created_at``. The first path with a value is used."""


def _build_traffic_paths_field(name: str, description: str) -> Any:
    """Return a field whose default paths come from ``names.toml``."""
    return Field(default=get_names("fields", name), description=description)


# Shares its fields with Turn because it has the paths to a turn's fields, and to those of its conversation.
class Fields(BaseModel):
    """Settings in `[targets.NAME.traffic.sources.NAME.fields]`: the paths to the parts of an item.

    The first path that has a value is used. Keys are compared in lower snake case. Texts, citations and feedback
    are read from the object of a turn. For the last turn, they may also be in the item itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Paths = _build_traffic_paths_field(
        "id",
        "the item's unique id. Without this field, Lookout computes an id from time and texts. Use the id of a "
        "request, a trace or a run only if it is unique, because several rows may share it",
    )
    conversation_id: Paths = _build_traffic_paths_field(
        "conversation_id",
        "the id of the item's conversation. If one item contains all turns and no conversation id, Lookout uses "
        "the item's own id",
    )
    completed_at: Paths = _build_traffic_paths_field(
        "completed_at",
        "the time at which the item was completed: an ISO 8601 or RFC 2822 time (UTC if it has no zone), a number "
        "of seconds, milliseconds, microseconds or nanoseconds since 1970, or an object with seconds",
    )
    turns: Paths = _build_traffic_paths_field(
        "turns",
        "the turns of the conversation: a list of messages with roles, of question-and-answer pairs, or of lists "
        "of two strings, or a tree of messages. If an item has no such list, the item itself is one turn",
    )
    role: Paths = _build_traffic_paths_field("role", "the author of a message")
    text: Paths = _build_traffic_paths_field(
        "text", "the text of a message. If the text is a list of parts, the parts are joined"
    )
    user_text: Paths = _build_traffic_paths_field(
        "user_text",
        (
            "the user's text in a turn. If this field and reply_text are both lists of strings, their entries "
            "form pairs"
        ),
    )
    reply_text: Paths = _build_traffic_paths_field(
        "reply_text",
        (
            "the reply in a turn: a string, a message, or an object that contains the reply. An empty reply means "
            "that the application gave no answer"
        ),
    )
    issue_title: Paths = _build_traffic_paths_field(
        "issue_title",
        "the title of the issue that an agent worked on. An item with a title and a report is a finished job, and "
        "Lookout rates its report",
    )
    issue_body: Paths = _build_traffic_paths_field("issue_body", "the text of this issue")
    issue_url: Paths = _build_traffic_paths_field(
        "issue_url",
        "the address of this issue. If the suite has a case for this issue, Lookout grades the report by that case",
    )
    report: Paths = _build_traffic_paths_field(
        "report",
        "the report on the issue in the item of a job: a string or an object. An empty report means that there is "
        "no report",
    )
    steps: Paths = _build_traffic_paths_field(
        "steps", "the agent's steps in the item of a job: a list of steps, messages, node updates or runs"
    )
    error: Paths = _build_traffic_paths_field(
        "error",
        (
            "the error that occurred instead of a reply. The question then counts as unanswered. This is not a "
            "fault of the log"
        ),
    )
    citations: Paths = _build_traffic_paths_field(
        "citations",
        "the sources of the reply. Each element of a list is a source. An empty list means that there is no source",
    )
    context: Paths = _build_traffic_paths_field("context", "the passages that the application used for the reply")
    app_path: Paths = _build_traffic_paths_field("app_path", "the model or path of the application that replied")
    latency_ms: Paths = _build_traffic_paths_field(
        "latency_ms", "time from the question to the reply, in milliseconds"
    )
    latency_s: Paths = _build_traffic_paths_field(
        "latency_s", "time from the question to the reply, in seconds. It is used if there is no latency_ms"
    )
    app_version: Paths = _build_traffic_paths_field("app_version", "the application's version")
    user: Paths = _build_traffic_paths_field("user", "the user. Lookout stores the user only as a pseudonym")
    thumb: Paths = _build_traffic_paths_field(
        "thumb",
        "the user's thumbs up or down on the reply: up or down, true or false, 1, 0 or -1, or an emoji. Star "
        "ratings are not accepted",
    )
    comment: Paths = _build_traffic_paths_field("comment", "the user's comment on the reply")
    is_question: Paths = _build_traffic_paths_field(
        "is_question",
        (
            "true if the reply is a clarifying question. If the item has no such field, Lookout decides from the "
            "wording of the reply"
        ),
    )
    user_roles: Paths = _build_traffic_paths_field("user_roles", "the roles that mark messages of the user")
    reply_roles: Paths = _build_traffic_paths_field(
        "reply_roles", "the roles that mark messages of the application"
    )
    context_roles: Paths = _build_traffic_paths_field(
        "context_roles",
        "the roles that mark messages with context for the next reply. Lookout skips messages with any other role",
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
    """The base class for the settings of each kind of source."""

    def resolve_paths(self, folder: Path) -> Self:
        """Return the settings with relative local paths made absolute. The paths are relative to ``folder``."""
        del folder
        return self


class FileFormat(StrEnum):
    """The format of a file with conversations."""

    BY_SUFFIX = "by-suffix"
    """The suffix of the file name determines the format.

    .jsonl, .ndjson and .log are JSON lines, .json is a document, .csv and .tsv are tables, .parquet and .pq are
    Parquet files.
    """
    JSONL = "jsonl"
    JSON = "json"
    """A JSON document with a list of items, as exported by chat products."""
    CSV = "csv"
    """A table with a header. Its columns are separated by commas, semicolons, tabs or bars."""
    PARQUET = "parquet"


class FileTraffic(_SourceSettings):
    """Settings of `kind = "file"`: files on this machine, on the web, in a bucket or in a Hub repository."""

    kind: Literal["file"]
    at: Annotated[tuple[str, ...], BeforeValidator(_wrap_text_in_tuple), Field(min_length=1)] = Field(
        description="location of the files: paths (relative to this file), addresses or glob patterns. Accepted: "
        "local files, http(s)://, s3://, hf://"
    )
    format: FileFormat = Field(
        default=FileFormat.BY_SUFFIX,
        description="format of the files. by-suffix: the suffix of each file name determines the format",
    )
    endpoint_url: HttpUrl | None = Field(
        default=None,
        description="address of your own S3-compatible store or Hugging Face Hub, instead of Amazon S3 or the "
        "public Hub",
    )
    token_env: Name | None = Field(
        default=None,
        description="name of the environment variable with the bearer token for http(s) addresses. Buckets and "
        "the Hub use their own variables",
    )
    longest_line_mb: Megabytes = Field(
        default=16.0,
        description="maximum length of a line in megabytes. Lookout reports a longer line and skips it",
    )
    largest_copy_mb: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=4096.0,
        description="maximum size in megabytes of a remote or compressed Parquet file, which Lookout copies to "
        "the temporary folder. A larger file is an error",
    )
    fields: Fields = Field(default=Fields(), description="the paths to the parts of an item")

    @field_validator("at")
    @classmethod
    def _refuse_password(cls, places: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(refuse_password(place) for place in places)

    def resolve_paths(self, folder: Path) -> Self:
        """Return the settings with relative local paths made absolute. The paths are relative to ``folder``."""
        places = tuple(place if _REMOTE.match(place) else str(folder / place) for place in self.at)
        return self.model_copy(update={"at": places})


class TimeFormat(StrEnum):
    """The format of a time in an address."""

    ISO = "iso"
    EPOCH_S = "epoch-s"
    EPOCH_MS = "epoch-ms"


class HttpTraffic(_SourceSettings):
    """Settings of `kind = "http"`: a paginated JSON export."""

    kind: Literal["http"]
    url: HttpUrl = Field(
        description="address of the first page. Lookout does not change the query parameters in it"
    )
    token_env: Name | None = Field(
        default=None, description="name of the environment variable with the bearer token"
    )
    headers: HeaderTable = Field(
        default={}, description="headers of every request. Lookout sends them only to the host of `url`"
    )
    items: Paths = Field(
        default=get_names("inside", "lists"),
        description="paths to the list of items on a page. Lookout uses the first path that leads to a list. An "
        "empty path means that the page itself is the list",
    )
    page_parameter: str | None = Field(
        default=None,
        min_length=1,
        description="name of the query parameter for the page number, if the pages have numbers",
    )
    first_page: Annotated[int, Field(ge=0)] = Field(default=1, description="number of the first page")
    size_parameter: str | None = Field(
        default=None, min_length=1, description="name of the query parameter for the page size"
    )
    size: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=100, description="number of items to request on a page. It is used only with size_parameter"
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
        description="paths to the address of the next page. Lookout also reads a Link header",
    )
    cursor: Paths = Field(
        default=("next_cursor", "cursor.next", "cursors.next", "meta.next_cursor", "paging.cursors.after",
                 "next_page_token", "nextPageToken", "continuation_token"),
        description="paths to the cursor of the next page",
    )  # fmt: skip
    cursor_parameter: str = Field(
        default="cursor", min_length=1, description="name of the query parameter for the cursor"
    )
    since_parameter: str | None = Field(
        default=None, min_length=1, description="name of the query parameter for the earliest time to read"
    )
    until_parameter: str | None = Field(
        default=None, min_length=1, description="name of the query parameter for the latest time to read"
    )
    time_format: TimeFormat = Field(
        default=TimeFormat.ISO, description="format of the times in these parameters: iso, epoch-s or epoch-ms"
    )
    most_pages: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1_000, description="maximum number of pages. If there are more, reading stops with an error"
    )
    page_most_mb: Megabytes = Field(default=64.0, description="maximum size of a page in megabytes")
    request_deadline_s: Seconds = Field(
        default=60.0, description="timeout of one page in seconds, from the request to the last byte"
    )
    attempts: Annotated[int, Field(ge=1, le=20)] = Field(
        default=5, description="maximum number of attempts for each page"
    )
    retry_most_s: Seconds = Field(default=60.0, description="longest pause in seconds before a retry")
    fields: Fields = Field(default=Fields(), description="the paths to the parts of an item")

    @field_validator("url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return refuse_password(url)


class LangSmithTraffic(_SourceSettings):
    """Settings of `kind = "langsmith"`: the root runs of a LangSmith project. Scores are stored as feedback."""

    kind: Literal["langsmith"]
    project: str = Field(min_length=1, description="name of the tracing project")
    api_url: HttpUrl = Field(default="https://api.smith.langchain.com", description="address of LangSmith")
    key_env: Name = Field(
        default="LANGSMITH_API_KEY", description="name of the environment variable with the API key"
    )
    workspace_id: str | None = Field(
        default=None, min_length=1, description="id of the workspace, if the key belongs to an organisation"
    )
    filter: str | None = Field(
        default=None, min_length=1, description='LangSmith filter expression, such as has(tags, "production")'
    )
    longest_run_s: Annotated[float, Field(ge=0, le=604_800)] = Field(
        default=3_600.0,
        description="maximum duration of a run in seconds. LangSmith selects runs by their start time, so Lookout "
        "also requests the runs that started up to this time before the night's window",
    )
    feedback_keys: tuple[str, ...] = Field(
        default=("user_score", "user_feedback", "thumbs", "thumb"),
        description="keys of the user's feedback on a run. A value of 1 means thumbs up, 0 or less means thumbs "
        "down",
    )
    page_size: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="number of runs in one request. LangSmith rejects more than 100"
    )
    request_deadline_s: Seconds = Field(default=60.0, description="timeout of one request, in seconds")
    attempts: Annotated[int, Field(ge=1, le=10)] = Field(
        default=3, description="maximum number of attempts for each request"
    )
    fields: Fields = Field(default=Fields(), description="the paths to the parts of a run")

    @field_validator("api_url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return refuse_password(url)


class PageSelectors(_StrictModel):
    """CSS selectors for a page that lists conversations. Lookout detects elements for which no selector is set."""

    link: Selector | None = Field(
        default=None, description="CSS selector of the links to conversations, on the page with the list"
    )
    next_page: Selector | None = Field(
        default=None, description="CSS selector of the link to the next page of the list"
    )
    message: Selector | None = Field(
        default=None,
        description="CSS selector of a message, from the user or from the bot, on the page of a conversation",
    )
    user_message: Selector | None = Field(default=None, description="CSS selector of a message from the user")
    reply: Selector | None = Field(default=None, description="CSS selector of a message from the bot")
    text: Selector | None = Field(
        default=None, description="CSS selector of the text inside a message. Default: the whole message"
    )
    time: Selector | None = Field(
        default=None, description="CSS selector of the time inside a message or a conversation"
    )


class PageTraffic(_SourceSettings):
    """Settings of `kind = "page"`: a web page that lists conversations. Each conversation has a separate page."""

    kind: Literal["page"]
    url: HttpUrl = Field(description="address of the page that lists the conversations")
    selectors: PageSelectors = Field(
        default=PageSelectors(), description="CSS selectors of elements that Lookout cannot detect"
    )
    most_pages: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100,
        description="maximum number of pages with lists. If there are more, reading stops with an error",
    )
    page_deadline_s: Seconds = Field(
        default=30.0,
        description="maximum time in seconds from opening a page until its conversations or messages appear",
    )
    private_network: bool = Field(
        default=False,
        description="whether the host name of the page may resolve to a private network or to this machine. Other "
        "hosts and ports there stay blocked",
    )
    fields: Fields = Field(default=Fields(), description="the names of roles, if they are unusual")

    @field_validator("url")
    @classmethod
    def _refuse_password(cls, url: str) -> str:
        return refuse_password(url)


TrafficSettings = Annotated[
    FileTraffic | HttpTraffic | LangSmithTraffic | PageTraffic,
    Field(discriminator="kind"),
]
"""The settings of one source in `[targets.NAME.traffic.sources.NAME]`."""
