"""Test that ``docs/warehouse.md`` equals the page that is generated from the database.

To update the page, run ``python -m tests.tools.test_warehouse_reference``.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.tools.warehouse_reference import describe
from tests.warehouse.temporary_stores import bare_store_in

PAGE = Path(__file__).parents[2] / "docs" / "warehouse.md"
MARK = "<!-- from here on written by the database: python -m tests.tools.test_warehouse_reference -->\n"


def generated() -> str:
    with (
        tempfile.TemporaryDirectory() as folder,
        bare_store_in(Path(folder)).database.open_for_writing(1) as connection,
    ):
        return describe(connection)


def test_the_page_is_current():
    assert PAGE.read_text("utf-8").partition(MARK)[2] == "\n" + generated()


def test_every_table_column_and_view_is_explained():
    text = generated()
    assert "None" not in text
    assert [line for line in text.splitlines() if line.endswith("|  |")] == []
    names = re.findall(r"^### `(\w+)`$", text, re.MULTILINE)
    assert {"run_summary", "score_trend", "grades", "segments", "open_incidents"} <= set(names)


if __name__ == "__main__":
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n{generated()}", "utf-8")
