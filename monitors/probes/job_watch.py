"""A job while it runs: what its states, events and report say, read from parsed JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from monitors.errors import AnswerIncomplete, AnswerTimeout, AppErrorShown, PageNotUnderstood, ProbeError
from monitors.json_path import values_at
from monitors.probes.api import parsed
from monitors.probes.inpage import clean
from monitors.probes.job_http import Stumble
from monitors.probes.job_settings import JobSettings
from monitors.probes.sse import Event
from monitors.records.exchanges import Evidence, Step

STEPS_AT_MOST = 1000
DETAIL_CHARACTERS = 1000


@dataclass
class Job:
    """One job. ``age_s`` is how old it was when this process took it up; 0 for one that it started itself.

    ``heard``: an event told of it.
    """

    settings: JobSettings
    start_url: str
    age_s: float = 0.0
    job: str = ""
    location: str = ""
    state: str = "started"
    last: Any = None
    steps: list[Step] = field(default_factory=list[Step])
    hops: int | None = None
    heard: bool = False
    began: float = field(default_factory=monotonic)

    @property
    def known(self) -> bool:
        """Whether the app has said where it is: it was started."""
        return bool(self.job or self.location)

    @property
    def elapsed_s(self) -> float:
        """Since it was started, by whichever process."""
        return self.age_s + monotonic() - self.began

    @property
    def left_s(self) -> float:
        """Until its deadline."""
        return self.settings.deadline_s - self.elapsed_s

    def address(self, template: str) -> str:
        """An address of the job. What the app sent cannot lead to another host, nor out of its place in a path."""
        start = self.start_url.split("?")[0].rstrip("/")
        if "{job}" in template and not self.job:
            raise PageNotUnderstood(f"probe.job.id = {self.settings.id!r} leads nowhere in the reply to the start")
        if "{location}" in template and not self.location:
            raise PageNotUnderstood("probe.job speaks of {location}, and the reply to the start had none")
        made = template.format(start=start, job=quote(self.job, safe=""), location=self.location)
        return urljoin(f"{start}/", made)

    def located(self, location: str | None) -> None:
        """Takes the reply's ``Location``; `PageNotUnderstood` when it leads to another host: our key stays here."""
        if not location:
            return
        there = urljoin(self.start_url, location)
        if urlsplit(there)[:2] != urlsplit(self.start_url)[:2]:
            raise PageNotUnderstood(f"the app sends us to another host for the job: {clean(there)[:200]!r}")
        self.location = there

    def named(self, document: Any) -> None:
        """Takes the job's id from the reply to the start."""
        found = [value for value in values_at(document, self.settings.id) if isinstance(value, str | int)]
        if found and not isinstance(found[0], bool):
            self.job = clean(str(found[0]))

    def sees(self, document: Any) -> None:
        """Takes a state or an event as the newest word."""
        self.last = document
        told = [value for value in values_at(document, self.settings.state) if isinstance(value, str)]
        if told:
            self.state = clean(told[-1])
        self.counts(document)

    def counts(self, document: Any) -> None:
        """Takes the app's own number of hops."""
        hops = values_at(document, self.settings.hops) if self.settings.hops else []
        counted = [n for n in hops if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        self.hops = counted[-1] if counted else self.hops

    def lists(self, document: Any) -> None:
        """Takes the steps that a state or a report lists from the first on, if it lists more than are known."""
        listed = self._steps_in(document, self.settings.steps, None)
        if len(listed) > len(self.steps):
            self.steps = listed

    def hears(self, event: Event) -> None:
        """Takes one event; its name may be the state. What is no JSON tells nothing but that the job lives."""
        if event.name.casefold() in self._ends:
            self.state = clean(event.name)
        try:
            document = json.loads(event.data)
        except (ValueError, RecursionError):  # deep input recurses
            return
        self.heard = True
        if not self.job:
            self.named(document)
        self.sees(document)
        new = self._steps_in(document, self.settings.event_step, self.elapsed_s * 1000)
        self.steps = (self.steps + new)[:STEPS_AT_MOST]

    def state_in(self, body: str) -> Any:
        """A state that was asked for. `Stumble` when it is none: a proxy's page comes and goes."""
        try:
            document = parsed(body)
        except PageNotUnderstood as error:
            raise Stumble(error) from error
        if any(isinstance(value, str) for value in values_at(document, self.settings.state)):
            return document
        seen = as_words(document)[:200]
        path = self.settings.state
        raise Stumble(PageNotUnderstood(f"probe.job.state = {path!r} leads to no state in the reply {seen}"))

    @property
    def _ends(self) -> set[str]:
        return {name.casefold() for name in (*self.settings.finished, *self.settings.failed)}

    @property
    def finished(self) -> bool:
        """Whether the report is there. Raises `AppErrorShown` when there will be none."""
        state = self.state.casefold()
        if state in {name.casefold() for name in self.settings.failed}:
            why = self._error() or "it does not say why"
            raise AppErrorShown(f"the job ended as {self.state!r}: {why}", partial_text=self._partial())
        return state in {name.casefold() for name in self.settings.finished}

    @property
    def evidence(self) -> Evidence:
        """What the agent did on the way."""
        return Evidence(steps=tuple(self.steps), hops=self.hops)

    def late(self) -> ProbeError:
        """The deadline has passed."""
        got = f"{self.state!r} after {len(self.steps)} steps"
        seen = f"the job did not finish within {self.settings.deadline_s:g} s: {got}"
        partial = self._partial()
        return AnswerIncomplete(seen, partial_text=partial) if partial else AnswerTimeout(seen)

    def _partial(self) -> str:
        path = self.settings.text
        texts = [value for value in values_at(self.last, path) if isinstance(value, str)] if path else []
        return clean(texts[-1]) if texts else ""

    def _error(self) -> str:
        found = [value for value in values_at(self.last, self.settings.error) if value]
        return as_words(found[0])[:300] if found else ""

    def _steps_in(self, document: Any, path: str | None, at_ms: float | None) -> list[Step]:
        found = values_at(document, path)[:STEPS_AT_MOST] if path else []
        return [self._step(value, at_ms) for value in found if value is not None]

    def _step(self, value: Any, at_ms: float | None) -> Step:
        names = [one for one in values_at(value, self.settings.step_name) if isinstance(one, str)]
        if isinstance(value, str):
            return Step(name=clean(value)[:DETAIL_CHARACTERS], at_ms=at_ms)
        return Step(
            name=clean(names[0])[:200] if names else "step", detail=as_words(value)[:DETAIL_CHARACTERS], at_ms=at_ms
        )


def as_words(value: Any) -> str:
    """A value as text."""
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
