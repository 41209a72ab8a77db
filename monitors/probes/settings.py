"""How a target is asked: every knob of the live probe, with its default and the reason for it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

from pydantic import Field, field_validator

from monitors.probes.job_settings import JobSettings
from monitors.probes.wire import WireRule
from monitors.records.base import Identifier, Record

Selector = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Isolation(StrEnum):
    """How far one case is kept from the next."""

    CONTEXT = "context"
    """A browser context of its own: no cookie, no storage is shared."""
    RELOAD = "reload"
    """The page is loaded again; cookies and storage stay."""
    NEW_CHAT = "new-chat"
    """The page's own "new chat" button; loaded again where there is none."""


class Keep(StrEnum):
    """When a screenshot or a trace is kept."""

    NEVER = "never"
    FAILURES = "failures"
    """When asking failed, and when the answer was judged wrong while its page was still open."""
    FAILURES_AND_SEVERE = "failures-and-severe"
    """The same, and every case of severity 3."""
    ALWAYS = "always"


class Selectors(Record):
    """CSS selectors that a target pins; what is left out is found. They reach into open shadow roots."""

    message_box: Selector | None = Field(default=None, description="the box the question is typed into")
    send: Selector | None = Field(
        default=None, description="the control that sends; left out: Enter, or the button found"
    )
    answer: Selector | None = Field(default=None, description="one bot answer; the newest ones are read")
    steps: Selector | None = Field(default=None, description="parts of an answer that only tell how it was found")
    busy: Selector | None = Field(default=None, description="visible while the app is answering")
    error: Selector | None = Field(default=None, description="visible when the app says that something went wrong")


class ReadinessSettings(Record):
    """How long a target is waited for, and how it says which commit it runs."""

    deadline_s: Seconds = Field(default=600.0, description="for a deploy to serve; a Space builds for minutes")
    poll_s: Seconds = Field(default=5.0, description="between two looks at the target's state")
    request_deadline_s: Seconds = Field(default=15.0, description="for one look")
    version_url: str | None = Field(default=None, description="an address of the app that names the commit it runs")
    version_path: str = Field(
        default="sha", description="path to the commit in the version endpoint's JSON; empty: its whole text"
    )
    hub_url: str | None = Field(default=None, description="the Hub's address; left out: the public one")


class ApiSettings(Record):
    """How a chat API is spoken to, for targets that are not asked through their page. Paths as in `WireRule`."""

    url: str | None = Field(default=None, description="where to post; left out: the target's address")
    function: str = Field(default="chat", description="Gradio only: the name of the API endpoint")
    request: str = Field(
        default='{"question": "{question}"}',
        description="the JSON to post; {question} stands for the turn, "
        '"{history}" for the list of messages before it, {conversation} for an id of this conversation',
    )
    text: str = Field(default="answer", description="path to the answer's text in the response or in each event")
    citations: str | None = Field(default=None, description="path to the citations")
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    error: str = Field(default="error", description="path to an error; something there means that asking failed")
    joins: bool = Field(
        default=True, description="a stream's texts are tokens to join; false: each replaces the one before"
    )
    done: str = Field(
        default="[DONE]", description="a stream's last data or event name; without it the answer was cut off"
    )

    @field_validator("request")
    @classmethod
    def _is_json(cls, value: str) -> str:
        try:
            json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        return value


class ProbeSettings(Record):
    """Everything about asking one target. All durations in seconds."""

    driver: Identifier = Field(
        default="browser", description="how to talk to it: browser, gradio, json, sse or job"
    )
    profile: Identifier | None = Field(
        default=None,
        description="a known kind of page: gradio, streamlit or generic; left out: found out on the page",
    )
    selectors: Selectors = Field(default=Selectors(), description="selectors that override the profile's")
    isolation: Isolation = Field(default=Isolation.CONTEXT, description="how far cases are kept apart")
    concurrency: Count | None = Field(
        default=None,
        description="questions under way at once; left out: begun at two for each core, then by what the cores "
        "have left, eight at the most",
    )
    answer_deadline_s: Seconds = Field(default=60.0, description="from sending to the whole answer")
    page_deadline_s: Seconds = Field(default=30.0, description="from opening the page to a usable message box")
    close_deadline_s: Seconds = Field(
        default=5.0, description="for closing a page; a crashed one can hang for ever"
    )
    quiet_s: Seconds = Field(
        default=0.8, description="text unchanged and network still: the answer is taken as whole"
    )
    patience_s: Seconds = Field(
        default=12.0, description="text unchanged where neither the page nor the network says that the answer ended"
    )
    attempts: Count = Field(default=2, description="tries for each question; failed ones are recorded")
    retry_pause_s: Annotated[float, Field(ge=0, le=600)] = Field(default=1.0, description="between two tries")
    circuit_breaker_failures: Count = Field(
        default=5, description="questions in a row without an answer after which the rest is not asked"
    )
    outage_patience_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=60.0, description="for an app that stops answering in mid-run to serve again; then the run stops"
    )
    repeats_severity_3: Count = Field(default=1, description="how often each severity-3 case is asked")
    screenshots: Keep = Field(default=Keep.FAILURES_AND_SEVERE, description="when a picture of the page is kept")
    traces: Keep = Field(
        default=Keep.NEVER,
        description="when a Playwright trace is kept; recording costs every question about 0.2 s",
    )
    load_images: bool = Field(default=False, description="load the page's images, which pictures then show")
    browser_path: str | None = Field(
        default=None, description="the Chromium to use; left out: found on this machine"
    )
    private_network: bool = Field(
        default=False,
        description="the target may be in a private network or on this machine, though neither digits nor its name "
        "say so; link-local addresses are refused all the same",
    )
    readiness: ReadinessSettings = Field(default=ReadinessSettings(), description="waiting for a deploy to serve")
    api: ApiSettings = Field(default=ApiSettings(), description="for the drivers gradio, json and sse")
    job: JobSettings = Field(default=JobSettings(), description="for the driver job")
    wire: WireRule | None = Field(
        default=None, description="the response that carries the answer, where the page hides part"
    )


def pages_at_once(settings: ProbeSettings, cores: int) -> int:
    """How many questions to have under way: as configured, else two for each of `cores`.

    Measured on 2 cores: four pages at 1 s a reply use the cores up; eight take longer for the same questions.
    """
    return settings.concurrency if settings.concurrency is not None else max(1, 2 * cores)
