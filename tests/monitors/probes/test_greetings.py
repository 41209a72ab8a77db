"""What a page says to everybody is known after a few of them, and is no answer when it comes late."""

from __future__ import annotations

import pytest

from monitors.probes.greetings import Greetings
from tests.monitors.probes.conftest import MakeDriver
from tests.zoo.server import reply

WELCOME = "Welcome! Ask me about your policy."


def test_a_line_is_a_greeting_when_two_pages_and_half_of_all_said_it() -> None:
    greetings = Greetings()
    greetings.note([WELCOME, "Yes.", "an offer of the hour, for one visitor"])
    assert greetings.lines() == ()
    greetings.note([WELCOME, "Yes."])
    assert greetings.lines() == (WELCOME,)
    for _ in range(3):
        greetings.note(["something else that is long enough"])
    assert greetings.lines() == ("something else that is long enough",)


@pytest.mark.browser
async def test_a_greeting_that_comes_after_the_question_is_no_answer(zoo: str, driver_for: MakeDriver) -> None:
    """Two pages have greeted in time; the third one's greeting comes between question and answer."""
    async with driver_for(f"{zoo}/greeting.html", patience_s=2) as driver:
        await driver.ask(("one",))
        await driver.ask(("two",))
    async with driver_for(f"{zoo}/greeting.html?late", patience_s=2) as late:
        late._greetings = driver._greetings  # one target, whose pages differ in haste alone
        answer = await late.ask(("slow 2 three",))
    assert answer.visible_text == reply("slow 2 three")
