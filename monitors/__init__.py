"""Send questions to the application, grade the answers and evaluate the run. Uses neither Prefect nor DuckDB."""
