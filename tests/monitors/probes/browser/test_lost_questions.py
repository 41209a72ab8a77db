"""Test that a question is sent once more if the page loses it while connecting. The app is not blamed for this."""

from __future__ import annotations

import pytest

from monitors.errors import PageNotUnderstood
from monitors.probes.browser.network import can_contain_text
from monitors.records.base import Blame
from tests.monitors.probes.conftest import MakeDriver, shares_browser
from tests.zoo.server import reply

QUESTIONS = ("what of eyes?", "what of ears?", "what of teeth?")


@pytest.mark.whole_only
@shares_browser
@pytest.mark.parametrize("mode", ["", "?beats=1"])
async def test_a_question_that_no_request_held_is_sent_once_more(
    zoo: str, driver_for: MakeDriver, mode: str
) -> None:
    """If no request of the page contained the question, it is sent once more.

    This also holds if the page receives a heartbeat or other data.
    """
    async with driver_for(f"{zoo}/connecting.html{mode}", patience_s=3) as driver:
        first = await driver.ask(QUESTIONS[:2])
        second = await driver.ask(QUESTIONS[2:])
    assert (*first.earlier, first.visible_text, second.visible_text) == tuple(map(reply, QUESTIONS))


@pytest.mark.whole_only
@shares_browser
@pytest.mark.parametrize("mode", ["deaf", "beats=2"])
async def test_a_question_that_is_lost_twice_is_the_monitors_fault(
    zoo: str, driver_for: MakeDriver, mode: str
) -> None:
    async with driver_for(f"{zoo}/connecting.html?{mode}") as driver:
        with pytest.raises(PageNotUnderstood, match="no request and no web socket") as raised:
            await driver.ask(QUESTIONS[:1])
    assert raised.value.blame is Blame.MONITOR


@pytest.mark.parametrize(
    ("sent", "is_held"),
    [
        ('{"q": "What of \\"eyes\\"?\\nAnd 5 %?"}', True),
        ("q=What+of+%22eyes%22%3F%0AAnd+5+%25%3F", True),
        ('[{"text":"What of \\u0022eyes\\u0022? And 5 %?"}]', True),
        ('{"beat": true}', False),
        (b"\xff\x00" * 20, True),
        (b"\xff\x00", False),
    ],
)
def test_what_a_page_sent_is_searched_for_the_question(sent: str | bytes, is_held: bool) -> None:
    assert can_contain_text(sent, 'What of "eyes"?\nAnd 5 %?') is is_held
