"""Remember what happened; the only home of DuckDB."""
