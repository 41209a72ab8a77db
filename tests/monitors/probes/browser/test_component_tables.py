"""Test that tables of nested custom elements are read like native tables: every cell, in its row."""

from __future__ import annotations

from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

QUESTIONS = ("what of eyes?", "what of ears?", "what of teeth?")


def show_table(question: str) -> str:
    """Return the text of the table in the answer to ``question``, as a person reads it."""
    return f"Item\tLimit\tWait\nRoom\t₹4,000\t2 years\n{question}\t12\t10:30"


async def test_cells_in_slots_of_slots_are_read_in_their_rows(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/grid.html") as driver:
        first = await driver.ask(QUESTIONS[:2])
        second = await driver.ask(QUESTIONS[2:])
    source = "[Source: P-100]"
    whole = [
        f"{reply(question).removesuffix(f' {source}')}\n{show_table(question)}\n{source}" for question in QUESTIONS
    ]
    assert [*first.earlier, first.visible_text, second.visible_text] == whole


async def test_an_answer_that_is_a_table_alone_keeps_its_header_and_last_row(
    zoo: str, driver_for: MakeDriver
) -> None:
    async with driver_for(f"{zoo}/grid.html?table") as driver:
        answer = await driver.ask(QUESTIONS[:2])
    assert [*answer.earlier, answer.visible_text] == [show_table(question) for question in QUESTIONS[:2]]
