"""Test that a page that cannot be used gives a reason, a blame and a screenshot, and never a wrong answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    NotReady,
    PageNotUnderstood,
    ProbeError,
    RateLimited,
    Unreachable,
)
from monitors.records.base import Blame
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER


async def _failure(driver_for: MakeDriver, address: str, question: str = "hello", **changes: object) -> ProbeError:
    async with driver_for(address, **changes) as driver:
        with pytest.raises(ProbeError) as raised:
            await driver.ask((question,), name="case")
    return raised.value


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_an_http_error_is_the_apps(zoo: str, driver_for: MakeDriver, status: int) -> None:
    failure = await _failure(driver_for, f"{zoo}/status/{status}")
    assert isinstance(failure, Unreachable)
    assert str(status) in str(failure)
    assert failure.blame is Blame.APP


async def test_nobody_listens(driver_for: MakeDriver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    failure = await _failure(driver_for, f"http://127.0.0.1:{port}")
    assert isinstance(failure, Unreachable)
    assert "ERR_CONNECTION_REFUSED" in str(failure)


async def test_f63_no_chat_on_the_page_is_shown_with_a_picture_and_what_was_seen(
    zoo: str, driver_for: MakeDriver, tmp_path: Path
) -> None:
    failure = await _failure(driver_for, f"{zoo}/nothing.html")
    assert isinstance(failure, PageNotUnderstood)
    assert failure.blame is Blame.MONITOR
    assert "We sell umbrellas" in str(failure)
    assert failure.evidence.screenshot == "evidence/case.jpg"
    assert (tmp_path / "evidence/case.jpg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("nothing.html", "umbrellas"),
        ("contact.html", "Type your message"),
        ("twins.html", "may be the message box"),
    ],
)
async def test_a_page_without_a_chat_says_so_once_it_has_settled(
    zoo: str, driver_for: MakeDriver, page: str, seen: str
) -> None:
    """A page without a chat is reported as soon as it has settled, before the deadline.

    Nothing is sent to a human agent.
    """
    failure = await _failure(driver_for, f"{zoo}/{page}", page_deadline_s=1200)
    assert isinstance(failure, PageNotUnderstood)
    assert seen in str(failure)


async def test_a_chat_that_its_server_may_still_send_is_waited_for(zoo: str, driver_for: MakeDriver) -> None:
    """Lookout waits for a chat on a page that is idle but still listens to its server."""
    async with driver_for(f"{zoo}/slow_start.html?socket") as driver:
        answer = await driver.ask(("hello",))
    assert answer.visible_text == reply("hello")


@pytest.mark.parametrize("page", ["loading.html?says", "loading.html"])
@pytest.mark.whole_only
async def test_a_page_that_is_still_loading_at_its_deadline_is_worth_another_try(
    zoo: str, driver_for: MakeDriver, page: str
) -> None:
    failure = await _failure(driver_for, f"{zoo}/{page}", page_deadline_s=7)
    assert failure.retryable
    assert isinstance(failure, NotReady)
    assert failure.blame is Blame.APP
    assert "still loading" in str(failure)


async def test_a_box_that_nothing_sends_is_the_monitors(zoo: str, driver_for: MakeDriver) -> None:
    failure = await _failure(driver_for, f"{zoo}/deaf.html", answer_deadline_s=6)
    assert isinstance(failure, PageNotUnderstood)
    assert failure.blame is Blame.MONITOR
    assert "is still in" in str(failure)


async def test_an_ambiguous_answer_is_shown_and_not_graded(zoo: str, driver_for: MakeDriver) -> None:
    failure = await _failure(driver_for, f"{zoo}/whispers.html", answer_deadline_s=4)
    assert isinstance(failure, PageNotUnderstood)
    assert "advisers are near you" in str(failure)


async def test_a_limit_of_requests_is_no_wall(zoo: str, driver_for: MakeDriver) -> None:
    """A rate limit (HTTP 429) is not a login wall.

    The limit ends by itself. The monitor is blamed for it, not the app.
    """
    failure = await _failure(driver_for, f"{zoo}/status/429")
    assert isinstance(failure, RateLimited)
    assert failure.blame is Blame.MONITOR


@pytest.mark.parametrize("page", ["login.html", "quota.html", "status/401"])
async def test_f64_a_login_or_quota_wall_is_the_monitors(zoo: str, driver_for: MakeDriver, page: str) -> None:
    failure = await _failure(driver_for, f"{zoo}/{page}")
    assert isinstance(failure, AccessDenied)
    assert failure.blame is Blame.MONITOR


@pytest.mark.whole_only
async def test_a_way_to_log_in_is_no_wall_before_a_chat_that_comes_late(zoo: str, driver_for: MakeDriver) -> None:
    """A "Log in" link is not a login wall if guests can use a chat that appears late."""
    async with driver_for(f"{zoo}/guest.html") as driver:
        answer = await driver.ask(("hello",))
    assert answer.visible_text == reply("hello")


@pytest.mark.parametrize(
    ("page", "question"),
    [("contenteditable.html", "die eye"), ("alarm.html", "silent die eye"), ("socket.html", "die eye")],
)
async def test_f62_a_stream_that_drops_is_incomplete(
    zoo: str, driver_for: MakeDriver, page: str, question: str
) -> None:
    """An answer whose stream drops is incomplete, whether the message box is enabled again or stays locked."""
    failure = await _failure(driver_for, f"{zoo}/{page}", question)
    assert isinstance(failure, AnswerIncomplete)
    assert failure.partial_text
    assert reply(question).startswith(failure.partial_text)


@pytest.mark.parametrize("question", ["die eye", "fail now"])
async def test_an_alert_on_the_page_is_the_apps_error(zoo: str, driver_for: MakeDriver, question: str) -> None:
    failure = await _failure(driver_for, f"{zoo}/alarm.html", question)
    assert isinstance(failure, AppErrorShown)
    assert "Something went wrong" in str(failure)


async def test_a_page_of_an_http_error_is_no_answer(zoo: str, driver_for: MakeDriver) -> None:
    """If a plain form answers with an HTTP error page, the page is not taken for the bot's answer."""
    failure = await _failure(driver_for, f"{zoo}/form", "fail now")
    assert isinstance(failure, AppErrorShown)


