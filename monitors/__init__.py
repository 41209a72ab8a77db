"""Send questions to the application, grade the answers and evaluate the run.

This package uses neither Prefect nor DuckDB.
"""
