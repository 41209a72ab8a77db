"""Tell people: redacted observations, incident life cycle, messages, delivery."""
