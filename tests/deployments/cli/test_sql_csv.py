from __future__ import annotations

import csv
import io
import re
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.cli.sql import escape_formula_cell, format_csv


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        " =1",
        "\u00a0=1",
        "＝1",
        "＋1",
        "－1",
        "＠x",
        '=cmd|"/c x"!A1',
    ],
)
def test_f84_a_cell_that_a_spreadsheet_would_run_is_escaped(text):
    assert escape_formula_cell(text) == "'" + text
    ((_,), (shown,)) = csv.reader(io.StringIO(format_csv(["answer"], [[text]]), newline=""))
    assert shown == "'" + text


@pytest.mark.parametrize("blank", ["\t", "\r", "\n"])
def test_f84_a_blank_that_starts_a_cell_is_escaped_and_so_is_what_follows_it(blank):
    assert escape_formula_cell(f"{blank}=1") == f"'{blank}'=1"


@pytest.mark.parametrize("separator", [";", "\t", "|", "\n", "\r\n", "；", "; "])
@pytest.mark.parametrize("formula", ["=cmd|'/c x'!A1", "+1", "-2", "@SUM(A1)", "＝1"])
def test_f103_a_formula_behind_another_separator_is_inert(separator, formula):
    line = format_csv(["answer", "n"], [[f"x{separator}{formula}", -5]]).splitlines(keepends=True)[1:]
    assert "".join(line).endswith(",-5\r\n")
    assert re.split(r"[;；\t|\r\n]\s*", "".join(line))[1].startswith("'")
    assert "".join(line).startswith('"x')


@pytest.mark.parametrize(("value", "shown"), [(-5, "-5"), (Decimal("-1.50"), "-1.50"), (None, ""), (True, "true")])
def test_f84_numbers_stay_numbers(value, shown):
    assert format_csv(["n"], [[value]]).splitlines()[1] == (shown or '""')


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=4))
def test_f84_any_text_comes_back_whole_and_never_runs(texts):
    _, row = csv.reader(io.StringIO(format_csv(["c"] * len(texts), [texts]), newline=""))
    assert [cell.replace("'", "") for cell in row] == [text.replace("'", "") for text in texts]
    pieces = [piece for cell in row for piece in re.split(r"[;\t|\r\n]", cell)]
    assert not any(
        unicodedata.normalize("NFKC", piece).lstrip().startswith(("=", "+", "-", "@")) for piece in pieces
    )
