"""A workflow command is one line with any content, and GitHub's runner reads it back unchanged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.github.actions import (
    Annotation,
    AnnotationLevel,
    format_command,
    format_first_commands_per_level,
    format_resume_commands,
    format_stop_commands,
)

COMMAND = re.compile(r"::(?P<name>[^ ]+) (?P<values>.*?)::(?P<text>.*)", re.DOTALL)


def read(line: str) -> tuple[str, dict[str, str], str]:
    """Parse a line as GitHub's runner does: the name up to a space, values between commas, then the text."""
    found = COMMAND.fullmatch(line)
    assert found is not None
    values = dict(pair.split("=", 1) for pair in found["values"].split(","))
    undone = [("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")]

    def plain(text: str, marks: list[tuple[str, str]]) -> str:
        for mark, character in marks:
            text = text.replace(mark, character)
        return text

    in_text = [undone[0], undone[1], undone[4]]
    return found["name"], {k: plain(v, undone) for k, v in values.items()}, plain(found["text"], in_text)


texts = st.text(alphabet=st.sampled_from("ab%:,=\r\n 0A25D\u2028é"), max_size=40)


@given(title=texts, text=texts, file=st.none() | texts.filter(bool), line=st.none() | st.integers(1, 10**6))
def test_any_text_is_one_line_and_reads_back(title, text, file, line):
    command = format_command(Annotation(level=AnnotationLevel.ERROR, title=title, text=text, file=file, line=line))
    assert "\n" not in command
    assert "\r" not in command
    name, values, said = read(command)
    assert (name, said) == ("error", text)
    assert values["title"] == title
    assert values.get("file") == file
    assert values.get("line") == (None if line is None else str(line))


@pytest.mark.parametrize(("count", "lines"), [(0, 0), (9, 9), (10, 10), (11, 10), (500, 10)])
def test_more_than_ten_of_a_level_are_counted_and_not_dropped(count, lines):
    notes = [Annotation(level=AnnotationLevel.ERROR, title=f"{n}", text="x") for n in range(count)]
    said = list(
        format_first_commands_per_level([*notes, Annotation(level=AnnotationLevel.NOTICE, title="n", text="y")])
    )
    errors = [line for line in said if line.startswith("::error ")]
    assert len(errors) == lines
    assert len(said) == lines + 1
    if count > 10:
        assert f"and {count - 9} more" in errors[-1]


def test_commands_are_off_between_two_lines_with_one_nonce():
    assert (format_stop_commands("n0nce"), format_resume_commands("n0nce")) == (
        "::stop-commands::n0nce",
        "::n0nce::",
    )
