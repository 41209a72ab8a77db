"""Tests of the drivers for chat APIs.

The tests use the JSON and the event streams of a hand-written server, and the API of a real Gradio app.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import (
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    ConfigError,
    EndNotFound,
    NoSuchPath,
    PageNotUnderstood,
    ProbeError,
    Unreachable,
)
from monitors.probes.api.driver import fill_request_template
from monitors.probes.api.gradio import extract_gradio_answer
from monitors.probes.choose import build_driver
from monitors.probes.driver import ChatDriver
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame
from tests.monitors.probes.scripted import Ticking
from tests.zoo.server import reply

JSON = {
    "text": "reply.text",
    "citations": "sources.*.title",
    "app_path": "model",
    "latency_ms": "ms",
    "request": '{"question": "{question}", "before": "{history}", "session": "{conversation}"}',
}
SSE = {"text": "token", "citations": "sources.*"}


def asking(
    address: str, driver: str, api: dict[str, Any] | None = None, **changes: Any
) -> AbstractAsyncContextManager[ChatDriver]:
    """Return a driver for ``address`` that is built from these settings, as for a configured target."""
    settings = ProbeSettings.model_validate({"driver": driver, "api": api or {}, **changes})
    return build_driver(address, settings, run_folder=Path("unused"), clock=Ticking())


async def test_json_gives_text_citations_path_and_latency(zoo: str) -> None:
    async with asking(f"{zoo}/chat", "json", JSON) as driver:
        answer = await driver.ask(("first", "second"))
    assert (answer.earlier, answer.visible_text) == ((reply("first"),), reply("second"))
    assert answer.wire is not None
    assert answer.wire.citations == ("P-100 §4",)
    assert (answer.app_path, answer.wire.app_latency_ms) == ("primary", 12)


async def test_earlier_turns_go_along_in_one_conversation(zoo: str) -> None:
    api = {**JSON, "text": "asked.before.*.content", "joins": False}
    async with asking(f"{zoo}/chat", "json", api) as driver:
        with pytest.raises(PageNotUnderstood, match="matches nothing"):
            await driver.ask(("first",))  # there is no turn before the first one
    api = {**JSON, "text": "asked.session"}
    async with asking(f"{zoo}/chat", "json", api) as driver:
        answer = await driver.ask(("first", "second"))
        other = await driver.ask(("first",))
    assert answer.earlier == (answer.visible_text,)
    assert other.visible_text != answer.visible_text


async def test_tokens_of_an_event_stream_are_joined(zoo: str) -> None:
    async with asking(f"{zoo}/sse", "sse", SSE) as driver:
        answer = await driver.ask(("slow 0.2 eye",))
    assert answer.visible_text == reply("slow 0.2 eye")
    assert answer.wire is not None
    assert answer.wire.citations == ("P-100",)
    assert answer.timings.first_token_ms is not None
    assert 200 <= answer.timings.first_token_ms < answer.timings.total_ms


FAILURES = [
    ("/sse", "sse", SSE, "cut eye", AnswerIncomplete),
    ("/sse", "sse", SSE, "die eye", AnswerIncomplete),
    ("/sse", "sse", SSE, "slow 30 eye", AnswerTimeout),
    ("/sse", "sse", SSE, "pause 30 eye", AnswerIncomplete),
    ("/chat", "json", JSON, "fail eye", Unreachable),
    ("/chat", "json", JSON, "refuse eye", AppErrorShown),
    ("/chat", "json", {"text": "nowhere"}, "eye", PageNotUnderstood),
    ("/form", "json", JSON, "eye", PageNotUnderstood),
    ("/status/401", "json", JSON, "eye", ProbeError),
]


@pytest.mark.parametrize(
    ("path", "driver", "api", "question", "error"), FAILURES, ids=[f"{row[0]} {row[3]}" for row in FAILURES]
)
async def test_every_way_to_fail_has_its_error(
    zoo: str, *, path: str, driver: str, api: dict[str, Any], question: str, error: type[ProbeError]
) -> None:
    async with asking(f"{zoo}{path}", driver, api, answer_deadline_s=1.5) as chat:
        with pytest.raises(error) as raised:
            await chat.ask((question,))
    assert reply(question).startswith(raised.value.partial_text)
    if error is AnswerIncomplete:
        assert raised.value.partial_text


async def test_a_stream_is_cut_off_only_where_another_ended_as_it_is_configured(zoo: str) -> None:
    """A stream counts as cut off only after another stream ended with the configured end event.

    Until then, a wrong event name in the settings looks the same as an application that breaks off.
    """
    async with asking(f"{zoo}/sse", "sse", SSE, answer_deadline_s=5) as driver:
        with pytest.raises(
            EndNotFound, match=r"without the end event '\[DONE\]'\. The last event was .*token"
        ) as first:
            await driver.ask(("cut eye",))
        await driver.ask(("eye",))
        with pytest.raises(AnswerIncomplete) as later:
            await driver.ask(("cut eye",))
    assert (first.value.blame, later.value.blame) == (Blame.MONITOR, Blame.APP)
    assert not isinstance(later.value, EndNotFound)


async def test_a_path_that_takes_no_question_is_named_and_no_outage(zoo: str) -> None:
    async with asking(f"{zoo}/elsewhere?key=1", "json", JSON) as driver:
        with pytest.raises(NoSuchPath, match=r"^HTTP 404 at /elsewhere: the path does not exist$") as raised:
            await driver.ask(("eye",))
    assert raised.value.blame is Blame.MONITOR


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    for driver in ("json", "gradio"):
        async with asking(address, driver) as chat:
            with pytest.raises(Unreachable):
                await chat.ask(("eye",))


async def test_an_unknown_driver_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'telnet'.*browser, gradio, json, sse, job"):
        asking("http://x", "telnet")


@given(st.text())
def test_no_question_breaks_out_of_the_request(question: str) -> None:
    template = {"messages": [{"role": "user", "content": "Q: {question}"}], "n": 3}
    assert fill_request_template(template, question, [], "c") == {
        "messages": [{"role": "user", "content": f"Q: {question}"}],
        "n": 3,
    }


async def test_gradios_api_is_asked_many_times_at_once(gradio: str) -> None:
    questions = [f"pause 0.5 case {number}" for number in range(4)]
    async with asking(gradio, "gradio") as driver:
        answers = await asyncio.gather(*(driver.ask((question,)) for question in questions))
    for question, answer in zip(questions, answers, strict=True):
        assert f"for {question} is" in answer.visible_text
        assert answer.visible_text.endswith("clause 4.2].")


@pytest.mark.whole_only
async def test_gradios_steps_are_not_the_answer(gradio: str) -> None:
    async with asking(gradio, "gradio") as driver:
        answer = await driver.ask(("first", "steps eye"))
    assert "for steps eye is" in answer.visible_text
    assert "for first is" in answer.earlier[0]


@pytest.mark.whole_only
async def test_gradios_exception_is_the_apps(gradio: str) -> None:
    async with asking(gradio, "gradio") as driver:
        with pytest.raises(AppErrorShown, match="out of reach") as raised:
            await driver.ask(("boom eye",))
    assert raised.value.partial_text.startswith("The waiting period")


async def test_a_page_that_is_not_gradio_says_so(zoo: str) -> None:
    async with asking(zoo, "gradio") as driver:
        with pytest.raises(Unreachable, match="404"):
            await driver.ask(("eye",))


SHAPES = [
    (["plain", None], "plain"),
    (
        [
            [
                {"role": "assistant", "content": "a", "metadata": {"title": "Step"}},
                {"role": "assistant", "content": "b"},
            ],
            None,
        ],
        "b",
    ),
    ([{"role": "assistant", "content": [{"type": "text", "text": "b"}]}], "b"),
    ([[{"role": "user", "content": "q"}, {"role": "assistant", "content": "b", "metadata": {}}]], "b"),
    ([], ""),
    (None, ""),
]


@pytest.mark.parametrize(("data", "text"), SHAPES)
def test_the_result_of_a_chat_function_has_one_text(data: Any, text: str) -> None:
    assert extract_gradio_answer(data) == text
