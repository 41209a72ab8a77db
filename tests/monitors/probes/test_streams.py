"""Test answers with pauses: no answer is cut, mixed with another one, or read before its own response has ended."""

from __future__ import annotations

import pytest

from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.soak.soak_streams import ask_plan
from tests.zoo.questions import Reading
from tests.zoo.streams import Control, Place, Plan, Transport, build_plans

pytestmark = ONE_BROWSER

PATIENCE_S = 6
"""How long, in seconds, the driver waits for more text. This is longer than the pauses in these tests."""


@pytest.mark.parametrize(
    "plan",
    build_plans(44, 12, max_pause_s=4),
    ids=lambda plan: f"{plan.transport}-{plan.control}-{plan.place}-{plan.pause_s}",
)
@pytest.mark.a_slice(4)
async def test_an_answer_that_pauses_is_whole(zoo: str, driver_for: MakeDriver, plan: Plan) -> None:
    async with driver_for(f"{zoo}/{plan.address}", patience_s=PATIENCE_S) as driver:
        reading = await ask_plan(driver, plan, "plan432")
    assert reading.outcome is Reading.RIGHT, reading.detail


@pytest.mark.whole_only
@pytest.mark.parametrize("transport", [Transport.FETCH, Transport.EVENTS, Transport.POLLING])
async def test_a_control_that_goes_at_the_first_words_says_nothing_while_the_response_is_open(
    zoo: str, driver_for: MakeDriver, transport: Transport
) -> None:
    """A stop button that disappears at the first words does not mean the end while the response is still open.

    The test asks two questions in each of two conversations.
    """
    plan = Plan(transport, Control.FIRST, Place.SENTENCE, 2.5, turns=2)
    async with driver_for(f"{zoo}/{plan.address}", patience_s=PATIENCE_S) as driver:
        results = [await ask_plan(driver, plan, "plan432"), await ask_plan(driver, plan, "plan876")]
    assert [reading.outcome for reading in results] == [Reading.RIGHT] * 2, results


@pytest.mark.whole_only
async def test_a_poll_under_way_is_no_stream_that_stays_open(zoo: str, driver_for: MakeDriver) -> None:
    plan = Plan(Transport.POLLING, Control.FIRST, Place.WORD, 7.0, poll_s=0.7)
    async with driver_for(f"{zoo}/{plan.address}", patience_s=4) as driver:
        reading = await ask_plan(driver, plan, "plan432")
    assert reading.outcome is Reading.RIGHT, reading.detail


@pytest.mark.whole_only
async def test_polls_for_an_earlier_answer_are_no_polls_of_an_idle_page(zoo: str, driver_for: MakeDriver) -> None:
    plan = Plan(Transport.POLLING, Control.NONE, Place.SENTENCE, 7.5, turns=2)
    async with driver_for(f"{zoo}/{plan.address}", patience_s=4) as driver:
        reading = await ask_plan(driver, plan, "plan432")
    assert reading.outcome is Reading.RIGHT, reading.detail
