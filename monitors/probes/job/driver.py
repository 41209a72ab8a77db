"""Ask an agent that works on a job: start the job, wait until it is finished, and fetch its report.

The report becomes the answer. While Lookout waits, it reads the events of the job, polls the state of the job, and
answers questions of the agent. A job is stored in the folder of the run. After a killed run, the job is resumed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import httpx

from monitors.errors import AnswerIncomplete, AnswerTimeout, AppErrorShown, ConfigError, OldJob, ProbeError
from monitors.facts.agent_trace import read_trace
from monitors.http_client import MEGABYTE_BYTES
from monitors.json_path import collect_values
from monitors.probes.api.driver import (
    Event,
    Message,
    fill_request_template,
    parse_json,
    parse_server_sent_events,
    split_lines,
)
from monitors.probes.driver import Answer, SelectEvidence, create_conversation_id, select_no_evidence
from monitors.probes.job.notes import JobNote, JobNotes
from monitors.probes.job.report import build_report_answer, build_report_request, require_no_graphql_errors
from monitors.probes.job.watch import AgentJob, JobHttp, build_old_job_error
from monitors.probes.settings import JobSettings, ProbeSettings
from monitors.probes.target_guard import build_address_guard
from monitors.request_headers import RequestHeaders
from monitors.retry import TryAgain

Clock = Callable[[], datetime]


class JobTraces(Protocol):
    """Read the traces that the app records of its agent."""

    async def require_own_project(self, address: str) -> None:
        """Raise `ConfigError` if the trace at this address is not in the project of the target."""
        ...

    async def read_runs(self, address: str) -> Sequence[Any]:
        """Return the runs in the trace of a finished job, or an empty list if the trace is not available.

        Raises `ConfigError` if the trace is in the production project.
        """
        ...


StoreJob = Callable[[AgentJob], None]
FindScriptedAnswer = Callable[[tuple[str, ...], str], str | None]
"""A function that returns the suite's answer to a question of the agent, or ``None`` if there is none.

