"""Orchestration only: where the stations meet."""
