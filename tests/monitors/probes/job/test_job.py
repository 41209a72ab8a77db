"""Test the driver for agents that work on a job.

It gives the whole report, the steps, and a separate error for each kind of failure.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    PageNotUnderstood,
    ProbeError,
    Unreachable,
)
from monitors.probes.choose import build_driver
from monitors.probes.driver import ChatDriver
from monitors.probes.settings import JobSettings, ProbeSettings
from monitors.records.base import Blame
from monitors.records.exchanges import Channel, Exchange, NoAnswer
from monitors.request_headers import build_request_headers
from tests.monitors.probes.scripted import Ticking, case
from tests.servers.jobs import STEPS, Jobs, report_on
from tests.tools.probe_cases import probe_cases

JOB = {
    "request": '{"question": "{question}", "before": "{history}", "session": "{conversation}"}',
    "steps": "steps.*",
    "event_step": "step",
    "hops": "hops",
    "citations": "files.*",
    "app_path": "model",
    "latency_ms": "ms",
    "poll_s": 0.001,
    "poll_most_s": 0.002,
    "deadline_s": 60,
    "stumbles": 3,
}


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """Yield a new server for each test, because the server counts its requests."""
    with Jobs() as server:
        yield server


def asking(
    jobs: Jobs, folder: Path, *, path: str = "/jobs", clock: Any = None, **job: Any
) -> AbstractAsyncContextManager[ChatDriver]:
    """Return a driver for the job API, built from the configuration as for a configured target."""
    settings = ProbeSettings.model_validate({"driver": "job", "job": JOB | job})
    headers = build_request_headers({}, {"KEY": "a-key"}, key="probe.headers", token_variable="KEY")
    return build_driver(jobs.url + path, settings, run_folder=folder, clock=clock or Ticking(), headers=headers)


async def test_the_report_comes_with_what_led_to_it(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path) as driver:
        question = "why does intake crash? looks 4"
        answer = await driver.ask((question,))
    assert answer.visible_text == report_on(question)
    assert answer.graded_channel is Channel.WIRE
    assert answer.wire is not None
    assert (answer.wire.citations, answer.app_path) == (("claims/intake.py",), "primary")
    assert answer.wire.app_latency_ms == 1234
    assert [step.name for step in answer.evidence.steps] == ["grep", "read", "blame"]
    assert "NullPointer" in answer.evidence.steps[0].detail
    assert answer.evidence.hops == 7
    assert set(jobs.seen.authorizations) == {"Bearer a-key"}


async def test_earlier_findings_go_along_with_the_next_turn(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path) as driver:
        answer = await driver.ask(("first", "second"))
    assert (answer.earlier, answer.visible_text) == ((report_on("first"),), report_on("second"))
    first, second = jobs.jobs.values()
    assert (first.before, first.conversation) == ([], second.conversation)
    assert [message["content"] for message in second.before] == ["first", report_on("first")]
    assert len(set(jobs.seen.keys)) == 2


WAYS = [
    ("a stream of events", "/jobs", {"events_url": "{start}/{job}/events"}, "x"),
    ("a stream whose last word is bare", "/jobs", {"events_url": "{start}/{job}/events"}, "bare"),
    ("a stream that breaks off", "/jobs", {"events_url": "{start}/{job}/events"}, "dies"),
    ("a stream that is silent", "/jobs", {"events_url": "{start}/{job}/events", "silence_s": 0.05}, "silent"),
    ("a stream that is not there", "/jobs", {"events_url": "{start}/{job}/nowhere"}, "x"),
    ("the start streams", "/stream", {}, "x"),
    ("the start streams and breaks off", "/stream", {"status_url": "/jobs/{job}"}, "dies"),
    ("a report of its own", "/jobs", {"report_url": "{start}/{job}/report"}, "later"),
    ("the reply's Location", "/jobs", {"status_url": "{location}"}, "nameless"),
    ("done at once", "/jobs", {}, "once"),
    ("some looks fail", "/jobs", {}, "hiccup 3"),
    ("a look is too many", "/jobs", {}, "busy"),
    ("a proxy's page", "/jobs", {}, "page"),
]


@pytest.mark.parametrize(("path", "job", "question"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
async def test_the_same_report_by_every_way(
    jobs: Jobs, tmp_path: Path, path: str, job: dict[str, Any], question: str
) -> None:
    async with asking(jobs, tmp_path, path=path, **job) as driver:
        answer = await driver.ask((question,))
    assert answer.visible_text == report_on(question)
    assert [step.name for step in answer.evidence.steps] == [step["name"] for step in STEPS]


FAILURES = [
    ("fails", {}, AppErrorShown, "no such repository"),
    ("fails", {"events_url": "{start}/{job}/events"}, AppErrorShown, "no such repository"),
    ("never", {"deadline_s": 0.3}, AnswerTimeout, "within 0.3 s: its state is 'running' after"),
    ("silent never", {"events_url": "{start}/{job}/events", "deadline_s": 0.3}, AnswerTimeout, "'running'"),
    ("lost", {}, AnswerIncomplete, "lost the job"),
    ("hiccup 99", {}, Unreachable, "HTTP 500"),
    ("wall", {}, AccessDenied, "401"),
    ("refuse", {}, Unreachable, "503"),
    ("elsewhere", {}, PageNotUnderstood, "another host"),
    ("nameless", {}, PageNotUnderstood, r"probe\.job\.id = 'id' matches nothing in the reply"),
    ("x", {"status_url": "{start}/{job}/nowhere"}, AnswerIncomplete, "404"),
    ("x", {"state": "no.state"}, PageNotUnderstood, r"probe\.job\.state = 'no\.state'"),
    ("x", {"text": "no.text"}, PageNotUnderstood, r"probe\.job\.text = 'no\.text'.*Completed"),
    ("prose", {"report_url": "{start}/{job}/report"}, PageNotUnderstood, "is not JSON: .# Report"),
    (
        "huge",
        {"report_url": "{start}/{job}/report", "report_most_mb": 1},
        PageNotUnderstood,
        "more than 1 MB, the limit in probe.job.report_most_mb",
    ),
    ("x", {"status_url": "http://127.0.0.1:1/{job}"}, Unreachable, "does not answer"),
]


@pytest.mark.parametrize(
    ("question", "job", "error", "words"), FAILURES, ids=[f"{row[0]} {' '.join(row[1])}" for row in FAILURES]
)
async def test_every_way_to_fail_has_its_error(
    jobs: Jobs, tmp_path: Path, *, question: str, job: dict[str, Any], error: type[ProbeError], words: str
) -> None:
    async with asking(jobs, tmp_path, **job) as driver:
        with pytest.raises(error, match=words):
            await driver.ask((question,))


async def test_nobody_listens(tmp_path: Path) -> None:
    with Jobs() as gone:
        pass
    async with asking(gone, tmp_path) as driver:
        with pytest.raises(Unreachable, match="could not start the job"):
            await driver.ask(("x",))


async def test_prose_is_a_report_where_the_settings_say_so(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, report_url="{start}/{job}/report", text="") as driver:
        answer = await driver.ask(("prose",))
    assert answer.visible_text == f"# Report\n\n{report_on('prose')}"


async def test_a_late_job_is_cancelled(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, deadline_s=0.05, cancel_url="{start}/{job}/cancel") as driver:
        with pytest.raises(AnswerTimeout) as raised:
            await driver.ask(("never",))
    assert jobs.seen.cancelled == ["job/1"]
    assert raised.value.evidence.steps[0].name == "grep"


async def killed_while_asking(jobs: Jobs, folder: Path, turns: tuple[str, ...], looks: int, **job: Any) -> None:
    """Ask ``turns``, and cancel the driver when the newest job has been polled ``looks`` times."""
    async with asking(jobs, folder, **job) as driver:
        asked = asyncio.ensure_future(driver.ask(turns, name="c.r0.t0"))
        await asyncio.to_thread(jobs.wait_for, f"job/{len(turns)}", looks)
        asked.cancel()
        await asyncio.wait({asked})


async def test_a_run_that_was_killed_takes_its_job_up_again(jobs: Jobs, tmp_path: Path) -> None:
    begun = datetime(2026, 1, 31, 2, 0, tzinfo=UTC)
    await killed_while_asking(jobs, tmp_path, ("first", "second looks 60"), 20, clock=lambda: begun)
    jobs.jobs["job/2"].looks = 99  # the agent continued while no run polled it
    later = begun + timedelta(hours=1)
    async with asking(jobs, tmp_path, clock=lambda: later, latency_ms=None) as driver:
        answer = await driver.ask(("first", "second looks 60"), name="c.r0.t0")
    assert (answer.earlier, answer.visible_text) == ((report_on("first"),), report_on("second looks 60"))
    assert len(jobs.jobs) == 2
    assert answer.timings.total_ms >= 3_600_000  # since the job was started, not since this process began


async def test_a_job_unknown_to_the_app_is_started_again(jobs: Jobs, tmp_path: Path) -> None:
    await killed_while_asking(jobs, tmp_path, ("looks 60",), 20)
    jobs.jobs["job/2"] = jobs.jobs["other"] = jobs.jobs.pop("job/1")
    jobs.jobs["other"].looks = 99
    del jobs.jobs["job/2"]
    async with asking(jobs, tmp_path) as driver:
        answer = await driver.ask(("looks 60",), name="c.r0.t0")
    assert answer.visible_text == report_on("looks 60")
    assert jobs.seen.paths["POST /jobs"] == 2


async def test_another_question_takes_up_nobodys_job(jobs: Jobs, tmp_path: Path) -> None:
    await killed_while_asking(jobs, tmp_path, ("looks 60",), 2)
    async with asking(jobs, tmp_path) as driver:
        answer = await driver.ask(("another",), name="c.r0.t0")
    assert answer.visible_text == report_on("another")


async def test_f90_asked_questions_are_readable_by_their_owner_only(jobs: Jobs, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with asking(jobs, tmp_path) as driver:
            await driver.ask(("a question",), name="c.r0.t0")
    finally:
        os.umask(before)
    (note,) = (tmp_path / "jobs").iterdir()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700


async def test_a_run_of_jobs_keeps_failures_apart_from_answers(jobs: Jobs, tmp_path: Path) -> None:
    results: dict[str, Exchange | NoAnswer] = {}

    async def keep(one: Any, result: Any) -> None:
        results[one.id] = result

    settings = ProbeSettings.model_validate({"driver": "job", "job": JOB, "retry_pause_s": 0})
    questions = [*(f"q{number}" for number in range(12)), "fails", "lost"]
    cases = [case(f"c{number}", turns=(question,)) for number, question in enumerate(questions)]
    make = build_driver(f"{jobs.url}/jobs", settings, run_folder=tmp_path, clock=Ticking())
    async with make as driver:
        await probe_cases(
            driver, cases, run_id="r", settings=settings, clock=Ticking(), concurrency=4, on_result=keep
        )
    for one in cases[:12]:
        result = results[one.id]
        assert isinstance(result, Exchange)
        assert result.visible_text == report_on(one.turns[0])
    for name in ("c12", "c13"):
        result = results[name]
        assert isinstance(result, NoAnswer)
        assert result.blame is Blame.APP
        assert len(result.failed_attempts) == 1
        assert result.evidence.steps


def test_an_address_of_unknown_parts_says_which_there_are() -> None:
    with pytest.raises(
        ValidationError, match=r"\{id\} is not a placeholder for an address.*\{start\}, \{job\}, \{location\}"
    ):
        JobSettings(status_url="{start}/{id}")
