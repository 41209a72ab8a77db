"""Build docs/warehouse.md from the comments on the tables and views of the database."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

_TABLES = """
select table_name as name, comment, 'table' as kind from duckdb_tables() where not internal and not temporary
union all
select view_name, comment, 'view' from duckdb_views() where not internal and not temporary
order by kind desc, name
"""

_COLUMNS = """
select column_name, data_type, coalesce(comment, '') from duckdb_columns()
where table_name = ? and not internal order by column_index
"""


def describe(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the page as Markdown: first the views, which users query, then the tables with all column comments."""
    table_rows = connection.execute(_TABLES).fetchall()
    views = [_view(connection, str(name), str(comment)) for name, comment, kind in table_rows if kind == "view"]
    tables = [_table(connection, str(name), str(comment)) for name, comment, kind in table_rows if kind == "table"]
    return "\n".join(["## Views", "", *views, "## Tables", "", *tables]).rstrip() + "\n"


def _view(connection: duckdb.DuckDBPyConnection, name: str, comment: str) -> str:
    columns = connection.execute(_COLUMNS, [name]).fetchall()
    listed = ", ".join(f"`{column}`" for column, _, _ in columns)
    return f"### `{name}`\n\n{comment}\n\n{listed}\n"


def _table(connection: duckdb.DuckDBPyConnection, name: str, comment: str) -> str:
    columns: Sequence[tuple[object, ...]] = connection.execute(_COLUMNS, [name]).fetchall()
    rows = "\n".join(f"| `{column}` | {str(kind).lower()} | {note} |" for column, kind, note in columns)
    return f"### `{name}`\n\n{comment}\n\n| column | type | meaning |\n| --- | --- | --- |\n{rows}\n"
