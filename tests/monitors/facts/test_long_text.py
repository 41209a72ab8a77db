"""Tests of very long texts.

Both ends are read, the middle is withheld and marked, and the work grows linearly with the length.
"""

from __future__ import annotations

import cProfile
import gc
import json
from collections.abc import Callable

import pytest

from deployments.cli.pipes.answers import extract_facts, redact_line
from monitors.alerts.redact import redact, redact_with_findings
from monitors.facts.quantities.scan import read_facts
from monitors.facts.text import MAX_TEXT_LENGTH, PART_LENGTH, find_unread_middle
from monitors.graders.disclosure import DisclosureGrader
from monitors.records.grades import Abstained, Judged
from tests.bench.bench_grading import build_case, build_exchange

FILLER = "nothing to see here, "


def long_text(first: str, middle: str, last: str) -> str:
    fill = FILLER * (MAX_TEXT_LENGTH // len(FILLER))
    half = len(fill) // 2
    return f"{first} {fill[:half]} {middle} {fill[half:]} {last}"


def test_the_ends_are_masked_and_the_middle_is_withheld_with_a_mark():
    text = long_text("asha@example.com", "ravi@example.com", "mina@example.com")
    found = redact_with_findings(text)
    assert "example.com" not in found.text
    assert found.text.startswith("[e-mail] nothing")
    assert found.text.endswith("[e-mail]")
    assert f"{len(text) - 2 * PART_LENGTH:,} characters not read" in found.text
    assert [text[one.start : one.end] for one in found.found] == ["asha@example.com", "mina@example.com"]


@pytest.mark.whole_only
@pytest.mark.parametrize("shift", range(-16, 17, 4))
def test_a_find_on_the_border_is_not_cut_in_two(shift):
    secret = "asha.rao@example.com"
    plain = "a" * (PART_LENGTH + shift - 8) + " " + secret + " "
    text = f"{plain}{'b ' * MAX_TEXT_LENGTH}"
    shown = redact(text)
    assert "not read" in shown
    assert not any(part in shown for part in ("asha", "rao", "example"))


def test_the_pipes_say_what_was_not_read():
    text = long_text("5 days", "6 days", "7 days")
    answer = extract_facts({"text": text})
    assert [fact["text"] for fact in answer["facts"]] == ["5 days", "7 days"]
    assert [text[fact["span"][0] : fact["span"][1]] for fact in answer["facts"]] == ["5 days", "7 days"]
    assert answer["unread"] == [PART_LENGTH, len(text) - PART_LENGTH]
    masked = redact_line({"text": text})
    assert masked["unread"] == [PART_LENGTH, len(text) - PART_LENGTH]
    assert "unread" not in extract_facts({"text": "5 days"}) | redact_line({"text": "5 days"})
    json.dumps(answer)


def test_an_answer_of_which_a_part_was_not_read_is_not_called_clean():
    grader, case = DisclosureGrader(), build_case()
    clean = grader.grade(case, build_exchange(long_text("", "ravi@example.com", "")))
    assert isinstance(clean, Abstained)
    assert "characters in the middle" in clean.reason
    leaking = grader.grade(case, build_exchange(long_text("", "", "call 98765 43210")))
    assert isinstance(leaking, Judged)
    assert not leaking.passed
    assert isinstance(grader.grade(case, build_exchange("a" * MAX_TEXT_LENGTH)), Judged)


def test_a_text_of_the_longest_length_is_read_whole():
    text = ("5 days. " + FILLER * (MAX_TEXT_LENGTH // len(FILLER)))[: MAX_TEXT_LENGTH - 7] + " 6 days"
    assert find_unread_middle(text) is None
    assert [fact.text for fact in read_facts(text)] == ["5 days", "6 days"]


def calls(work: Callable[[str], object], text: str) -> int:
    """Return how many function calls ``work`` makes on ``text``, including calls of built-in functions.

    This number does not depend on the clock or on earlier tests.
    """
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()  # finalizers of objects from earlier tests would count as calls
    profile.enable()
    try:
        work(text)
    finally:
        profile.disable()
        gc.enable()
    return sum(row.callcount for row in profile.getstats())


GRADER = DisclosureGrader()
READERS: dict[str, Callable[[str], object]] = {
    "redact": redact,
    "facts": read_facts,
    "grade": lambda text: GRADER.grade(build_case(), build_exchange(text)),
}
PATTERNS = (
    "a.b@example.com ",
    "x@y.in",
    "2345 6789 0123 ",
    "+91 98",
    "8.8.8.8 ",
    "2001:db8::1 ",
    "½",
    "5 to 10 ",
    "v1.",
)


@pytest.mark.whole_only
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.a_slice(4)
def test_five_times_the_text_is_at_most_six_times_the_work(reader, pattern):
    work = READERS[reader]
    work(pattern * 20)  # tables are built once
    few, many = (calls(work, (pattern * n)[:n]) for n in (1_500, 7_500))
    if (
        many > 6 * few
    ):  # other tests may have pushed patterns out of Python's cache, so that they were compiled again
        many = calls(work, (pattern * 7_500)[:7_500])
    assert many <= 6 * few
