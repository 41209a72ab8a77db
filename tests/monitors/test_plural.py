"""Tests of the function that formats a number with the singular or plural of a noun."""

from __future__ import annotations

import pytest

from monitors.plural import plural


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("case",), "0 cases"),
        (1, ("case",), "1 case"),
        (1_200, ("case",), "1,200 cases"),
        (1, ("try", "tries"), "1 try"),
        (2, ("try", "tries"), "2 tries"),
    ],
)
def test_one_is_singular_and_thousands_are_separated(count, nouns, text):
    assert plural(count, *nouns) == text
