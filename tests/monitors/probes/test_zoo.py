"""Pages nobody configured: the whole answer, nothing but the answer, and each turn its own."""

from __future__ import annotations

import pytest

from tests.monitors.probes.conftest import MakeDriver
from tests.zoo.server import reply

pytestmark = pytest.mark.browser

PAGES = [
    "form",
    "contenteditable.html",
    "shadow.html",
    "framed.html",
    "newest_first.html",
    "consent.html",
    "clock.html",
    "replaced.html",
    "alarm.html",
    "folded.html",
]
FIRST, SECOND = "is knee surgery covered? pause 1.5", "and the eyes?"


@pytest.mark.parametrize("page", PAGES)
async def test_a_conversation_of_two_turns_comes_back_whole(zoo: str, driver_for: MakeDriver, page: str) -> None:
    async with driver_for(f"{zoo}/{page}") as driver:
        answer = await driver.ask((FIRST, SECOND))
    assert answer.earlier == (reply(FIRST),)
    assert answer.visible_text == reply(SECOND)
    assert answer.timings.first_token_ms is not None
    assert answer.timings.total_ms >= answer.timings.first_token_ms


async def test_a_nameless_button_that_wakes_on_keys_is_pressed(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/button_only.html") as driver:
        answer = await driver.ask((FIRST, SECOND))
    assert (answer.earlier, answer.visible_text) == ((reply(FIRST),), reply(SECOND))


async def test_two_bubbles_are_one_answer(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/two_bubbles.html") as driver:
        answer = await driver.ask((SECOND,))
    assert answer.visible_text == f"{reply(SECOND)}\nIs there anything else about {len(SECOND)} letters?"


async def test_an_answer_pushed_on_an_old_stream_is_waited_for_with_patience(
    zoo: str, driver_for: MakeDriver
) -> None:
    """The request that sent the question has long ended when the stream pauses: it proves nothing."""
    async with driver_for(f"{zoo}/pushed.html", patience_s=4) as driver:
        answer = await driver.ask((FIRST,))
    assert answer.visible_text == reply(FIRST)


async def test_what_is_typed_reaches_the_app_as_it_is(zoo: str, driver_for: MakeDriver) -> None:
    question = "₹1,50,000 के लिए \"quotes\" <b>&amp;</b> 'x' 🙂 – क्या?"
    async with driver_for(f"{zoo}/contenteditable.html") as driver:
        answer = await driver.ask((question,))
    assert answer.visible_text == reply(question)


@pytest.mark.parametrize("isolation", ["context", "reload", "new-chat"])
async def test_no_conversation_sees_another(zoo: str, driver_for: MakeDriver, isolation: str) -> None:
    async with driver_for(f"{zoo}/shadow.html", isolation=isolation) as driver:
        answers = [await driver.ask((question,)) for question in ("one", "two", "three")]
    assert [answer.visible_text for answer in answers] == [reply("one"), reply("two"), reply("three")]


async def test_selectors_of_the_target_win(zoo: str, driver_for: MakeDriver) -> None:
    selectors = {"message_box": "#box", "answer": "#talk .msg.bot p"}
    async with driver_for(f"{zoo}/contenteditable.html", selectors=selectors) as driver:
        answer = await driver.ask((SECOND,))
    assert answer.visible_text == reply(SECOND)
