"""Writes the results of a run as Markdown, JSON, JUnit and HTML."""