Its arguments are the turns of the conversation and the agent's question.
"""


def answer_no_question(_turns: tuple[str, ...], _question: str) -> str | None:
    """Return ``None``: without a suite, there is no answer to a question of the agent."""
    return None


PAUSE_GROWTH = 1.5
"""Each pause between two polls is this many times as long as the previous pause."""


class JobDriver:
    """A `ChatDriver` for an API that starts jobs. Use it as an async context manager, in one event loop only.

    - `headers` contain the authentication. They are never stored or shown in an error, and are not sent to other
      hosts.
    - Running jobs are stored in `run_folder`.
    - `script` returns the suite's answers to questions of the agent.
    - With `traces`, the first job runs alone, and the project of its trace is checked.
    """

    def __init__(
        self,
        address: str,
        settings: ProbeSettings,
        *,
        run_folder: Path,
        clock: Clock,
        headers: RequestHeaders,
        traces: JobTraces | None = None,
        script: FindScriptedAnswer = answer_no_question,
    ) -> None:
        self._script = script
        self._traces = traces
        self._first_job_lock = asyncio.Lock()
        self._has_first_job_ended = traces is None
        self._settings: JobSettings = settings.job
        self._url = settings.job.url or address
        self._clock = clock
        self._headers = headers
        self._http = JobHttp(settings.job, headers, self._url, build_address_guard(address, settings))
        self._notes = JobNotes(run_folder)
        self._started: set[str] = set()
        self._failed: dict[str, ProbeError] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._http.close()

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        """See `ChatDriver.ask`. Each turn is a job.

        In the request, ``{history}`` is replaced with the earlier turns and reports.
        """
        note = self._notes.read_note_if_turns_match(name, turns)
        conversation = note.conversation if note else create_conversation_id()
        earlier = note.earlier if note else ()
        try:
            while True:
                async with self._run_first_job_alone():
                    answer = await self._ask_turn(name, turns, conversation, earlier, note)
                if len(earlier) == len(turns) - 1:
                    break
                earlier, note = (*earlier, answer.visible_text), None
        except (AppErrorShown, AnswerTimeout, AnswerIncomplete, OldJob):  # otherwise the job may still run
            self._notes.delete_note(name)
            raise
        await select_evidence(answer)
        return answer

    @asynccontextmanager
    async def _run_first_job_alone(self) -> AsyncGenerator[None]:
        """Let the first job run alone, and all later jobs at the same time.

        If the trace of the first job is not in the project of the target, no other job is started.
        """
        if self._has_first_job_ended:
            yield
            return
        async with self._first_job_lock:
            yield
            self._has_first_job_ended = True

    async def _ask_turn(
        self, name: str, turns: tuple[str, ...], conversation: str, earlier: tuple[str, ...], note: JobNote | None
    ) -> Answer:
        store_job = partial(self._store_note_if_started, name, turns, conversation, earlier)
        find_answer_to_agent = partial(self._script, turns)
        resumed_job = await self._resume_job(note, find_answer_to_agent) if note else None
        job = resumed_job or AgentJob(self._settings, self._url, find_answer_to_agent=find_answer_to_agent)
        try:
            if resumed_job is None:
                await self._start_with_retries(
                    job, turns[len(earlier)], build_history(turns, earlier), conversation, store_job
                )
            if self._traces is not None and not job.is_finished_or_raise:
                await self._fetch_and_store_state(job)
            if not job.is_finished_or_raise:
                await self._answer_agent_question(job, store_job)
                await self._follow_events(job, store_job)
                await self._poll_until_finished(job, store_job)
            return await self._fetch_and_build_answer(job, earlier)
        except ProbeError as error:
            error.evidence = job.evidence
            self._failed.setdefault(job.job_id, error)
            raise

    async def _resume_job(
        self, note: JobNote, find_answer_to_agent: Callable[[str], str | None]
    ) -> AgentJob | None:
        """Return the job in ``note`` from an earlier process, or ``None`` if the app no longer has this job."""
        age_s = max(0.0, (self._clock() - note.started_at).total_seconds())
        job = AgentJob(
            self._settings,
            self._url,
            age_s=age_s,
            job_id=note.job,
            location=note.location,
            find_answer_to_agent=find_answer_to_agent,
            earlier_questions=note.questions,
            delivered=note.delivered,
        )
        try:
            await self._fetch_and_store_state(job)
        except AnswerIncomplete:
            return None
        return job

    def _store_note_if_started(
        self, name: str, turns: tuple[str, ...], conversation: str, earlier: tuple[str, ...], job: AgentJob
    ) -> None:
        if job.is_started:
            note = JobNote(
                turns=turns,
                conversation=conversation,
                earlier=earlier,
                job=job.job_id,
                location=job.location,
                started_at=self._clock() - timedelta(seconds=job.elapsed_s),
                questions=job.questions.answered,
                delivered=job.questions.delivered,
            )
            self._notes.write_note(name, note)

    async def _start_with_retries(
        self, job: AgentJob, turn: str, messages: list[Message], conversation: str, store_job: StoreJob
    ) -> None:
        """Start the job. If the app has too many jobs, try again for up to `busy_patience_s` seconds."""
        body = fill_request_template(json.loads(self._settings.request), turn, messages, conversation)
        pause_s = self._settings.poll_s
        while True:
            try:
                return await self._start_once(job, body, f"{conversation}-{len(messages)}", store_job)
            except TryAgain as error:
                wait_s = min(max(pause_s, error.after_s or 0), self._settings.poll_most_s)
                if job.elapsed_s + wait_s > self._settings.busy_patience_s:
                    raise error.error from error
                # The service names the pause, or the pause grows.
                await asyncio.sleep(wait_s)
                pause_s *= PAUSE_GROWTH

    async def _start_once(self, job: AgentJob, body: Any, key: str, store_job: StoreJob) -> None:
        async with self._http.start_job(self._url, body, key) as response:
            job.store_start_reply(response.headers)
            store_job(job)
            if "event-stream" in response.headers.get("content-type", ""):
                await self._read_events(job, response, store_job)
                if not job.is_finished_or_raise and not job.is_started:
                    raise AnswerIncomplete(
                        "the stream ended before the job finished, and it did not contain the id of the job"
                    )
                return
            text = (await self._http.read_body(response)).text
        document: Any = parse_json(text) if text.strip() else None
        job.store_job_id(document)
        await self._raise_if_old_job(job)
        store_job(job)
        job.update_state(document)
        job.update_steps_if_more(document)

    async def _raise_if_old_job(self, job: AgentJob) -> None:
        """Raise `OldJob` if the app did not start a new job, but returned an older job.

        If the older job has already failed in this run, its error is raised again.
        """
        if not job.job_id:
            return
        if job.job_id in self._failed:
            raise self._failed[job.job_id]
        if job.job_id in self._started or job.job_id in await asyncio.to_thread(
            self._notes.list_other_runs_job_ids
        ):
            raise build_old_job_error(f"the job {job.job_id[:100]!r}, which an earlier question started")
        self._started.add(job.job_id)

    async def _follow_events(self, job: AgentJob, store_job: StoreJob) -> None:
        """Read the events of the job until the stream ends.

        If the stream breaks or sends no data, return without an error.
        """
        if self._settings.events_url is None:
            return
        try:
            async with self._http.open_events(job.build_address(self._settings.events_url)) as response:
                await self._read_events(job, response, store_job)
        except TryAgain:
            return

    async def _read_events(self, job: AgentJob, response: httpx.Response, store_job: StoreJob) -> None:
        max_characters = int(self._settings.report_most_mb * MEGABYTE_BYTES)
        async with (
            aclosing(split_lines(response.aiter_text(), max_characters)) as lines,
            aclosing(parse_server_sent_events(lines)) as events,
        ):
            while not job.is_finished_or_raise and job.remaining_s > 0:
                try:
                    async with asyncio.timeout(min(self._settings.silence_s, job.remaining_s)):
                        event = await anext(events)
                except (StopAsyncIteration, TimeoutError, httpx.HTTPError):
                    return
                previous_id = job.job_id
                job.apply_event(Event(name=event.name, data=self._headers.hide_secrets(event.data)))
                if job.job_id != previous_id:
                    store_job(job)
                await self._answer_agent_question(job, store_job)

    async def _answer_agent_question(self, job: AgentJob, store_job: StoreJob) -> None:
        """If the agent waits for an answer, send an answer to its question.

        The answer is stored before it is sent, so that a resumed run sends the same answer. After a temporary
        error, Lookout sends the answer again when it has read the next state of the job.
        """
        if job.questions.open_question is None or job.is_finished_or_raise:
            return
        text = job.questions.open_question or await self._fetch_agent_question(job)
        try:
            answered_question = job.questions.choose_and_store_answer(
                text, job.find_answer_to_agent(text), job.elapsed_s * 1000
            )
            url = job.build_address(self._settings.answer_url or "")
        except ProbeError:
            await self._cancel_job(job)
            raise
        store_job(job)
        try:
            await self._http.post_answer(url, build_answer_body(self._settings.answer, answered_question.answer))
        except TryAgain as error:
            job.questions.stumbles += 1
            if job.questions.stumbles > self._settings.stumbles:
                raise error.error from error
            return
        job.questions.mark_answer_as_delivered()
        store_job(job)

    async def _fetch_agent_question(self, job: AgentJob) -> str:
        """Fetch the report of the job, and return the agent's question that it contains.

        The result is empty if the report contains no question or cannot be fetched.
        """
        if self._settings.question is None or self._settings.report_url is None:
            return ""
        template, url = self._settings.report_request, job.build_address(self._settings.report_url)
        try:
            reply = await self._http.fetch(url, build_report_request(template, job) if template else None)
            return (
                job.questions.extract_agent_question(
                    parse_json(require_no_graphql_errors(reply.text) if template else reply.text)
                )
                or ""
            )
        except (TryAgain, ProbeError):
            return ""

    async def _poll_until_finished(self, job: AgentJob, store_job: StoreJob) -> None:
        """Poll the state until the job is finished. Raises an error if the job fails or exceeds its deadline."""
        pause_s = self._settings.poll_s
        while not job.is_finished_or_raise:
            await self._fetch_and_store_state(job)
            if not job.is_finished_or_raise:
                await self._answer_agent_question(job, store_job)
                await self._wait_or_raise_timeout(job, pause_s)
                pause_s = min(pause_s * PAUSE_GROWTH, self._settings.poll_most_s)

    async def _fetch_and_store_state(self, job: AgentJob) -> None:
        """Fetch the state of the job and store it in ``job``. Try again after a temporary error."""
        url = job.build_address(self._settings.status_url)
        document = await self._fetch_with_retries(job, url, job.parse_status_or_try_again)
        job.update_state(document)
        job.update_steps_if_more(document)
        await self._cancel_and_raise_if_production(job)

    async def _cancel_and_raise_if_production(self, job: AgentJob) -> None:
        """Check that the trace of the job is in the project of the target.

        If the trace is in another project, such as production, cancel the job and raise `ConfigError`.
        """
        if self._traces is None or not job.trace_url or job.trace_url == job.checked_trace_url:
            return
        try:
            await self._traces.require_own_project(job.trace_url)
        except ConfigError:
            await self._cancel_job(job)
            raise
        job.checked_trace_url = job.trace_url

    async def _cancel_job(self, job: AgentJob) -> None:
        if self._settings.cancel_url is not None:
            await self._http.cancel(job.build_address(self._settings.cancel_url))

    async def _store_steps_from_trace(self, job: AgentJob) -> None:
        """Read the steps of a finished job from its trace and store them in ``job``."""
        if self._traces is None:
            return
        if not job.trace_url:
            last_document = job.last_document
            with suppress(ProbeError):  # a missing trace must not lose the report
                await self._fetch_and_store_state(job)
            job.last_document = last_document
        runs = await self._traces.read_runs(job.trace_url) if job.trace_url else ()
        path = read_trace(list(runs))
        if path is not None:
            job.store_path_if_longer(path)

    async def _fetch_with_retries(
        self, job: AgentJob, url: str, parse: Callable[[str], Any], body: Any = None
    ) -> Any:
        stumbles, pause_s = 0, self._settings.poll_s
        while True:
            try:
                return parse((await self._http.fetch(url, body)).text)
            except TryAgain as error:
                stumbles += 1
                if stumbles > self._settings.stumbles:
                    raise error.error from error
                await self._wait_or_raise_timeout(job, max(pause_s, error.after_s or 0))
                pause_s = min(pause_s * PAUSE_GROWTH, self._settings.poll_most_s)

    async def _wait_or_raise_timeout(self, job: AgentJob, pause_s: float) -> None:
        if job.remaining_s <= 0:
            await self._cancel_job(job)
            raise job.build_timeout_error()
        # The application sends no event.
        await asyncio.sleep(min(pause_s, job.remaining_s))

    async def _fetch_and_build_answer(self, job: AgentJob, earlier: tuple[str, ...]) -> Answer:
        """Fetch the report of a finished job and build the answer."""
        url, text = self._url, None
        if self._settings.report_url is not None:
            url = job.build_address(self._settings.report_url)
            text = await self._fetch_report(job, url)
        elif job.has_events and not collect_values(job.last_document, self._settings.text):
            await self._fetch_and_store_state(job)  # the last event only says that the job is finished
        job.duration_s = job.elapsed_s  # the wait for the trace does not count as the agent's time
        await self._store_steps_from_trace(job)
        return build_report_answer(job, url, text, earlier)

    async def _fetch_report(self, job: AgentJob, url: str) -> str:
        template = self._settings.report_request
        if template is None:
            return await self._fetch_with_retries(job, url, str)
        return await self._fetch_with_retries(
            job, url, require_no_graphql_errors, build_report_request(template, job)
        )


def build_answer_body(template: str, answer: str) -> Any:
    """Return the JSON with ``{answer}`` replaced. Quotes in the answer cannot change the structure of the JSON."""
    return json.loads(template.replace("{answer}", json.dumps(answer)[1:-1]))


def build_history(turns: tuple[str, ...], earlier: tuple[str, ...]) -> list[Message]:
    """Return the earlier turns and their reports as a list of chat messages."""
    answered_turns = zip(turns, earlier, strict=False)  # the current turn has no report yet
    return [
        message
        for turn, report in answered_turns
        for message in ({"role": "user", "content": turn}, {"role": "assistant", "content": report})
    ]
