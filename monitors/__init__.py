"""Ask the application, grade its answers and evaluate the run. This package uses neither Prefect nor DuckDB."""
