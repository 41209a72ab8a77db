import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.exchanges import Channel, WirePayload
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, Span
from monitors.reports.marked_text import (
    Secret,
    apply_masks,
    apply_masks_to_part,
    build_case_redactor,
    collect_disclosed_personal_data,
    find_masks,
    redact_case_text,
)
from tests.monitors.reports.parts import case_result, exchange, failed, gold_case, redact, span

DIGITS = re.compile(r"\d+")


def hide_digits(text: str) -> str:
    return DIGITS.sub("•", text)


WORDS = st.lists(st.sampled_from(["a", "12", "b7", " ", "  ", "\n", "x@y.in", "4111 1111 1111", ",", "क"])).map(
    "".join
)
GLUE = st.sampled_from([" ", ",", "", "/", "1"])
NAME = (Secret("SECRET", "name"),)
WAYS = (hide_digits, redact, str.swapcase, lambda _: "", lambda text: f"> {text}", lambda text: text + text)


@given(WORDS)
def test_masks_alone_say_what_the_redaction_says(text):
    """Applying the masks that are found for a redaction function gives the text that the function returns."""
    for way in WAYS:
        assert apply_masks(text, find_masks(text, (), way)) == way(text) == redact_case_text(text, (), way)


@given(WORDS, GLUE, WORDS)
def test_a_find_never_comes_back_by_way_of_its_neighbours(before, glue, after):
    """A redaction that changes the words around a secret does not make the secret visible again."""
    text = f"{before}{glue}SECRET{glue}{after}SECRET"
    for way in WAYS:
        assert "SECRET" not in apply_masks(text, find_masks(text, NAME, way)).upper()
        assert "SECRET" not in redact_case_text(text, NAME, way).upper()


@given(WORDS, st.sampled_from(" \n"), WORDS)
def test_beside_a_find_the_redactions_work_stays_in_its_place(before, glue, after):
    text = f"{before}{glue}SECRET{glue}{after}"
    shown = apply_masks(text, find_masks(text, NAME, hide_digits))
    assert shown == redact_case_text(text, NAME, hide_digits) == hide_digits(text.replace("SECRET", "[name]"))


@given(WORDS, GLUE, WORDS)
def test_masks_stand_in_order_and_apart(before, glue, after):
    text = f"{before}{glue}SECRET{glue}{after}"
    for way in WAYS:
        edges = [edge for mask in find_masks(text, NAME, way) for edge in (mask.start, mask.end)]
        assert edges == sorted(edges)
        assert all(0 <= edge <= len(text) for edge in edges)


@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "too long to compare"])
def test_a_graders_find_is_hidden_even_when_the_redaction_misses_it(padding):
    text = "word " * padding + "account SH-1 of x@y.in ends"
    secrets = (Secret("SH-1", "account number"),)
    for shown in (redact_case_text(text, secrets, redact), apply_masks(text, find_masks(text, secrets, redact))):
        assert shown == text.replace("SH-1", "[account number]").replace("x@y.in", "[redacted]")


def leak_over_the_wire():
    """Return a case with a leak that the grader read from the network messages.

    The page, the reason and an earlier answer repeat the leaked text.
    """
    case = gold_case("c", ("who?", "and now?"), "refuse")
    sent = "It is SH-407, of Meera. [Source: x]"
    where = span(sent, "SH-407", "account number", Channel.WIRE)
    grade = failed("disclosure", Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE, "an account number", where)
    other = failed(
        "quantities", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, "r", span(sent, "Meera", "x", Channel.WIRE)
    )
    came = exchange(
        case,
        "It is SH-407, of Meera.",
        wire=WirePayload(url="http://x", text=sent),
        graded_channel=Channel.WIRE,
        earlier_answers=("SH-407?",),
    )
    return case_result(case, came, CaseOutcome.FAILED, "it says SH-407", grade, other)


def test_a_disclosure_found_in_one_text_is_masked_in_all():
    result = leak_over_the_wire()
    assert collect_disclosed_personal_data(result) == (Secret("SH-407", "account number"),)
    safe = build_case_redactor(result, redact)
    for text in (result.result.visible_text, result.assessment.reason):
        assert "SH-407" in text
        assert safe(text) == text.replace("SH-407", "[account number]")


def test_of_overlapping_finds_all_is_hidden():
    text = "mail to x@y.in now"
    secrets = (Secret("to x@y.in", "line"), Secret("x@y.in now", "rest"))
    assert redact_case_text(text, secrets, str) == "mail [line] [rest]"


def test_a_span_beyond_its_text_or_of_white_space_finds_nothing():
    case = gold_case("c", "q", "g")
    beyond = Span(where=Channel.VISIBLE, start=90, end=99, label="x")
    blank = Span(where=Channel.VISIBLE, start=1, end=2, label="x")
    grade = failed("d", Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE, "r", beyond, blank)
    assert (
        collect_disclosed_personal_data(case_result(case, exchange(case, "a b"), CaseOutcome.FAILED, "r", grade))
        == ()
    )


def test_a_part_of_a_text_never_cuts_a_mask():
    text = "call 4111 1111 1111 today"
    masks = find_masks(text, (), redact)
    assert apply_masks_to_part(text, masks, 0, 8) == "call [redacted]"
    assert apply_masks_to_part(text, masks, 20, 25) == "today"
