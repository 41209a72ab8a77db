"""Test chats that must be opened first. Lookout clicks only an element that is proven to open the chat.

`lookout doctor` proposes a setting that names this element.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from deployments.cli.doctor.format import format_selectors_toml
from monitors.config.file import parse_config
from monitors.errors import CaptureUnsure, PageNotUnderstood, ProbeError
from monitors.probes.inspect.findings import AskPermission
from monitors.probes.inspect.page import inspect_page
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Blame
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

QUESTIONS = ("what of eyes?", "what of ears?")


@pytest.mark.parametrize("page", ["launcher.html", "topics.html", "launcher_frame.html", "tools.html"])
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
async def test_a_chat_that_must_be_opened_is_opened_for_each_question(
    zoo: str, driver_for: MakeDriver, page: str
) -> None:
    async with driver_for(f"{zoo}/{page}") as driver:
        answers = [(await driver.ask((question,))).visible_text for question in QUESTIONS]
    assert answers == [reply(question) for question in QUESTIONS]


@pytest.mark.parametrize(
    ("way", "error", "said"),
    [
        ("?only", PageNotUnderstood, "no usable message box"),
        ("?nameless", CaptureUnsure, "is possibly not the box of a chat"),
    ],
)
@pytest.mark.a_slice(1)
async def test_a_page_of_tools_without_a_chat_is_never_graded(
    zoo: str, driver_for: MakeDriver, way: str, error: type[ProbeError], said: str
) -> None:
    """A page with a tool that accepts any text and responds is not a chat, so its output is never graded."""
    async with driver_for(f"{zoo}/tools.html{way}", patience_s=1) as driver:
        for question in QUESTIONS:
            with pytest.raises(error, match=said) as raised:
                await driver.ask((question,))
            assert raised.value.blame is Blame.MONITOR


async def test_the_doctor_proposes_what_to_press_and_a_run_presses_it(
    zoo: str, settings: ProbeSettings, driver_for: MakeDriver, tmp_path: Path
) -> None:
    look = await inspect_page(
        f"{zoo}/topics.html", settings, picture=tmp_path / "look.png", asking=AskPermission.ALWAYS
    )
    assert look.problem is None
    assert look.open[0] == "#fab"
    assert len(look.open) == 3
    lines = f"[targets.page]\nurl = '{look.address}'\nsuite = 's.jsonl'\n{format_selectors_toml(look, 'page')}\n"
    probe = parse_config(tomllib.loads(lines), "printed").require_target("page").probe
    assert probe.open == look.open
    async with driver_for(look.address, **probe.model_dump(exclude_defaults=True)) as driver:
        answer = await driver.ask(QUESTIONS[:1])
    assert answer.visible_text == reply(QUESTIONS[0])


@pytest.mark.whole_only
async def test_a_pinned_launcher_that_is_not_there_is_named(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/topics.html", open=["#fab", "#gone"], page_deadline_s=5) as driver:
        with pytest.raises(
            PageNotUnderstood, match=r"probe\.open = '#gone' matches no clickable element on the page"
        ):
            await driver.ask(QUESTIONS[:1])


@pytest.mark.whole_only
async def test_buttons_pressed_in_vain_are_reported(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/nothing.html?launcher", page_deadline_s=1200) as driver:
        with pytest.raises(PageNotUnderstood, match="clicked without effect: “Need help"):
            await driver.ask(QUESTIONS[:1])


@pytest.mark.whole_only
async def test_a_tab_named_like_a_chat_is_pressed_where_it_can_be_though_it_stands_there_three_times(
    zoo: str, settings: ProbeSettings, driver_for: MakeDriver, tmp_path: Path
) -> None:
    questions = (*QUESTIONS, "what of teeth?")
    async with driver_for(f"{zoo}/panes.html") as driver:
        first = await driver.ask(questions[:2])
        second = await driver.ask(questions[2:])
    assert (*first.earlier, first.visible_text, second.visible_text) == tuple(map(reply, questions))
    look = await inspect_page(
        f"{zoo}/panes.html", settings, picture=tmp_path / "look.png", asking=AskPermission.NEVER
    )
    assert len(look.open) == 1
    async with driver_for(f"{zoo}/panes.html", open=list(look.open)) as driver:
        assert (await driver.ask(questions[:1])).visible_text == reply(questions[0])
