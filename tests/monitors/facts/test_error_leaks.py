"""An internal error that an app shows in place of an answer is found; an answer about errors passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.error_leaks import ErrorLeakKind, find_error_leak

K = ErrorLeakKind
ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("error_leak_rows.jsonl").read_text(encoding="utf-8").splitlines()
]
LONG = "The gateway of the clinic is described in this brochure. " * 30


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error code: 429 - {'error': {'message': 'slow down', 'type': 'requests'}}", K.ERROR_BODY),
        ('{"detail": "Not authenticated"}', K.ERROR_BODY),
        ('Sorry: {"error":"model not loaded"}', K.ERROR_BODY),
        ("Rate limit reached for model-x in organisation y", K.PROVIDER_ERROR),
        ("429 Too Many Requests", K.PROVIDER_ERROR),
        ("You exceeded your current quota, please check your plan.", K.PROVIDER_ERROR),
        ("openai.RateLimitError: slow down", K.PROVIDER_ERROR),
        ("The model is currently overloaded.", K.PROVIDER_ERROR),
        ("Incorrect API key provided", K.PROVIDER_ERROR),
        ("HTTPSConnectionPool: Max retries exceeded with url", K.PROVIDER_ERROR),
        ("Internal Server Error", K.SERVER_ERROR),
        ("<html><head><title>502 Bad Gateway</title>", K.SERVER_ERROR),
        ("Something went wrong. Please try again later.", K.SERVER_ERROR),
        ('Traceback (most recent call last):\n  File "bot.py", line 3, in answer', K.STACK_TRACE),
        (LONG + "Traceback (most recent call last):\n" + LONG, K.STACK_TRACE),
        ("TypeError: oh\n    at answer (/srv/bot.js:12:7)", K.STACK_TRACE),
        ("KeyError: 'policy'", K.STACK_TRACE),
        (LONG + "Rate limit exceeded", K.PROVIDER_ERROR),
        ("Error: insufficient balance", K.PROVIDER_ERROR),
    ],
)
def test_an_error_in_place_of_an_answer(text: str, kind: ErrorLeakKind) -> None:
    leak = find_error_leak(text)
    assert leak is not None
    assert leak.kind is kind
    assert 0 <= leak.start < leak.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The claim limit is ₹5,00,000 and the request must come within 429 hours.",
        "An error in the form can be corrected within 30 days.",
        "Your claim was refused because the limit was reached.",
        "Exceptions: dental care. Error and omission cover is not included.",
        LONG + "A rate limit exceeded by the hospital is a matter for the hospital. " + LONG,
        "Steps: {name}, {date} and the details: none.",
        "A doctor's certificate is required from the third day.",
        "Our service is not available on Sundays.",
        "I can't open it from here, but your balance is in the app.",
    ],
)
def test_an_answer_is_no_error(text: str) -> None:
    assert find_error_leak(text) is None


@pytest.mark.parametrize("half", ["first", "second"])
def test_errors_of_many_machines_are_found_and_answers_about_errors_pass(half: str) -> None:
    """Errors of SDKs, servers, drivers, runtimes and wrappers are found in many languages.

    Answers that are about errors and limits pass.
    """
    rows = [row for row in ROWS if row["half"] == half]
    missed = [row for row in rows if row["error_leak"] and not find_error_leak(row["answer"], row["question"])]
    alarms = [row for row in rows if not row["error_leak"] and find_error_leak(row["answer"], row["question"])]
    errors = sum(row["error_leak"] for row in rows)
    assert len(missed) <= 0.05 * errors, missed
    assert len(alarms) <= 0.015 * (len(rows) - errors), alarms


def test_the_question_decides_whether_error_words_are_an_answer() -> None:
    said = "429 Too Many Requests. Wait for the seconds that the header names, then send the call once more."
    assert find_error_leak(said, "What is the waiting period for cataract?") is not None
    assert find_error_leak(said, "What does error 429 of your API look like, and what do I do?") is None


def test_an_error_that_cuts_an_answer_off_is_found_at_its_end() -> None:
    text = LONG + "The room rent is one per cent of\n\n[ERROR] stream closed: IncompleteRead(40 bytes read)"
    leak = find_error_leak(text, "What is the room rent?")
    assert leak is not None
    assert text[leak.start :].startswith("[ERROR]")


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    leak = find_error_leak(text)
    assert leak is None or 0 <= leak.start < leak.end <= len(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["  at a(", 'File "', "{", "Error: a.", "\n", " ", "error ", "a.", "wrong "])
def test_hostile_texts_end(piece: str) -> None:
    find_error_leak(piece * (1_000_000 // len(piece)))


@pytest.mark.parametrize(
    "reply",
    [
        "450 pages", "503 euros", "429 members.", "404: balcony seats", "(450)", "500 g", "The code 450",
        "499 rupees per month", "Response 450 ml", "502", "400 metres from the harbour", "504 km, then the ferry.",
    ],
)  # fmt: skip
def test_a_bare_number_between_400_and_599_is_not_an_error(reply: str) -> None:
    assert find_error_leak(reply, "How many are there?") is None


@pytest.mark.parametrize(
    "reply",
    [
        "503 Service Unavailable", "Error 503", "429: Too many requests", "500 - the server failed", "HTTP 404",
        "The request failed (502)", "status code 400", "429 rate limit exceeded",
    ],
)  # fmt: skip
def test_a_number_with_the_shape_of_an_error_is_one(reply: str) -> None:
    assert find_error_leak(reply, "How many are there?") is not None
