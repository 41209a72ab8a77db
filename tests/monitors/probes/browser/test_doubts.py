"""Test that text that may not be the answer is never graded, and that a notice of the app is not an answer."""

from __future__ import annotations

import pytest

from monitors.errors import AnswerTimeout, AppErrorShown, CaptureUnsure, PageNotUnderstood, ProbeError
from monitors.records.base import Blame
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

pytestmark = ONE_BROWSER

LONG = "I was in hospital for three days in March, and again in April: is the second stay paid for?"


async def _failure(driver_for: MakeDriver, address: str, question: str, **changes: object) -> ProbeError:
    async with driver_for(address, **changes) as driver:
        with pytest.raises(ProbeError) as raised:
            await driver.ask((question,))
    return raised.value


@pytest.mark.parametrize("question", ["what of eyes?", "slow 5 what of eyes?"])
async def test_a_greeting_that_comes_by_a_timer_is_no_answer_of_the_first_question_either(
    zoo: str, driver_for: MakeDriver, question: str
) -> None:
    """A greeting that a timer shows before or after the first answer is not taken for the answer.

    The greeting differs for each visitor.
    """
    async with driver_for(f"{zoo}/late_welcome.html") as driver:
        answer = await driver.ask((question,))
    assert answer.visible_text == reply(question)


async def test_a_greeting_alone_is_silence(zoo: str, driver_for: MakeDriver) -> None:
    failure = await _failure(driver_for, f"{zoo}/late_welcome.html?silent", "what of eyes?", answer_deadline_s=6)
    assert isinstance(failure, AnswerTimeout)


@pytest.mark.parametrize("way", ["", "?inline"])
async def test_an_error_in_the_answers_place_is_the_apps(zoo: str, driver_for: MakeDriver, way: str) -> None:
    failure = await _failure(driver_for, f"{zoo}/banner.html{way}", "fail now")
    assert isinstance(failure, AppErrorShown)
    assert failure.blame is Blame.APP
    assert "An error occurred" in str(failure)


async def test_text_from_before_the_question_is_not_an_answer(zoo: str, driver_for: MakeDriver) -> None:
    failure = await _failure(driver_for, f"{zoo}/revealed.html?only", LONG, answer_deadline_s=8, patience_s=1)
    assert isinstance(failure, CaptureUnsure | PageNotUnderstood)
    assert failure.blame is Blame.MONITOR
    assert "written by a machine" in f"{failure} {failure.partial_text}"


async def test_a_notice_and_a_title_beside_the_answer_are_no_part_of_it(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/revealed.html") as driver:
        answer = await driver.ask((LONG, LONG.replace("April", "May")))
    assert answer.earlier == (reply(LONG),)
    assert answer.visible_text == reply(LONG.replace("April", "May"))


@pytest.mark.parametrize("way", ["", "?begin"])
async def test_the_question_said_back_is_not_graded(zoo: str, driver_for: MakeDriver, way: str) -> None:
    failure = await _failure(driver_for, f"{zoo}/parrot.html{way}", LONG, patience_s=1, answer_deadline_s=15)
    assert isinstance(failure, CaptureUnsure)
    assert "only repeats the question" in str(failure)


async def test_one_line_for_different_questions_that_nothing_proves_an_answer_is_not_graded(
    zoo: str, driver_for: MakeDriver
) -> None:
    async with driver_for(f"{zoo}/parrot.html?same", patience_s=1) as driver:
        await driver.ask(("what of eyes?",))
        with pytest.raises(CaptureUnsure, match="the answer to another question"):
            await driver.ask(("what of ears?",))


async def test_one_answer_to_different_questions_is_graded_where_the_page_proves_it(
    zoo: str, driver_for: MakeDriver
) -> None:
    """The same answer to different questions is graded if the page proves that it belongs to each question."""
    async with driver_for(f"{zoo}/contenteditable.html") as driver:
        answers = [await driver.ask((question,)) for question in ("short eyes?", "short ears?")]
    assert [answer.visible_text for answer in answers] == [reply("short"), reply("short")]
