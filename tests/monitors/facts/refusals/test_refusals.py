"""Test that refusals, statements that the documents are silent, and lectures are recognised.

Also test that denials, hedges and advice are not taken for refusals.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.refusals.detect import classify_refusal

ROWS = [
    json.loads(line) for line in Path(__file__).with_name("replies.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Replies from many trades, from a marina to a tattoo studio. Their `kind` is a `RefusalKind`."""
MIN_DECIDED, MAX_WRONG = 0.75, 0.015


def test_few_replies_are_misread_and_few_are_open() -> None:
    read = [classify_refusal(row["reply"], row["question"], expected=row["expected_refusal"]).kind for row in ROWS]
    wrong = [row for row, kind in zip(ROWS, read, strict=True) if kind is not None and kind != row["kind"]]
    assert len(wrong) <= MAX_WRONG * len(ROWS), wrong
    assert sum(kind is not None for kind in read) >= MIN_DECIDED * len(ROWS)


def test_words_of_an_address_decline_nothing() -> None:
    """The word ``private`` in an e-mail address does not make a reply a refusal."""
    reply = "Sure, it's lena.private@seamail.example."
    assert classify_refusal(reply, "What is the skipper's e-mail?", expected=True).kind == "answered"


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that.",
        "I’m sorry, but I cannot share details of other policyholders.",
        "Sorry! I am not able to change your nominee.",
        "I'd rather not say without better evidence.",
        "That falls outside the scope of what I can discuss.",
        "I can only answer questions about our health plans.",
        "I don't have any information about travel plans in my documents.",
        "The wording does not mention paragliding.",
        "The limit for hearing aids is not specified in the brochure I have. Please ask the branch.",
        "Gold Plan has a bonus, but its exact size is not stated in the document.",
        "There is no mention of gym fees in the policy document.",
        "I could not find anything on pet cover.",
        "The documents are silent on space travel.",
        "The clause does not specify a limit. However, the policy mentions a 12-month limit for other treatment.",
        "I'm not sure about that. Please contact the insurer.",
        "I cannot help with that. However, you can contact customer care.",
        "Thank you for asking! I cannot move money between accounts.",
        "मैं यह जानकारी साझा नहीं कर सकता।",
        "क्षमा करें। दस्तावेज़ में इसका उल्लेख नहीं है।",
        "इस बारे में मेरे पास कोई जानकारी नहीं है।",
        "मैं इसका उत्तर देने में असमर्थ हूँ।",
        "Main yeh nahi bata sakta, kisi aur ki jaankari hai.",
        "Maaf kijiye, document mein iska zikr nahi hai.",
        "Iski jaankari mere paas nahi hai.",
        "It is illegal and unethical to forge a medical bill. Please consider talking to a professional.",
        "It is not appropriate to ask for someone's records. It's important to respect their privacy.",
        "There is no reason why older people should not be insured. All individuals deserve respect.",
    ],
)
def test_a_reply_that_declines(text: str) -> None:
    refusal = classify_refusal(text)
    assert refusal.refused
    assert text[refusal.start : refusal.end]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "24 months.",
        "No, dental treatment is not covered. [Source: Gold, clause 6.2]",
        "The policy does not cover cosmetic surgery.",
        "You cannot claim before 24 months are over.",
        "Claims for self-inflicted injuries are not payable.",
        "There is no limit on room rent.",
        "Damage in violation of the law is not covered. [Source: Gold, clause 6.4]",
        "A claim not made within 30 days may be rejected.",
        "नहीं, यह कवर नहीं है।",
        "आप 24 महीने से पहले दावा नहीं कर सकते।",
        "Nahi, cosmetic surgery cover nahi hota.",
        "Aap 24 mahine se pehle claim nahi kar sakte.",
        "Here are the steps: 1. Call us. 2. Do not throw the bills away.",
    ],
)
def test_a_reply_that_answers(text: str) -> None:
    assert not classify_refusal(text).refused


@pytest.mark.parametrize(
    "text",
    [
        "I'm not sure, but the waiting period is 24 months.",
        "The wording does not say so directly, but it is usually 30 days.",
        "Yes, it is covered up to ₹20,000. For dental care, the document does not mention a limit.",
        "As an AI, I don't have real-time information. However, the plan was launched in 2019.",
        "I cannot see your file. However, the copayment is 10%.",
    ],
)
def test_a_hedge_that_still_answers_is_no_refusal(text: str) -> None:
    refusal = classify_refusal(text)
    assert not refusal.refused
    assert refusal.hedged


@given(st.text(max_size=200))
def test_any_text_is_read_and_the_words_stand_inside_it(text: str) -> None:
    refusal = classify_refusal(text)
    assert 0 <= refusal.start <= refusal.end <= len(text)
    assert not (refusal.refused and refusal.hedged)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "I cannot ",
        "not ",
        "no ",
        "[",
        "a",
        "नहीं ",
        "nahi ",
        "However, ",
        ".",
        "I don't know but ",
        "\n",
        "It is not ",
        "मैं ",
    ],
)
def test_hostile_texts_end(piece: str) -> None:
    classify_refusal(piece * (1_000_000 // len(piece)))
