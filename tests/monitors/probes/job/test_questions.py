"""Test that each question an agent asks is answered once, and that the evidence contains questions and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from monitors.errors import AnswerIncomplete, AnswerTimeout, PageNotUnderstood, Unreachable
from monitors.probes.choose import build_driver
from monitors.probes.driver import ChatDriver
from monitors.probes.settings import JobSettings, ProbeSettings
from monitors.request_headers import build_request_headers
from tests.monitors.probes.scripted import Ticking
from tests.servers.jobs import Jobs, report_on

JOB = {
    "steps": "steps.*",
    "event_step": "step",
    "question": "question",
    "answer_url": "{start}/{job}/answer",
    "cancel_url": "{start}/{job}/cancel",
    "poll_s": 0.001,
    "poll_most_s": 0.002,
    "deadline_s": 60,
    "stumbles": 3,
}


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """Yield a new server of the job API for each test."""
    with Jobs() as server:
        yield server


def asking(jobs: Jobs, folder: Path, **job: Any) -> AbstractAsyncContextManager[ChatDriver]:
    """Return a driver that is built from the configuration.

    Its script gives the suite's answer if the agent's question contains a 2, and none for other questions.
    """
    settings = ProbeSettings.model_validate({"driver": "job", "job": JOB | job})
    headers = build_request_headers({}, {"KEY": "a-key"}, key="probe.headers", token_variable="KEY")
    return build_driver(
        jobs.url + "/jobs",
        settings,
        run_folder=folder,
        clock=Ticking(),
        headers=headers,
        script=lambda _turns, question: '2.4, the "LTS"' if "2" in question else None,
    )


WAYS: list[tuple[str, dict[str, Any], str]] = [
    ("states", {}, "asks 2"),
    ("events", {"events_url": "{start}/{job}/events"}, "asks 2"),
    ("the app is slow to go on", {}, "asks 2 slowly"),
    ("an answer is not taken at first", {}, "asks 2 deaf 1"),
    (
        "an answer to an event is not taken at first",
        {"events_url": "{start}/{job}/events", "silence_s": 0.05},
        "asks 2 deaf 1",
    ),
]


@pytest.mark.parametrize(("job", "question"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
async def test_each_question_is_answered_once(
    jobs: Jobs, tmp_path: Path, job: dict[str, Any], question: str
) -> None:
    async with asking(jobs, tmp_path, **job) as driver:
        answer = await driver.ask((question,))
    assert answer.visible_text == report_on(question)
    assert jobs.jobs["job/1"].answers == ["I don't know.", '2.4, the "LTS"']
    first, second = answer.evidence.questions
    assert (first.question, first.answer, first.scripted) == ("Question 1: which version?", "I don't know.", False)
    assert (second.question, second.scripted) == ("Question 2: which version?", True)
    assert first.at_ms is not None
    assert answer.evidence.steps


async def test_a_question_whose_text_is_not_shown_is_answered_all_the_same(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, question=None, default_answer="No idea.") as driver:
        answer = await driver.ask(("asks 1 mute",))
    assert [(one.question, one.answer) for one in answer.evidence.questions] == [("", "No idea.")]


async def test_the_same_words_asked_again_are_another_question(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, question=None) as driver:
        answer = await driver.ask(("asks 2 mute",))
    assert len(jobs.jobs["job/1"].answers) == len(answer.evidence.questions) == 2


async def test_an_agent_that_asks_on_and_on_is_given_up(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, most_questions=2) as driver:
        with pytest.raises(AnswerIncomplete, match=r"more than 2 questions.*Question 3") as raised:
            await driver.ask(("asks 9",))
    assert len(raised.value.evidence.questions) == 2
    assert jobs.seen.cancelled == ["job/1"]


@pytest.mark.parametrize("job", [{}, {"events_url": "{start}/{job}/events"}], ids=["states", "events"])
async def test_a_question_that_nobody_can_answer_says_what_to_configure(
    jobs: Jobs, tmp_path: Path, job: dict[str, Any]
) -> None:
    async with asking(jobs, tmp_path, answer_url=None, **job) as driver:
        with pytest.raises(PageNotUnderstood, match=r"'Question 1: which version\?'.*probe\.job\.answer_url"):
            await driver.ask(("asks 1",))
    assert jobs.seen.cancelled == ["job/1"]


async def test_a_state_that_may_be_a_question_is_named_when_time_is_up(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, deadline_s=0.3) as driver:
        with pytest.raises(AnswerTimeout, match=r"'waiting'.*probe\.job\.asking"):
            await driver.ask(("asks 1 waiting",))


async def test_answers_that_the_app_never_takes_are_its_own_fault(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path) as driver:
        with pytest.raises(Unreachable, match="HTTP 503"):
            await driver.ask(("asks 1 deaf 99",))
    assert not jobs.jobs["job/1"].answers


@pytest.mark.parametrize("job", [{}, {"events_url": "{start}/{job}/events"}], ids=["states", "events"])
async def test_a_killed_run_taken_up_again_does_not_answer_twice(
    jobs: Jobs, tmp_path: Path, job: dict[str, Any]
) -> None:
    async with asking(jobs, tmp_path) as driver:
        asked = asyncio.ensure_future(driver.ask(("asks 1 slowly looks 60",), name="c.r0.t0"))
        await asyncio.to_thread(jobs.wait_for, "job/1", 20)
        asked.cancel()
        await asyncio.wait({asked})
    jobs.jobs["job/1"].looks = 0 if job else 99  # with events the job goes on, and its stream starts again
    async with asking(jobs, tmp_path, **job) as driver:
        answer = await driver.ask(("asks 1 slowly looks 60",), name="c.r0.t0")
    assert jobs.jobs["job/1"].answers == ["I don't know."]
    assert len(answer.evidence.questions) == 1


async def test_an_answer_that_may_not_have_arrived_is_sent_again_word_for_word(jobs: Jobs, tmp_path: Path) -> None:
    async with asking(jobs, tmp_path, stumbles=1000) as driver:
        asked = asyncio.ensure_future(driver.ask(("asks 1 deaf 1000",), name="c.r0.t0"))
        await asyncio.to_thread(jobs.wait_for, "job/1", 5)
        asked.cancel()
        await asyncio.wait({asked})
    jobs.jobs["job/1"].deaf = 1000
    async with asking(jobs, tmp_path, default_answer="Something else.") as driver:
        answer = await driver.ask(("asks 1 deaf 1000",), name="c.r0.t0")
    assert jobs.jobs["job/1"].answers == ["I don't know."]
    assert [one.answer for one in answer.evidence.questions] == ["I don't know."]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("answer", "{answer}", "not JSON"),
        ("answer", '{"answer": "yes"}', "{answer} is missing"),
        ("answer_url", "{job}/{nothing}", "{nothing} is not a placeholder"),
        ("most_questions", -1, "greater than or equal to 0"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(key: str, value: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        JobSettings.model_validate({key: value})
