"""Tests of hints.

Each match of a slow pattern contains one of the pattern's hints. So the pattern is searched only in texts with a
hint, and no match may be missed.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.facts.error_leaks import FORMAL, TRACE, TRACE_HINTS
from monitors.facts.refusals.lecture import HINTED as LECTURES
from monitors.facts.text import Hinted, to_caseless
from tests.tiers import scale_examples

HINTED = [*(shape for shapes in FORMAL for shape in shapes), *LECTURES]


@pytest.mark.whole_only
@pytest.mark.parametrize("hinted", HINTED, ids=lambda hinted: hinted.pattern.pattern[:40])
def test_hints_let_every_match_of_the_pattern_through(hinted: Hinted) -> None:
    """The hints miss no text that the pattern matches, even if it matches a non-ASCII letter by ignoring case."""

    @settings(max_examples=scale_examples(60), deadline=None, database=None)
    @given(st.from_regex(hinted.pattern))
    def holds(text: str) -> None:
        found = hinted.pattern.search(text)
        said = hinted.search(text, to_caseless(text))
        assert (found is None) == (said is None), text

    holds()


@settings(max_examples=scale_examples(200), deadline=None, database=None)
@given(st.from_regex(TRACE))
def test_every_frame_of_a_stack_has_a_hint(text: str) -> None:
    """Every frame of a stack trace contains a hint, even if the text starts with the frame.

    Before the search for hints, a line break is added in front of the text.
    """
    assert not TRACE.search(text) or any(map(("\n" + text.lower()).__contains__, TRACE_HINTS))


@given(st.text(max_size=40), st.sampled_from(["sſ", "iıİ", "kK"]))
def test_caseless_is_what_a_pattern_without_regard_to_case_reads(text: str, alike: str) -> None:
    """`to_caseless` replaces each letter with the ASCII letter that it matches if case is ignored."""
    for letter in alike:
        assert re.search(alike[0], letter, re.IGNORECASE)
        assert alike[0] in to_caseless(text + letter)
