"""Store the results of runs. Only this package uses DuckDB."""
