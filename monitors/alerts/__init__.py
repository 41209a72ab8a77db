"""Alerting: redacted observations, incident life cycle, messages, delivery."""
