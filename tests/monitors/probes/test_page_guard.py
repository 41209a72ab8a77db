"""Test that a page of the app cannot reach Lookout's internal network.

Only a page at the app's own address counts as a page of the app.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from monitors.errors import AnswerIncomplete, LeftTarget, ProbeError
from monitors.records.base import Blame
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.servers.hostile_page import ASKING, LEAVING, SECRET, Inside, asking_in_every_way, hostile, serving

pytestmark = ONE_BROWSER
QUESTION = "is knee surgery covered?"


@pytest.fixture
def inside() -> Iterator[Inside]:
    """Yield a service on another port of this machine. The service is internal and not part of the target."""
    with serving(Inside()) as server:
        yield server


@pytest.mark.parametrize("way", LEAVING)
@pytest.mark.a_slice(2)
@pytest.mark.whole_only
async def test_f38_a_page_leads_nowhere_inside(inside: Inside, driver_for: MakeDriver, way: str) -> None:
    """If a page leads to the internal network, no question is typed.

    The content of the internal page is not returned as an answer.
    """
    with hostile(LEAVING[way], inside) as address:
        async with driver_for(address, answer_deadline_s=8, page_deadline_s=8) as driver:
            with pytest.raises(ProbeError) as failure:
                await driver.ask((QUESTION,))
    assert (inside.connections, inside.reached_by) == (0, set())
    assert SECRET not in failure.value.partial_text
    assert f"127.0.0.1:{inside.server_port}" in failure.value.evidence.refused[0]
    if "frame" not in way:
        assert isinstance(failure.value, LeftTarget)
        assert failure.value.blame is Blame.APP
        assert address in str(failure.value)


@pytest.mark.whole_only
async def test_f38_a_page_asks_nobody_inside(inside: Inside, driver_for: MakeDriver) -> None:
    """A page cannot reach the internal service by an HTTP request, a socket, a worker or a UDP packet.

    The attempts are stored as evidence, and the page's own answer is read.
    """
    with hostile(asking_in_every_way(), inside) as address:
        async with driver_for(address, patience_s=5) as driver:
            answer = await driver.ask((QUESTION,))
    assert (inside.connections, inside.reached_by) == (0, set())
    assert answer.visible_text.startswith("Knee surgery is covered.")
    assert SECRET not in answer.visible_text
    assert len(answer.evidence.refused) == 1, answer.evidence.refused


@pytest.mark.whole_only
async def test_allowed_addresses_are_open(inside: Inside, driver_for: MakeDriver) -> None:
    """If the internal service is allowed, a page reaches it. So the other tests would detect such a page.

    WebRTC, WebTransport and a service worker are the only ways that may fail here.
    """
    with hostile(asking_in_every_way(), inside) as address:
        own = f"http://127.0.0.1:{inside.server_port}"
        async with driver_for(address, patience_s=5, allowed_origins=(own,)) as driver:
            with suppress(AnswerIncomplete):  # with so many streams, one may have broken off
                assert (await driver.ask((QUESTION,))).evidence.refused == ()
    assert set(ASKING) - inside.reached_by <= {"WebRTC", "WebTransport", "service-worker"}
    with hostile(LEAVING["on submit"], inside) as address:
        async with driver_for(address, patience_s=3, allowed_origins=(own,)) as driver:
            assert SECRET in (await driver.ask((QUESTION,))).visible_text
