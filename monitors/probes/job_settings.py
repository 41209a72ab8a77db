"""How an agent that works on a job is spoken to: start it, see how it goes, fetch its report (V4)."""

from __future__ import annotations

import json
import string
from typing import Annotated

from pydantic import Field, field_validator

from monitors.records.base import Record

JobSeconds = Annotated[float, Field(gt=0, le=86_400)]
Address = Annotated[str, Field(min_length=1)]
PARTS = ("start", "job", "location")
"""What an address may be made of."""

FINISHED = ("completed", "complete", "done", "finished", "succeeded", "success", "resolved")
FAILED = ("failed", "failure", "error", "errored", "cancelled", "canceled", "timed_out", "timeout", "expired")


class JobSettings(Record):
    """`driver = "job"`. Paths as in `WireRule`.

    In an address ``{start}`` is where the job was posted, ``{job}`` its id, ``{location}`` the ``Location`` header
    of the reply. A reply to the start that already says that the job is finished is taken at its word.
    """

    url: str | None = Field(default=None, description="where to post; left out: the target's address")
    request: str = Field(
        default='{"question": "{question}"}',
        description="the JSON to post; {question} stands for the turn, "
        '"{history}" for the list of messages before it, {conversation} for an id of this conversation',
    )
    id: str = Field(default="id", description="path to the job's id in the reply to the start")
    status_url: Address = Field(
        default="{start}/{job}",
        description="where to ask how it goes, made of {start}, {job} and {location} (the reply's Location header)",
    )
    events_url: Address | None = Field(
        default=None, description="an event stream of the job's progress; when it breaks off, status_url is asked"
    )
    report_url: Address | None = Field(
        default=None, description="where the report is; left out: it stands where the finished state stands"
    )
    cancel_url: Address | None = Field(
        default=None, description="posted to when the deadline has passed, so that the agent does not work on"
    )
    state: str = Field(default="status", description="path to the job's state; one that is not listed is running")
    finished: tuple[str, ...] = Field(default=FINISHED, description="states that mean: the report is there")
    failed: tuple[str, ...] = Field(default=FAILED, description="states that mean: there will be no report")
    text: str = Field(
        default="report", description="path to the report's text; empty: the whole body, which need not be JSON"
    )
    citations: str | None = Field(default=None, description="path to the citations")
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    error: str = Field(default="error", description="path to what went wrong")
    steps: str | None = Field(
        default=None,
        description="path to the steps (tool calls) in state or report, such as steps.*; kept as evidence",
    )
    event_step: str | None = Field(default=None, description="path to the one step in an event of events_url")
    step_name: str = Field(default="name", description="path to a step's name within the step")
    hops: str | None = Field(default=None, description="path to the number of hops, where the app counts them")
    deadline_s: JobSeconds = Field(default=900.0, description="from the start to the report")
    poll_s: JobSeconds = Field(
        default=2.0, description="first pause between two looks; each next one is 1.5 times it"
    )
    poll_most_s: JobSeconds = Field(default=30.0, description="longest pause between two looks")
    request_deadline_s: JobSeconds = Field(default=30.0, description="for one request")
    silence_s: JobSeconds = Field(
        default=60.0, description="without an event for so long, the stream is given up and status_url asked"
    )
    stumbles: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=5, description="looks in a row that may fail (HTTP 404, 429, 5xx, no connection) before it counts"
    )
    report_most_mb: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=5.0, description="longest reply that is read, in megabytes; a longer one is no answer"
    )

    @field_validator("request")
    @classmethod
    def _is_json(cls, value: str) -> str:
        try:
            json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        return value

    @field_validator("status_url", "events_url", "report_url", "cancel_url")
    @classmethod
    def _is_made_of_known_parts(cls, value: str | None) -> str | None:
        try:
            named = [name for _, name, _, _ in string.Formatter().parse(value or "") if name is not None]
        except ValueError as error:
            raise ValueError(f"not an address with {{start}}, {{job}} or {{location}}: {error}") from error
        unknown = [name for name in named if name not in PARTS]
        if unknown:
            raise ValueError(
                f"{{{unknown[0]}}} is no part of an address; accepted: {{start}}, {{job}}, {{location}}"
            )
        return value
