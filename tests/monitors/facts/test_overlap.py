"""Tests of the similarity of two texts, and of the search for similar pairs. The search misses no pair."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.similarity import (
    build_character_ngrams,
    compute_jaccard_index,
    find_alike_pairs,
    fold_case_and_punctuation,
)

SETS = st.lists(st.frozensets(st.text("abcdef", min_size=1, max_size=2), min_size=1, max_size=12), max_size=14)


def test_letter_case_spacing_and_punctuation_make_no_difference():
    """A question is the same with any letter case, spacing and punctuation."""
    assert fold_case_and_punctuation("What  is the WAITING\u00a0period?!") == fold_case_and_punctuation(
        "what is the waiting period"
    )


def test_a_text_overlaps_itself_wholly_and_a_stranger_not_at_all():
    """A text overlaps fully with itself, and not at all with an unrelated text."""
    assert compute_jaccard_index(build_character_ngrams("room rent"), build_character_ngrams("room rent")) == 1
    assert compute_jaccard_index(build_character_ngrams("room rent"), build_character_ngrams("zzzz")) == 0


@pytest.mark.parametrize("text", ["", "a", "ab", "के"])
def test_a_short_text_has_one_gram_at_least(text):
    """Even a short text has at least one n-gram of characters, so that it can be compared."""
    assert build_character_ngrams(text)


@given(SETS, st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_the_filter_finds_exactly_what_comparing_all_pairs_finds(sets, threshold):
    """The prefix filter finds exactly the pairs that a comparison of all pairs finds."""
    expected = {
        (i, j) for i, j in combinations(range(len(sets)), 2) if compute_jaccard_index(sets[i], sets[j]) >= threshold
    }
    assert {(i, j) for i, j, _ in find_alike_pairs(sets, threshold)} == expected
