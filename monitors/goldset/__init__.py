"""Gold questions: loading, checking, freezing."""
