import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.reports.invisible import (
    format_character_name,
    replace_invisible_by_code_points,
    split_at_invisible_characters,
)


@given(st.text())
def test_runs_joined_are_the_text(text):
    """If a text is split into runs of visible and invisible characters, the joined runs equal the text."""
    assert "".join(run for run, _ in split_at_invisible_characters(text)) == text


@given(st.text())
def test_showing_twice_is_showing_once(text):
    shown = replace_invisible_by_code_points(text)
    assert replace_invisible_by_code_points(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\u202eb", "a[U+202E]b", id="right-to-left override"),
        pytest.param("pa\u200bss", "pa[U+200B]ss", id="zero-width space inside a word"),
        pytest.param("a\u200db", "a[U+200D]b", id="joiner between Latin letters"),
        pytest.param("\u2066x\u2069", "[U+2066]x[U+2069]", id="isolates"),
        pytest.param("x\U000e0041", "x[U+E0041]", id="tag letter"),
        pytest.param("x\ufe01", "x[U+FE01]", id="variation selector after a letter"),
        pytest.param("a\x00\x1b[31m", "a[U+0000][U+001B][31m", id="control characters"),
        pytest.param("a\u3164b", "a[U+3164]b", id="hangul filler is a letter that draws nothing"),
        pytest.param("a\u2028b", "a[U+2028]b", id="line separator"),
        pytest.param("soft\u00adhyphen", "soft[U+00AD]hyphen", id="soft hyphen"),
    ],
)
def test_invisible_characters_are_written_out(text, shown):
    assert replace_invisible_by_code_points(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("क्‍ष", id="joiner in a Devanagari conjunct"),
        pytest.param("می‌خواهم", id="non-joiner in Persian"),
        pytest.param("👩\u200d💻", id="joined emoji"),
        pytest.param("❤\ufe0f and 1\ufe0f\u20e3", id="emoji selectors"),
        pytest.param("₹15\u202f000 and co\u2011pay", id="narrow space and hard hyphen of real replies"),
        pytest.param("two\nlines\tand a tab", id="line ends and tabs"),
    ],
)
def test_honest_text_stays(text):
    assert replace_invisible_by_code_points(text) == text


def test_a_control_character_has_a_name_too():
    assert format_character_name("\x00") == "control character"
    assert format_character_name("\u202e") == "right-to-left override"
