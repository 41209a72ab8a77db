"""What a conversation was, read back for a draft: from the tables, else from the run's own segments."""

from __future__ import annotations

import duckdb

from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.people import Said
from warehouse.journal import Journal
from warehouse.rows import ResultRow

_LOADED = """
select turns, case when graded_channel = 'wire' then wire_text else visible_text end, partial_text
from results where run_id = $run and case_id = $case order by repeat limit 1
"""


def what_was_said(
    connection: duckdb.DuckDBPyConnection, journal: Journal, run_id: str, case_id: str
) -> Said | None:
    """The conversation of a case in a run, as it was; ``None`` when it was never kept, or has aged out."""
    row = connection.execute(_LOADED, {"run": run_id, "case": case_id}).fetchone()
    if row is not None:
        turns, answer = tuple(map(str, row[0] or ())), str(row[1] or row[2] or "")
    else:
        turns, answer = _kept(journal, run_id, case_id)
    return Said(run_id=run_id, case_id=case_id, turns=turns, answer=answer) if any(turns) else None


def _kept(journal: Journal, run_id: str, case_id: str) -> tuple[tuple[str, ...], str]:
    """A run that is going on has its results in the journal alone."""
    for row in journal.read_run(run_id):
        if isinstance(row, ResultRow) and row.row.case_id == case_id:
            return row.row.turns, _answer(row.row)
    return (), ""


def _answer(result: Exchange | NoAnswer) -> str:
    return result.graded_text if isinstance(result, Exchange) else result.partial_text
