"""Excerpts are short, redacted and about the evidence, and never contain a part of an identifier."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.redact import MAX_READ_CHARACTERS, build_redacted_excerpt

SECRETS = ("asha.rao@mail.example", "4539 1488 0343 6467", "IN-HLT-0098123", "ABCPK1234F")
PATTERNS = (r"IN-HLT-\d{7}",)
FILLER = "The policy covers day care. "


def test_a_short_text_stays_as_it_is():
    assert build_redacted_excerpt("24 months\n  from now", limit=80) == "24 months from now"


def test_nothing_is_empty():
    assert build_redacted_excerpt(" \n\t ", limit=80) == ""


def test_a_long_text_is_cut_visibly():
    shown = build_redacted_excerpt(FILLER * 40, limit=80)
    assert len(shown) <= 80
    assert shown.endswith("…")


def test_the_excerpt_is_moved_to_the_evidence():
    text = FILLER * 200 + "The waiting period is nine weeks. " + FILLER * 200
    shown = build_redacted_excerpt(text, limit=120, evidence_at=text.index("nine"))
    assert "nine weeks" in shown
    assert (shown[0], shown[-1]) == ("…", "…")


def test_evidence_at_the_very_end_is_shown():
    text = FILLER * 30 + "The limit is nine lakh."
    shown = build_redacted_excerpt(text, limit=120, evidence_at=text.index("nine"))
    assert shown.endswith("nine lakh.")


@pytest.mark.parametrize("secret", SECRETS)
@given(
    place=st.integers(0, MAX_READ_CHARACTERS + 400), around=st.none() | st.integers(0, MAX_READ_CHARACTERS + 800)
)
def test_no_cut_shows_a_part_of_an_identifier(secret, place, around):
    """An excerpt never shows a part of an identifier.

    For any position of the identifier and of the evidence, the excerpt contains no five consecutive characters of
    the identifier.
    """
    text = (FILLER * 400)[:place] + f" {secret} " + FILLER * 60
    shown = build_redacted_excerpt(text, limit=280, account_patterns=PATTERNS, evidence_at=around)
    assert len(shown) <= 280
    tells = {secret[at : at + 5] for at in range(len(secret) - 4)} - {" mail", "mail."}
    assert not [part for part in tells if part in shown]


@given(st.text(), st.integers(40, 300), st.none() | st.integers(0, 50))
def test_the_limit_holds_for_any_text(text, limit, around):
    assert len(build_redacted_excerpt(text, limit=limit, evidence_at=around)) <= limit


@pytest.mark.parametrize("shift", range(0, 24, 2))
def test_masks_that_shrink_a_text_do_not_bring_a_cut_identifier_into_view(shift):
    """Redaction does not bring a part of a cut identifier into the excerpt.

    A text is cut before it is redacted. Redaction shortens long secrets, which could otherwise move half of an
    identifier from the place of the cut into the excerpt.
    """
    token = "eyJhbGciOiJIUzI1NiJ9." + "a" * 500 + "." + "b" * 200
    tokens = f"{token} " * 6
    text = tokens[: MAX_READ_CHARACTERS - 12 - shift].rsplit(" ", 1)[0]
    text += (
        " "
        + "x" * (MAX_READ_CHARACTERS - 12 - shift - len(text) - 2)
        + " 4539 1488 0343 6467 and more "
        + FILLER * 9
    )
    shown = build_redacted_excerpt(text, limit=1000)
    assert "4539" not in shown
