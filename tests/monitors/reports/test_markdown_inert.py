import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from monitors.reports.format import escape_markdown, format_code_span
from tests.monitors.reports.hostile_rows import hostile_rows

# HTML is on, as the most credulous renderer would have it.
RENDERER = MarkdownIt("commonmark", {"html": True}).enable("table")
TRICKY = st.text(st.sampled_from("`|\\*_[]()<>&#!~$@:/w.\n -aB1\u202e"), max_size=60)


def cell(text: str) -> list[Token]:
    """Put ``text`` into the middle cell of a Markdown table, and return the tokens of this cell."""
    tokens = RENDERER.parse(f"| a | b | c |\n| --- | --- | --- |\n| left | {text} | right |\n")
    cells = [tokens[at + 1].children or [] for at, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 3
    assert [token.content for token in (*cells[0], *cells[2])] == ["left", "right"]
    return cells[1]


@given(TRICKY)
def test_a_code_span_is_one_code_span_whatever_it_holds(text):
    tokens = cell(format_code_span(text, 80))
    expected = ["text"] if not text.split() else ["code_inline"]
    assert [token.type for token in tokens] == expected


@given(TRICKY)
def test_an_inert_sentence_is_nothing_but_text(text):
    assert {token.type for token in cell(escape_markdown(text))} <= {"text", "text_special"}


@pytest.mark.parametrize("text", hostile_rows(), ids=lambda text: repr(text[:30]))
def test_hostile_rows_stay_text(text):
    assert [token.type for token in cell(format_code_span(text, 200))] == ["code_inline"]
    assert {token.type for token in cell(escape_markdown(text, 200))} <= {"text", "text_special"}


@pytest.mark.parametrize(
    "text",
    ["@octocat", "team @org/people", "#12", "GH-12", "see https://example.org/x", "www.example.org", ":tada: :+1:"],
)
def test_references_that_a_forge_resolves_are_broken_up(text):
    """The rendered text has no mention, issue number, bare link or emoji that a site like GitHub would resolve."""
    rendered = "".join(token.content for token in cell(escape_markdown(text)))
    assert not re.search(r"@\w|#\d|GH-\d|\w://|www\.|:(tada|\+1):", rendered)
    assert rendered.replace("\u2060", "") == text


def test_times_and_figures_are_left_alone():
    text = "2026-11-21 03:11:05 UTC, 0.943 < 0.980 (3 of 40)"
    assert escape_markdown(text).replace("&lt;", "<") == text


def test_the_limit_holds():
    assert len(format_code_span("x" * 999, 50)) <= 52
    assert len(escape_markdown("x" * 999, 50)) <= 50
