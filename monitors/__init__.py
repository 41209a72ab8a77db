"""Asks the application, grades its answers and evaluates the run. This package uses neither Prefect nor DuckDB."""
