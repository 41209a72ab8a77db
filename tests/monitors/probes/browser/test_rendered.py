"""Test that no renderer of a chat page makes Lookout lose a character within a line of an answer.

Seeded Markdown is rendered by real renderers and must be read exactly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from monitors.errors import CaptureUnsure
from monitors.probes.browser.inpage import load_page_script
from monitors.records.base import Blame
from monitors.records.exchanges import AnswerPart, PartKind
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver, SharedChromium
from tests.zoo.rendered import BUNDLE, open_page, read_many
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

ROOM = "is a room paid for?"
SLICE = 40
"""The number of answers that this test renders. `make soak` reads 10,000."""


@pytest_asyncio.fixture(loop_scope="session")
async def page(shared_chromium: SharedChromium) -> AsyncIterator[object]:
    async with await (await shared_chromium.start_if_needed()).new_context() as context:
        yield await context.new_page()


@pytest.mark.skipif(not BUNDLE.is_file(), reason="the renderers are not built: make renderers (needs npm)")
async def test_answers_of_random_markdown_are_read_to_the_character(page) -> None:
    await open_page(page)
    seen = await read_many(page, 0, SLICE)
    assert seen.wrong == []
    assert seen.unsure + seen.nothing <= 1


@pytest.mark.whole_only
@pytest.mark.skipif(not BUNDLE.is_file(), reason="the renderers are not built: make renderers (needs npm)")
@pytest.mark.parametrize(
    ("seed", "unsure"),
    [(503, 0), (1099, 0), (6477, 0), (772, 0), (5007, 0), (8369, 0), (2699, 1), (7911, 1)],
    ids=[
        "a citation is a list's item", "a citation that is a link is one", "Devanagari figures before a time",
        "a time is the answer, and one stands beside it", "a time in a table's head", "a time in a table",
        "a time or a mark", "a name or a time",
    ],
)  # fmt: skip
async def test_answers_that_read_like_labels(page, seed, unsure) -> None:
    """An answer that looks like a label is never read wrongly. On an ambiguous page, the reading is unsure."""
    await open_page(page)
    seen = await read_many(page, seed, 1)
    assert (seen.wrong, seen.unsure) == ([], unsure)


async def test_brackets_of_a_style_sheet_stand_around_a_citations_number(page) -> None:
    """Brackets that a style sheet adds around the number of a citation are read.

    Other text from a style sheet is ignored: quotation marks, icons, brackets around words.
    """
    await page.add_init_script(load_page_script())
    await page.goto("about:blank")
    await page.set_content(
        """<style>a::before, cite::before { content: "[" } a::after, cite::after { content: "]" }
        q::before { content: "“" } b::after { content: "\\e901" }</style>
        <p>24 months<a href="#"><sup>1</sup></a>, <cite>Gold Plan</cite>, <q>4</q> of <b>12</b> days.</p>"""
    )
    read = await page.evaluate("__lookout.textOf(document.body)")
    assert [character for character in read if not (character.isalnum() or character in " ,.")] == ["[", "]"]
    assert "months[1]," in read


async def test_a_figure_at_the_edge_that_may_be_the_answers_own_leaves_it_ungraded(
    zoo: str, driver_for: MakeDriver
) -> None:
    """If the figure at the edge of an answer may be the age of the message, the answer is not graded.

    If the figure belonged to the answer and Lookout removed it, a right answer could become wrong.
    """
    async with driver_for(f"{zoo}/eta.html", screenshots="never", traces="never") as driver:
        question = "when does it arrive?"
        with pytest.raises(CaptureUnsure, match=r"48 hours.*probe\.selectors\.answer") as failed:
            await driver.ask((question,))
    assert failed.value.blame is Blame.MONITOR
    assert failed.value.partial_text == reply(question)


async def test_a_receipt_with_its_time_is_no_figure_of_the_answers(zoo: str, driver_for: MakeDriver) -> None:
    """A receipt such as "Read 10:02" between question and answer is not part of the answer.

    Every answer after such a receipt is read.
    """
    async with driver_for(f"{zoo}/socket.html", patience_s=3) as driver:
        answer = await driver.ask((ROOM,))
    assert answer.visible_text == reply(ROOM)


async def test_with_the_answers_element_named_the_same_page_is_sure(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/eta.html", selectors={"answer": ".theirs"}) as driver:
        question = "when does it arrive?"
        answer = await driver.ask((question,))
    assert answer.visible_text.splitlines() == [reply(question), "48 hours"]


async def test_hidden_text_is_stored_as_evidence(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/advisor.html") as driver:
        answer = await driver.ask((ROOM,))
    assert answer.evidence.parts[0] == AnswerPart(kind=PartKind.NAME, text="Advisor")
    assert all(part in answer.visible_text for part in ("24 months", "₹15,000"))
