"""Store the results of runs; the only package that uses DuckDB."""
