"""Write the results of a run: Markdown, JSON, JUnit, HTML."""
