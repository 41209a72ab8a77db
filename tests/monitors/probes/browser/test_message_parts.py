"""Test that names, tool cards, reasoning, sources and status in a chat message are stored as separate parts."""

from __future__ import annotations

import pytest

from monitors.records.exchanges import PartKind
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

QUESTIONS = ("what of eyes?", "what of ears?", "pause 2 what of teeth?")


async def test_what_is_marked_up_as_a_part_or_headed_as_sources_is_not_the_answer(
    zoo: str, driver_for: MakeDriver
) -> None:
    async with driver_for(f"{zoo}/parts.html") as driver:
        first = await driver.ask(QUESTIONS[:2])
        second = await driver.ask(QUESTIONS[2:])
    assert (*first.earlier, first.visible_text, second.visible_text) == tuple(map(reply, QUESTIONS))
    parts = {piece.kind: piece.text for piece in second.evidence.parts}
    assert set(parts) >= {PartKind.THINKING, PartKind.TOOL, PartKind.SOURCE, PartKind.STATUS}
    assert "48 months" in parts[PartKind.THINKING]
    assert "draft 7" in parts[PartKind.TOOL]
    assert "P-100, page 4" in parts[PartKind.SOURCE]
    assert {"Tarini", "gpt-4.1-mini"} <= {piece.text for piece in second.evidence.parts}


async def test_a_name_that_nothing_marks_is_known_after_two_answers(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/parts.html?plain") as driver:
        answers = [await driver.ask((question,)) for question in QUESTIONS]
    assert answers[0].visible_text in (f"Tarini\n{reply(QUESTIONS[0])}", reply(QUESTIONS[0]))
    assert answers[2].visible_text == reply(QUESTIONS[2])
    assert answers[2].evidence.aside == ("Tarini",)


@pytest.mark.parametrize("mode", ["", "?list"])
async def test_a_card_with_a_source_is_a_part_without_its_controls(
    zoo: str, driver_for: MakeDriver, mode: str
) -> None:
    async with driver_for(f"{zoo}/cards.html{mode}") as driver:
        first = await driver.ask(QUESTIONS[:2])
        second = await driver.ask(QUESTIONS[2:])
    texts = [reply(question).removesuffix(" [Source: P-100]") for question in QUESTIONS]
    assert [*first.earlier, first.visible_text, second.visible_text] == texts
    assert [(piece.kind, piece.text) for piece in second.evidence.parts] == [
        (PartKind.SOURCE, "Cited policies\nP-100 Suraj Care\nSection 4, page 12")
    ]


async def test_a_heading_that_stands_in_every_answer_still_heads_its_sources(
    zoo: str, driver_for: MakeDriver
) -> None:
    async with driver_for(f"{zoo}/cards.html?empty") as driver:
        for question in ("short of eyes?", "short of ears?"):
            await driver.ask((question,))
        answer = await driver.ask(QUESTIONS[1:2])
    assert answer.visible_text == reply(QUESTIONS[1]).removesuffix(" [Source: P-100]")
    assert [piece.kind for piece in answer.evidence.parts] == [PartKind.SOURCE]
