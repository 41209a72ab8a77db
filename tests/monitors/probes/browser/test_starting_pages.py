"""Test that Lookout waits for a page that is still starting.

A password field beside a chat does not make a page a login page.
"""

from __future__ import annotations

import pytest
from playwright.async_api import Frame, Page

from monitors.probes.browser import discover
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

QUESTIONS = ("what of eyes?", "what of ears?", "what of teeth?")


@pytest.mark.whole_only
async def test_a_key_field_beside_a_chat_is_no_login_page(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/starting.html") as driver:
        first = await driver.ask(QUESTIONS[:2])
        second = await driver.ask(QUESTIONS[2:])
    assert (*first.earlier, first.visible_text, second.visible_text) == tuple(map(reply, QUESTIONS))


@pytest.mark.whole_only
async def test_a_page_that_is_signing_in_is_not_given_up(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/starting.html?late") as driver:
        answer = await driver.ask(QUESTIONS[:1])
    assert answer.visible_text == reply(QUESTIONS[0])


async def test_a_chat_that_appears_while_lookout_judges_the_page_is_found(
    zoo: str, driver_for: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat that appears while Lookout decides whether the page has settled is found.

    Lookout inspects the settled page once more before it reports that there is no chat.
    """

    async def show_chat(_page: Page, frame: Frame, _waited_s: float) -> bool:
        await frame.evaluate("start()")
        return True

    monkeypatch.setattr(discover, "_has_settled", show_chat)
    async with driver_for(f"{zoo}/starting.html?late") as driver:
        answer = await driver.ask(QUESTIONS[:1])
    assert answer.visible_text == reply(QUESTIONS[0])
