from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.redact import (
    disable_slack_markup,
    escape_for_slack,
    remove_invisible_characters,
    truncate_escaped_text,
)
from tests.monitors.alerts.hostile import hostile_text

ROWS = [
    ("<!channel>", "&lt;!channel&gt;"),
    ("a & b", "a &amp; b"),
    ("&lt;", "&amp;lt;"),
    ("`x` and ```y```", "ˋxˋ and ˋˋˋyˋˋˋ"),
    ("*bold* ~gone~", "∗bold∗ ∼gone∼"),
    ("_it_ snake_case", "ˍitˍ snake_case"),
    (":x: at 10:30", "꞉x: at 10:30"),
    ("tell @Channel, not @asha", "tell ＠Channel, not @asha"),
    ("two\nlines", "two lines"),
    ("a\u202eb\u200bc\x00", "abc"),
    ("₹1,50,000 · क्‍ष", "₹1,50,000 · क्‍ष"),
]


@pytest.mark.parametrize(("text", "shown"), ROWS, ids=range(len(ROWS)))
def test_text_is_shown_and_does_nothing(text, shown):
    assert disable_slack_markup(text) == shown


@given(hostile_text)
def test_no_control_character_of_slack_is_left(text):
    shown = disable_slack_markup(text)
    bare = shown.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert not set(bare) & set("<>&`*~\n")


@given(st.text())
def test_escaping_keeps_what_it_says(text):
    assert html.unescape(escape_for_slack(text)) == html.unescape(html.escape(text, quote=False))


@given(st.text("&<>a ", max_size=30), st.integers(0, 60))
def test_a_cut_never_goes_through_an_entity(text, room):
    cut = truncate_escaped_text(escape_for_slack(text), room)
    assert len(cut) <= room
    assert not re.search(r"&(?!amp;|lt;|gt;)", cut)
    assert escape_for_slack(text).startswith(cut.removesuffix("…"))


@given(st.text())
def test_visible_text_is_one_line_and_idempotent(text):
    once = remove_invisible_characters(text)
    assert "\n" not in once
    assert remove_invisible_characters(once) == once
