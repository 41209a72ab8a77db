"""A page that is still starting is waited for; a password field beside a chat is no login page."""

from __future__ import annotations

import pytest

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
