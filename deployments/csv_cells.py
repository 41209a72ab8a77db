"""Rows as CSV that a spreadsheet shows and never runs."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

RUNS: Final = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet takes for a formula (OWASP, CSV injection); tab and line ends too."""
MARK: Final = "'"
"""Before such a cell: a spreadsheet then shows it as text."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and the rows, as RFC 4180 has it. Numbers stay numbers; texts that would run are marked."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def cell(value: object) -> str:
    """One value as it is written."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat()
        case _:
            return inert_cell(str(value))


def inert_cell(text: str) -> str:
    """``text``, marked when a spreadsheet would run it: wide forms and blanks before the sign count too."""
    seen = unicodedata.normalize("NFKC", text).lstrip()
    return MARK + text if seen.startswith(RUNS) or text.startswith(("\t", "\r", "\n")) else text
