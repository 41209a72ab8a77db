"""Test that Lookout learns which texts a page shows to every visitor, and does not take them for answers."""

from __future__ import annotations

import asyncio

import pytest

from monitors.probes.browser.greetings import Greetings, UnaskedPage
from monitors.probes.browser.inpage import call_in_page
from tests.monitors.probes.conftest import MakeDriver, shares_browser
from tests.zoo.server import reply

WELCOME = "Welcome! Ask me about your policy."


def test_a_line_is_a_greeting_when_two_pages_and_half_of_all_said_it() -> None:
    greetings = Greetings()
    greetings.count_lines_of_fresh_page([WELCOME, "Yes.", "an offer of the hour, for one visitor"])
    assert greetings.list_greeting_lines() == ()
    greetings.count_lines_of_fresh_page([WELCOME, "Yes."])
    assert greetings.list_greeting_lines() == (WELCOME,)
    other = "something else that is long enough"
    for _ in range(3):
        greetings.count_lines_of_fresh_page([other])
    assert greetings.list_greeting_lines() == (other,)


@shares_browser
@pytest.mark.whole_only
async def test_a_greeting_that_comes_after_the_question_is_no_answer(zoo: str, driver_for: MakeDriver) -> None:
    """If two pages greeted at once, the greeting of a third page is recognised even after the question."""
    async with driver_for(f"{zoo}/greeting.html", patience_s=2) as driver:
        await driver.ask(("one",))
        await driver.ask(("two",))
    async with driver_for(f"{zoo}/greeting.html?late", patience_s=2) as late:
        late._greetings = driver._greetings  # the same target, whose pages differ only in when they greet
        answer = await late.ask(("slow 2 three",))
    assert answer.visible_text == reply("slow 2 three")


@pytest.mark.whole_only
@shares_browser
async def test_a_greeting_is_no_answer_where_the_page_that_nobody_asks_comes_late(
    zoo: str, driver_for: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late greeting is not taken for the answer, even if the comparison page opens ten seconds late.

    The comparison page is a second page that gets no question. The page that was asked greets 2.5 s after it was
    loaded.
    """
    stand = UnaskedPage._open_page_and_collect_lines

    async def late(unasked: UnaskedPage) -> None:
        await asyncio.sleep(10)
        await stand(unasked)

    monkeypatch.setattr(UnaskedPage, "_open_page_and_collect_lines", late)
    async with driver_for(f"{zoo}/late_welcome.html") as driver:
        answer = await driver.ask(("slow 3 one",))
    assert answer.visible_text == reply("slow 3 one")


@shares_browser
@pytest.mark.whole_only
async def test_a_greeting_that_comes_in_the_second_turn_is_no_answer(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/late_welcome.html") as driver:
        last = "slow 1 pause 2 two"
        answer = await driver.ask(("one, instant", last))
    assert answer.visible_text == reply(last)


@shares_browser
async def test_a_page_that_only_counts_and_ticks_says_nothing_new(zoo: str, driver_for: MakeDriver) -> None:
    """Lookout stops waiting for a greeting even if the page keeps changing, here a counter of online users."""
    async with driver_for(f"{zoo}/socket.html") as driver, driver._pages.open_tab() as tab:
        chat = await driver._pages.open_chat_in_tab(tab)
        await call_in_page(chat.frame, "greeted", 2000, 600_000)
