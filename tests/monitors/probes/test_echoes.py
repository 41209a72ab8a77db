"""Test that the question is recognised in any formatting, so that it is never part of its own answer."""

from __future__ import annotations

import pytest

from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

HTML = (
    "what do \"quotes\" & <b>tags</b> mean for plan6497 – 'really'? 🙂",
    'is <a href="https://policy.example/clauses?number=4&amp;part=2" title="the clause">clause 4</a> &lt;still&gt; in force?',
    "hip<!-- the left one --> &amp; knee &#8211; covered&#63;<br>and the eyes?",
)
MARKDOWN = (
    "is **knee surgery** _always_ covered by `plan6497`?",
    'what does [clause 4.2](https://policy.example/clauses/4.2#waiting "the clause") say of ![a knee](knee.png) knees?',
    "please compare:\n1. hip surgery\n2. knee surgery\n- [x] with a room\n- [ ] without one",
    "# Waiting periods\nwhat does this print?\n```python\nprint('24 months' < \"36 months\")\n```",
    "[yes](https://policy.example/a/long/address/of/the/clause)",
)


@pytest.mark.whole_only
@pytest.mark.parametrize(("page", "questions"), [("as_html.html", HTML), ("as_markdown.html", MARKDOWN)])
@pytest.mark.a_slice(1)
async def test_markup_of_the_user_that_the_page_carries_out_is_no_answer(
    zoo: str, driver_for: MakeDriver, page: str, questions: tuple[str, ...]
) -> None:
    async with driver_for(f"{zoo}/{page}") as driver:
        answers = [(await driver.ask((question,))).visible_text.split() for question in questions]
    assert answers == [reply(question).split() for question in questions]


async def test_a_list_of_conversations_that_repeats_the_question_leaves_it_out_of_the_answer(
    zoo: str, driver_for: MakeDriver
) -> None:
    """If a list of conversations on the page repeats the question, the repetition is not part of the answer.

    If the bot repeats the question in its reply, the repetition is part of the answer.
    """
    async with driver_for(f"{zoo}/revealed.html") as driver:
        answers = [
            (await driver.ask((question,))).visible_text for question in ("what is plan1?", "repeat: plan2?")
        ]
    assert answers[0] == reply("what is plan1?")
    assert answers[1].startswith("repeat: plan2? It is")
    assert answers[1].endswith("clause 4.2 says.")
