from __future__ import annotations

import csv
import io
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
        "\t=1",
        "\r=1",
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


@pytest.mark.parametrize(("value", "shown"), [(-5, "-5"), (Decimal("-1.50"), "-1.50"), (None, ""), (True, "true")])
def test_f84_numbers_stay_numbers(value, shown):
    assert format_csv(["n"], [[value]]).splitlines()[1] == (shown or '""')


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=4))
def test_f84_any_text_comes_back_whole_and_never_runs(texts):
    _, row = csv.reader(io.StringIO(format_csv(["c"] * len(texts), [texts]), newline=""))
    assert [cell.removeprefix("'") for cell in row] == [text.removeprefix("'") for text in texts]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)
