"""Test that a message is recognised by its position, whatever its ARIA role. A page's own alert is still read."""

from __future__ import annotations

import pytest

from monitors.errors import AppErrorShown
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

# Both contain words that error messages use: "denied", "failed", and "limit" in the answers.
TURNS = ("why was my claim denied, what failed?", "and the limit of the second claim that failed?")


@pytest.mark.parametrize("bot", ["", "&bot"])
@pytest.mark.parametrize("role", ["alert", "status", "log", "article", "listitem"])
@pytest.mark.a_slice(2)
async def test_messages_of_any_role_are_read(zoo: str, driver_for: MakeDriver, role: str, bot: str) -> None:
    async with driver_for(f"{zoo}/roles.html?role={role}{bot}") as driver:
        answer = await driver.ask(TURNS)
    assert (answer.earlier, answer.visible_text) == ((reply(TURNS[0]),), reply(TURNS[1]))


async def test_with_messages_that_are_alerts_named_answers_are_read_too(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/roles.html", selectors={"answer": ".theirs .text"}) as driver:
        answer = await driver.ask(TURNS)
    assert (answer.earlier, answer.visible_text) == ((reply(TURNS[0]),), reply(TURNS[1]))


@pytest.mark.parametrize("role", ["alert", "status"])
async def test_the_pages_own_alert_is_still_its_error(zoo: str, driver_for: MakeDriver, role: str) -> None:
    async with driver_for(f"{zoo}/roles.html?role={role}") as driver:
        with pytest.raises(AppErrorShown, match="The request failed"):
            await driver.ask(("fail now: was it denied?",))
