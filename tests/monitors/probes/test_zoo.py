"""Test pages without configuration: each answer is complete, has no other text, and belongs to its own turn."""

from __future__ import annotations

import pytest

from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo import bot
from tests.zoo.animals import APPLICATIONS, FRONTENDS, PAGES, Application, Page
from tests.zoo.questions import is_exact, words
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

# How the first answer begins, and one that says the question word for word. `make zoo` asks 20 of each application.
FIRST, SECOND = "is knee surgery of plan1234 covered? pause 1", "repeat after me: plan5678 covers maternity"
# Patience in seconds for pages on which the end of an answer cannot be distinguished from a pause.
PATIENT = dict.fromkeys(("socket.html", "pushed.html", "greeting.html"), 3)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.a_slice(4)
async def test_a_conversation_of_two_turns_comes_back_whole(zoo: str, driver_for: MakeDriver, page: Page) -> None:
    async with driver_for(f"{zoo}/{page.name}", patience_s=PATIENT.get(page.name, 12)) as driver:
        answer = await driver.ask((FIRST, SECOND))
    assert words(*answer.earlier) == words(page.reply(FIRST))
    assert words(answer.visible_text) == words(page.reply(SECOND))
    assert answer.timings.first_token_ms is not None
    assert answer.timings.total_ms >= answer.timings.first_token_ms
    assert answer.timings.opening_ms is not None
    assert answer.timings.settling_ms is not None


@pytest.mark.parametrize("application", [one for one in APPLICATIONS if one.environment], ids=lambda one: one.name)
@pytest.mark.whole_only
async def test_a_framework_in_an_environment_of_its_own(application: Application, driver_for: MakeDriver) -> None:
    if not application.installed:
        pytest.skip(f"{application.name} is not installed: make zoo")
    with application.serving() as address:
        async with driver_for(address, patience_s=3) as driver:
            answer = await driver.ask((FIRST, SECOND))
    assert words(*answer.earlier) == words(bot.reply(FIRST))
    assert words(answer.visible_text) == words(bot.reply(SECOND))


@pytest.mark.whole_only
@pytest.mark.parametrize("page", FRONTENDS, ids=lambda page: page.name)
async def test_a_front_end_by_npm(zoo: str, driver_for: MakeDriver, page: Page) -> None:
    """Three turns on a front end from npm are read exactly: a pause, quotes, tags and a repeated question."""
    if not page.is_installed:
        pytest.skip(f"{page.name} is not built: make frontends (needs npm)")
    turns = (FIRST, SECOND, "what do \"quotes\" & <b>tags</b> mean for plan9012 – 'really'? 🙂")
    async with driver_for(f"{zoo}/{page.name}", patience_s=3) as driver:
        answer = await driver.ask(turns)
    for question, text in zip(turns, (*answer.earlier, answer.visible_text), strict=True):
        assert is_exact(question, text, page.reply), text


@pytest.mark.whole_only
async def test_an_answer_pushed_on_an_old_stream_is_waited_for_with_patience(
    zoo: str, driver_for: MakeDriver
) -> None:
    """If an answer pauses on a pushed stream, the driver waits.

    The request that sent the question ended long before, so it does not show whether the answer has ended.
    """
    async with driver_for(f"{zoo}/pushed.html", patience_s=4) as driver:
        answer = await driver.ask((FIRST,))
    assert answer.visible_text == reply(FIRST)


@pytest.mark.whole_only
async def test_a_page_that_has_stopped_asking_for_more_is_not_waited_for_with_patience(
    zoo: str, driver_for: MakeDriver
) -> None:
    """When a page stops polling for its answer, the driver stops waiting, even if telemetry continues."""
    async with driver_for(f"{zoo}/polling.html", patience_s=600) as driver:
        question = "pause 4 is knee surgery of plan1234 covered?"
        answer = await driver.ask((question,))
    assert answer.visible_text == reply(question)


async def test_typed_text_reaches_the_app_unchanged(zoo: str, driver_for: MakeDriver) -> None:
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
        answer = await driver.ask(("and the eyes?",))
    assert answer.visible_text == reply("and the eyes?")