async def test_silence_is_a_timeout(zoo: str, driver_for: MakeDriver) -> None:
    failure = await _failure(driver_for, f"{zoo}/alarm.html", "slow 30 please", answer_deadline_s=2)
    assert isinstance(failure, AnswerTimeout)
    assert failure.partial_text == ""


async def test_an_answer_still_coming_at_its_deadline_is_incomplete(zoo: str, driver_for: MakeDriver) -> None:
    question = "pause 30 please"
    failure = await _failure(driver_for, f"{zoo}/contenteditable.html", question, answer_deadline_s=3)
    assert isinstance(failure, AnswerIncomplete)
    assert reply(question).startswith(failure.partial_text)


@pytest.mark.whole_only
async def test_a_stop_button_that_was_forgotten_keeps_no_whole_answer_back(
    zoo: str, driver_for: MakeDriver
) -> None:
    """If the page still shows a stop button at the deadline, a complete answer is returned nevertheless.

    The framework forgot to remove the button.
    """
    async with driver_for(f"{zoo}/stuck.html", answer_deadline_s=8, patience_s=1) as driver:
        answer = await driver.ask(("hello",))
    assert answer.visible_text == reply("hello")
    assert answer.evidence.settle_samples[-1].busy


async def test_an_answer_that_stops_in_mid_sentence_under_a_stop_button_is_incomplete(
    zoo: str, driver_for: MakeDriver
) -> None:
    question = "pause 60 please"
    failure = await _failure(driver_for, f"{zoo}/stuck.html", question, answer_deadline_s=8, patience_s=1)
    assert isinstance(failure, AnswerIncomplete)
    assert "busy" in str(failure)
    assert reply(question).startswith(failure.partial_text)
