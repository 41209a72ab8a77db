"""Write down what a run found: Markdown, JSON, JUnit, HTML."""
