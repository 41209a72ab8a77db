"""Tests of a real Streamlit chat, which renders its whole page again for each question."""

from __future__ import annotations

import pytest

from monitors.errors import AppErrorShown
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver

pytestmark = ONE_BROWSER


def whole(question: str) -> str:
    """Return the answer that the page of the echo app shows for a question."""
    return f"The waiting period for {question} is 24 months [Source: Policy P-100, clause 4.2]."


@pytest.mark.whole_only
async def test_both_answers_of_a_conversation_come_back_whole(streamlit: str, driver_for: MakeDriver) -> None:
    async with driver_for(streamlit) as driver:
        answer = await driver.ask(("steps slow 1 hip", "pause 3 eye"))
    assert (answer.earlier, answer.visible_text) == ((whole("steps slow 1 hip"),), whole("pause 3 eye"))


@pytest.mark.parametrize("profile", [None, "generic"])
@pytest.mark.whole_only
async def test_an_exception_in_the_script_is_the_apps_error(
    streamlit: str, driver_for: MakeDriver, profile: str | None
) -> None:
    async with driver_for(streamlit, profile=profile) as driver:
        with pytest.raises(AppErrorShown, match="provider is out of reach") as raised:
            await driver.ask(("boom eye",))
    assert "for boom eye" in raised.value.partial_text


@pytest.mark.whole_only
async def test_it_needs_no_profile(streamlit: str, driver_for: MakeDriver) -> None:
    """The page is read with the generic profile, which is used for unknown pages."""
    async with driver_for(streamlit, profile="generic", patience_s=5) as driver:
        assert (await driver.ask(("pause 3 eye",))).visible_text == whole("pause 3 eye")
